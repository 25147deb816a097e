r"""The largest value of a quadratic form over the unit vectors of a polyhedral cone.

.. math:: \max_c c'Qc \quad \|c\| = 1,\; Rc \ge 0 \qquad (P_d)

with Q symmetric d×d, d small, and R any number of rows. For a set S of rows let the columns of
:math:`N_S` be an orthonormal basis of the c with :math:`R_S c = 0`, and :math:`u_S` the leading
eigenvector of :math:`N_S'QN_S`.

*The optimum is* :math:`±N_S u_S` *for some independent S with fewer than d rows.* Let c* be
optimal. If no row is active there, c* is a local maximum of the form on the sphere, so its value
is the largest eigenvalue of Q (an eigenvector of any other one is a saddle point). If that is
simple, c* = ±u. If not, walk from c* to u or -u inside the leading eigenspace, where the value is
the same: either one of them is reached, or a row becomes active on the way. So ±u is optimal, or
there is an optimum with an active row, which is a problem of the same kind in dimension d - 1.

Those sets are searched depth first. A set, and all that contain it, is passed over when
:math:`λ_1(N_S'QN_S)` is no larger than the best value so far, and those that contain it when
:math:`±N_S u_S` is in the cone. In two dimensions the rows leave an arc, and its two ends take the
place of all sets of one row. Cost: for k rows at most :math:`O(k^{d-2})` sets, and O(kd) for each.

Reference: Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML
2014, section 5. It recurses; the sets here are the same, each met once.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.machine import compiled

# A row counts as satisfied when it is violated by no more than this share of its length, and as
# dependent on others when no more of it is left. The value then errs by the square of it.
FEASIBLE_TOL = 1e-10
DEPENDENT_TOL = 1e-12

MAX_CONE_SWEEPS = 60


@compiled
def search_cone(Q: FloatArray, R: FloatArray, k: int, floor: float, best: FloatArray) -> float:
    """Return the largest value above `floor` for the first k rows of R, or `floor`.

    `best` receives its unit vector c.
    """
    d = Q.shape[0]
    lengths = np.empty(k)
    for i in range(k):
        square = 0.0
        for j in range(d):
            square += R[i, j] * R[i, j]
        lengths[i] = np.sqrt(square)
    bases = np.zeros((d, d, d))  # bases[s][:, : d - s] belongs to s active rows
    for j in range(d):
        bases[0, j, j] = 1.0
    bound = np.empty(d)  # λ₁ inside each of them
    cursor = np.zeros(d, dtype=np.int64)  # the next row to make active
    c = np.empty(d)
    level, arrived = 0, True
    while level >= 0:
        p = d - level
        if arrived:
            bound[level] = leading_inside(Q, bases[level], p, c)
            if bound[level] > floor:
                sign = _which_sign(R, lengths, k, c)
                if sign != 0:
                    floor = bound[level]
                    for j in range(d):
                        best[j] = sign * c[j]
                elif p == 2:
                    floor = _search_plane(Q, R, lengths, k, bases[level], floor, best)
        arrived = False
        if p <= 2 or bound[level] <= floor or cursor[level] == k:
            level -= 1
            continue
        i = cursor[level]
        cursor[level] += 1
        if lengths[i] > 0 and narrow(bases[level], p, R[i], lengths[i], bases[level + 1]):
            level += 1
            cursor[level] = i + 1
            arrived = True
    return floor


@compiled
def _search_plane(
    Q: FloatArray, R: FloatArray, lengths: FloatArray, k: int,
    B: FloatArray, floor: float, best: FloatArray,
) -> float:  # fmt: skip
    """Do the same in the plane spanned by B[:, :2], where ±u is known to be outside the cone.

    What the rows leave of the circle is an arc of at most a half turn, from x clockwise to y
    counterclockwise, and the value is largest at one of its ends. Only when two rows are opposite
    is it two points instead, x and y.
    """
    d = Q.shape[0]
    started = False
    x0 = x1 = y0 = y1 = 0.0
    for i in range(k):
        a = b = 0.0
        for q in range(d):
            a += R[i, q] * B[q, 0]
            b += R[i, q] * B[q, 1]
        size = np.sqrt(a * a + b * b)
        if size <= DEPENDENT_TOL * lengths[i]:
            continue
        a, b = a / size, b / size
        if not started:
            started = True
            x0, x1, y0, y1 = b, -a, -b, a
            continue
        at_x, at_y = a * x0 + b * x1, a * y0 + b * y1
        if at_x < -FEASIBLE_TOL and at_y < -FEASIBLE_TOL:
            return floor
        if at_x < -FEASIBLE_TOL:
            x0, x1 = b, -a
        elif at_y < -FEASIBLE_TOL:
            y0, y1 = -b, a
    c = np.empty(d)
    for end in range(2):
        e0, e1 = (x0, x1) if end == 0 else (y0, y1)
        for q in range(d):
            c[q] = B[q, 0] * e0 + B[q, 1] * e1
        value = 0.0
        for q in range(d):
            for s in range(d):
                value += c[q] * Q[q, s] * c[s]
        if value > floor:
            sign = _which_sign(R, lengths, k, c)
            if sign != 0:
                floor = value
                for q in range(d):
                    best[q] = sign * c[q]
    return floor


@compiled
def _which_sign(R: FloatArray, lengths: FloatArray, k: int, c: FloatArray) -> int:
    """Return 1 or -1 when c or -c is in the cone, else 0."""
    plus, minus = True, True
    for i in range(k):
        value = 0.0
        for j in range(c.size):
            value += R[i, j] * c[j]
        if value < -FEASIBLE_TOL * lengths[i]:
            plus = False
        if value > FEASIBLE_TOL * lengths[i]:
            minus = False
        if not (plus or minus):
            return 0
    return 1 if plus else -1


@compiled
def narrow(B: FloatArray, p: int, row: FloatArray, length: float, out: FloatArray) -> bool:
    """Write to `out` an orthonormal basis of the part of span(B[:, :p]) orthogonal to a row.

    Returns False when all of the span is orthogonal to it, up to rounding.
    """
    d = B.shape[0]
    a = np.empty(p)
    size = 0.0
    for j in range(p):
        a[j] = 0.0
        for q in range(d):
            a[j] += B[q, j] * row[q]
        size += a[j] * a[j]
    size = np.sqrt(size)
    if size <= DEPENDENT_TOL * length:
        return False
    # The Householder reflection that takes a to the first axis; the other axes are the answer.
    # a ± |a| e₁, with the sign that does not cancel, has the square 2|a| (|a| + |a₁|).
    scale = 1.0 / (size * (size + abs(a[0])))
    a[0] += size if a[0] >= 0 else -size
    for q in range(d):
        product = 0.0
        for j in range(p):
            product += B[q, j] * a[j]
        for j in range(1, p):
            out[q, j - 1] = B[q, j] - scale * product * a[j]
    return True


@compiled
def leading_inside(Q: FloatArray, B: FloatArray, p: int, c: FloatArray) -> float:
    """Return the leading eigenvalue of B'QB for the first p columns of B; c is the vector B u."""
    d = Q.shape[0]
    S, u = np.empty((p, p)), np.empty(p)
    for i in range(p):
        for j in range(p):
            S[j, i] = 0.0
        for q in range(d):
            product = 0.0
            for s in range(d):
                product += Q[q, s] * B[s, i]
            for j in range(p):
                S[j, i] += B[q, j] * product
    value = leading_pair(S, u)
    for q in range(d):
        c[q] = 0.0
        for j in range(p):
            c[q] += B[q, j] * u[j]
    return value


@compiled
def leading_pair(S: FloatArray, u: FloatArray) -> float:
    """Return the leading eigenvalue of a small symmetric matrix by Jacobi's rotations; S is lost.

    u receives the unit eigenvector.
    """
    p = S.shape[0]
    vectors = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(MAX_CONE_SWEEPS):
        rotated = False
        for i in range(p - 1):
            for j in range(i + 1, p):
                off = 0.5 * (S[i, j] + S[j, i])
                if abs(off) <= 1e-17 * (abs(S[i, i]) + abs(S[j, j])):
                    continue
                rotated = True
                theta = (S[j, j] - S[i, i]) / (2.0 * off)
                t = 1.0 / (abs(theta) + np.sqrt(1.0 + theta * theta))
                if theta < 0:
                    t = -t
                cosine = 1.0 / np.sqrt(1.0 + t * t)
                sine = t * cosine
                for q in range(p):
                    a, b = S[q, i], S[q, j]
                    S[q, i], S[q, j] = cosine * a - sine * b, sine * a + cosine * b
                for q in range(p):
                    a, b = S[i, q], S[j, q]
                    S[i, q], S[j, q] = cosine * a - sine * b, sine * a + cosine * b
                    a, b = vectors[q, i], vectors[q, j]
                    vectors[q, i], vectors[q, j] = cosine * a - sine * b, sine * a + cosine * b
                S[i, j] = S[j, i] = 0.0
        if not rotated:
            break
    best = 0
    for i in range(1, p):
        if S[i, i] > S[best, best]:
            best = i
    for q in range(p):
        u[q] = vectors[q, best]
    return S[best, best]

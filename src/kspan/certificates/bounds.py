r"""Upper bounds on the row-sparse optimum, computed rigorously from a witness.

Everything here is a pure function of the data and a witness: a wrong witness can only make a
bound loose, never false. Nothing here searches.

**The dual bound.** For every S with |S| = k, forced ⊆ S ⊆ allowed, and every B = FF',

.. math::
    \sum_{i\le m} λ_i(A_{SS}) \le \sum_{i\in S} B_{ii} + \sum_{i\le m} λ_i((A-B)_{SS})
    \le \sum_{forced} b_i + \text{top-}(k-|forced|)\text{ of the other } b_i
        + \sum_{i\le m} λ_i(A-B)

by Ky Fan's inequality and Cauchy's interlacing (which needs |S| ≥ m and nothing else).

**Strengthened.** Let P be the projector on the m leading eigenvectors of A_SS. Its row i ∈ S has
at most k nonzeros and :math:`\sum_j P_{ij}^2 = P_{ii}`, so for any H with rows h_i and β_i > 0

.. math::
    \langle \mathrm{sym}(H), P \rangle \le \sum_{i\in S} \|h_i\|_\infty \sqrt{k P_{ii}}
    \le \sum_i β_i P_{ii} + \sum_{i \in S} k\|h_i\|_\infty^2 / 4β_i .

A may thus be replaced by ``A - sym(H) + Diag(β)`` when ``k‖h_i‖∞²/4β_i`` is added to the score
of every feature.

**Rounding.** What is returned is above the exact value of its formula. Let u be the unit
roundoff. ``fl(FF')`` with r columns is off by at most (r+2)u·tr B in norm; each matrix added
brings u times its Frobenius norm; a LAPACK eigenvalue of an n×n matrix M is off by at most
p(n)u‖M‖ with p a modest polynomial, for which 4n is generous. By Weyl every eigenvalue moves
by at most the sum of these, and m are added. A computed covariance of n_samples rows is itself
off by (n_samples+2)u·tr A. Sums of k numbers of one sign are off by ku of themselves. Callers
divide by a power of two first, so nothing under- or overflows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
import scipy.linalg

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.witness import Cones, SampleWitness, SplitWitness, Strengthening

UNIT = 2.0**-53

# Data are in units of their scale: no honest witness has numbers outside this range.
SMALLEST, LARGEST = 1e-100, 1e100

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _refuses_overflow(
    function: Callable[_Arguments, _Result],
) -> Callable[_Arguments, _Result]:
    """Turn overflow and failing eigensolvers into `FloatingPointError`."""

    @wraps(function)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
                return function(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise FloatingPointError(f"no eigenvalues: {error}") from None

    return wrapped


def _require_range(*arrays: FloatArray) -> None:
    """Refuse what is not finite, too large to be honest, or not made of doubles.

    Squares of integers may wrap around, and those of complex numbers may be negative.
    """
    for array in arrays:
        if array.dtype != np.float64:
            raise FloatingPointError(f"the witness holds {array.dtype}, not float64")
        if not bool((np.abs(array) <= LARGEST).all()):
            raise FloatingPointError("the witness is not finite, or too large")


@dataclass(frozen=True)
class Bound:
    """A proved upper bound: its value, and the score of every feature in its top-k part."""

    value: float
    scores: FloatArray
    ky_fan: float


def unit_scale(size: float) -> float:
    """Return a power of four with size / scale in [1, 4): dividing by it and its root is exact."""
    if not (size > 0 and np.isfinite(size)):
        return 1.0
    exponent = int(np.frexp(size)[1]) - 1
    return float(np.ldexp(1.0, exponent - exponent % 2))


def best_sum(scores: FloatArray, forced: Mask, k: int) -> float:
    """Sum of the forced scores and of the best others, k in all, rounded upwards."""
    free = scores[~forced]
    n_free = min(max(k - int(forced.sum()), 0), free.size)
    if 0 < n_free < free.size:
        free = np.partition(free, free.size - n_free)[free.size - n_free :]
    elif n_free == 0:
        free = free[:0]
    size = float(np.abs(scores[forced]).sum() + np.abs(free).sum())
    return float(scores[forced].sum() + free.sum()) + (k + 8) * UNIT * size


def top_eigenvalue_sum(M: FloatArray, m: int) -> float:
    """Upper bound on the sum of the m largest eigenvalues of M, as it stands in memory."""
    n, norm = len(M), float(np.linalg.norm(M))
    if not np.isfinite(norm):
        raise FloatingPointError("the matrix of the bound is not finite")
    # All of them: LAPACK's solvers for a few can lose members of a cluster, and save only a fifth.
    values = np.linalg.eigvalsh(M)[n - m :]
    return float(values.sum()) + m * 4 * (n + 2) * UNIT * norm


def trace_bound(variances: FloatArray, forced: Mask, k: int, n_samples: int = 0) -> Bound:
    """The k largest variances: B = A."""
    scores = np.maximum(variances, 0.0) * (1 + (n_samples + 8) * UNIT)
    return Bound(best_sum(scores, forced, k), scores, 0.0)


def row_bound(A: FloatArray, m: int, k: int, n_samples: int = 0) -> float:
    r"""Gershgorin's discs for m components, with and without diagonal scaling.

    For the projector P on the leading eigenvectors of A_SS and any t > 0,
    :math:`|P_{ij}| \le (P_{ii}t_j/t_i + P_{jj}t_i/t_j)/2`, so

    .. math:: \langle A, P\rangle \le \sum_i P_{ii} r_i, \qquad
              r_i = a_{ii} + \text{the k-1 largest of } |a_{ij}| t_j / t_i ,

    which is at most the sum of the m largest r_i, as 0 ≤ P_ii ≤ 1 and tr P = m. Tried with
    t = 1 and :math:`t_i = a_{ii}^{1/2}`.
    """
    n = len(A)
    diagonal = np.diagonal(A).copy()
    root = np.sqrt(np.maximum(diagonal, 0.0))
    best = np.inf
    for t in (np.ones(n), np.where(root > 0, root, 1.0)):
        R = np.abs(A) * (t[None, :] / t[:, None])
        R[np.arange(n), np.arange(n)] = 0.0
        others = min(k - 1, n - 1)
        discs = diagonal.copy()
        if others:
            discs += np.partition(R, n - others, axis=1)[:, n - others :].sum(axis=1)
        total = float(np.sort(discs)[n - m :].sum())
        best = min(best, total + 4 * (k + m + n_samples + 8) * UNIT * abs(total))
    return best


@_refuses_overflow
def strengthened(
    A: FloatArray, k: int, H: FloatArray, beta: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return ``A - sym(H) + Diag(β)``, the scores that go with it, and the rounding error."""
    _require_range(H, beta)
    if not (beta >= 0).all():
        raise FloatingPointError("the strengthening is not finite, too large or negative")
    largest = np.abs(H).max(axis=1, initial=0.0)
    used = largest > 0
    if not (beta[used] >= SMALLEST).all():
        raise FloatingPointError("a row of H has no positive beta")
    C = A - 0.5 * (H + H.T)
    C[np.arange(len(A)), np.arange(len(A))] += beta
    offset = np.zeros(len(A))
    offset[used] = k * largest[used] ** 2 / (4 * beta[used]) * (1 + 16 * UNIT)
    error = 8 * UNIT * (float(np.linalg.norm(H)) + float(np.linalg.norm(beta)))
    return C, offset, error


def spread(strengthening: Strengthening, allowed: Index) -> tuple[FloatArray, FloatArray]:
    """Return H and β on the allowed features; those it does not mention have zeros."""
    _, here, there = np.intersect1d(
        allowed, strengthening.features, assume_unique=True, return_indices=True
    )
    H, beta = np.zeros((allowed.size, allowed.size)), np.zeros(allowed.size)
    H[np.ix_(here, here)] = strengthening.H[np.ix_(there, there)]
    beta[here] = strengthening.beta[there]
    return H, beta


@_refuses_overflow
def dual_bound(
    A: FloatArray,
    factor: FloatArray | None,
    m: int,
    k: int,
    forced: Mask,
    strengthening: tuple[FloatArray, FloatArray] | None = None,
    n_samples: int = 0,
) -> Bound:
    """``D(FF'; k)`` on the features of A, rounded upwards. No factor means B = A.

    Raises `FloatingPointError` when the witness gives no finite bound.
    """
    if factor is None:
        return trace_bound(np.diagonal(A), forced, k, n_samples)
    n, r = factor.shape
    if len(A) != n:
        raise FloatingPointError("the factor does not fit the matrix")
    _require_range(factor)
    C, offset, error = A, np.zeros(n), 0.0
    if strengthening is not None:
        C, offset, error = strengthened(A, k, *strengthening)
    b = np.einsum("ir,ir->i", factor, factor)
    M = C - factor @ factor.T
    M = 0.5 * (M + M.T)
    total = float(b.sum())
    weight = 6 * float(np.linalg.norm(M) + np.linalg.norm(C)) + (r + 4) * total
    weight += (n_samples + 2) * float(np.trace(A))
    ky_fan = top_eigenvalue_sum(M, m) + m * (UNIT * weight + error)
    ky_fan += 8 * UNIT * abs(ky_fan)
    scores = (b + offset) * (1 + (r + 8) * UNIT)
    value = ky_fan + best_sum(scores, forced, k)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return Bound(value, scores, ky_fan)


@_refuses_overflow
def low_rank_dual_bound(X: FloatArray, factor: FloatArray, m: int, k: int, forced: Mask) -> Bound:
    """``D(FF'; k)`` for ``A = X'X`` with few rows in X: nothing of d×d is formed.

    With ``[X' F] = QR`` the nonzero eigenvalues of ``X'X - FF'`` are those of ``R J R'``,
    J = diag(1, ..., 1, -1, ..., -1).
    """
    n, d = X.shape
    r = factor.shape[1]
    _require_range(factor)
    R: FloatArray = np.linalg.qr(np.hstack([X.T, factor]), mode="r")  # type: ignore[assignment]
    signs = np.concatenate([np.ones(n), -np.ones(r)])
    M = (R * signs) @ R.T
    M = 0.5 * (M + M.T)
    mass = float(np.einsum("ij,ij->", R, R))
    # Householder QR is backward stable: columns are off by a modest multiple of (n+r)·d·u.
    error = 4 * (d + n + r) * (n + r) ** 0.5 * UNIT * mass
    # The other d - len(M) eigenvalues are zeros, and may be among the m largest.
    values = np.append(np.linalg.eigvalsh(M), np.zeros(min(m, d - len(M))))
    ky_fan = float(np.sort(values)[-m:].sum()) + m * (error + 4 * (len(M) + 2) * UNIT * mass)
    scores = np.einsum("ir,ir->i", factor, factor) * (1 + (r + 8) * UNIT)
    value = ky_fan + best_sum(scores, forced, k)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return Bound(value, scores, ky_fan)


def positive_eigenvalue_sum(M: FloatArray, m: int, weight: float, length: int) -> float:
    """Upper bound on the sum of the m largest positive eigenvalues of the exact M.

    `weight` is the sum of the squared Frobenius norms of the factors that M was formed from
    and `length` the longest inner product; see *Rounding* above.
    """
    n = len(M)
    if n == 0 or m == 0:
        return 0.0
    values = np.linalg.eigvalsh(M)[-m:]
    return float(np.maximum(values, 0.0).sum()) + m * 8 * (n + length + 8) * UNIT * weight


def _with_cones(A: FloatArray, F: FloatArray, cones: Cones) -> tuple[FloatArray, FloatArray, float]:
    """Return the matrix and the scores of `split_bound` on T, and the weight of their rounding."""
    n = len(A)
    G, alpha = cones.rows.copy(), cones.alpha.copy()
    if not (G.size or alpha.size):  # no cones
        G, alpha = np.zeros((n, n)), np.zeros(n)
    _require_range(F, G, alpha, cones.signs, cones.beta)
    if F.shape[0] != n or G.shape != (n, n) or alpha.shape != (n,):
        raise FloatingPointError("the witness does not fit the matrix")
    np.fill_diagonal(G, 0.0)
    idle = ~(alpha >= SMALLEST)  # rows without a positive weight carry no cone
    G[idle], alpha[idle] = 0.0, 0.0
    squares = np.einsum("ij,ij->i", G, G)
    beta = np.where(idle, 0.0, squares / (4 * np.where(idle, 1.0, alpha)))
    beta *= 1 + (n + 8) * UNIT
    if cones.beta.size:
        if cones.beta.shape != (n,):
            raise FloatingPointError("the witness does not fit the matrix")
        beta = np.where(idle, 0.0, np.maximum(beta, cones.beta))
    scores = np.einsum("ij,ij->i", F, F) * (1 + (F.shape[1] + 8) * UNIT) + beta
    M = A - F @ F.T - 0.5 * (G + G.T)
    M[np.arange(n), np.arange(n)] += alpha - beta
    weight = float(np.trace(A) + (F * F).sum() + np.sqrt(squares.sum()))
    weight += float(np.abs(alpha + beta).max(initial=0.0))
    if cones.signs.size:
        N = cones.signs
        if N.shape != (n, n) or not (N >= 0).all():
            raise FloatingPointError("the multiplier of P ≥ 0 has a negative entry")
        M += 0.5 * (N + N.T)
        weight += float(np.linalg.norm(N))
    return 0.5 * (M + M.T), scores, weight


@_refuses_overflow
def cone_bound(
    A: FloatArray,
    factor: FloatArray,
    cones: Cones,
    m: int,
    k: int,
    forced: Mask,
    n_samples: int = 0,
) -> Bound:
    """`split_bound` with all features of A inside: what a node of a search needs."""
    M, scores, weight = _with_cones(A, factor, cones)
    ky_fan = positive_eigenvalue_sum(M, m, weight, n_samples + factor.shape[1])
    value = ky_fan + best_sum(scores, forced, k)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return Bound(value, scores, ky_fan)


def full_bound(
    A: FloatArray,
    factor: FloatArray | None,
    cones: Cones | None,
    m: int,
    k: int,
    forced: Mask,
    n_samples: int = 0,
) -> Bound:
    """`cone_bound` with cones, `dual_bound` without."""
    if cones is None or factor is None:
        return dual_bound(A, factor, m, k, forced, n_samples=n_samples)
    cones = cones.on(np.arange(len(A)))
    return cone_bound(A, factor, cones, m, k, forced, n_samples)


@_refuses_overflow
def split_bound(
    A: FloatArray,
    variances: FloatArray,
    m: int,
    k: int,
    witness: SplitWitness,
    forced: Mask,
    allowed: Mask,
    n_samples: int = 0,
) -> float:
    r"""The split bound with row cones, for A on the features `inside` (T) only.

    For a partition of the features into T and R, any B ⪰ 0 on T, any G with a zero diagonal
    and rows g_i, any α_i > 0, and :math:`β_i = \|g_i\|^2 / 4α_i`,

    .. math::
        OPT(k) \le KyFan_m^+\big(A_{TT} - B - (G+G')/2 + Diag(α - β)\big)
        + [\text{sum of the k largest of } \{B_{ii} + β_i, i ∈ T\} ∪ \{a_{ii}, i ∈ R\}] .

    *Proof.* Write A = X'X and let Y be the projector on the m leading left singular vectors of
    X_S; then :math:`OPT = \sum_{i∈S} x_i'Yx_i`. For i ∈ R use x_i'Yx_i ≤ ‖x_i‖² = a_ii. The rest
    is at most ⟨A, P⟩, P the projector on the leading eigenvectors of A on S ∩ T: supported
    there and of rank ≤ m. With z the indicator of S ∩ T, Diag(z) - P is PSD, and P² = P says
    :math:`\sum_{j≠i} P_{ij}^2 = P_{ii}(z_i - P_{ii})`. Hence ⟨B, Diag(z) - P⟩ ≥ 0 and, by the
    inequality of the means,
    :math:`α_i P_{ii} + β_i (z_i - P_{ii}) - \sum_j g_{ij}P_{ij} \ge 0`. Add both to ⟨A, P⟩, and
    collect the terms in P (only positive eigenvalues count, as the rank may be below m) and
    those in z. ∎

    **Nonnegative components** (m = 1). For any N ≥ 0 the matrix may have N added. *Proof.* Let x
    be optimal with support S, Xx = ‖Xx‖y, and c and s the lengths of x on T and on R. On R,
    (y'X_Rx_R)² ≤ s² Σ_{S∩R} a_ii =: s²q². On T, y'X_Tx_T ≤ cp, where p ≥ 0 is the largest y'X_Tu
    over unit vectors u ≥ 0 with support in S ∩ T; p² ≤ u'A_TTu = ⟨A, P⟩ with P = uu', for which
    all of the above holds, and ⟨N, P⟩ ≥ 0 too. As c² + s² = 1, OPT ≤ (cp + sq)² ≤ p² + q². ∎
    """
    places = np.flatnonzero(allowed[witness.inside])
    T = witness.inside[places]
    A, F = A[np.ix_(places, places)], witness.factor[places]
    M, inside_scores, weight = _with_cones(A, F, witness.cones.on(places))
    scores = np.maximum(variances, 0.0)
    scores[T] = inside_scores
    ky_fan = positive_eigenvalue_sum(M, m, weight, n_samples + F.shape[1])
    value = ky_fan + best_sum(scores[allowed], forced[allowed], k)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return value


@_refuses_overflow
def sample_bound(
    X: FloatArray, m: int, k: int, witness: SampleWitness, forced: Mask, allowed: Mask
) -> float:
    r"""The sample-space bound with a matrix metric, for ``A = X'X`` with few rows in X.

    Let L = Λ + τI with Λ PSD and τ > 0. For vectors p_i (zero for features that are not active)
    put :math:`s_i = λ_{max}^+(L^{-1/2}(x_ix_i' - p_ip_i')L^{-1/2})`. Then

    .. math:: OPT(k) \le KyFan_m\big(\textstyle\sum_i p_ip_i' + σΛ\big) + σ τ,
              \qquad σ = \text{sum of the k largest } s_i .

    *Proof.* Let Y be the projector on the m leading left singular vectors of X_S and
    u = Yx_i/‖Yx_i‖. As :math:`x_ix_i' ⪯ p_ip_i' + s_iL`,
    :math:`x_i'Yx_i = (x_i'u)^2 \le (p_i'u)^2 + s_i(u'Λu + τ) \le p_i'Yp_i + s_i(tr(YΛ) + τ)`,
    for uu' ⪯ Y and Λ is PSD. Sum over S, drop S in the first term, use Σ_S s_i ≤ σ and maximise
    over Y. ∎

    With w = L^{-1/2}x_i, q = L^{-1/2}p_i, s_i = ((w-q)'(w+q) + ‖w-q‖‖w+q‖)/2, which does not
    cancel. The computed Cholesky factor is taken as exact: what it is off by goes into τ. A
    triangular solve has a backward error of ru|C|, so w and q are off by
    ``2ru‖C‖‖C⁻¹‖`` of their norms.
    """
    r = X.shape[0]
    keep = allowed[witness.active]
    active, P = witness.active[keep], witness.vectors[:, keep]
    factor, tau = witness.common, float(witness.floor)
    _require_range(factor, P)
    if not SMALLEST <= tau <= LARGEST:
        raise FloatingPointError("the floor of the witness is not a positive number of fair size")
    if np.unique(active).size != active.size:
        raise FloatingPointError("the witness names a feature twice")
    mass = float((factor * factor).sum()) + tau * r
    metric = factor @ factor.T
    try:
        C = np.linalg.cholesky(metric + tau * np.eye(r))
    except np.linalg.LinAlgError:
        raise FloatingPointError("the metric of the witness is not positive") from None

    def whiten(columns: FloatArray) -> FloatArray:
        return np.asarray(scipy.linalg.solve_triangular(C, columns, lower=True, check_finite=False))

    inverse_norm = float(np.linalg.norm(whiten(np.eye(r))))
    loss = 4 * r * UNIT * float(np.linalg.norm(C)) * inverse_norm
    if not loss < 1e-3:
        raise FloatingPointError("the metric of the witness is too ill-conditioned")
    tau += 8 * (r + factor.shape[1] + 8) * r * UNIT * mass
    W = whiten(X)
    s = np.einsum("ij,ij->j", W, W)
    size = 4 * s
    if active.size:
        Q = whiten(P)
        minus, plus = W[:, active] - Q, W[:, active] + Q
        lengths = np.linalg.norm(minus, axis=0) * np.linalg.norm(plus, axis=0)
        s[active] = 0.5 * (np.einsum("ij,ij->j", minus, plus) + lengths)
        size[active] = 2 * (np.einsum("ij,ij->j", W[:, active], W[:, active]) + (Q * Q).sum(axis=0))
    s = np.maximum(s, 0.0) + (4 * loss + 4 * (r + 8) * UNIT) * size
    sigma = best_sum(s[allowed], forced[allowed], k)
    M = P @ P.T + sigma * metric
    weight = float((P * P).sum()) + sigma * mass
    ky_fan = positive_eigenvalue_sum(M, m, weight, active.size + factor.shape[1])
    value = ky_fan + sigma * tau * (1 + 8 * UNIT)
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return value

r"""Upper bounds on the optimum, computed rigorously from a witness.

Everything here is a pure function of the data and the arrays of a witness: wrong ones can only
make a bound loose, never false. Nothing here searches.

**The dual bound.** For every S with |S| = k, forced ⊆ S ⊆ allowed, and every B = FF',

.. math::
    \sum_{i\le m} λ_i(A_{SS}) \le \sum_{i\in S} B_{ii} + \sum_{i\le m} λ_i((A-B)_{SS})
    \le \sum_{forced} b_i + \text{top-}(k-|forced|)\text{ of the other } b_i
        + \sum_{i\le m} λ_i(A-B)

by Ky Fan's inequality and Cauchy's interlacing (which needs |S| ≥ m and nothing else).

**Row cones.** Let P be the projector on the m leading eigenvectors of A_SS and z the indicator of
S. As :math:`P^2 = P`, the entries of row i beside the diagonal have
:math:`\sum_{j≠i} P_{ij}^2 = P_{ii}(z_i - P_{ii})`, and at most κ = k - 1 of them are not zero. For
any G with a zero diagonal and rows g_i, any α_i > 0, and

.. math:: β_i = \|g_i\|_{(κ)}^2 / 4α_i, \qquad \|g\|_{(κ)}^2 = \text{sum of the κ largest } g_j^2,

the inequalities of Cauchy and Schwarz and of the means give

.. math::
    \sum_j g_{ij}P_{ij} \le \|g_i\|_{(κ)} \sqrt{P_{ii}(z_i - P_{ii})}
    \le α_i P_{ii} + β_i (z_i - P_{ii}) .

A may thus be replaced by ``A - sym(G) + Diag(α - β)`` when β_i is added to the score of every
feature. What makes it strong is κ: the norm dual to that of the convex hull of vectors with κ
entries. On correlations it is worth far more than B.

**Rounding.** What is returned is above the exact value of its formula. Let u be the unit
roundoff. ``fl(FF')`` with r columns is off by at most (r+2)u·tr B in norm; each matrix added
brings u times its Frobenius norm; a LAPACK eigenvalue of an n×n matrix M is off by at most
p(n)u‖M‖ with p a modest polynomial, for which 4n is generous. By Weyl every eigenvalue moves
by at most the sum of these, and m are added. Sums of k numbers of one sign are off by ku of
themselves. Data come as a `KnownMatrix` or `KnownFactor`, divided by a power of two, so nothing
under- or overflows, and with an `Uncertainty` that says how far A is from the true one: each bound
is first one for A as it stands in memory, and what may be missing is added to scores and sum.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import UNIT
from kspan.problem import Choice
from kspan.proofs.check.claims import Part
from kspan.proofs.check.known import KnownFactor, KnownMatrix, KnownVariances

Floats = NDArray[Any]  # of any floating type

# Data are in units of their scale: no honest witness has numbers outside this range.
SMALLEST, LARGEST = 1e-100, 1e100

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def refuses_overflow(
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


def require_range(*arrays: FloatArray) -> None:
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

    @classmethod
    def of(cls, ky_fan: float, scores: FloatArray, choice: Choice) -> "Bound":
        """Add the best scores of a support to a Ky Fan sum.

        Nothing is explained by less than nothing: what is left of a matrix that lacks positive
        semidefiniteness may have no direction above zero, and then zero is the bound.
        """
        return cls(max(_finite(ky_fan + choice.best_sum(scores)), 0.0), scores, ky_fan)


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise FloatingPointError("the witness gives no finite bound")
    return value


def top_eigenvalue_sum(M: FloatArray, m: int) -> float:
    """Upper bound on the sum of the m largest eigenvalues of M, as it stands in memory."""
    return _top_eigenvalues(M, m)[0]


def _top_eigenvalues(M: FloatArray, m: int) -> tuple[float, float]:
    """Return that bound, and the smallest of these eigenvalues as it is computed."""
    n, norm = len(M), float(np.linalg.norm(M))
    if not np.isfinite(norm):
        raise FloatingPointError("the matrix of the bound is not finite")
    # All of them: LAPACK's solvers for a few can lose members of a cluster, and save only a fifth.
    values = np.linalg.eigvalsh(M)[n - m :]
    return float(values.sum()) + m * 4 * (n + 2) * UNIT * norm, float(values[0]) if n else 0.0


def variance_scores(known: KnownMatrix | KnownVariances, m: int) -> FloatArray:
    """Return scores that are above what a feature can add: its variance, if A is PSD."""
    scores: FloatArray = np.maximum(known.variances, 0.0) * (1 + 8 * UNIT)
    return scores + known.uncertainty.scores(m)


def trace_bound(known: KnownMatrix | KnownVariances, m: int, choice: Choice) -> Bound:
    """The k largest variances: B = A. Needs nothing but the diagonal.

    If A + Diag(s) is PSD and A is not, the sum for that matrix bounds the one for A. With k = m
    all eigenvalues are added, and their sum is the trace, whatever their signs.
    """
    scores, uncertainty = variance_scores(known, m), known.uncertainty
    if choice.size > m:
        scores = scores + uncertainty.psd_slack
    return Bound.of(uncertainty.ky_fan(m), scores, choice)


@refuses_overflow
def dual_bound(
    known: KnownMatrix,
    factor: FloatArray | None,
    m: int,
    choice: Choice,
    cones: "Cones | None" = None,
    *,
    any_size: bool = False,
) -> Bound:
    """``D(FF'; k)`` on the features of A, rounded upwards. No factor means B = A.

    Parameters
    ----------
    known : A, on as many features as the choice is about
    factor : (n, r) array
    m, choice : components; which features may be chosen
    cones : on the same features
    any_size : whether scores and sum are to hold for every number of features

    Raises `FloatingPointError` when the witness gives no finite bound.
    """
    A, uncertainty = known.A, known.uncertainty
    if factor is None:
        return trace_bound(known, m, choice)
    n = len(factor)
    if len(A) != n:
        raise FloatingPointError("the factor does not fit the matrix")
    require_range(factor)
    C, offset, error = A, np.zeros(n), 0.0
    if cones is not None:
        C, offset, error = with_cones(A, cones, n if any_size else choice.size - 1)
    ky_fan = ky_fan_without(C, factor, m) + m * error
    ky_fan += uncertainty.ky_fan(m)
    scores = factor_scores(factor, offset) + uncertainty.scores(m)
    return Bound.of(ky_fan, scores, choice)


def ky_fan_without(C: FloatArray, factor: FloatArray, m: int) -> float:
    """Upper bound on the sum of the m largest eigenvalues of ``C - FF'``."""
    return leading_without(C, factor, m)[0]


def leading_without(C: FloatArray, factor: FloatArray, m: int) -> tuple[float, float]:
    """Return `ky_fan_without`, and the smallest of these eigenvalues as it is computed.

    The bound is a sum of m numbers, each above an eigenvalue, and none below that smallest one.
    """
    r = factor.shape[1]
    M = C - factor @ factor.T
    M = 0.5 * (M + M.T)
    weight = 6 * float(np.linalg.norm(M) + np.linalg.norm(C))
    weight += (r + 4) * float(np.einsum("ir,ir->", factor, factor))
    total, least = _top_eigenvalues(M, m)
    ky_fan = total + m * UNIT * weight
    return ky_fan + 8 * UNIT * abs(ky_fan), least


def factor_scores(factor: FloatArray, offset: FloatArray | float = 0.0) -> FloatArray:
    """Return the diagonal of ``FF'`` and an offset, none of it negative, rounded upwards."""
    scores: FloatArray = np.einsum("ir,ir->i", factor, factor) + offset
    return scores * (1 + (factor.shape[1] + 8) * UNIT)


@refuses_overflow
def low_rank_dual_bound(known: KnownFactor, factor: FloatArray, m: int, choice: Choice) -> Bound:
    """``D(FF'; k)`` for ``A = X'X`` with few rows in X: nothing of d×d is formed.

    With ``[X' F] = QR`` the nonzero eigenvalues of ``X'X - FF'`` are those of ``R J R'``,
    J = diag(1, ..., 1, -1, ..., -1).
    """
    X = known.X
    n, d = X.shape
    r = factor.shape[1]
    require_range(factor)
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
    uncertainty = known.uncertainty
    return Bound.of(ky_fan + uncertainty.ky_fan(m), scores + uncertainty.scores(m), choice)


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


@dataclass(frozen=True)
class Cones(Part):
    """Multipliers of the row cones, G with its weights α and β, and N of P ≥ 0; empty: zero.

    N (`signs`) is for nonnegative problems only: there ⟨N, P⟩ ≥ 0, and A may have N added.
    β at least ‖g_i‖²/4α_i, of the κ largest entries, is enough; keeping the β of all features when
    some of them are gone makes the bound of a part no larger than that of the whole.
    Any floating type: in float32 they are another witness, as good and half the size.
    """

    rows: Floats = field(default_factory=lambda: np.empty((0, 0)))
    alpha: Floats = field(default_factory=lambda: np.empty(0))
    signs: Floats = field(default_factory=lambda: np.empty((0, 0)))
    beta: Floats = field(default_factory=lambda: np.empty(0))

    def on(self, places: Index) -> "Cones":
        """Return them on some of their features, as float64."""
        block = np.ix_(places, places)
        rows, signs = (M[block] if M.size else M for M in (self.rows, self.signs))
        alpha, beta = (v[places] if v.size else v for v in (self.alpha, self.beta))
        parts = (rows, alpha, signs, beta)
        if any(part.dtype.kind != "f" for part in parts):
            raise FloatingPointError("the cones of the witness are not floating numbers")
        return Cones(*(part.astype(np.float64) for part in parts))

    def compact(self, n_others: int) -> "Cones":
        """Return them in float32, with a β that covers the rounding, for rows of so many others."""
        positive = self.alpha > 0
        squares = largest_squares(self.rows, n_others)
        beta = np.where(positive, squares / np.where(positive, 4 * self.alpha, 1.0), 0.0)
        parts = (self.rows, self.alpha, self.signs, beta * (1 + 1e-5))
        return Cones(*(part.astype(np.float32) for part in parts))


@dataclass(frozen=True)
class SharedCones(Part):
    """Row cones on `features` that many nodes of a search use; zero elsewhere."""

    features: Index
    cones: Cones

    def on(self, features: Index) -> Cones:
        """Return them on other features, all of them doubles."""
        _, here, there = np.intersect1d(
            features, self.features, assume_unique=True, return_indices=True
        )
        part, n = self.cones.on(there), features.size
        rows, (alpha, beta) = np.zeros((n, n)), np.zeros((2, n))
        rows[np.ix_(here, here)], alpha[here] = part.rows, part.alpha
        if part.beta.size:
            beta[here] = part.beta
        return Cones(rows, alpha, beta=beta)


def largest_squares(rows: FloatArray, count: int) -> FloatArray:
    """Return the sum of the `count` largest squares of every row; of at least one."""
    squares, n = rows * rows, rows.shape[1] if rows.ndim == 2 else 0
    count = max(count, 1)
    if count < n:
        squares = np.partition(squares, n - count, axis=1)[:, n - count :]
    total: FloatArray = squares.sum(axis=1)
    return total


def _row_cones(cones: Cones, n: int, n_others: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return G without a diagonal, α and β; rows without a positive α carry no cone."""
    G, alpha = cones.rows.copy(), cones.alpha.copy()
    if not (G.size or alpha.size):  # no cones
        G, alpha = np.zeros((n, n)), np.zeros(n)
    require_range(G, alpha, cones.signs, cones.beta)
    if G.shape != (n, n) or alpha.shape != (n,) or cones.beta.shape not in ((n,), (0,)):
        raise FloatingPointError("the witness does not fit the matrix")
    np.fill_diagonal(G, 0.0)
    idle = ~(alpha >= SMALLEST)
    G[idle], alpha[idle] = 0.0, 0.0
    beta = np.where(idle, 0.0, largest_squares(G, n_others) / (4 * np.where(idle, 1.0, alpha)))
    beta *= 1 + (n + 8) * UNIT
    if cones.beta.size:
        beta = np.where(idle, 0.0, np.maximum(beta, cones.beta))
    return G, alpha, beta


@refuses_overflow
def with_cones(A: FloatArray, cones: Cones, n_others: int) -> tuple[FloatArray, FloatArray, float]:
    """Return ``A - sym(G) + Diag(α - β)``, with N added, the scores β, and the rounding error.

    Parameters
    ----------
    A : (n, n) array
    cones : on its features
    n_others : κ, the entries of a row of P, beside the diagonal, that are not zero, at most
    """
    n = len(A)
    sizes = {len(part) for part in (cones.rows, cones.alpha, cones.signs, cones.beta) if part.size}
    if not sizes <= {n}:
        raise FloatingPointError("the witness does not fit the matrix")
    cones = cones.on(np.arange(n))  # as doubles
    G, alpha, beta = _row_cones(cones, n, n_others)
    C = A - 0.5 * (G + G.T)
    C[np.arange(n), np.arange(n)] += alpha - beta
    size = float(np.linalg.norm(G) + np.linalg.norm(alpha) + np.linalg.norm(beta))
    if cones.signs.size:
        N = cones.signs
        if N.shape != (n, n) or not (N >= 0).all():
            raise FloatingPointError("the multiplier of P ≥ 0 has a negative entry")
        C += 0.5 * (N + N.T)
        size += float(np.linalg.norm(N))
    return C, beta, 8 * UNIT * size


@refuses_overflow
def split_bound(
    known: KnownMatrix,
    everywhere: KnownVariances,
    inside: Index,
    factor: FloatArray,
    cones: Cones,
    m: int,
    choice: Choice,
) -> Bound:
    r"""The split bound with row cones, for A on the features `inside` (T) only.

    `everywhere`, of all features, is in the units of A.

    For a partition of the features into T and R, any B ⪰ 0 on T, and any row cones (see above),

    .. math::
        OPT(k) \le KyFan_m^+\big(A_{TT} - B - (G+G')/2 + Diag(α - β)\big)
        + [\text{sum of the k largest of } \{B_{ii} + β_i, i ∈ T\} ∪ \{a_{ii}, i ∈ R\}] .

    *Proof.* Write A = X'X and let Y be the projector on the m leading left singular vectors of
    X_S; then :math:`OPT = \sum_{i∈S} x_i'Yx_i`. For i ∈ R use x_i'Yx_i ≤ ‖x_i‖² = a_ii. The rest
    is at most ⟨A, P⟩, P the projector on the leading eigenvectors of A on S ∩ T: supported
    there and of rank ≤ m. With z the indicator of S ∩ T, Diag(z) - P is PSD, so
    ⟨B, Diag(z) - P⟩ ≥ 0, and the row cones hold. Add both to ⟨A, P⟩, and collect the terms in P
    (only positive eigenvalues count, as the rank may be below m) and those in z. ∎ (If A + Diag(s)
    is PSD and A is not, this holds for that matrix, whose optimum is no smaller; ⟨Diag(s), P⟩ is
    at most the sum of s over S ∩ T, so every score grows by s_i.)

    **Nonnegative components** (m = 1). For any N ≥ 0 the matrix may have N added. *Proof.* Let x
    be optimal with support S, Xx = ‖Xx‖y, and c and s the lengths of x on T and on R. On R,
    (y'X_Rx_R)² ≤ s² Σ_{S∩R} a_ii =: s²q². On T, y'X_Tx_T ≤ cp, where p ≥ 0 is the largest y'X_Tu
    over unit vectors u ≥ 0 with support in S ∩ T; p² ≤ u'A_TTu = ⟨A, P⟩ with P = uu', for which
    all of the above holds, and ⟨N, P⟩ ≥ 0 too. As c² + s² = 1, OPT ≤ (cp + sq)² ≤ p² + q². ∎
    """
    places = np.flatnonzero(choice.allowed[inside])
    A, F = known.on(places).A, factor[places]
    require_range(F)
    C, inside_scores, error = with_cones(A, cones.on(places), choice.size - 1)
    M = C - F @ F.T
    weight = float(np.trace(A) + (F * F).sum() + np.linalg.norm(C))
    ky_fan = positive_eigenvalue_sum(0.5 * (M + M.T), m, weight, F.shape[1]) + m * error
    squares = np.einsum("ij,ij->i", F, F) * (1 + (F.shape[1] + 8) * UNIT)
    uncertainty = everywhere.uncertainty
    scores = variance_scores(everywhere, m)
    scores[inside[places]] = inside_scores + squares + uncertainty.scores(m)[inside[places]]
    scores += uncertainty.psd_slack
    return Bound.of(ky_fan + uncertainty.ky_fan(m), scores, choice)


@refuses_overflow
def sample_bound(
    known: KnownFactor,
    active: Index,
    vectors: FloatArray,
    common: FloatArray,
    floor: float,
    m: int,
    choice: Choice,
) -> float:
    r"""The sample-space bound with a matrix metric, for ``A = X'X`` with few rows in X.

    Let L = Λ + τI with Λ PSD, given by a factor (`common`), and τ > 0 (`floor`). For vectors p_i
    (zero for features that are not active) put
    :math:`s_i = λ_{max}^+(L^{-1/2}(x_ix_i' - p_ip_i')L^{-1/2})`. Then

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
    X, r = known.X, known.X.shape[0]
    keep = choice.allowed[active]
    active, P = active[keep], vectors[:, keep]
    require_range(common, P)
    if np.unique(active).size != active.size:
        raise FloatingPointError("the witness names a feature twice")
    metric = _Metric(common, float(floor), r)
    W = metric.whiten(X)
    s = np.einsum("ij,ij->j", W, W)
    size = 4 * s
    if active.size:
        Q = metric.whiten(P)
        minus, plus = W[:, active] - Q, W[:, active] + Q
        lengths = np.linalg.norm(minus, axis=0) * np.linalg.norm(plus, axis=0)
        s[active] = 0.5 * (np.einsum("ij,ij->j", minus, plus) + lengths)
        size[active] = 2 * (np.einsum("ij,ij->j", W[:, active], W[:, active]) + (Q * Q).sum(axis=0))
    s = np.maximum(s, 0.0) + (4 * metric.loss + 4 * (r + 8) * UNIT) * size
    sigma = choice.best_sum(s)
    M = P @ P.T + sigma * metric.common
    weight = float((P * P).sum()) + sigma * metric.mass
    ky_fan = positive_eigenvalue_sum(M, m, weight, active.size + common.shape[1])
    missing = known.uncertainty.total(m, choice)
    return _finite(ky_fan + sigma * metric.tau * (1 + 8 * UNIT) + missing)


class _Metric:
    """L = Λ + τI of `sample_bound`: what divides by its root, and what that loses.

    Raises `FloatingPointError` unless it is positive and well conditioned.
    """

    def __init__(self, factor: FloatArray, tau: float, r: int):
        if not SMALLEST <= tau <= LARGEST:
            raise FloatingPointError(
                "the floor of the witness is not a positive number of fair size"
            )
        self.mass = float((factor * factor).sum()) + tau * r
        self.common = factor @ factor.T
        try:
            self._root = np.linalg.cholesky(self.common + tau * np.eye(r))
        except np.linalg.LinAlgError:
            raise FloatingPointError("the metric of the witness is not positive") from None
        inverse_norm = float(np.linalg.norm(self.whiten(np.eye(r))))
        self.loss = 4 * r * UNIT * float(np.linalg.norm(self._root)) * inverse_norm
        if not self.loss < 1e-3:
            raise FloatingPointError("the metric of the witness is too ill-conditioned")
        self.tau = tau + 8 * (r + factor.shape[1] + 8) * r * UNIT * self.mass

    def whiten(self, columns: FloatArray) -> FloatArray:
        """Return ``L^{-1/2}`` times the columns, for a root that is triangular."""
        return np.asarray(
            scipy.linalg.solve_triangular(self._root, columns, lower=True, check_finite=False)
        )


def has_no_interior_optimum(known: KnownMatrix) -> bool:
    """Say whether no vector x > 0 on all features is a local maximum of x'Ax on the sphere.

    Such an x would be a leading eigenvector. There is none when that one is simple and has entries
    of both signs, by far more than rounding can make of it: by Davis and Kahan its entries are off
    by at most twice the error of A over the gap.
    """
    n = known.n_features
    if n < 2:
        return False
    values, vectors = np.linalg.eigh(known.A)
    u, gap = vectors[:, -1], float(values[-1] - values[-2])
    error = 8 * (n + 8) * UNIT * float(np.abs(values).sum())
    error += float(known.uncertainty.errors.sum() + known.uncertainty.unseen.max(initial=0.0))
    if not gap > max(1e-6 * float(np.abs(values).max()), 4 * error):
        return False
    noise = max(1e-6, 2 * error / gap)
    return bool(u.min() < -noise and u.max() > noise)

"""Leading eigenpairs of symmetric matrices: LAPACK when small, Lanczos when large.

Accuracy is stated, never hoped for: every pair comes with its residual ``‖Av - λv‖``, and an
eigenvalue of A lies within that distance of the returned one.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.blas
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.linalg.machine import one_blas_thread

Floats = NDArray[Any]  # of any floating type
MatMat = Callable[[FloatArray], FloatArray]

# LAPACK beats Lanczos below this order (docs/eigensolvers.md has the measurements).
LAPACK_LIMIT = 400

# Up to this order a product with a matrix is over before the threads of BLAS have met.
CACHED_ORDER = 2048

# Lanczos stops when ‖Av - λv‖ ≤ RESIDUAL_TOL · λ₁ for each of the m pairs.
RESIDUAL_TOL = 1e-8

# A new direction weaker than this, relative to λ₁, is taken as rounding noise.
BREAKDOWN_TOL = 1e-12

# Steps of Lanczos between two looks at the residuals.
STEPS_A_LOOK = 4

# Residuals above what they should be by no more than this factor are looked at after every step.
CLOSE = 1e3

# Of the products there may be: before, residuals say nothing about the pace.
FIRST_SHARE = 1 / 6


@dataclass(frozen=True)
class EigenPairs:
    """The m largest eigenvalues, in descending order, with orthonormal eigenvectors.

    Attributes
    ----------
    values : (m,) array, descending, never negative when the matrix is PSD beyond rounding
    vectors : (size, m) array with orthonormal columns
    residuals : (m,) array, ``‖A v - λ v‖`` as measured or, from LAPACK, its rounding level
    smallest : float or None
        An upper bound on the smallest eigenvalue, when the method sees that end too.
    """

    values: FloatArray
    vectors: FloatArray
    residuals: FloatArray
    smallest: float | None = None

    def truncate(self, m: int) -> "EigenPairs":
        """Keep the first m pairs."""
        return EigenPairs(self.values[:m], self.vectors[:, :m], self.residuals[:m], self.smallest)


def leading_dense(A: FloatArray, m: int) -> EigenPairs:
    """Leading pairs of a symmetric matrix, by LAPACK up to `LAPACK_LIMIT`, else by Lanczos.

    Examples
    --------
    >>> import numpy as np
    >>> leading_dense(np.diag([1.0, 3.0, 2.0]), 2).values
    array([3., 2.])
    """
    size = A.shape[0]
    if size <= LAPACK_LIMIT or 4 * m >= size:
        return lapack(A, m)
    with one_blas_thread() if size <= CACHED_ORDER else nullcontext():
        return lanczos(partial(symmetric_product, A), size, m)


def symmetric_product(A: FloatArray, W: FloatArray) -> FloatArray:
    """Return ``A W`` for a symmetric matrix, of which one vector needs to read one half only."""
    if W.shape[1] > 1 or not A.flags.c_contiguous or A.dtype != np.float64:
        return A @ W
    return np.asarray(scipy.linalg.blas.dsymv(1.0, A.T, W[:, 0], lower=1))[:, None]


def lapack(A: FloatArray, m: int) -> EigenPairs:
    """Leading pairs of a symmetric matrix from LAPACK's `syevr` (only the m asked for)."""
    size = A.shape[0]
    # Powers of two scale without rounding; LAPACK's own scaling guards only the extremes.
    factor = power_of_two(float(np.abs(np.diagonal(A)).max()))
    values, vectors = eigenpairs_between(A / factor, size - m, size - 1)
    values = values[::-1] * factor
    level = size * np.finfo(float).eps * max(abs(values[0]), 0.0)
    return EigenPairs(values, np.ascontiguousarray(vectors[:, ::-1]), np.full(m, level))


def mean_of_rest(values: FloatArray, variances: FloatArray) -> float:
    """Return the mean of the eigenvalues that come after some leading ones.

    It comes from the trace, so that nothing else need be known of them. They are as many as there
    are features that vary: a constant one has an eigenvalue of zero to itself, which says nothing
    of the others.

    Parameters
    ----------
    values : the leading eigenvalues of a covariance, in descending order
    variances : its diagonal

    Examples
    --------
    >>> import numpy as np
    >>> mean_of_rest(np.array([5.0]), np.array([4.0, 2.0, 1.0, 0.0]))
    1.0
    """
    n_rest = int(np.count_nonzero(variances > 0)) - values.size
    if n_rest <= 0:
        return 0.0
    mean = (float(variances.sum()) - float(values.sum())) / n_rest
    return min(max(mean, 0.0), float(values[-1]))  # where rounding says otherwise


def eigenpairs_between(M: Floats, first: int, last: int) -> tuple[Floats, Floats]:
    """Eigenpairs first..last of a symmetric matrix, ascending, from LAPACK's `syevr`.

    That solver may fail on a cluster of eigenvalues, or return fewer pairs than asked for without
    a word: all pairs are then computed by another one.
    """
    count = last - first + 1
    try:
        values, vectors = scipy.linalg.eigh(
            M, subset_by_index=[first, last], check_finite=False, driver="evr"
        )
        if values.size == vectors.shape[1] == count:
            return values, vectors
    except scipy.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(M)
    return values[first : last + 1], vectors[:, first : last + 1]


def leading_stack(stack: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """Leading eigenpairs of many small symmetric matrices at once.

    Parameters
    ----------
    stack : (s, k, k) array
    m : number of pairs of each

    Returns
    -------
    values : (s, m) array, descending
    vectors : (s, k, m) array
    """
    factor = power_of_two(float(np.abs(np.diagonal(stack, axis1=1, axis2=2)).max(initial=0.0)))
    values, vectors = np.linalg.eigh(stack / factor)
    return values[:, : -m - 1 : -1] * factor, vectors[:, :, : -m - 1 : -1]


def leading_values(stack: FloatArray, m: int) -> FloatArray:
    """Return the m largest eigenvalues of many small symmetric matrices, in descending order.

    Without their vectors they cost a third.
    """
    factor = power_of_two(float(np.abs(np.diagonal(stack, axis1=1, axis2=2)).max(initial=0.0)))
    return np.linalg.eigvalsh(stack / factor)[:, : -m - 1 : -1] * np.float64(factor)


def power_of_two(size: float) -> float:
    """Return the power of two next below a positive size (1 for zero)."""
    if size == 0 or not np.isfinite(size):
        return 1.0
    return float(2.0 ** np.floor(np.log2(size)))


def lanczos(
    matmat: MatMat,
    size: int,
    m: int,
    *,
    tol: float = RESIDUAL_TOL,
    block: int = 1,
    max_products: int = 3000,
    only_if_fast: bool = False,
) -> EigenPairs:
    """Leading eigenpairs of a symmetric operator by thick-restart (block) Lanczos.

    Full reorthogonalisation; the residuals of the m leading Ritz pairs are checked at every
    step, so it stops as soon as they are small enough and not at the end of a sweep. When the
    Krylov space closes early (few distinct eigenvalues), random directions go on until they
    bring nothing new: that is how further copies of a multiple eigenvalue are found. Copies
    inside a spectrum that never closes need ``block`` of at least their number.

    Parameters
    ----------
    matmat : callable, ``W (size, p) -> A W``
    size : order of A
    m : number of pairs
    tol : stop when every residual is at most ``tol`` times the largest Ritz value
    block : directions multiplied at a time. One is cheapest in memory; blocks save passes
        over data that is slow to read, and find eigenvalues of multiplicity up to ``block``.
    max_products : limit on the columns multiplied; pairs that have not converged by then are
        returned with the residuals they have
    only_if_fast : stop as well when, after a sixth of those products or more, the residuals have
        fallen behind ``tol**share`` with the share of products made: an even pace, which nothing
        with a gap in its spectrum is slower than, as the last digits come faster than the first

    Notes
    -----
    Wu and Simon, Thick-restart Lanczos method for large symmetric eigenvalue problems,
    SIAM J. Matrix Anal. Appl. 22 (2000).
    """
    rng = np.random.default_rng(0)  # the same operator gives the same answer
    capacity = min(size, max(4 * m + 4 * block, 40))
    keep = min(m + max(m // 2, 4), capacity - 2 * block)
    basis = np.empty((size, capacity + block), order="F")
    images = np.zeros((capacity + block, capacity + block))  # V'AV, filled as V grows
    basis[:, :block] = np.linalg.qr(rng.standard_normal((size, block)))[0]
    used, width, products = 0, block, 0
    smallest, scale = np.inf, float(np.finfo(float).tiny)
    is_close = False
    closed_at: float | None = None  # sum of the m Ritz values when the space last closed

    while True:
        # Expand: A times the newest block, orthogonalised against everything so far.
        fresh = basis[:, used : used + width]
        product = matmat(np.ascontiguousarray(fresh))
        products += width
        with one_blas_thread():  # the products may have all, what follows is small
            known = basis[:, : used + width]
            overlap = known.T @ product
            residual = product - known @ overlap
            correction = known.T @ residual  # second Gram-Schmidt sweep: orthogonal to rounding
            residual -= known @ correction
            overlap += correction
            columns = slice(used, used + width)
            images[: used + width, columns] = overlap
            images[columns, : used + width] = overlap.T
            used += width

            scale = max(scale, float(np.abs(overlap[-width:]).max()))
            next_block, R = _orthonormal_block(residual, basis[:, :used], scale, rng)
            full = used + next_block.shape[1] > capacity
            closed = not R[-1:].any()  # a zero row: the Krylov space closed
            # The small eigenproblem is not free: look at it only every few steps.
            if full or closed or is_close or used <= 2 * m or used % STEPS_A_LOOK == 0:
                values, coordinates = np.linalg.eigh(images[:used, :used])
                values, coordinates = values[::-1], coordinates[:, ::-1]
                scale = max(scale, abs(values[0]))
                smallest = min(smallest, float(values[-1]))
                if used >= m:
                    # A V = V H + Q R E', so the residual of the pair (θ, V y) is ‖R y_last‖.
                    coupling = R @ coordinates[columns, :m]
                    residuals = np.sqrt(np.einsum("ij,ij->j", coupling, coupling))
                    done = bool(np.all(residuals <= tol * scale))
                    is_close = bool(residuals.max() <= CLOSE * tol * scale)
                    share = min(products / max_products, 1.0)
                    pace = tol**share * scale
                    hopeless = only_if_fast and share >= FIRST_SHARE and residuals.max() > pace
                    if not closed:
                        done &= closed_at is None
                    else:  # done when it closed before with the same sum
                        total = float(values[:m].sum())
                        done &= closed_at is not None and total <= closed_at + tol * scale
                        closed_at = total
                    out_of_products = hopeless or products >= max_products
                    if done or out_of_products or next_block.shape[1] == 0:
                        vectors = basis[:, :used] @ coordinates[:, :m]
                        return EigenPairs(values[:m].copy(), vectors, residuals, smallest)

            width = next_block.shape[1]
            if full:
                # Restart on the best Ritz vectors; the coupling to the next block carries over.
                basis[:, :keep] = basis[:, :used] @ coordinates[:, :keep]
                coupling = R @ coordinates[columns, :keep]
                images[:] = 0
                images[:keep, :keep] = np.diag(values[:keep])
                used = keep
                images[used : used + width, :keep] = coupling
                images[:keep, used : used + width] = coupling.T
            basis[:, used : used + width] = next_block


def _orthonormal_block(
    residual: FloatArray, basis: FloatArray, scale: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Orthonormal basis Q of the residual block and R with ``residual = Q R`` to rounding.

    Directions that are only rounding noise are replaced by random ones with a zero row in R.
    """
    size, width = residual.shape
    room = size - basis.shape[1]
    if room <= 0:
        return np.empty((size, 0)), np.empty((0, width))
    Q, R = np.linalg.qr(residual)
    left, strengths, right = np.linalg.svd(R)  # pivoting: weak directions come last
    Q = Q @ left
    weak = strengths <= BREAKDOWN_TOL * scale
    strengths[weak] = 0.0
    if weak.any():
        Q[:, weak] = rng.standard_normal((size, int(weak.sum())))
    if strengths[-1] <= 1e-4 * scale:
        for _ in range(2):  # a small residual is orthogonal only to rounding over its size
            Q -= basis @ (basis.T @ Q)
            Q, fix = np.linalg.qr(Q)
            Q *= np.sign(np.diagonal(fix))  # keep the directions that `right` refers to
    return Q[:, :room], (strengths[:, None] * right)[:room]


def smallest_arrowhead_eigenvalue(
    poles: FloatArray, coupling: FloatArray, corner: FloatArray, n_steps: int = 3
) -> FloatArray:
    r"""Bound the smallest eigenvalue of ``[[diag(γ), c], [c', a]]`` from above, closely.

    The eigenvalue is the root of :math:`g(μ) = a - μ - Σ_l c_l^2 / (γ_l - μ)` left of all
    poles. g is concave and falling there, so Newton's steps from the right stay on the right:
    every iterate is an upper bound, and three of them are close to the root. The start is the
    smallest eigenvalue over the 2×2 matrices of one pole and the corner, which interlacing
    puts on the right of the root (and which is the root itself when there is one pole).

    Parameters
    ----------
    poles : (..., m) values γ
    coupling : (..., m) values c
    corner : (...) values a

    Returns
    -------
    (...) upper bounds on the smallest eigenvalue
    """
    squares = coupling * coupling
    half_gap = (poles - corner[..., None]) / 2
    # λ_min of the 2×2 block: the smaller end minus what the coupling pushes it down by.
    push = squares / (np.abs(half_gap) + np.sqrt(half_gap * half_gap + squares) + _TINY)
    mu = (np.minimum(poles, corner[..., None]) - push).min(axis=-1)
    if poles.shape[-1] == 1:
        return mu
    for _ in range(n_steps):
        distance = poles - mu[..., None]
        # A pole at distance zero has no coupling (or none above rounding): it takes no part.
        ratio = np.divide(coupling, distance, out=np.zeros_like(distance), where=distance > 0)
        value = corner - mu - np.einsum("...l,...l->...", ratio, coupling)
        slope = -1.0 - np.einsum("...l,...l->...", ratio, ratio)
        # Right of the root the value is negative; where it is not, rounding has taken over.
        mu = mu - np.minimum(value, 0.0) / slope
    return mu


_TINY = float(np.finfo(float).tiny)

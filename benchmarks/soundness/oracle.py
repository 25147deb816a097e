"""The truth, in extended precision, by trying all supports. Shares no code with kspan.

Numbers are `numpy.longdouble` with at least 64 bits of mantissa. LAPACK's eigenvectors, in doubles,
are where Jacobi's rotations start; these go on until nothing is left beside the diagonal, so that
LAPACK decides how quick this is, and not how exact.
"""

from itertools import combinations
from typing import Any

import numpy as np

Array = np.ndarray

# What is left beside the diagonal, relative to the largest entry, when rotations end.
CONVERGED = 1e-18
MAX_SWEEPS = 30
HUGE = np.longdouble("1e2000")

# Values that agree up to this share are tied: what enumeration itself may be off by.
TIED = np.longdouble("1e-17")  # in doubles 1 - TIED would be 1


def require_extended_precision() -> None:
    """Stop on machines whose long double is a double: nothing could be judged there."""
    if np.finfo(np.longdouble).nmant < 63:
        raise SystemExit("numpy.longdouble has less than 64 bits here: the oracle needs more.")


# --- from data to a matrix


def exact(X: Any) -> Array:
    """Return data or a matrix, of any type and storage, in extended precision."""
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return dense.astype(np.longdouble)


def covariance(X: Any, *, scale: bool = False, weights: tuple[float, ...] = ()) -> Array:
    """Return the sample covariance (n - 1), or with `scale` the correlations.

    The mean is taken out twice: what the first one lost to rounding is in the second. Constant
    columns have zeros. With weights, rows count as they say, and their sum takes the place of n.
    """
    X = exact(X)
    w = exact(weights or np.ones(len(X)))
    X, w = X[w > 0], w[w > 0]
    D = X - w @ X / w.sum()
    D = D - w @ D / w.sum()
    D[:, (X[0] == X).all(axis=0)] = 0.0
    # A power of two for each column, so that no square leaves the range.
    sizes = np.abs(D).max(axis=0)
    units = np.ldexp(np.ones_like(sizes), np.frexp(sizes)[1])
    D = D / units
    S = np.einsum("n,ni,nj->ij", w, D, D) / (w.sum() - 1)
    if not scale:
        return S * units[:, None] * units
    deviations = np.sqrt(np.diagonal(S))
    deviations[deviations == 0] = 1
    A = S / np.outer(deviations, deviations)
    np.fill_diagonal(A, np.where(np.diagonal(S) > 0, 1.0, 0.0))
    return A


def filled(X: Array, weights: tuple[float, ...] = ()) -> Array:
    """Return data with the mean of what is there in place of NaN, as the nearest double."""
    there, w = ~np.isnan(X), exact(weights or np.ones(len(X)))
    sums = w @ np.where(there, exact(X), 0)
    return np.where(there, X, (sums / (w @ there)).astype(np.float64))


def given_covariance(A: Any) -> Array:
    """Return what a given matrix stands for.

    Only its symmetric part enters a variance x'Ax. What is negative beyond the rounding of doubles
    (of a float32 matrix, say) is taken out, as kspan promises: the nearest PSD matrix. What is
    negative by more than half the digits stays: then it is about the matrix as it is.
    """
    half_the_digits = np.sqrt(np.finfo(np.asarray(A).dtype).eps)
    A = exact(A)
    A = (A + A.T) / 2
    size = np.abs(A).max()
    values, vectors = eigensystems(A[None])
    if size == 0 or values[0].min() >= -8 * len(A) * np.finfo(float).eps * np.diagonal(A).max():
        return A
    if values[0].min() < -half_the_digits * np.abs(np.diagonal(A)).max():
        return A
    return (vectors[0] * np.maximum(values[0], 0)) @ vectors[0].T


# --- eigenvalues


def eigensystems(blocks: Array) -> tuple[Array, Array]:
    """Return eigenvalues (any order) and eigenvectors of a stack of symmetric matrices."""
    size = np.abs(blocks).max(axis=(1, 2), keepdims=True)
    size = np.where(size > 0, size, np.longdouble(1))
    B = blocks / size
    V = np.linalg.eigh(B.astype(np.float64))[1].astype(np.longdouble)
    eye = np.eye(B.shape[1], dtype=np.longdouble)
    for _ in range(2):  # orthonormal to the last bit: the error is squared by every step
        V = V @ (3 * eye - V.swapaxes(1, 2) @ V) / 2
    B = V.swapaxes(1, 2) @ B @ V
    B = (B + B.swapaxes(1, 2)) / 2
    beside = ~np.eye(B.shape[1], dtype=bool)
    for _ in range(MAX_SWEEPS):
        if not beside.any() or np.abs(B[:, beside]).max() <= CONVERGED:
            return np.diagonal(B, axis1=1, axis2=2) * size[:, :, 0], V
        _sweep(B, V)
    raise ArithmeticError("The oracle's rotations do not converge.")


def _sweep(B: Array, V: Array) -> None:
    """Rotate every pair of coordinates once, of all matrices together, in place."""
    for i, j in combinations(range(B.shape[1]), 2):
        off = B[:, i, j]
        none = off == 0
        theta = (B[:, j, j] - B[:, i, i]) / (2 * np.where(none, 1, off))
        # With a huge θ its square is, and then t = 1 / (2θ) to the last bit.
        root = np.where(np.abs(theta) < HUGE, np.hypot(theta, 1), np.abs(theta))
        t = np.where(theta < 0, -1, 1) / (np.abs(theta) + root)
        t = np.where(none, 0, t)[:, None]
        c = 1 / np.sqrt(t * t + 1)
        s = t * c
        for M in (B, V):
            a, b = M[:, :, i].copy(), M[:, :, j].copy()
            M[:, :, i], M[:, :, j] = c * a - s * b, s * a + c * b
        a, b = B[:, i].copy(), B[:, j].copy()
        B[:, i], B[:, j] = c * a - s * b, s * a + c * b


# --- optima


class Truth:
    """All supports of a small matrix and what they explain.

    Parameters
    ----------
    A : (d, d) extended, symmetric
    """

    def __init__(self, A: Array):
        self.A, self.d = A, len(A)
        self._tables: dict[int, tuple[Array, Array, Array]] = {}

    def table(self, k: int) -> tuple[Array, Array, Array]:
        """Return all supports of k features, their eigenvalues (falling), and eigenvectors."""
        if k not in self._tables:
            supports = np.array(list(combinations(range(self.d), k)))
            values, vectors = eigensystems(self.A[supports[:, :, None], supports[:, None, :]])
            order = np.argsort(-values, axis=1)
            values = np.take_along_axis(values, order, axis=1)
            vectors = np.take_along_axis(vectors, order[:, None, :], axis=2)
            self._tables[k] = supports, values, vectors
        return self._tables[k]

    def supports(self, m: int, k: int, include: Any = (), exclude: Any = ()) -> tuple[Array, Array]:
        """Return the feasible supports of k features, and what m components explain on each."""
        supports, values, _ = self.table(k)
        member = (supports[:, :, None] == np.arange(self.d)).any(axis=1)
        feasible = member[:, list(include)].all(axis=1) & ~member[:, list(exclude)].any(axis=1)
        return supports[feasible], values[feasible, :m].sum(axis=1)

    def optimum(self, m: int, k: int, include: Any = (), exclude: Any = ()) -> Any:
        """Return the most that k features explain with m components."""
        return self.supports(m, k, include, exclude)[1].max()

    def optimal_supports(self, m: int, k: int, include: Any = (), exclude: Any = ()) -> Array:
        """Return every support that explains as much as the best."""
        supports, values = self.supports(m, k, include, exclude)
        return supports[values >= values.max() * (1 - TIED)]

    def value(self, m: int, support: Any) -> Any:
        """Return what m components explain on a support."""
        block = self.A[np.ix_(support, support)]
        return np.sort(eigensystems(block[None])[0][0])[::-1][:m].sum()

    # --- one component without negative loadings

    def nonnegative_points(self, k: int) -> tuple[Array, Array]:
        """Return unit vectors x ≥ 0 with at most k entries, the best one among them, and x'Ax.

        At an optimum with entries J, x_J is a leading eigenvector of A_JJ. Those of all J, cut
        off at zero, are all feasible, so that each value was reached by someone.
        """
        points = []
        for size in range(1, min(k, self.d) + 1):
            supports, _, vectors = self.table(size)
            leading = vectors[:, :, 0]
            for side in (leading, -leading):
                x = np.zeros((len(supports), self.d), dtype=np.longdouble)
                np.put_along_axis(x, supports, np.maximum(side, 0), axis=1)
                points.append(x[x.any(axis=1)])
        x = np.concatenate(points)
        x = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
        return x, np.einsum("ni,ij,nj->n", x, self.A, x)

    def nonnegative_value(self, support: Any, weights: Any) -> Any:
        """Return x'Ax / x'x of a vector on a support."""
        x = exact(weights).ravel()
        return x @ self.A[np.ix_(support, support)] @ x / (x @ x)


# --- what components leave


def deflated(A: Array, vectors: list[Array], how: str) -> Array | None:
    """Return what is left of A without the directions of some vectors.

    None where it cannot be said: "orthogonalized" by a vector of which next to nothing is left,
    and "schur" where most of what a vector explains cancels.
    """
    A = A.copy()
    taken: list[Array] = []
    for vector in vectors:
        x = exact(vector)
        if how == "remove":
            A[x != 0], A[:, x != 0] = 0.0, 0.0
            continue
        if how == "schur":
            product = A @ x
            if x @ product <= 1e-2 * (np.abs(x) @ np.sqrt(np.maximum(np.diagonal(A), 0))) ** 2:
                return None
            A = A - np.outer(product, product) / (x @ product)
            continue
        if how == "orthogonalized":
            length = np.sqrt(x @ x)
            for q in [*taken, *taken]:
                x = x - q * (q @ x)
            if np.sqrt(x @ x) <= 1e-6 * length:
                return None
        x = x / np.sqrt(x @ x)
        taken.append(x)
        P = np.eye(len(A), dtype=np.longdouble) - np.outer(x, x)
        A = P @ A @ P
        A = (A + A.T) / 2
    return A

"""The covariance of data: centred and scaled implicitly, never formed when the data is wide."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.linalg.blas
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance.block_kernels import centred_product, product, row_digests
from kspan.covariance.interface import Covariance, Kind
from kspan.covariance.matrix import matrix_on
from kspan.covariance.memory import NOTHING, Columns, Gram, Leading, Recall
from kspan.covariance.weights import Weights
from kspan.linalg.eigen import LAPACK_LIMIT, RESIDUAL_TOL, EigenPairs, lanczos, leading_dense
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.rounding import UNIT
from kspan.linalg.selection import placed

# Up to this many samples or features, whichever is smaller, one product of X with itself is
# cheaper than the products that Lanczos needs on a spectrum without gaps.
GRAM_LIMIT = 2048

# Multiplications up to which A is formed without a second thought.
GRAM_WORK = 2e10

# Products with float32 data are made in float32, so their residuals stop falling there.
FLOAT32_TOL = 1e-5


def row_edges(n_samples: int, size: int) -> Index:
    """Return where blocks of equal size, of at least `size` rows if possible, begin and end."""
    return np.linspace(0, n_samples, max(1, n_samples // size) + 1).astype(np.intp)


# Variances below this lose digits, as their squares are no longer normal numbers.
SMALLEST_VARIANCE = 1e-290


def require_variance(variances: FloatArray, scale: bool = False) -> None:
    """Raise `ValueError` unless something varies, by more than what numbers can hold squared.

    When features are divided by their standard deviations, each of them has to that varies at all.
    """
    largest = float(variances.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("All features are constant: there is no variance to explain.")
    remedy = "the data is too small. Multiply it by a constant first."
    if largest < SMALLEST_VARIANCE:
        raise ValueError(f"The variances underflow: {remedy}")
    tiny = np.flatnonzero((variances > 0) & (variances < SMALLEST_VARIANCE))
    if scale and tiny.size:
        raise ValueError(f"The variance of column {tiny[0]} underflows: {remedy}")


def divisors_for(variances: FloatArray, scale: bool | FloatArray) -> FloatArray:
    """Return what features are divided by: their standard deviations, given numbers, or one."""
    if isinstance(scale, np.ndarray):
        return scale
    return np.sqrt(np.where((variances > 0) & bool(scale), variances, 1.0))


def sum_errors(n_samples: int, variances: FloatArray) -> FloatArray:
    """Return how far entries of a covariance of so many rows may be off, see `Covariance`.

    Numbers are centred to three units in the last place, as means are known to twice that
    (`block_kernels.Moments`). A sum of n products of such numbers is off by n units more. Sparse
    columns that are not centred first have squares of up to four times their deviations, so their
    sums are off by 4n, and the means that are taken out by as much. Dividing by n - ddof and two
    scales costs what the scales are off by, n. Of X as a factor both sides are off.
    """
    return (10 * n_samples + 100) * UNIT * variances


class DataCovariance(Covariance):
    """``A = D⁻¹ (X - 1μ')'(X - 1μ') D⁻¹ / (n - ddof)`` behind products with X and X'.

    With weights w, ``A = D⁻¹ (X - 1μ')'diag(w)(X - 1μ') D⁻¹ / (Σw - ddof)``.

    Parameters
    ----------
    X : (n, d) data, never changed and never copied
    mean : (d,) column means μ
    scale : (d,) divisors D, all ones if nothing is divided
    variances : (d,) diagonal of A
    ddof : 1 for sample variances
    standardised : whether the divisors are the standard deviations
    rest : (d,) what the means, as doubles, lack; None for nothing
    weights : what each row counts; None for once
    """

    kind: Kind = "data"
    has_samples: bool = True
    n_samples: int
    mean: FloatArray
    scale: FloatArray

    def __init__(
        self, X: Any, mean: FloatArray, scale: FloatArray,
        variances: FloatArray, ddof: int = 1, standardised: bool = False,
        rest: FloatArray | None = None, weights: Weights | None = None,
    ):  # fmt: skip
        self.X, self.weights = X, weights
        self.mean, self.scale, self.ddof, self.standardised = mean, scale, ddof, standardised
        self.rest = np.zeros_like(mean) if rest is None else rest
        self.n_samples, self.n_features = X.shape
        self.divisor = self.n_samples - ddof if weights is None else weights.less(ddof)
        self.dtype = np.dtype(X.dtype)
        self._variances = variances
        self._is_scaled = bool((scale != 1).any())
        self._gram: FloatArray | None = None  # A itself, once a tall matrix has needed it

    @property
    def weights_digest(self) -> str | None:  # type: ignore[override]
        """See `Covariance.weights_digest`."""
        return None if self.weights is None else self.weights.digest()

    def require_variance(self) -> None:
        """Raise `ValueError` if nothing varies, or too little for numbers to hold."""
        with np.errstate(over="ignore", invalid="ignore"):
            require_variance(self._variances * self.scale * self.scale, self.standardised)

    @property
    def is_plain(self) -> bool:
        """Whether it is made of sample variances, standardised or not scaled at all."""
        return self.ddof == 1 and (self.standardised or not self._is_scaled)

    @classmethod
    def measure(
        cls, X: Any, recall: Recall = NOTHING, *, scale: bool | FloatArray, ddof: int,
        weights: Weights | None = None,
    ) -> Self:  # fmt: skip
        """Build from X alone, and what is known of it. As many passes as its kind takes, or none.

        Parameters
        ----------
        X : the data
        recall : what was found out about it before
        scale, ddof, weights : see `kspan.as_covariance`
        """
        columns, n_passes = recall.find("columns", Columns), 0
        if columns is None:
            columns, n_passes = cls._summarised(X, weights)
            recall.keep("columns", columns)
        covariance = cls.from_moments(X, columns, scale=scale, ddof=ddof, weights=weights)
        covariance.n_passes += n_passes
        own = scale.tobytes() if isinstance(scale, np.ndarray) else bool(scale)
        covariance.recall = recall.about("scale", own, "ddof", ddof)
        covariance._take(columns)
        return covariance

    @classmethod
    @abstractmethod
    def _summarised(cls, X: Any, weights: Weights | None) -> tuple[Columns, int]:
        """Return the moments of the columns, and how many passes they took."""

    def _take(self, columns: Columns) -> None:
        """Take what else is known of the columns."""

    @classmethod
    def from_moments(
        cls, X: Any, columns: Columns, *, scale: bool | FloatArray, ddof: int,
        weights: Weights | None = None,
    ) -> Self:  # fmt: skip
        """Build from X and the moments of its columns."""
        divisor = X.shape[0] - ddof if weights is None else weights.less(ddof)
        variances = columns.squares / divisor
        standardised = not isinstance(scale, np.ndarray) and bool(scale)
        divisors = divisors_for(variances, scale)
        scaled = variances / divisors / divisors
        if standardised:  # they are one, and which is the largest is not a matter of rounding
            scaled = np.where(np.isfinite(variances), variances > 0, variances).astype(np.float64)
        mean, rest = columns.mean, columns.rest
        return cls(X, mean, divisors, scaled, ddof, standardised, rest, weights)

    def entry_errors(self) -> FloatArray:
        """See `Covariance.entry_errors`; the same for all ways to keep the same numbers.

        See `sum_errors`. Where squares are no longer normal numbers, they are off by some 1e-323.
        """
        return sum_errors(self.n_samples, self._variances) + 1e-320

    def product_errors(self) -> FloatArray:
        """See `Covariance.product_errors`: two sums, and four times as much for sparse columns."""
        rounding = 8 * (self.n_samples + self.n_features + 16) * UNIT
        return self.entry_errors() + rounding * self._variances

    def precise_product(self, w: FloatArray) -> FloatArray:
        """See `Covariance.precise_product`. One pass, or none once A is formed."""
        if self._gram is not None:
            return self._gram @ w
        self.n_passes += 1
        return self._centred_product(w) / self.divisor

    @abstractmethod
    def _centred_product(self, w: FloatArray) -> FloatArray:
        """Return ``D⁻¹(X - 1μ')'(X - 1μ')D⁻¹w``, with every number centred before it is used.

        Rows count as their weights say, here as in `_deviation_products`.
        """

    @abstractmethod
    def _times(self, W: FloatArray, support: Index | None) -> FloatArray:
        """Return ``X W`` for the raw data. With a support, W holds only those rows."""

    @abstractmethod
    def _transposed_times(self, Z: FloatArray) -> FloatArray:
        """Return ``X' Z`` for the raw data, in an array of its own."""

    @abstractmethod
    def _deviation_products(
        self, support: Index | None, mean: FloatArray, rest: FloatArray
    ) -> FloatArray:
        """Return ``(X - 1μ')'(X - 1μ')`` for the raw data on a support, or on all features."""

    @property
    def _roots(self) -> FloatArray | None:
        """The roots of the weights."""
        return None if self.weights is None else self.weights.roots

    def diagonal(self) -> FloatArray:
        """Return the variances."""
        return self._variances

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the centred, scaled data times W (n × p). One pass."""
        self.n_passes += 1
        W, shift = self._for_raw_data(W, support)
        return self._times(W, support) - shift

    def back(self, Z: FloatArray) -> FloatArray:
        """Return the centred, scaled data transposed times Z (d × p). One pass."""
        self.n_passes += 1
        # In place: for many features, fresh memory costs more than the arithmetic.
        out = np.ascontiguousarray(self._transposed_times(Z))
        with one_blas_thread():  # more of them wait for each other longer than for memory
            scipy.linalg.blas.dger(-1.0, Z.sum(axis=0), self.mean, a=out.T, overwrite_a=True)
        if self._is_scaled:
            out /= self.scale[:, None]
        return out

    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``: one or two passes, or none once A is formed."""
        if self._gram is not None:
            return self._gram @ W if support is None else self._gram[support].T @ W
        return self._product(W, support)

    def _product(self, W: FloatArray, support: Index | None) -> FloatArray:
        """Return ``A W`` while A is not formed. Two passes."""
        return self.back(self._weighted(self.scores(W, support) / self.divisor))

    def _for_raw_data(self, W: FloatArray, support: Index | None) -> tuple[FloatArray, FloatArray]:
        """Return W over the scales, and what the means contribute to X times that."""
        rows: Any = slice(None) if support is None else support
        W = W / self.scale[rows, None] if self._is_scaled else W
        # Not by BLAS, whose threads take longer to meet than one of them to add this up.
        return W, np.einsum("i,ij->j", self.mean[rows], W)

    def _centred(self, out: FloatArray, total: FloatArray) -> FloatArray:
        """Turn ``X'Z`` and the column sums of ``Z = (X - 1μ')D⁻¹W`` into ``A W``.

        Rows of Z are weighted already.
        """
        out = out - np.outer(self.mean, total)
        out /= self.scale[:, None] * self.divisor
        return out

    def columns(self, support: Index) -> FloatArray:
        """Return ``A[:, support]``."""
        if self._gram is not None:
            return self._gram[support].T
        return self.matmat(np.eye(support.size), support)

    def submatrix(self, support: Index) -> FloatArray:
        """Return ``A[support, support]``. One pass, or none once A is formed."""
        if self._gram is not None:
            return self._gram[np.ix_(support, support)]
        return self._computed(support)

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports`."""
        if self._gram is not None:
            return self._gram[supports[:, :, None], supports[:, None, :]]
        return super().submatrices(supports)

    def _computed(self, support: Index | None = None) -> FloatArray:
        """Compute A, on a support or the whole of it, in float64. One pass."""
        rows: Any = slice(None) if support is None else support
        mean, rest, scale = self.mean[rows], self.rest[rows], self.scale[rows]
        self.n_passes += 1
        self.n_grams += int(mean.size == self.n_features)
        products = self._deviation_products(support, mean, rest)
        products /= self.divisor
        if self._is_scaled:
            products /= scale[:, None]
            products /= scale
        return products

    def restrict(self, support: Index) -> Covariance:
        """Return the covariance of the chosen features, as a matrix."""
        return matrix_on(self, support, None, is_psd=True)

    def _is_cheap(self, size: int) -> bool:
        """Whether to compute all products of that many features, or samples, with each other."""
        return size <= GRAM_LIMIT

    @property
    def _takes_long_to_form(self) -> bool:
        """Whether forming A takes a second or more."""
        return self.n_samples * self.n_features**2 > GRAM_WORK

    @property
    def _gram_takes_long(self) -> bool:
        """Whether forming A, or the n×n matrix if that is smaller, takes tenths of a second."""
        n, d = self.n_samples, self.n_features
        return n * d * min(n, d) >= GRAM_WORK

    @property
    def _lanczos_products(self) -> int:
        """How many products Lanczos may make before a Gram matrix is formed after all."""
        return 0

    def _form(self) -> FloatArray | None:
        """Return A, and keep it, if it is cheap to form."""
        if self._gram is None and self._is_cheap(self.n_features):
            known = self.recall.find("gram", Gram)
            if known is None:
                known = Gram(self._computed())
                self.recall.keep("gram", known)
            self._gram = known.products
        return self._gram

    def _leading(self, m: int) -> EigenPairs:
        name = f"{m} pairs, {'formed' if self._gram is not None else 'not formed'}"
        known = self.recall.find(name, Leading)
        if known is None:
            pairs = self._found_leading(m)
            known = Leading(pairs, self._gram is not None)
            self.recall.keep(name, known)
        if known.changed:  # what comes after goes on from A, as it would have
            self._form()
        return known.pairs

    def _found_leading(self, m: int) -> EigenPairs:
        n, d = self.n_samples, self.n_features
        if not self._has_gram and 4 * m <= (most := self._lanczos_products):
            tol = self._tol()
            pairs = lanczos(self.matmat, d, m, tol=tol, max_products=most, only_if_fast=True)
            if pairs.residuals.max() <= tol * pairs.values[0]:
                return pairs
        if n < d:
            # The n×n side has the same nonzero eigenvalues; its vectors come back through X'.
            return self._lift(self._leading_of_samples(min(m, n)), m)
        A = self._form()
        if A is None:
            return lanczos(self.matmat, d, m, tol=self._tol())
        return leading_dense(A, m)

    @property
    def _has_gram(self) -> bool:
        """Whether A, or the n×n matrix that has its eigenvalues, is at hand."""
        return self._gram is not None

    def _leading_of_samples(self, m: int) -> EigenPairs:
        """Return leading eigenpairs of ``(X - 1μ')D⁻²(X - 1μ')' / (n - ddof)``.

        With both sides times the roots of the weights.
        """

        def times(Z: FloatArray) -> FloatArray:
            return self._by_roots(self.scores(self.back(self._by_roots(Z)))) / self.divisor

        return lanczos(times, self.n_samples, m, tol=self._tol())

    def _weighted(self, Z: FloatArray) -> FloatArray:
        """Return rows times their weights."""
        return Z if self.weights is None else Z * self.weights.values[:, None]

    def _by_roots(self, Z: FloatArray) -> FloatArray:
        """Return rows times the roots of their weights."""
        return Z if self.weights is None else Z * self.weights.roots[:, None]

    def _tol(self) -> float:
        return FLOAT32_TOL if self.dtype == np.float32 else RESIDUAL_TOL

    def _lift(self, pairs: EigenPairs, m: int) -> EigenPairs:
        """Turn eigenvectors of the sample side into m eigenvectors of A."""
        few = pairs.values.size
        lifted = np.zeros((self.n_features, m))
        lifted[:, :few] = self.back(self._by_roots(pairs.vectors))
        # Beyond the rank the images are rounding noise; Householder QR completes the basis.
        with one_blas_thread():
            vectors, R = np.linalg.qr(lifted)
        vectors = vectors * np.where(np.diagonal(R) < 0, -1.0, 1.0)
        values = np.zeros(m)
        values[:few] = pairs.values
        residuals = np.full(m, pairs.residuals.max())
        return EigenPairs(values, vectors, residuals)


# Dense pieces made on the way are built in blocks of about this size.
DENSE_PIECE_BYTES = 1 << 24


class InMemoryCovariance(DataCovariance):
    """Data in an array or a scipy sparse one, of which rows and columns can be taken."""

    _sample_gram: FloatArray | None = None  # (X - 1μ')D⁻²(X - 1μ')' / (n - ddof), once asked for
    _kept: tuple[Index, FloatArray] | None = None  # the columns that were taken last

    @property
    def _has_gram(self) -> bool:
        return super()._has_gram or self._sample_gram is not None

    @abstractmethod
    def _sample_products(self) -> FloatArray:
        """Return ``(X - 1μ')D⁻²(X - 1μ')'``, an n×n matrix, without weights."""

    @abstractmethod
    def _standard(self, support: Index) -> FloatArray:
        """Return some columns, centred and scaled, in float64."""

    def _columns(self, support: Index) -> FloatArray:
        """Return some columns, centred and scaled; not to be changed.

        One pass, or none if they were the last ones: what is asked for about a support comes in
        turns, and columns lie far apart.
        """
        if self._kept is not None and np.array_equal(self._kept[0], support):
            return self._kept[1]
        self.n_passes += 1
        columns = self._standard(support)
        self._kept = (support.copy(), columns) if self._keeps(support) else None
        return columns

    def _keeps(self, support: Index) -> bool:
        """Whether some columns are few enough to be kept, as a dense array."""
        return 8 * self.n_samples * support.size <= DENSE_PIECE_BYTES

    def _computed(self, support: Index | None = None) -> FloatArray:
        if support is None or not self._keeps(support):
            return super()._computed(support)
        self.n_grams += int(support.size == self.n_features)
        columns = self._by_roots(self._columns(support))
        with one_blas_thread():
            products: FloatArray = columns.T @ columns
        products /= self.divisor
        return products

    def leading(self, m: int, support: Index | None = None) -> EigenPairs:
        """See `Covariance.leading`: on a few features, from the columns that are kept."""
        if support is None or self._gram is not None or not self._keeps(support):
            return super().leading(m, support)
        if support.size > min(self.n_samples, LAPACK_LIMIT):
            return super().leading(m, support)
        return leading_dense(self.submatrix(support), m)

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the centred, scaled data times W; with a support only its columns are read."""
        if support is None or not self._takes_columns(support):
            return super().scores(W, support)
        return self._columns(support) @ W

    def _takes_columns(self, support: Index) -> bool:
        """Whether to take some columns as a dense array rather than read the whole."""
        return 4 * support.size <= self.n_features and self._keeps(support)

    def _standardised(self, part: FloatArray, support: Index) -> FloatArray:
        """Centre and scale dense columns, in place."""
        part -= self.mean[support]
        part -= self.rest[support]
        if self._is_scaled:
            part /= self.scale[support]
        return part

    def _times(self, W: FloatArray, support: Index | None) -> FloatArray:
        if support is not None:
            W = placed(W, support, self.n_features)
        return product(self.X, W)

    def _transposed_times(self, Z: FloatArray) -> FloatArray:
        return product(self.X.T, Z)

    def _centred_product(self, w: FloatArray) -> FloatArray:
        parts = {"mean": self.mean, "rest": self.rest, "scale": self.scale}
        return centred_product(self.X, self._roots, W=w, **parts)

    def products_within(
        self, support: Index, weights_for: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """See `Covariance.products_within`: the columns are taken once, for both products."""
        if self._gram is not None:
            return super().products_within(support, weights_for)
        columns = self._by_roots(self._columns(support))
        W = weights_for(columns.T @ columns / self.divisor)
        return self.back(self._by_roots(columns @ W) / self.divisor)

    def restrict(self, support: Index) -> Covariance:
        """Return the covariance of the chosen features: from A if it is formed, else a copy."""
        if self._gram is not None:
            return super().restrict(support)
        self.n_passes += 1
        # float64, so that what is computed on a support is exact for float32 data too.
        X = self.X[:, support].astype(np.float64, copy=False)
        part = type(self)(
            X, self.mean[support], self.scale[support], self._variances[support], self.ddof,
            self.standardised, self.rest[support], self.weights,
        )  # fmt: skip
        part.has_samples = self.has_samples
        return part

    def row_blocks(self, size: int) -> Iterator[Self]:
        """Yield the covariance of one block of rows after another. One pass."""
        self.n_passes += 1
        for start, stop in pairwise(row_edges(self.n_samples, size)):
            # ddof=0: the mean is that of all rows, not of these.
            yield type(self)(
                self.X[start:stop], self.mean, self.scale, self._variances, 0, False, self.rest,
                None if self.weights is None else self.weights.part(start, stop),
            )  # fmt: skip

    def _row_digests(self) -> NDArray[np.uint8]:
        return row_digests(self.X)

    def _leading_of_samples(self, m: int) -> EigenPairs:
        if not self._is_cheap(self.n_samples):
            return super()._leading_of_samples(m)
        if self._sample_gram is None:
            known = self.recall.find("gram of samples", Gram)
            if known is None:
                self.n_passes += 1
                self.n_grams += 1
                products = self._by_roots(self._by_roots(self._sample_products()).T)
                products /= self.divisor
                known = Gram(np.ascontiguousarray(products))
                self.recall.keep("gram of samples", known)
            self._sample_gram = known.products
        return leading_dense(self._sample_gram, m)

"""What every covariance offers, whatever it is made from."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index
from kspan.covariance.memory import NOTHING, Recall
from kspan.linalg.eigen import EigenPairs
from kspan.linalg.rounding import UNIT

if TYPE_CHECKING:
    from kspan.covariance.missing import Missing

Kind = Literal["data", "covariance"]


class Covariance(ABC):
    """A symmetric positive semidefinite d×d matrix A that need not exist as an array.

    Solvers multiply by it, look at its diagonal and cut out small pieces; they never ask what
    it is made from. All results are float64 arrays.

    Attributes
    ----------
    n_features : int
        d, the order of A.
    n_samples : int or None
        Rows of the data behind A, if there is any.
    dtype : numpy.dtype
        float32 or float64, as the input came.
    kind : {"data", "covariance"}
        Whether A was made from data, or given.
    mean, scale : (d,) arrays or None
        What is subtracted from and divided out of each column of the data.
    standardised : bool
        Whether the scales are the standard deviations of the data, so that A holds correlations.
    has_samples : bool
        Whether the samples can be read again: for `scores` and `row_blocks`.
    n_passes : int
        How often the whole input was read so far. Cutting out k columns of data counts as one.
    n_grams : int
        How often the whole of A, or of the n×n matrix XX', was computed from data so far.
    sketch : two (d, p) arrays or None
        Random columns Ω and AΩ, if they are at hand.
    weights_digest : str or None
        A SHA-256 of the weights of the rows; None if each counts once.
    missing : Missing or None
        How much of the data is missing, and what was done about it.
    recall : Recall
        What was found out about the same data before; nothing, unless it was built with a memory.
    indefiniteness : float
        How far the smallest eigenvalue of a given matrix is below zero, as a share of the largest
        one; 0 if by rounding at most, or if nobody has asked (`ensure_psd`). Part of `psd_slack`.
    """

    n_features: int
    n_samples: int | None = None
    dtype: np.dtype[np.floating]
    kind: Kind = "covariance"
    mean: FloatArray | None = None
    scale: FloatArray | None = None
    standardised: bool = False
    has_samples: bool = False
    n_passes: int = 0
    n_grams: int = 0
    sketch: tuple[FloatArray, FloatArray] | None = None
    weights_digest: str | None = None
    missing: "Missing | None" = None
    recall: Recall = NOTHING
    indefiniteness: float = 0.0
    _pairs: EigenPairs | None = None

    @property
    def knows_psd(self) -> bool:
        """Whether A is known to be PSD up to `psd_slack`; if it is not, `ensure_psd` finds out."""
        return True

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the variances of the features, exactly zero for constant ones."""

    def trace(self) -> float:
        """Return the total variance."""
        return float(self.diagonal().sum())

    def entry_errors(self) -> FloatArray:
        r"""Return r: an entry (i, j) that is computed is off by at most :math:`\sqrt{r_ir_j}`.

        That is of `submatrix`, `diagonal` and the square of `sample_factor`, and all that rounding
        did since the numbers were given; zero for a given matrix. Sums of such errors have this
        form too, as :math:`\sqrt{r_ir_j} + \sqrt{q_iq_j} \le \sqrt{(r_i+q_i)(r_j+q_j)}`, and on a
        support S they are at most :math:`\sum_{i∈S} r_i` in the Frobenius norm.
        """
        return np.zeros(self.n_features)

    def product_errors(self) -> FloatArray:
        r"""Return p: entry i of a product Aw is off by :math:`\sqrt{p_i}\sum_j|w_j|\sqrt{p_j}`.

        At most, and of `precise_product`; never below `entry_errors`.
        """
        rounding = (self.n_features + 8) * UNIT
        return self.entry_errors() + rounding * np.abs(self.diagonal())

    def precise_product(self, w: FloatArray) -> FloatArray:
        """Return ``A w`` as exactly as `product_errors` says, for (d, p) columns w."""
        return self.matmat(w)

    def psd_slack(self) -> FloatArray:
        """Return s: the matrix that was meant, with diag(s) added, is positive semidefinite.

        Zero for data, whose covariance is; what is computed of it may lack that by `entry_errors`.
        """
        return np.zeros(self.n_features)

    def unseen(self) -> FloatArray:
        """Return h: the true matrix is between A and A + diag(h), but for rounding.

        Zero unless A is a sketch.
        """
        return np.zeros(self.n_features)

    @abstractmethod
    def matmat(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return ``A W``. With ``support``, W holds only those rows; the others are zero."""

    @abstractmethod
    def submatrix(self, support: Index) -> FloatArray:
        """Return ``A[support, support]``."""

    def products_within(
        self, support: Index, weights_for: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return ``A W`` for W that is made from ``A[support, support]``, with rows on the support.

        Of data that is two passes, or none once A is formed.
        """
        return self.matmat(weights_for(self.submatrix(support)), support)

    def variance_along(self, W: FloatArray, support: Index) -> float:
        """Return ``tr(W'AW)`` for W with rows on the support."""
        return float(np.sum(W * (self.submatrix(support) @ W)))

    def submatrices(self, supports: Index) -> FloatArray:
        """Return ``A[S, S]`` for every row S of `supports` as a (s, k, k) stack."""
        return np.stack([self.submatrix(support) for support in supports])

    @abstractmethod
    def columns(self, support: Index) -> FloatArray:
        """Return ``A[:, support]``."""

    @abstractmethod
    def restrict(self, support: Index) -> "Covariance":
        """Return the covariance of the chosen features alone."""

    def densified(self) -> "Covariance":
        """Return the same with all samples in one dense array, if they are kept otherwise."""
        return self

    def scores(self, W: FloatArray, support: Index | None = None) -> FloatArray:
        """Return the coordinates of the samples: the centred, scaled data times W (n × p)."""
        raise ValueError("A covariance matrix has no samples; give the data instead.")

    def row_blocks(self, size: int) -> Iterator["Covariance"]:
        """Read the data once, block by block: yield the covariance ``Σxx'/n`` of each block's rows.

        Rows are centred and scaled as those of the whole data are. The blocks are of equal size,
        at least `size` if there are as many rows: a small last one would be mostly noise.
        """
        raise ValueError("A covariance matrix has no rows to stream; give the data instead.")

    @property
    def is_wide(self) -> bool:
        """Whether `sample_factor` has an answer."""
        return False

    def sample_factor(self, support: Index | None = None) -> FloatArray | None:
        """Return X with ``A = X'X`` when there is one with fewer rows than features, else None.

        With a support, only its columns.
        """
        return None

    def sample_gram(self) -> tuple[FloatArray, float] | None:
        """Return XX' (n×n) with ``A = X'X``, and what its norm is off by; None if not in memory.

        For data that is neither wide in one array nor has few features: of all that are neither,
        only sparse data has an answer.
        """
        return None

    @property
    def reads_are_costly(self) -> bool:
        """Whether methods should make few products with all features rather than many."""
        return False

    def prepare(self) -> None:  # noqa: B027 - most have nothing to prepare
        """Form A if that is within reach: called before a method that makes many products."""

    def ensure_psd(self) -> None:  # noqa: B027 - most are, by what they are made from
        """Make sure that A is positive semidefinite up to its `psd_slack`, or raise."""

    def fingerprint(self) -> str:
        """Return a SHA-256 of the numbers behind A: the same for every way to store them."""
        n = self.n_features if self.n_samples is None else self.n_samples
        sha = hashlib.sha256(f"{n} x {self.n_features}".encode())
        digests = self._row_digests() if self.missing is None else self.missing.row_digests()
        sha.update(digests.tobytes())
        return sha.hexdigest()

    def _row_digests(self) -> NDArray[np.uint8]:
        """Return the digest of every row of the data, or of A."""
        raise ValueError(
            "Only data and covariance matrices have a fingerprint, not what is derived from them."
        )

    def leading(self, m: int, support: Index | None = None) -> EigenPairs:
        """Return the m leading eigenpairs of A, or of ``A[support, support]``.

        The residual of every pair is at most 1e-8 times the largest eigenvalue (float32 data:
        1e-5). Which eigensolver does it depends on size and kind, and on values only where means
        are large or Lanczos gives up; docs/eigensolvers.md has the rule and its measurements. The
        pairs of the whole of A are kept, so asking again is free.
        """
        if support is not None:
            return self.restrict(support).leading(m)
        if self._pairs is None or self._pairs.values.size < m:
            self._pairs = self._leading(m)
        return self._pairs.truncate(m)

    def leading_if_cheap(self, m: int) -> EigenPairs | None:
        """Return the m leading eigenpairs; None if they are not at hand and reads are costly."""
        at_hand = self._pairs is not None and self._pairs.values.size >= m
        return self.leading(m) if at_hand or not self.reads_are_costly else None

    @abstractmethod
    def _leading(self, m: int) -> EigenPairs:
        """Compute the m leading eigenpairs; see `leading`."""

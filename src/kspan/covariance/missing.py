r"""Data with holes: the covariance when what is missing is the mean, or by pairs of features.

**Mean.** A missing value is filled with the (weighted) mean of those of its column that are there,
as a double, so that it adds nothing to any product once it is centred; sums are still divided by
the number of all rows, less one. Small data is filled in a copy, large data block by block.

**Pairwise.** An entry of the covariance comes from the rows in which both features are there. With
M the mask of what is, Z the data less an origin with zeros in the holes, and products weighted,

.. math:: A_{ij} = \Big(P_{ij} - \frac{S_{ij} S_{ji}}{N_{ij}}\Big) / (N_{ij} - ddof),
          \qquad N = M'M, \quad S = Z'M, \quad P = Z'Z ,

as each pair has means of its own. The result need not be positive semidefinite. An entry is off by
some n units of :math:`\sqrt{P_{ii}P_{jj}} / (N_{ij} - ddof)`, as :math:`S_{ij}^2 \le
N_{ij}P_{ii}`; and by what N lost in its sum, over what is left of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.covariance.block_kernels import (
    add,
    incomplete_row_digests,
    pair_products,
    present_sums,
)
from kspan.covariance.data_covariance import divisors_for, require_variance
from kspan.covariance.matrix import DenseCovariance, Psd
from kspan.covariance.memory import Holes
from kspan.covariance.weights import NOTHING_LEFT, Weights
from kspan.io import RowSource
from kspan.linalg.rounding import UNIT

RULES = ("raise", "mean", "pairwise")

# Features up to which pairs are counted: four matrices of 70 MB.
PAIRWISE_LIMIT = 3000

# Entries from different rows may be far from those of one covariance: the smallest eigenvalue may
# be as large as the largest.
PAIRWISE_MENDED = 1.0


@dataclass(frozen=True, eq=False)
class Missing:
    """How much of the data is missing, and what was done about it.

    Attributes
    ----------
    rule : {"mean", "pairwise"}
    count : how many values are missing
    n_values : how many there would be
    given : the data as it came
    """

    rule: str
    count: int
    n_values: int
    given: Any = field(repr=False)

    @property
    def share(self) -> float:
        """The share of the table that is missing."""
        return self.count / self.n_values

    def row_digests(self) -> NDArray[np.uint8]:
        """Return the digest of every row as it came, holes included. One pass."""
        if isinstance(self.given, RowSource):
            return self.given.stack(incomplete_row_digests)
        return incomplete_row_digests(self.given)


@dataclass(frozen=True, eq=False)
class Incomplete:
    """Data with holes.

    Parameters
    ----------
    X : array, CSR or CSC, or `RowSource`
    weights : what each row counts
    feature_names : of the columns
    """

    X: Any
    weights: Weights | None
    feature_names: Sequence[str] | None

    def holes(self) -> Holes:
        """Return how much is missing, and the means of what is there. Two passes.

        Raises `ValueError` about infinite values, and about columns with fewer than two values.
        """
        d = self.X.shape[1]
        weights = None if self.weights is None else self.weights.values
        mean = np.zeros(d)
        for _ in range(2):  # the second time from close by: large means cost no digits
            with np.errstate(all="ignore"):
                found = self._reduced(partial(present_sums, origin=mean), weights)
            n_missing, n_infinite, n_there, total, sums = found
            if n_infinite.any():
                raise ValueError(
                    f"Input X contains infinity: {int(n_infinite.sum())} in "
                    f"{np.count_nonzero(n_infinite)} column(s), the first being "
                    f"{self._named(int(np.flatnonzero(n_infinite)[0]))}. Drop them first."
                )
            few = np.flatnonzero(n_there < 2)
            if few.size:
                raise ValueError(
                    f"Input X has {few.size} column(s) with fewer than two values, the first being "
                    f"{self._named(int(few[0]))}. Drop them first."
                )
            mean = mean + sums / total
        return Holes(int(n_missing.sum()), mean)

    def by_pairs(
        self, mean: FloatArray, *, scale: bool | FloatArray, ddof: int, psd: Psd
    ) -> DenseCovariance:
        """Return the covariance of each pair of features from the rows that have both. One pass."""
        n, d = self.X.shape
        if d > PAIRWISE_LIMIT:
            raise ValueError(
                f"missing='pairwise' needs a matrix of {d} x {d}: it is for up to {PAIRWISE_LIMIT} "
                "features. Use missing='mean'."
            )
        roots = None if self.weights is None else self.weights.roots
        N, S, P = self._reduced(partial(pair_products, origin=mean), roots)
        left = N - ddof
        lonely = np.argwhere(~(left > NOTHING_LEFT * N))
        if lonely.size:
            one, other = (self._named(int(column)) for column in lonely[0])
            raise ValueError(
                f"Too few rows have both {one} and {other}: a covariance needs two. Leave one out, "
                "or use missing='mean'."
            )
        A = (P - S * S.T / N) / left
        variances = np.diagonal(A).copy()
        standardised = not isinstance(scale, np.ndarray) and bool(scale)
        require_variance(variances, standardised)
        scales = divisors_for(variances, scale)
        A /= scales[:, None]
        A /= scales
        squares, ratio = np.diagonal(P), (1 + N / left) / left
        errors = (20 * n + 200) * UNIT * squares * ratio.max(axis=1) / scales / scales + 1e-320
        A = 0.5 * (A + A.T)
        if standardised:
            np.fill_diagonal(A, variances > 0)
        result = DenseCovariance(
            A, np.dtype(self.X.dtype), errors=errors, psd=psd, most=PAIRWISE_MENDED
        )
        result.n_samples, result.kind, result.standardised = n, "data", standardised
        result.mean, result.scale = mean, scales
        result.weights_digest = None if self.weights is None else self.weights.digest()
        result.n_passes += 1
        result.ensure_psd()
        return result

    def _reduced(self, kernel: Any, rows: FloatArray | None) -> Any:
        """Return what a kernel makes of all rows, with a number for each if given."""
        if isinstance(self.X, RowSource):
            return self.X.reduce(kernel, add, rows=rows)
        return kernel(self.X, *(() if rows is None else (rows,)))

    def _named(self, column: int) -> str:
        name = "" if self.feature_names is None else f" ({str(self.feature_names[column])!r})"
        return f"column {column}{name}"

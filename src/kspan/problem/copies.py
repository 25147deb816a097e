"""Features that are near copies of each other: pairs by their correlation, in blocks of columns."""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.covariance.block_kernels import block_slices

# Bytes of a block of columns of A.
BLOCK_BYTES = 1 << 26

# Correlations are above a limit when they are by more than rounding.
ROUNDING = 1e-10

# Above this correlation two features are near copies of each other.
NEAR = 0.99


def correlated_pairs(covariance: Covariance, limit: float) -> Index:
    """Return the pairs (i < j) of features with an absolute correlation above a limit.

    Features that do not vary are related to none. Reads the columns of A in blocks: O(nd²)
    operations, and a pass over data on disk for every few thousand features.
    """
    variances = covariance.diagonal()
    varies = np.flatnonzero(variances > 0)
    deviations = np.sqrt(variances[varies])
    found = [np.empty((0, 2), dtype=np.intp)]
    for block in block_slices(varies.size, 8 * covariance.n_features, BLOCK_BYTES):
        columns = covariance.columns(varies[block])[varies] / deviations[:, None]
        columns /= deviations[block]
        first, second = np.nonzero(np.abs(columns) > limit + ROUNDING)
        second = second + block.start
        above = first < second
        found.append(np.stack([varies[first[above]], varies[second[above]]], axis=1))
    return np.concatenate(found)


@dataclass(frozen=True)
class Copies:
    """How alike the features of a support are.

    Attributes
    ----------
    n_features : int
    n_copied : int
        Those with an absolute correlation above `NEAR` to one before them.
    largest : float
        The largest absolute correlation of two of them.
    """

    n_features: int
    n_copied: int
    largest: float

    @classmethod
    def of(cls, A: FloatArray) -> "Copies":
        """Look at the covariance of the features of a support."""
        deviations = np.sqrt(np.maximum(np.diagonal(A), 0.0))
        varies = deviations > 0
        block = A[np.ix_(varies, varies)]
        related = np.abs(np.tril(block / deviations[varies] / deviations[varies, None], -1))
        copied = int((related > NEAR).any(axis=1).sum())
        return cls(len(A), copied, float(related.max(initial=0.0)))

    @property
    def is_most(self) -> bool:
        """Whether more than half of the features could be left out for others like them."""
        return self.n_features > 2 and 2 * self.n_copied > self.n_features

r"""The features that a search chooses from, and what it has to know of them.

K is A, and H is A² (the squared covariances with *all* features, in the pool or not), on the
features of the pool. Products of their columns with few vectors say all that a search needs. There
are three ways to have them:

- wide data: from the samples, ``X'(X_S w)`` and ``X'(XX')(X_S w)``; nothing is of the size d×d;
- up to `MOST_IN_MATRIX` features: both matrices are formed, once;
- else, and where reads are costly: the same for as many candidates, by one pass over the data.
  They are those that tell most about the leading principal components, one feature at a time.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import top_k
from kspan.problem import Choice, RepresentProblem

ALL = slice(None)

# Features whose matrices are formed: 2 × 32 MB.
MOST_IN_MATRIX = 2000

# Candidates, where they are not all: this many times k, between this limit and the one above.
PER_FEATURE, FEWEST = 6, 500

# Numbers of columns of A, and of a dense copy of wide data, that may be in memory: 1.6 GB.
MOST_NUMBERS = 200_000_000


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """Features to choose from, numbered anew; all in units of the problem's scale.

    Attributes
    ----------
    features : (n,) their numbers in the problem
    choice : of these
    variances, noise : (n,) of each feature
    squares : (n,) the diagonal of H
    """

    features: Index
    choice: Choice
    variances: FloatArray
    noise: FloatArray
    squares: FloatArray

    @abstractmethod
    def covariances(
        self, places: Index, weights: FloatArray, rows: Index | slice = ALL
    ) -> FloatArray:
        """Return ``K[rows, places] weights``: covariances with scores, without noise."""

    @abstractmethod
    def squared(self, places: Index, weights: FloatArray, rows: Index | slice = ALL) -> FloatArray:
        """Return ``H[rows, places] weights``."""

    @abstractmethod
    def blocks(self, places: Index) -> tuple[FloatArray, FloatArray]:
        """Return K (with noise) and H of some places alone."""

    def with_noise(self, K: FloatArray, places: Index) -> FloatArray:
        """Return K of some places with the noise on its diagonal."""
        K = (K + K.T) / 2
        K[np.diag_indices_from(K)] += self.noise[places]
        return K


@dataclass(frozen=True, eq=False)
class MatrixPool(Pool):
    """One that has both matrices."""

    K: FloatArray
    H: FloatArray

    def covariances(
        self, places: Index, weights: FloatArray, rows: Index | slice = ALL
    ) -> FloatArray:
        """See `Pool.covariances`."""
        return self.K[:, places][rows] @ weights

    def squared(self, places: Index, weights: FloatArray, rows: Index | slice = ALL) -> FloatArray:
        """See `Pool.squared`."""
        return self.H[:, places][rows] @ weights

    def blocks(self, places: Index) -> tuple[FloatArray, FloatArray]:
        """See `Pool.blocks`."""
        square = np.ix_(places, places)
        return self.with_noise(self.K[square], places), self.H[square]


@dataclass(frozen=True, eq=False)
class SamplePool(Pool):
    """One that has the few samples of wide data, and XX'."""

    X: FloatArray
    gram: FloatArray

    def covariances(
        self, places: Index, weights: FloatArray, rows: Index | slice = ALL
    ) -> FloatArray:
        """See `Pool.covariances`."""
        return self.X[:, rows].T @ (self.X[:, places] @ weights)

    def squared(self, places: Index, weights: FloatArray, rows: Index | slice = ALL) -> FloatArray:
        """See `Pool.squared`."""
        return self.X[:, rows].T @ (self.gram @ (self.X[:, places] @ weights))

    def blocks(self, places: Index) -> tuple[FloatArray, FloatArray]:
        """See `Pool.blocks`."""
        some = self.X[:, places]
        return self.with_noise(some.T @ some, places), some.T @ (self.gram @ some)


def pool_of(problem: RepresentProblem) -> Pool:
    """Return the pool that a problem's size asks for."""
    covariance, scale = problem.covariance, problem.scale
    features = problem.choice.usable()
    numbers = (covariance.n_samples or 0) * covariance.n_features
    if covariance.is_wide and not covariance.reads_are_costly and numbers <= MOST_NUMBERS:
        X = covariance.sample_factor(features)
        assert X is not None
        X = X / np.sqrt(scale)
        gram = problem.sample_gram
        squares = np.einsum("ij,ij->j", X, gram @ X)
        return SamplePool(features, *_about(problem, features), squares, X, gram)
    most = _most_candidates(problem)
    if features.size > most:
        features = candidates(problem, most)
    C = covariance.columns(features) / scale
    K, H = C[features], C.T @ C
    return MatrixPool(features, *_about(problem, features), np.diagonal(H).copy(), (K + K.T) / 2, H)


def _about(problem: RepresentProblem, features: Index) -> tuple[Choice, FloatArray, FloatArray]:
    """Return choice, variances and noise on some features."""
    variances = np.maximum(problem.covariance.diagonal()[features], 0.0) / problem.scale
    noise = problem.noise()[features] / problem.scale
    return problem.choice.on(features), variances, noise


def _most_candidates(problem: RepresentProblem) -> int:
    """Return how many features a pool with matrices may have."""
    k, d = problem.choice.size, problem.n_features
    if d <= MOST_IN_MATRIX and not problem.covariance.reads_are_costly:
        return d
    most = int(np.clip(PER_FEATURE * k, FEWEST, max(MOST_IN_MATRIX, 2 * k)))
    return min(most, max(MOST_NUMBERS // d, 2 * k))


def candidates(problem: RepresentProblem, count: int) -> Index:
    """Return the features that tell most about the leading components, each by itself.

    More components than asked for, so that a pool is not all about the first few; a tenth are those
    with the largest variances.
    """
    covariance, choice = problem.covariance, problem.choice
    m = min(2 * problem.n_components + 8, problem.n_features)
    pairs = covariance.leading(m)
    variances = np.maximum(covariance.diagonal(), 0.0)
    told = np.sum((pairs.vectors * (pairs.values / problem.scale)) ** 2, axis=1)
    varies = variances > 0
    scores = np.zeros(problem.n_features)
    scores[varies] = told[varies] / (variances[varies] / problem.scale)
    usable = np.zeros(problem.n_features, dtype=bool)
    usable[choice.usable()] = True
    keys = np.where(usable, scores, -1.0)
    keys[choice.forced] = np.inf
    best = top_k(keys, count - count // 10)
    more = top_k(np.where(usable, variances, -1.0), count // 10)
    return choice.whole(np.union1d(best, more))

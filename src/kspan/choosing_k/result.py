"""`SparsityPath`: what is explained with k features, and at most could be, for many k."""

import os
from dataclasses import dataclass, field

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.proofs import Certificate
from kspan.proofs.check.certificate import file_types
from kspan.storage import load_file, save_file

# A share counts as reached when only rounding is missing.
ROUNDING = 1e-12


@dataclass(frozen=True)
class SparsityPath:
    """The variance that k features explain, for many k, with a band that holds the optimum.

    ``objective[i] ≤ (best possible with k[i] features) ≤ upper[i]``, where `upper` is proved and
    `objective` as it was computed, to the nearest number but for rounding; neither ever falls as k
    grows, nor is `objective` above `upper`.

    Attributes
    ----------
    k : (t,) ascending numbers of features
    objective : (t,) variance that the supports explain with m components
    upper : (t,) what no selection of k features can exceed: proved, and always finite
    supports : list of t index arrays
    n_components, n_features : int
        m and d.
    full : float
        What plain PCA explains with as many components and all features.
    total_variance : float
        Of all features together.
    feature_names : list of str, or None
    solver : str
    status : str
        The value of a `kspan.progress.Status`. When stopped early, `k` has what was done by then.
    certificates : list of Certificate
        The proofs behind `upper`, each made at one k. Where there is none, `upper` is the least of
        the k largest variances and the m leading eigenvalues.
    n_passes : int
        How often the data was read.
    seconds : float

    Examples
    --------
    >>> from kspan import sparsity_path
    >>> from kspan.datasets import load_pitprops
    >>> A = load_pitprops().covariance
    >>> path = sparsity_path(A, 1, ks=[1, 5, 13], covariance="precomputed", random_state=0)
    >>> path.objective.round(3)
    array([1.   , 3.406, 4.219])
    >>> path.smallest(share=0.8)
    5
    """

    k: Index
    objective: FloatArray
    upper: FloatArray
    supports: list[Index] = field(repr=False)
    n_components: int
    n_features: int
    full: float
    total_variance: float
    feature_names: list[str] | None = field(repr=False)
    solver: str
    status: str
    certificates: list[Certificate] = field(repr=False)
    n_passes: int
    seconds: float

    @property
    def explained(self) -> FloatArray:
        """Share of what plain PCA explains with as many components: 1 is all there is to have."""
        return self.objective / self.full

    @property
    def share_of_total(self) -> FloatArray:
        """Share of the variance of all features."""
        return self.objective / self.total_variance

    @property
    def gap(self) -> FloatArray:
        """The share of the optimum that may be lost at each k, at most."""
        positive = np.where(self.upper > 0, self.upper, 1.0)
        return (self.upper - self.objective) / positive

    @property
    def overlap(self) -> FloatArray:
        """Jaccard index of each support and the next: features in both over features in either.

        At most ``k[i] / k[i + 1]``, which it is when the larger support holds the smaller one.
        """
        shared = self._shared()
        return shared / (self.k[:-1] + self.k[1:] - shared)

    @property
    def jumps(self) -> Index:
        """How many features of each support the next, larger one has dropped; 0 when nested."""
        return self.k[:-1] - self._shared()

    def _shared(self) -> Index:
        pairs = zip(self.supports, self.supports[1:], strict=False)
        return np.array([np.intersect1d(one, other).size for one, other in pairs], dtype=np.intp)

    def smallest(self, share: float = 0.9) -> int:
        """Return the smallest k of the path that keeps a share of plain PCA's variance."""
        reached = np.flatnonzero(self.explained >= _valid(share) * (1 - ROUNDING))
        if not reached.size:
            raise ValueError(
                f"The path reaches a share of {self.explained[-1]:.3f} with {self.k[-1]} "
                f"features, less than share={share}."
            )
        return int(self.k[reached[0]])

    def no_fewer_than(self, share: float = 0.9) -> int:
        """Return a number of features below which no selection keeps the share: this is proved.

        When it equals ``smallest(share)``, that is the smallest there is.
        """
        short = np.flatnonzero(self.upper < _valid(share) * self.full)
        return int(self.k[short[-1]]) + 1 if short.size else self.n_components

    def support_at(self, k: int) -> Index | list[str]:
        """Return the features chosen at k: their names if there are any, else their numbers."""
        places = np.flatnonzero(self.k == k)
        if not places.size:
            raise ValueError(f"k={k} is not on the path; it has {self.k.tolist()}.")
        support = self.supports[int(places[0])]
        if self.feature_names is None:
            return support
        return [self.feature_names[feature] for feature in support]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (``.npz``, no pickles), atomically."""
        save_file(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SparsityPath":
        """Read what `save` wrote. Its certificates are believed only after `kspan.verify`."""
        found = load_file(path, (cls, *file_types()))
        if not isinstance(found, cls):
            raise ValueError(f"{os.fspath(path)} does not hold a sparsity path.")
        return found


def _valid(share: float) -> float:
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share!r}.")
    return share

"""Choosing k: what k features explain; how often a feature is chosen again on resampled rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.choosing_k import SparsityPath, Stability, selection_stability, sparsity_path
from kspan.figures.components import MOST_FEATURES
from kspan.figures.figure import (
    Figure,
    NothingToDraw,
    every_name,
    floats,
    own_choice,
    require_some,
    shared_choice,
)
from kspan.proofs.check.certificate import OPTIMAL_GAP
from kspan.records import FitRecord
from kspan.records.form import PATH_OF, SHARED, features_each

# From the fewest features to the most: beyond this factor the axis should be logarithmic.
WIDE_RANGE = 40

# Of the stretches of a band for which there is no certificate.
UNCERTIFIED = "bounded by variances and eigenvalues only"


@dataclass(frozen=True, eq=False)
class PathFigure(Figure):
    """Explained variance against the number of features, with the band that holds the optimum.

    Parameters
    ----------
    k : (t,) ascending numbers of features
    objective : (t,) variance that the features found explain: the lower edge of the band
    full : what plain PCA explains with as many components and all features
    upper : (t,) what no k features can exceed, or None
    chosen : the k to mark, or None
    n_components : int or None
    counted : what k counts
    measured : what is measured, as a share of plain PCA's
    certified : (t,) whether a certificate bounds what is possible, or None if all are taken to be
    """

    k: Index
    objective: FloatArray
    full: float
    upper: FloatArray | None = None
    chosen: int | None = None
    n_components: int | None = None
    counted: str = "features"
    measured: str = "explained variance"
    certified: Mask | None = None

    def __post_init__(self) -> None:
        self._settle(
            k=np.asarray, objective=floats, upper=floats,
            certified=lambda known: None if known is None else np.asarray(known, dtype=bool),
        )  # fmt: skip

    @classmethod
    def from_path(cls, path: SparsityPath, *, chosen: int | None = None) -> Self:
        """Return what `kspan.sparsity_path` found, with a k to mark."""
        if not path.full > 0:
            raise NothingToDraw("The data has no variance.")
        upper = path.upper if path.is_bounded else None
        return cls(
            path.k, path.objective, path.full, upper, chosen, path.n_components, path.counted,
            path.measured, path.certified if path.is_bounded else None,
        )  # fmt: skip

    @classmethod
    def from_record(cls, record: FitRecord) -> Self:
        """Return the path in a record, with its fit marked if that can lie on a path."""
        if record.path is None:
            raise NothingToDraw(
                "The record has no path: make it with "
                "FitRecord.from_estimator(..., path=kspan.sparsity_path(X, ...))."
            )
        return cls.from_path(record.path, chosen=record.k_on_path)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, feature_names: Any = None, **asked: Any
    ) -> Self:
        """Compute the path with the parameters of an estimator; mark its fit."""
        instead = "from_path with what kspan.sparsity_path(X, ...) returns"
        kind = PATH_OF.get(type(estimator).__name__)
        if kind is None or kind == SHARED:
            choice = shared_choice(estimator, X, "a path over k", instead)
            path = sparsity_path(X, estimator.n_components_, **choice)
            return cls.from_path(path, chosen=estimator.n_features_to_select_)
        choice = own_choice(estimator, X, "a path over k", instead)
        path = sparsity_path(X, estimator.n_components_, estimator=kind, **choice)
        chosen = features_each(kind, estimator.get_params(), path.n_features)
        return cls.from_path(path, chosen=chosen)

    @property
    def share(self) -> FloatArray:
        """Share of what plain PCA explains."""
        return self.objective / self.full

    @property
    def ceiling(self) -> FloatArray | None:
        """What no k features can exceed, as a share of what plain PCA explains."""
        return None if self.upper is None else self.upper / self.full

    @property
    def band(self) -> tuple[Index, FloatArray, FloatArray] | None:
        """The band as places and edges: with what is known of the k that the path leaves out.

        Between two k of the path the optimum is at least what the smaller reaches, and at most the
        bound of the larger: a straight line from one to the other would claim more.
        """
        if self.ceiling is None:
            return None
        low, high = self.share, self.ceiling
        x, below, above = self._places.T
        return x, floats(low[below]), floats(high[above])

    @property
    def _places(self) -> Index:
        """Each place of the band: k, and where on the path its lower and upper edge are from."""
        places = [(int(self.k[0]), 0, 0)]
        for i in range(1, self.k.size):
            before, k = int(self.k[i - 1]), int(self.k[i])
            places += [(x, i - 1, i) for x in sorted({before + 1, k - 1} - {before, k})]
            places.append((k, i, i))
        return np.array(places)

    @property
    def uncertified(self) -> list[tuple[Index, FloatArray, FloatArray]]:
        """The stretches of the band that no certificate bounds, as places and edges.

        From one place of the band to the next it is certified only if both ends are. Where
        variances and eigenvalues leave nothing open there is nothing to certify.
        """
        if self.band is None or self.ceiling is None or self.certified is None:
            return []
        closed = self.ceiling - self.share <= OPTIMAL_GAP * self.ceiling
        proved = (self.certified | closed)[self._places[:, 2]]
        open_steps = ~(proved[:-1] & proved[1:])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], open_steps, [False]])))
        stretches = [slice(first, last + 1) for first, last in edges.reshape(-1, 2)]
        x, lower, upper = self.band
        return [(x[part], lower[part], upper[part]) for part in stretches]

    @property
    def adds_up(self) -> bool:
        """Whether variances are added up that components share: that is not what they explain."""
        return self.measured != "explained variance"

    @property
    def chosen_share(self) -> float | None:
        """What the chosen k explains, if the path has it."""
        places = np.flatnonzero(self.k == self.chosen)
        return float(self.share[places[0]]) if places.size else None

    @property
    def is_wide(self) -> bool:
        """Whether k needs a logarithmic axis."""
        return bool(self.k[-1] > WIDE_RANGE * self.k[0])


@dataclass(frozen=True, eq=False)
class StabilityFigure(Figure):
    """Selection frequencies, and which features are in the fit.

    Parameters
    ----------
    frequencies : (d,) share of the resamples in which each feature was chosen
    feature_names : d names; their places by default
    chosen : (k,) places of the features of the fit, or None
    nogueira : agreement of the selections corrected for chance, or None
    n_resamples : int or None
    """

    frequencies: FloatArray
    feature_names: list[str] = field(default_factory=list)
    chosen: Index | None = None
    nogueira: float | None = None
    n_resamples: int | None = None

    def __post_init__(self) -> None:
        self._settle(
            frequencies=floats,
            feature_names=lambda names: every_name(names, len(self.frequencies)),
            chosen=lambda places: None if places is None else np.asarray(places, dtype=np.intp),
        )

    @classmethod
    def from_stability(
        cls,
        stability: Stability,
        *,
        chosen: Index | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Return what `kspan.selection_stability` found."""
        names = list(stability.feature_names or feature_names or [])
        return cls(stability.frequencies, names, chosen, stability.nogueira, stability.n_resamples)

    @classmethod
    def from_record(cls, record: FitRecord) -> Self:
        """Return the stability in a record, with the features of its fit."""
        if record.stability is None:
            raise NothingToDraw(
                "The record has no stability: make it with "
                "FitRecord.from_estimator(..., stability=kspan.selection_stability(X, ...))."
            )
        return cls.from_stability(
            record.stability, chosen=record.support, feature_names=record.feature_names
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, feature_names: Any = None, **asked: Any
    ) -> Self:
        """Measure the stability with the parameters of an estimator."""
        instead = "from_stability with what kspan.selection_stability(X, ...) returns"
        choice = shared_choice(estimator, X, "a stability", instead)
        stability = selection_stability(
            X, estimator.n_components_, estimator.n_features_to_select_, **choice
        )
        chosen = estimator.get_support(indices=True)
        return cls.from_stability(stability, chosen=chosen, feature_names=feature_names)

    @property
    def in_fit(self) -> Mask:
        """Which features are in the fit."""
        inside = np.zeros(self.frequencies.size, dtype=bool)
        if self.chosen is not None:
            inside[self.chosen] = True
        return inside

    def order(self, max_features: int = MOST_FEATURES) -> Index:
        """Return the features to show, most frequent first: those chosen at all, or in the fit."""
        require_some(max_features)
        inside = self.in_fit
        # Of equally frequent ones those of the fit come first.
        order = np.lexsort((~inside, -self.frequencies))
        return order[(self.frequencies[order] > 0) | inside[order]][:max_features]

"""What is explained with k features, and at most could be, for many k.

`SparsityPath` is about features that all components share, `ComponentPath` about components with k
features each. `AnyPath` is what they have in common with the path over budgets.
"""

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.cards import Grid, at_most, card, some_rows
from kspan.io.results import data_frame, json_ready
from kspan.proofs import Certificate
from kspan.proofs.check.certificate import OPTIMAL_GAP, file_types
from kspan.storage import load_file, save_file

# The columns of a path that a card shows, and what it calls them.
_SHOWN = {
    "features": "k", "budget": "budget", "share_of_pca": "of plain PCA", "gap": "at most missing",
}  # fmt: skip
BEST = "proved best"
_ENDED = ("completed", "converged", "optimal")

# A share counts as reached when only rounding is missing.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class AnyPath:
    """What better and better choices explain, and at most could; the rest says what makes them so.

    Attributes
    ----------
    objective, upper : (t,)
    supports : list of t index arrays
    n_components, n_features, full, total_variance, feature_names : of the data
    status, certificates, seconds : of the work
    """

    objective: FloatArray
    upper: FloatArray
    supports: list[Index] = field(repr=False)
    n_components: int
    n_features: int
    full: float
    total_variance: float
    feature_names: list[str] | None = field(repr=False)
    status: str
    certificates: list[Certificate] = field(repr=False)
    seconds: float

    # As messages have it.
    called: ClassVar[str] = "path"

    @property
    def explained(self) -> FloatArray:
        """Share of what plain PCA explains with as many components: 1 is all there is to have."""
        return self.objective / self.full

    @property
    def gap(self) -> FloatArray:
        """The share of the optimum that may be lost at each place of the path, at most."""
        positive = np.where(self.upper > 0, self.upper, 1.0)
        return (self.upper - self.objective) / positive

    def columns(self) -> dict[str, FloatArray | Index]:
        """Return the numbers as columns of a table."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return `columns` as a pandas DataFrame, with a row for each place of the path."""
        return data_frame(self.columns())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, ready for JSON: a dict for each place of the path.

        What is not known is None, and `selected` has the features: their names if there are any.
        """
        names = (
            "n_components", "n_features", "full", "total_variance", "status", "seconds",
        )  # fmt: skip
        found: dict[str, Any] = {"kind": self.called}
        found |= {name: getattr(self, name) for name in names}
        rows = self.rows()
        for row, support in zip(rows, self.supports, strict=True):
            row["selected"] = self._named(support)
        found["path"] = rows
        found["certificates"] = [proof.to_dict() for proof in self.certificates]
        ready: dict[str, Any] = json_ready(found)
        return ready

    def rows(self) -> list[dict[str, Any]]:
        """Return `columns` by rows, as plain numbers; None for what is not known."""
        columns = {name: json_ready(values) for name, values in self.columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = self.rows()
        columns = [name for name in rows[0] if name in _SHOWN or name.startswith("gap")]
        some = some_rows(len(rows))
        return card(
            f"{self.called[0].upper()}{self.called[1:]}: {self._about}",
            f"{self._summary()[0].upper()}{self._summary()[1:]}.",
            [] if self.status in _ENDED else [f"It ended early: {self.status}."],
            grid=Grid(
                [_SHOWN.get(name, name.replace("_", " of ")) for name in columns],
                [[_cell(name, rows[place][name]) for name in columns] for place in some],
                note=f"{len(some)} of {len(rows)} rows" if len(some) < len(rows) else "",
            ),
        )

    @property
    def _about(self) -> str:
        m = self.n_components
        return f"{m} component{'s' if m > 1 else ''} of {self.n_features:,} features"

    def _summary(self) -> str:
        """Say in a line what the path has."""
        low, high = (f"{share:.1%}" for share in (self.explained[0], self.explained[-1]))
        gaps, proved = self.gap[np.isfinite(self.gap)], ""
        if gaps.size:
            worst = _cell("gap", float(gaps.max()))
            proved = f", each at most {worst} below the best possible"
            proved = ", each proved best" if worst == BEST else proved
        return f"{self._ends()} have {low} to {high} of what plain PCA explains{proved}"

    def _ends(self) -> str:
        """Say from what to what it goes."""
        raise NotImplementedError

    def _named(self, support: Index) -> Index | list[str]:
        if self.feature_names is None:
            return support
        return [self.feature_names[feature] for feature in support]

    def _sizes(self) -> Index:
        return np.array([support.size for support in self.supports], dtype=np.intp)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (``.npz``, no pickles), atomically."""
        save_file(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. Its certificates are believed only after `kspan.verify`."""
        found = load_file(path, (*cls.stored_types(), *file_types()))
        if not isinstance(found, cls):
            raise ValueError(f"{os.fspath(path)} does not hold a {cls.called}.")
        return found

    @classmethod
    def stored_types(cls) -> tuple[type, ...]:
        """Return the paths that a file may hold, besides certificates."""
        return (cls,)


@dataclass(frozen=True, repr=False)
class SparsityPath(AnyPath):
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
    represented, panel : (t,) or None
        Shares of the variance of all features that the m scores, and all chosen features, tell by
        linear regression; see `kspan.problem.VarianceShares`. None in older files.
    ridge : float or None
        Of ``criterion="represent"``, where `objective` is what the scores tell of all features;
        None where it is what components explain.

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
    solver: str
    n_passes: int
    represented: FloatArray | None = field(default=None, kw_only=True)
    panel: FloatArray | None = field(default=None, kw_only=True)
    ridge: float | None = field(default=None, kw_only=True)

    called: ClassVar[str] = "sparsity path"

    @property
    def kind(self) -> str:
        """The `estimator` of `kspan.sparsity_path` that it was made with."""
        return "features"

    @property
    def counted(self) -> str:
        """What k counts, as sentences and axes have it."""
        return "features"

    @property
    def measured(self) -> str:
        """What `objective` is, as sentences and axes have it."""
        return "explained variance" if self.ridge is None else "variance told of all features"

    @property
    def is_bounded(self) -> bool:
        """Whether `upper` is there: proofs are about what all components explain together."""
        return True

    @property
    def certified(self) -> Mask:
        """(t,), whether a certificate bounds what is possible with so many features.

        Elsewhere `upper` is the least of what the largest variances and the leading eigenvalues
        say: it holds as well, but nobody has searched for a better one.
        """
        found = np.zeros(self.k.size, dtype=bool)
        for place in range(len(self.certificates)):
            if not self.certificates[place].witness.is_free:
                bounds = np.minimum.accumulate(self._bounds(place)[::-1])[::-1]
                found |= bounds <= self.upper * (1 + ROUNDING)
        return found

    def _bounds(self, place: int) -> FloatArray:
        """Return what one of the certificates says about every k, infinite where nothing."""
        proof = self.certificates[place]
        bounds = np.full(self.k.size, np.inf)
        for i, k in enumerate(self.k.tolist()):
            size = proof.choice.resized(k).size  # under rules it may be less
            if size <= proof.reach:
                bounds[i] = proof.upper_at(size)
        return bounds

    @property
    def share_of_total(self) -> FloatArray:
        """Share of the variance of all features."""
        return self.objective / self.total_variance

    def columns(self) -> dict[str, FloatArray | Index]:
        """Return the numbers as columns of a table, such as ``pandas.DataFrame(path.columns())``.

        With ``represented`` and ``panel``, shares of the variance of all features; and ``at_most``
        and ``gap`` where something is proved about all components together.
        """
        found: dict[str, FloatArray | Index] = {"features": self.k}
        found |= {self._objective_name: self.objective, "share_of_pca": self.explained}
        if self.represented is not None and self.panel is not None:
            found |= {"represented": self.represented, "panel": self.panel}
        if self.is_bounded:
            found |= {"at_most": self.upper, "gap": self.gap}
        return found

    @property
    def _objective_name(self) -> str:
        return "explained_variance" if self.ridge is None else "variance_told"

    @property
    def overlap(self) -> FloatArray:
        """Jaccard index of each support and the next: features in both over features in either.

        At most ``k[i] / k[i + 1]``, which it is when the larger support holds the smaller one.
        """
        shared, sizes = self._shared(), self._sizes()
        return shared / (sizes[:-1] + sizes[1:] - shared)

    @property
    def jumps(self) -> Index:
        """How many features of each support the next one has dropped; 0 when nested."""
        return self._sizes()[:-1] - self._shared()

    def _shared(self) -> Index:
        pairs = zip(self.supports, self.supports[1:], strict=False)
        return np.array([np.intersect1d(one, other).size for one, other in pairs], dtype=np.intp)

    def smallest(self, share: float = 0.9) -> int:
        """Return the smallest k of the path that keeps a share of plain PCA's variance."""
        reached = np.flatnonzero(self.explained >= _valid(share) * (1 - ROUNDING))
        if not reached.size:
            raise ValueError(
                f"The path reaches a share of {self.explained.max():.3f} with "
                f"{self.k[self.explained.argmax()]} {self.counted}, less than share={share}."
            )
        return int(self.k[reached[0]])

    def no_fewer_than(self, share: float = 0.9) -> int:
        """Return a number of features below which no selection keeps the share: this is proved.

        When it equals ``smallest(share)``, that is the smallest there is.
        """
        short = np.flatnonzero(self.upper < _valid(share) * self.full)
        return int(self.k[short[-1]]) + 1 if short.size else self._fewest

    @property
    def _fewest(self) -> int:
        """No path begins with fewer."""
        return self.n_components

    def support_at(self, k: int) -> Index | list[str]:
        """Return the features chosen at k: their names if there are any, else their numbers."""
        return self._named(self.supports[self._place(k)])

    def _place(self, k: int) -> int:
        places = np.flatnonzero(self.k == k)
        if not places.size:
            raise ValueError(f"k={k} is not on the path; it has {self.k.tolist()}.")
        return int(places[0])

    def _ends(self) -> str:
        return f"{self.k[0]} to {self.k[-1]} {self.counted}"

    @classmethod
    def stored_types(cls) -> tuple[type, ...]:
        """Return both kinds: who loads one of them may ask for the other."""
        return path_types()


@dataclass(frozen=True, repr=False)
class ComponentPath(SparsityPath):
    """What components with at most k features each explain, for many k.

    Where one problem is about all components (`estimator` "orthonormal", or a single component)
    `objective` is the sum of their variances, ``tr(V'AV)``, `upper` is proved, neither falls as k
    grows, and the best possible is between them.

    Several components found one after the other ("separate", "nonnegative") solve a problem each,
    in what those before them left. Then `objective` is what they explain together, without what
    they share; it may fall. There is no band: `upper` and `gap` are NaN, and `component_gap` has
    what is proved of each component.

    Attributes
    ----------
    k : (t,) ascending numbers of features in each component
    supports : list of t index arrays
        The features that any component uses.
    loadings : list of t (s, m) arrays
        Of all components, on those features.
    estimator : {"orthonormal", "separate", "nonnegative"}
    disjoint : bool
        Whether no two components may share a feature.
    deflation : str or None
        How components were taken out one after the other.
    proved_at : (c,) array
        The k of each certificate. One by one there is one for each component, in their order.
    others : as in `SparsityPath`

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import sparsity_path
    >>> wine = load_wine(as_frame=True).data
    >>> path = sparsity_path(
    ...     wine, 2, estimator="orthonormal", ks=[1, 2, 3], scale=True, random_state=0
    ... )
    >>> path.components_at(2)
    [['total_phenols', 'flavanoids'], ['alcohol', 'proline']]
    """

    loadings: list[FloatArray] = field(repr=False)
    estimator: str
    disjoint: bool
    deflation: str | None
    proved_at: Index = field(repr=False)

    @property
    def kind(self) -> str:
        """The `estimator` of `kspan.sparsity_path` that it was made with."""
        return self.estimator

    @property
    def counted(self) -> str:
        """What k counts, as sentences and axes have it."""
        return "features in each component" if self.n_components > 1 else "features"

    @property
    def measured(self) -> str:
        """What `objective` is, as sentences and axes have it."""
        joint = self.estimator == JOINT and self.n_components > 1
        return "variances of all components added up" if joint else "explained variance"

    @property
    def is_bounded(self) -> bool:
        """Whether `upper` is there: proofs are about what all components have together."""
        return self.estimator == JOINT or self.n_components == 1

    def columns(self) -> dict[str, FloatArray | Index]:
        """Return the numbers as columns of a table.

        Of components one after the other with ``gap_PC1``, ``gap_PC2``, … in place of one gap. The
        sum of variances that components share is ``variance_sum``, not ``explained_variance``.
        """
        found = super().columns()
        if not self.is_bounded:
            gaps = self.component_gap.T
            found |= {f"gap_PC{j + 1}": gap for j, gap in enumerate(gaps)}
        return found

    @property
    def _objective_name(self) -> str:
        joint = self.estimator == JOINT and self.n_components > 1
        return "variance_sum" if joint else "explained_variance"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, as `SparsityPath.to_dict` does.

        With `components`, the features of each.
        """
        found = super().to_dict()
        for row, k in zip(found["path"], self.k, strict=True):
            row["components"] = json_ready(self.components_at(int(k)))
        return found

    @property
    def component_gap(self) -> FloatArray:
        """(t, m), what may be missing of each component, given those before it; NaN if unknown."""
        gaps = np.full((self.k.size, self.n_components), np.nan)
        if self.is_bounded and self.n_components > 1:
            return gaps  # proofs are about all components together
        done = np.zeros(self.k.size, dtype=np.intp)
        for k, proof in zip(self.proved_at.tolist(), self.certificates, strict=True):
            place = self._place(k)
            gaps[place, done[place]] = proof.gap
            done[place] += 1
        return gaps

    @property
    def certified(self) -> Mask:
        """(t,), whether a certificate bounds what all components together have; see the base."""
        return super().certified if self.is_bounded else np.zeros(self.k.size, dtype=bool)

    def _bounds(self, place: int) -> FloatArray:
        reach = self.k <= self.proved_at[place]
        return np.where(reach, self.certificates[place].upper, np.inf)

    @property
    def _fewest(self) -> int:
        return 1

    def components_at(self, k: int) -> list[Index | list[str]]:
        """Return the features of each component at k: names if there are any, else numbers."""
        place = self._place(k)
        support = self.supports[place]
        return [self._named(support[column != 0]) for column in self.loadings[place].T]


# The estimator of which one proof is about all components.
JOINT = "orthonormal"


def path_types() -> tuple[type, ...]:
    """Return the classes that a file with a path may hold, besides those of certificates."""
    return SparsityPath, ComponentPath


def _valid(share: float) -> float:
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share!r}.")
    return share


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "not proved"
    if name.startswith("gap"):
        return BEST if value <= OPTIMAL_GAP else at_most(value)
    return f"{value:.1%}" if name == "share_of_pca" else f"{value:g}"

"""`Panel`: rules about which features go together, as people write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.problem import RowSparseProblem, RuledChoice
from kspan.problem.choice import is_count
from kspan.problem.copies import correlated_pairs
from kspan.problem.rules import is_missing
from kspan.problem.shared_features import require_sizes

# A value for each feature, in their order or by name.
ByFeature = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Panel:
    """Rules that a choice of features has to keep; with any of them k is "at most".

    Parameters
    ----------
    groups : sequence or mapping, optional
        A label for each feature, in their order or by name (also a pandas Series with names as
        its index); None (or NaN, or an empty text) for a feature of no group.
    group_rule : {None, "together"}
        "together" chooses whole groups: all features of one, or none of them.
    n_groups : int, optional
        How many groups may be chosen, with "together"; a feature of no group counts as one.
    max_per_group : int or mapping, optional
        How many features may come from a group: from each, or by label.
    costs : sequence or mapping, optional
        What each feature costs, in their order or by name.
    budget : float, optional
        What all chosen features may cost together.
    max_correlation : float, optional
        No two chosen features are correlated more than this, in absolute value.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import Panel, as_covariance
    >>> panel = Panel(costs=[1.0, 2.0, 4.0], budget=5.0)
    >>> problem = panel.problem(as_covariance(np.diag([1.0, 2.0, 3.0]), kind="covariance"), 1)
    >>> problem.select(np.array([1.0, 2.0, 3.0]))
    array([0, 2])
    """

    groups: ByFeature | None = None
    group_rule: str | None = None
    n_groups: int | None = None
    max_per_group: int | Mapping[Any, int] | None = None
    costs: ByFeature | None = None
    budget: float | None = None
    max_correlation: float | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all rules: parameters of estimators too."""
        return tuple(entry.name for entry in fields(cls))

    @classmethod
    def of(cls, thing: Any) -> "Panel":
        """Take the rules from the attributes of an estimator, or from the entries of a mapping."""
        if isinstance(thing, Mapping):
            return cls(**{name: thing.get(name) for name in cls.names()})
        return cls(**{name: getattr(thing, name) for name in cls.names()})

    @property
    def is_plain(self) -> bool:
        """Whether there is no rule at all."""
        return all(getattr(self, name) is None for name in self.names())

    @property
    def says_how_many(self) -> bool:
        """Whether the rules limit the number of features without k."""
        return self.budget is not None or self.n_groups is not None

    def resolved(self, n_features: int, names: Sequence[str] | None) -> "Panel":
        """Check all of it; return it with lists in the order of the features, and labels as text.

        Parameters
        ----------
        n_features : d
        names : of the features, if there are any
        """
        self._require_fit()
        groups: Any = self.groups
        costs: Any = self.costs
        if groups is not None:
            labels = _in_order("groups", groups, n_features, names)
            groups = [None if is_missing(label) else _as_text(label) for label in labels]
        if costs is not None:
            costs = _prices(_in_order("costs", costs, n_features, names), names)
        most = self.max_per_group
        if isinstance(most, Mapping):
            most = {_as_text(label): count for label, count in most.items()}
        return replace(self, groups=groups, costs=costs, max_per_group=most)

    def _require_fit(self) -> None:
        """Raise `ValueError` about rules that need others, or exclude them."""
        together = self.group_rule == "together"
        if self.group_rule not in (None, "together"):
            raise ValueError(f"group_rule must be None or 'together', got {self.group_rule!r}.")
        for name, needs in (("group_rule", "groups"), ("max_per_group", "groups"),
                            ("costs", "budget"), ("budget", "costs")):  # fmt: skip
            if getattr(self, name) is not None and getattr(self, needs) is None:
                raise ValueError(f"{name} needs {needs}.")
        if self.groups is not None and not together and self.max_per_group is None:
            raise ValueError("groups needs group_rule='together' or max_per_group.")
        if together and self.max_per_group is not None:
            raise ValueError("max_per_group does not go with group_rule='together'.")
        if self.n_groups is not None and not together:
            raise ValueError("n_groups needs group_rule='together'.")
        counts = {"n_groups": self.n_groups}
        if isinstance(self.max_per_group, Mapping):
            counts |= {f"max_per_group[{key!r}]": n for key, n in self.max_per_group.items()}
        else:
            counts["max_per_group"] = self.max_per_group
        for name, count in counts.items():
            if count is not None and not (is_count(count) and count >= 1):
                raise ValueError(f"{name} must be a whole number, 1 or more, got {count!r}.")
        for name, most in (("budget", np.inf), ("max_correlation", 1.0)):
            value = getattr(self, name)
            fair = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
            if value is not None and not (fair and 0 < value <= most and np.isfinite(value)):
                limit = "a positive number" if most == np.inf else f"above 0 and at most {most:g}"
                raise ValueError(f"{name} must be {limit}, got {value!r}.")

    # --- problems

    def choice(
        self, covariance: Covariance, n_components: int, size: int | None, include: Index,
        exclude: Index, names: Sequence[str] | None,
    ) -> RuledChoice:  # fmt: skip
        """Return the supports with at most so many features; None: as many as the rules allow."""
        d = covariance.n_features
        require_sizes(n_components, n_components if size is None else size, d)
        rules = self.resolved(d, names)
        conflicts = None
        if rules.max_correlation is not None:
            conflicts = correlated_pairs(covariance, rules.max_correlation)
            _require_apart(conflicts, include, names)
        groups: Any = rules.groups
        costs: Any = rules.costs
        return RuledChoice.of(
            d, size, include, exclude, least=n_components, groups=groups,
            together=rules.group_rule == "together", n_groups=rules.n_groups,
            max_per_group=rules.max_per_group, costs=costs, budget=rules.budget,
            conflicts=conflicts,
        )  # fmt: skip

    def problem(
        self, covariance: Covariance, n_components: int, n_features_to_select: int | None = None,
        *, include: Index | Sequence[int] = (), exclude: Index | Sequence[int] = (),
        names: Sequence[str] | None = None, ask: Callable[..., Any] = RowSparseProblem,
    ) -> Any:  # fmt: skip
        """Return the problem of choosing features that keep the rules.

        Parameters
        ----------
        covariance : Covariance
        n_components : m
        n_features_to_select : the most features; None for as many as the rules allow
        include, exclude : features that must, and must not, be chosen
        names : of the features, for rules by name
        ask : the kind of problem, such as `RowSparseProblem`
        """
        k = n_features_to_select
        inside, outside = (np.asarray(part, dtype=np.intp) for part in (include, exclude))
        if self.is_plain:
            k = covariance.n_features - outside.size if k is None else k
            return ask(covariance, n_components, k, inside, outside)
        choice = self.choice(covariance, n_components, k, inside, outside, names)
        return ask(covariance, n_components, choice)

    def smallest(
        self, covariance: Covariance, n_components: int, *, include: Index, exclude: Index,
        names: Sequence[str] | None = None, ask: Callable[..., Any] = RowSparseProblem,
    ) -> Any:  # fmt: skip
        """Return the problem with the fewest features that can be asked for; see `problem`."""
        if self.is_plain:
            size = max(n_components, include.size)
            return ask(covariance, n_components, size, include, exclude)
        choice = self.choice(covariance, n_components, None, include, exclude, names)
        return ask(covariance, n_components, _smallest(n_components, choice))


def _smallest(n_components: int, choice: RuledChoice) -> RuledChoice:
    """Return the choice with the fewest features that some support has."""
    fewest = max(n_components, choice.include.size)
    for size in range(fewest, choice.most_features):
        smaller = choice.resized(size)
        if smaller.has_supports:
            return smaller
    return choice.resized(choice.most_features)


def _as_text(label: Any) -> str:
    """Return a label as text; 1.0 is 1, as whole numbers become among missing ones."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        label = int(label)
    return str(label)


def _require_apart(conflicts: Index, include: Index, names: Sequence[str] | None) -> None:
    """Raise `ValueError` if two features to include are too alike."""
    clash = conflicts[np.isin(conflicts, include).all(axis=1)]
    if len(clash):
        one, other = (i if names is None else repr(str(names[i])) for i in clash[0])
        raise ValueError(
            f"include names features {one} and {other}, which are more correlated than "
            "max_correlation."
        )


def _in_order(
    what: str, values: ByFeature, n_features: int, names: Sequence[str] | None
) -> list[Any]:
    """Return one value for each feature.

    A pandas Series whose index has names is by name too, if the data has names: its order need not
    be theirs.
    """
    index = getattr(values, "index", None)
    if names is not None and index is not None and not callable(index):
        labels = list(index)
        if labels and all(isinstance(label, str) for label in labels):
            values = dict(zip(labels, values, strict=True))
    if isinstance(values, Mapping):
        if names is None:
            raise ValueError(
                f"{what} names features, but the data has no feature names; give one value for "
                "each feature, in their order."
            )
        known = {str(name) for name in names}
        unknown = [name for name in values if str(name) not in known]
        if unknown:
            raise ValueError(f"{what} names {str(unknown[0])!r}, which is not a feature.")
        by_name = {str(name): value for name, value in values.items()}
        missing = [str(name) for name in names if str(name) not in by_name]
        if missing:
            more = f" and {len(missing) - 1} other features" if len(missing) > 1 else ""
            raise ValueError(f"{what} has nothing for feature {missing[0]!r}{more}.")
        return [by_name[str(name)] for name in names]
    found = list(values)
    if len(found) != n_features:
        raise ValueError(f"{what} has {len(found)} entries for {n_features} features.")
    return found


def _prices(values: Sequence[Any], names: Sequence[str] | None) -> FloatArray:
    """Return costs as numbers, none of them negative."""
    try:
        prices = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("costs must be numbers.") from None
    wrong = np.flatnonzero(~(np.isfinite(prices) & (prices >= 0)))
    if wrong.size:
        place = int(wrong[0])
        name = place if names is None else repr(str(names[place]))
        raise ValueError(
            f"costs must be numbers, zero or more; feature {name} costs {values[place]!r}."
        )
    return prices

"""What all figures share: they are made from a record, or from a fitted estimator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kspan.arrays import FloatArray, Index
from kspan.choosing_k.panel import Panel
from kspan.proofs import Certificate
from kspan.records import FitRecord

# What a path and a stability study have to know of an estimator.
_CHOICE = ("include", "exclude", "scale", "covariance", "random_state")
_OWN_CHOICE = ("disjoint", "scale", "covariance", "random_state")


class NothingToDraw(ValueError):
    """A record or an estimator does not have the numbers of a figure."""


@dataclass(frozen=True)
class Fit:
    """The part of a record that an estimator has without its data, under the same names."""

    support: Index
    loadings: FloatArray
    selected_names: list[str]
    n_features: int
    certificates: list[Certificate]

    @classmethod
    def of(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> Self:
        """Return what is known of a fitted estimator."""
        check_is_fitted(estimator)
        support = estimator.get_support(indices=True)
        d = estimator.components_.shape[1]
        names = every_name(getattr(estimator, "feature_names_in_", feature_names), d)
        loadings = estimator.components_[:, support].T.astype(np.float64)
        proofs = getattr(estimator, "certificates_", None)
        if proofs is None:
            proofs = [estimator.certificate_] if hasattr(estimator, "certificate_") else []
        return cls(support, loadings, [names[place] for place in support], d, proofs)


class Figure:
    """A figure: a frozen dataclass of plain arrays and full names."""

    # What an estimator does not keep: to be computed from the data of its fit.
    needs: ClassVar[str] = ""

    @classmethod
    def from_record(cls, record: Any, *args: Any, **asked: Any) -> Self:
        """Return the figure of a saved fit."""
        raise NothingToDraw(f"{cls.__name__} is not made from a fit; see how its class is.")

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, feature_names: Any = None, **asked: Any
    ) -> Self:
        """Return the figure of a fitted estimator, and of the data X of its fit if it is needed.

        `feature_names` are those of all features, if the data has none; `asked` is what
        `from_record` takes.
        """
        if not cls.needs:
            return cls.from_record(Fit.of(estimator, feature_names), **asked)
        check_is_fitted(estimator)
        _require_data(X, cls.needs, "from_record")
        record = FitRecord.from_estimator(estimator, X, feature_names=feature_names)
        return cls.from_record(record, **asked)

    def _settle(self, **makers: Callable[[Any], Any]) -> None:
        """Make plain arrays and lists of what was given."""
        for name, make in makers.items():
            object.__setattr__(self, name, make(getattr(self, name)))


def floats(values: Any) -> Any:
    """Return an array of numbers; None stays None."""
    return None if values is None else np.asarray(values, dtype=np.float64)


def texts(values: Any) -> list[str]:
    """Return names as a list of texts."""
    return [str(value) for value in values]


def every_name(names: Sequence[str] | None, d: int) -> list[str]:
    """Return the names of d features, or their places if they have none."""
    if names is None or not len(names):
        return texts(range(d))
    if len(names) != d:
        raise ValueError(f"There are {len(names)} feature_names for {d} features.")
    return texts(names)


def shared_choice(estimator: Any, X: Any, needs: str, instead: str) -> dict[str, Any]:
    """Return how an estimator chooses features that all its components share.

    It is asked for what `needs` says, as in "a path"; without data that is drawn as in `instead`.
    """
    check_is_fitted(estimator)
    asked = estimator.get_params()
    if "n_features_to_select" not in asked or "include" not in asked:
        raise ValueError(
            f"There is {needs} for features that all components share only; "
            f"{type(estimator).__name__} has others for each. Use FeatureSparsePCA."
        )
    _require_data(X, needs, instead)
    panel = Panel.of(asked)
    names = getattr(estimator, "feature_names_in_", None)
    if not panel.is_plain:
        panel = panel.resolved(estimator.n_features_in_, names)
    return {"panel": panel, **{name: asked[name] for name in _CHOICE}}


def own_choice(estimator: Any, X: Any, needs: str, instead: str) -> dict[str, Any]:
    """Return how an estimator chooses features of their own for its components; see above."""
    check_is_fitted(estimator)
    _require_data(X, needs, instead)
    asked = estimator.get_params()
    return {name: asked[name] for name in _OWN_CHOICE if name in asked}


def require_some(max_features: int) -> None:
    """Raise unless at least one feature may be shown."""
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features}.")


def _require_data(X: Any, needs: str, instead: str) -> None:
    if X is None:
        raise ValueError(
            f"An estimator does not keep {needs}: pass the data of the fit as X, or use {instead}."
        )

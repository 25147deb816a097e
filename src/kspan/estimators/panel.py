"""What a fit does with samples, on its chosen features alone: nobody measures the others again."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from kspan.arrays import Index
from kspan.io import Opened
from kspan.io.columns import Chosen
from kspan.io.numeric import require_numeric
from kspan.io.rows import projected


class PanelSelector(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The chosen columns of a table, in order: made by `FeatureSparseSelector.panel`.

    Attributes
    ----------
    support_ : array of shape (k,)
        Where the chosen features are in the table of the fit.
    n_features_in_ : int
        k.
    feature_names_in_ : array of shape (k,)
        Their names, if the data of the fit had names.

    Notes
    -----
    It is fitted already: `fit` and `sklearn.base.clone` leave it as it is, as those of
    `sklearn.frozen.FrozenEstimator` do.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparseSelector
    >>> wine = load_wine(as_frame=True).data
    >>> panel = FeatureSparseSelector(2, 3, scale=True, random_state=0).fit(wine).panel()
    >>> panel.transform(wine[["flavanoids", "total_phenols", "od280/od315_of_diluted_wines"]])[0]
    array([2.8 , 3.06, 3.92])
    """

    # What a table is made of.
    _types: ClassVar[dict[str, Any]] = {
        "accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32),
    }  # fmt: skip

    support_: Index
    n_features_in_: int

    @classmethod
    def _of(cls, estimator: Any) -> Self:
        """Make the panel of a fitted estimator."""
        check_is_fitted(estimator)
        panel = cls()
        panel.support_ = estimator.get_support(indices=True)
        panel.n_features_in_ = int(panel.support_.size)
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            panel.feature_names_in_ = names[panel.support_]
        panel._allows_nan = estimator._allows_nan()
        panel._names_out = estimator.get_feature_names_out()
        wished = getattr(estimator, "_sklearn_output_config", {}).get("transform")
        panel.set_output(transform=wished)
        panel._take(estimator)
        return panel

    def _take(self, estimator: Any) -> None:
        """Take over what else is needed."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: a panel is fitted when it is made.

        Parameters
        ----------
        X, y : ignored
        """
        check_is_fitted(self)
        return self

    def transform(self, X: Any) -> Any:
        """Return the chosen columns, in the order of the fit.

        Parameters
        ----------
        X : {array, DataFrame, sparse array, path}
            With the k chosen columns in the order of the fit, or with names: then in any order,
            and the other columns do not matter.
        """
        data = self._open(X)
        if data.rows is not None:
            return np.concatenate([block.values for block in data.rows.blocks()])
        return self._checked(data)

    def inverse_transform(self, X: Any) -> Any:
        """Return the chosen columns as they are.

        Parameters
        ----------
        X : array of shape (n_samples, k)
        """
        check_is_fitted(self)
        X = check_array(require_numeric(X), ensure_all_finite="allow-nan", **self._types)
        return self._with_columns(X, self.n_features_in_, "chosen features")

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns: those of the whole fit.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        return self._names_out.copy()

    def _open(self, X: Any) -> Opened:
        """Find the chosen columns."""
        check_is_fitted(self)
        k, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        chosen = Chosen(np.arange(k), k, None if names is None else names.tolist())
        return chosen.open(X, allow_missing=self._allows_nan)

    def _checked(self, data: Opened) -> Any:
        """Return the columns as numbers."""
        finite = "allow-nan" if self._allows_nan else True
        return check_array(
            data.values, ensure_all_finite=finite, estimator=self, input_name="X", **self._types
        )

    def _with_columns(self, X: Any, size: int, what: str) -> Any:
        if X.shape[1] != size:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {type(self).__name__} is expecting one for each "
                f"of its {size} {what}."
            )
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "_allows_nan", False)
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PanelTransformer(PanelSelector):
    """Scores of samples on the chosen features alone: made by `FeatureSparsePCA.panel`.

    The same numbers as those of the whole fit, from tables that have no other columns (or have
    them: with names they do not matter). It is small, and can be pickled.

    Attributes
    ----------
    components_ : array of shape (n_components, k)
        The weights of the chosen features.
    decoder_ : array of shape (n_components, k)
        The way back from scores to them.
    mean_, scale_ : array of shape (k,)
        What `transform` subtracts and divides by; `scale_` is None without ``scale=True``. Of a fit
        to a covariance no means are known, they are zero: data has to be centred.
    support_ : array of shape (k,)
        Where the chosen features are in the table of the fit.
    n_features_in_ : int
        k.
    feature_names_in_ : array of shape (k,)
        Their names, if the data of the fit had names.

    Notes
    -----
    It is fitted already: `fit` and `sklearn.base.clone` leave it as it is, as those of
    `sklearn.frozen.FrozenEstimator` do.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = FeatureSparsePCA(2, 3, scale=True, random_state=0).fit(wine)
    >>> panel = pca.panel()
    >>> measured = wine[["flavanoids", "total_phenols", "od280/od315_of_diluted_wines"]]
    >>> np.allclose(panel.transform(measured), pca.transform(wine))
    True
    """

    def _take(self, estimator: Any) -> None:
        support = self.support_
        self.components_ = estimator.components_[:, support]
        self.decoder_ = estimator._decoder()[:, support]
        self.mean_ = estimator.mean_[support]
        self.scale_ = None if estimator.scale_ is None else estimator.scale_[support]

    def transform(self, X: Any) -> Any:
        """Return the scores of samples: the same as those of the whole fit.

        Parameters
        ----------
        X : {array, DataFrame, sparse array, path}
            With the k chosen columns in the order of ``get_support(indices=True)`` of the fit, or
            with names: then in any order, and the other columns do not matter. Missing values are
            taken to be the mean of the fit, if it was one that allows them.
        """
        data = self._open(X)
        axes = self.components_.T
        if self.scale_ is not None:
            axes = axes / self.scale_[:, None]
        origin = self.mean_ @ axes
        fill = self.mean_ if self._allows_nan else None
        if data.rows is not None:
            return data.rows.project(np.arange(self.n_features_in_), axes, origin, fill)
        values = self._checked(data)
        return projected(values, axes, origin, values.dtype, fill)

    def inverse_transform(self, X: Any) -> NDArray[np.floating]:
        """Return the chosen columns that scores tell: those of the whole fit's `inverse_transform`.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = check_array(require_numeric(X), dtype=(np.float64, np.float32))
        X = self._with_columns(X, len(self.components_), "components")
        points = X @ self.decoder_
        if self.scale_ is not None:
            points = points * self.scale_
        return np.asarray(points + self.mean_, dtype=X.dtype)

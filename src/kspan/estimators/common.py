"""What all estimators share: data in, a covariance out; support, score and the fitted frame."""

import time
import warnings
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_n_features, check_is_fitted, validate_data

from kspan.covariance import Covariance, as_covariance, as_source
from kspan.covariance.sources import RowSource
from kspan.progress import Callback, combine, log_progress, log_reading

# Of the parameters that every estimator has.
COMMON_CONSTRAINTS: dict[str, list[Any]] = {
    "scale": ["boolean"],
    "covariance": [None, StrOptions({"precomputed"})],
    "solver_options": [None, Mapping],
    "time_limit": [None, Interval(Real, 0, None, closed="neither")],
    "callback": [None, callable],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


class CovarianceEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that looks at data through its covariance only."""

    scale: bool
    covariance: str | None
    solver_options: Mapping[str, Any] | None
    time_limit: float | None
    random_state: Any
    callback: Callable[..., bool | None] | None
    verbose: int | bool

    def _as_covariance(self, X: Any, reset: bool) -> Covariance:
        precomputed = self.covariance == "precomputed"
        rows = None if precomputed else as_source(X)
        if rows is not None:
            self._check_features(rows, reset=reset)
            if self.verbose:
                rows.on_rows = log_reading
            scale = self.scale if reset or self.scale_ is None else self.scale_
            # A block is copied a few times on its way through a product.
            block_bytes = int(get_config()["working_memory"] * 2**20 / 64)
            return as_covariance(rows, scale=scale, block_bytes=block_bytes)
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=False if precomputed else ("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,  # as_covariance looks at it, and names the column
            ensure_min_samples=1 if precomputed else 2,
        )
        names = getattr(self, "feature_names_in_", None)
        if precomputed:
            if self.scale:
                raise ValueError("scale=True needs data, not covariance='precomputed'.")
            return as_covariance(X, kind="covariance", feature_names=names)
        scale = self.scale if reset or self.scale_ is None else self.scale_
        return as_covariance(X, scale=scale, feature_names=names)

    def _check_features(self, rows: RowSource, *, reset: bool) -> None:
        """Do for data in blocks what `validate_data` does about numbers and names of features."""
        _check_n_features(self, rows, reset=reset)
        names = rows.feature_names
        if reset:
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif names is not None and list(names) != list(getattr(self, "feature_names_in_", names)):
            raise ValueError("The feature names should match those that were passed during fit.")

    def _options(self) -> dict[str, Any]:
        """Return the solver's options, none of which is a parameter of the estimator."""
        options = dict(self.solver_options or {})
        own = sorted(options.keys() & self.get_params().keys())
        if own:
            raise ValueError(f"{own[0]!r} is a parameter of its own, not one of solver_options.")
        return options

    def _seed(self) -> int:
        """Draw a seed from the random state, as scikit-learn's estimators do."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _time_left(self, started: float) -> float | None:
        if self.time_limit is None:
            return None
        return max(self.time_limit - (time.perf_counter() - started), 1e-9)

    def _callback(self) -> Callback | None:
        return combine(self.callback, log_progress if self.verbose else None)

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which features the components use, as a mask or as sorted indices."""
        mask = self._get_support_mask()
        return np.flatnonzero(mask) if indices else mask

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the variance of X that the span of the components explains.

        The variance is that of X itself (about its own mean, divided by the scales of the fit),
        so X needs at least two samples; on the training data, and with orthonormal components,
        the score is ``explained_variance_ratio_.sum()``. With ``covariance="precomputed"``, X is
        a covariance.
        """
        check_is_fitted(self)
        covariance = self._as_covariance(X, reset=False)
        support = self.get_support(indices=True)
        W = np.linalg.qr(self.components_[:, support].T.astype(np.float64))[0]
        return float(np.sum(W * (covariance.submatrix(support) @ W)) / covariance.trace())

    def _keep_components(
        self, covariance: Covariance, loadings: NDArray[np.floating], variances: NDArray[Any]
    ) -> None:
        """Set what every estimator has: components, variances, support, centre and scale."""
        components = loadings.T
        # scikit-learn's PCA: the entry of largest size in each component is positive.
        largest = np.abs(components).argmax(axis=1)
        signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
        self.components_ = (components * signs[:, None]).astype(covariance.dtype, copy=False)
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / covariance.trace()
        self.n_components_ = len(components)
        self.mean_ = np.zeros(covariance.n_features) if covariance.mean is None else covariance.mean
        self.scale_ = covariance.scale if self.scale else None
        if covariance.n_samples is not None:
            self.n_samples_ = covariance.n_samples
        elif hasattr(self, "n_samples_"):
            del self.n_samples_  # of an earlier fit, to data
        self.n_passes_ = covariance.n_passes

    def _keep_support(self, mask: NDArray[np.bool_]) -> None:
        """Set which features are used, by place and by name."""
        self._support_mask = mask
        names = getattr(self, "feature_names_in_", None)
        chosen = np.flatnonzero(mask)
        self.selected_features_ = chosen if names is None else names[chosen]

    def _warn_about_rank(self, covariance: Covariance, variances: NDArray[Any]) -> None:
        """Warn when there are more components than the covariance has directions."""
        rounding = covariance.n_features * np.finfo(covariance.dtype).eps
        if variances.min() > rounding * variances.max():
            return
        values = covariance.leading(variances.size).values
        rank = int(np.count_nonzero(values > rounding * values[0]))
        if rank < variances.size:
            warnings.warn(
                f"n_components={variances.size} is above the rank of the covariance, which is "
                f"{rank}: the last {variances.size - rank} component(s) explain no variance.",
                stacklevel=5,
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support_mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.covariance is None
        return tags

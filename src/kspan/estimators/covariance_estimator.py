"""What estimators share: data in, a covariance out; support and score; coordinates and back."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_n_features, check_is_fitted, validate_data

from kspan.arrays import FloatArray
from kspan.choosing_k.components import components_for
from kspan.covariance import Covariance, Memory, as_covariance, require_built_as
from kspan.covariance.matrix import Psd
from kspan.covariance.missing import RULES
from kspan.estimators.panel import PanelTransformer
from kspan.io import Opened, open_data
from kspan.io.numeric import require_numeric
from kspan.io.rows import projected
from kspan.problem import LoadingsSolution, Solution, VarianceShares, variance_shares
from kspan.progress import Monitor, Status, combine, log_progress, log_reading
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.method import AnyMethod, Method
from kspan.solvers.registry import as_method, methods_for

# Entries of `solver_options` that are about the proof. Budgets are not for users: the demo has its
# own.
PROOF_OPTIONS = ("checkpoint", "checkpoint_every", "k_grid", "budgets")


def common_constraints(*problems: type) -> dict[str, list[Any]]:
    """Return those of the parameters that every estimator has.

    Parameters
    ----------
    *problems : the kinds of problems that it solves
    """
    solvers = {name for problem in problems for name in methods_for(problem)}
    return {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "solver": [StrOptions(solvers), Method],
        "scale": ["boolean"],
        "covariance": [None, StrOptions({"precomputed"})],
        "missing": [StrOptions(set(RULES))],
        "psd": [StrOptions(set(get_args(Psd)))],
        "memory": [None, str, PathLike, Memory, HasMethods("cache")],
        "solver_options": [None, Mapping],
        "time_limit": [None, Interval(Real, 0, None, closed="neither")],
        "callback": [None, callable],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }


@dataclass(kw_only=True, eq=False, repr=False)
class CovarianceEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that looks at data through its covariance only.

    Parameters are fields: each is named once, and `__init__` does nothing but set them, as
    scikit-learn wants it.
    """

    n_components: int | float
    solver: str | AnyMethod
    scale: bool = False
    covariance: str | None = None
    missing: str = "raise"
    psd: Psd = "mend"
    memory: Any = None
    solver_options: Mapping[str, Any] | None = None
    time_limit: float | None = None
    callback: Callable[..., bool | None] | None = None
    verbose: int | bool = 0
    random_state: Any = None

    # What is there after a fit that was to prove something.
    _proofs_are_in: ClassVar[str] = "certificate_"

    def __getattr__(self, name: str) -> Any:
        """Say why a certificate is not there; scikit-learn asks `hasattr`, which stays false."""
        if name in ("certificate_", "certificates_"):
            raise AttributeError(self._why_without(name), name=name, obj=self)
        return super().__getattribute__(name)  # raises as if this method were not there

    def _why_without(self, name: str) -> str:
        # Not by attributes: what is only half unpickled has none.
        known, here = vars(self), type(self).__name__
        if name != self._proofs_are_in:
            return f"{here} has no {name}: its proofs are in {self._proofs_are_in}."
        exact = isinstance(known.get("solver"), str) and known["solver"] == "exact"
        asked = (
            bool(known.get("certify")) or exact or getattr(known.get("solver"), "proof_level", None)
        )
        if "status_" not in known:
            return f"{name}: this {here} is not fitted yet."
        if asked and Status(known["status_"]).stopped_early:
            return (
                f"{name}: the fit was stopped before a proof was begun ({known['status_']}); give "
                "it more time."
            )
        if asked:
            return f"{name}: a proof was asked for after the fit; fit again."
        solvers = self._parameter_constraints["solver"][0].options
        also = " (or solver='exact')" if "exact" in solvers else ""
        return f"{name}: nothing was proved about this fit; fit with certify=True{also}."

    def _as_covariance(self, X: Any, reset: bool, sample_weight: Any = None) -> Covariance:
        precomputed = self.covariance == "precomputed"
        if isinstance(X, Covariance):
            return as_covariance(self._taken(X, reset=reset), sample_weight=sample_weight)
        data = open_data(
            X, load_bytes=np.inf if precomputed else 0, allow_missing=self._allows_nan()
        )
        if data.rows is not None and self.verbose:
            data.rows.on_rows = log_reading
        values = self._validated(
            data,
            reset=reset,
            accept_sparse=False if precomputed else ("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,  # as_covariance looks at it, and names the column
            ensure_min_samples=1 if precomputed else 2,
        )
        names = getattr(self, "feature_names_in_", None)
        memory = self.memory if reset else None  # a score takes less than to look for it
        if precomputed:
            if self.scale:
                raise ValueError("scale=True needs data, not covariance='precomputed'.")
            return as_covariance(
                values, kind="covariance", feature_names=names, sample_weight=sample_weight,
                psd=self.psd, memory=memory,
            )  # fmt: skip
        scale = self.scale if reset or self.scale_ is None else self.scale_
        # A block is copied a few times on its way through a product.
        block_bytes = int(get_config()["working_memory"] * 2**20 / 64)
        return as_covariance(
            values, scale=scale, feature_names=names, block_bytes=block_bytes,
            sample_weight=sample_weight, missing=self.missing, psd=self.psd, memory=memory,
        )  # fmt: skip

    def _allows_nan(self) -> bool:
        """Whether values of the data may be missing."""
        return self.missing != "raise" and self.covariance is None

    def _taken(self, covariance: Covariance, *, reset: bool) -> Covariance:
        """Take a covariance in the place of the data that it was made from."""
        precomputed = self.covariance == "precomputed"
        require_built_as(
            covariance, scale=self.scale, missing=self.missing, precomputed=precomputed
        )
        _check_n_features(self, np.empty((0, covariance.n_features)), reset=reset)
        if reset:
            self._forget("feature_names_in_")
        return covariance

    def _validated(self, data: Opened, *, reset: bool, **checks: Any) -> Any:
        """Do what `validate_data` does, which knows no names of what is in files or blocks."""
        values = data.values
        if data.as_given:
            return validate_data(self, values, reset=reset, **checks)
        if data.rows is None:
            values = check_array(values, estimator=self, **checks)
        _check_n_features(self, values, reset=reset)
        names = data.feature_names
        if reset:
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            else:
                self._forget("feature_names_in_")
        elif names is not None and list(names) != list(getattr(self, "feature_names_in_", names)):
            raise ValueError("The feature names should match those that were passed during fit.")
        return values

    def _method(self, problem: type, **own: Any) -> AnyMethod:
        """Return the method that the parameters describe.

        Parameters
        ----------
        problem : the kind of problem
        **own : parameters of the estimator that are options of the method, None if not given
        """
        options = dict(self.solver_options or {})
        clash = sorted(options.keys() & self.get_params().keys()) if options else []
        if clash:
            raise ValueError(f"{clash[0]!r} is a parameter of its own, not one of solver_options.")
        options = {name: value for name, value in options.items() if name not in PROOF_OPTIONS}
        given = {name: value for name, value in own.items() if value is not None}
        if isinstance(self.solver, Method):
            method = as_method(problem, self.solver, options)
            for name in sorted(set(given) - set(method.options())):
                raise ValueError(f"{type(method).__name__} has no option {name!r}.")
            return replace(method, **given)
        return as_method(problem, self.solver, {**options, **given})

    def _proof_options(self, n_jobs: int | None) -> ProofOptions:
        """Return what `solver_options` says about proofs, and how many work at a time."""
        options = self.solver_options or {}
        given = {name: options[name] for name in PROOF_OPTIONS if name in options}
        return ProofOptions(**given, n_jobs=n_jobs)

    def _count_components(self, covariance: Covariance) -> None:
        """Set `n_components_`: as many as were asked for, or as a share of the variance takes."""
        self.n_components_ = components_for(covariance, self.n_components)

    def _seed(self) -> int:
        """Draw a seed from the random state, as scikit-learn's estimators do."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _monitor(self) -> Monitor:
        """Return what counts the time, from now, and tells of the steps."""
        callback = combine(self.callback, log_progress if self.verbose else None)
        return Monitor("fit", callback, self.time_limit)

    def _forget(self, *attributes: str) -> None:
        """Delete attributes of an earlier fit that this one may not set."""
        for attribute in attributes:
            if hasattr(self, attribute):
                delattr(self, attribute)

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which features the components use, as a mask or as sorted indices."""
        mask = self._get_support_mask()
        return np.flatnonzero(mask) if indices else mask

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of the variance of X that the span of the components explains.

        The variance is that of X itself (about its own mean, divided by the scales of the fit),
        so X needs at least two samples; on the training data, and with orthonormal components,
        the score is ``explained_variance_ratio_.sum()``. With ``covariance="precomputed"``, X is
        a covariance.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, as in `fit`.
        """
        check_is_fitted(self)
        covariance = self._as_covariance(X, reset=False, sample_weight=sample_weight)
        support = self.get_support(indices=True)
        W = np.linalg.qr(self.components_[:, support].T.astype(np.float64))[0]
        return covariance.variance_along(W, support) / covariance.trace()

    def measure(self, X: Any, y: Any = None, sample_weight: Any = None) -> VarianceShares:
        """Return what the components, and the chosen features, tell about all features of X.

        Of X itself, as in `score`: regressions are those of its own rows, so that on other data
        than that of the fit the numbers are not those that were fitted.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, as in `fit`.

        Returns
        -------
        VarianceShares
            ``represented``, ``panel``, ``effective_features`` and ``pca``, as the attributes of the
            fit have them, and ``explained``, which is what `score` returns.
        """
        check_is_fitted(self)
        return self._shares(self._as_covariance(X, reset=False, sample_weight=sample_weight))

    def _shares(self, covariance: Covariance) -> VarianceShares:
        """Measure the components as they are kept: those of float32 data are float32 numbers."""
        support = self.get_support(indices=True)
        weights = self.components_[:, support].T.astype(np.float64)
        return variance_shares(covariance, support, weights)

    def _keep(self, covariance: Covariance, solution: Solution | LoadingsSolution) -> None:
        """Set the fitted attributes that every estimator has."""
        components, variances = solution.loadings.T, solution.explained_variance
        # scikit-learn's PCA: the entry of largest size in each component is positive.
        largest = np.abs(components).argmax(axis=1)
        signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
        # Zeros have no sign: what is written to files should not show one.
        components = components * signs[:, None]
        self.components_ = components.astype(covariance.dtype, copy=False)
        self.components_ += 0.0
        variances = variances + 0.0
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / covariance.trace()
        self.n_components_ = len(components)
        self.mean_ = np.zeros(covariance.n_features) if covariance.mean is None else covariance.mean
        self.scale_ = covariance.scale if self.scale else None
        if covariance.n_samples is not None:
            self.n_samples_ = covariance.n_samples
        else:
            self._forget("n_samples_")
        self._support_mask = np.zeros(covariance.n_features, dtype=bool)
        self._support_mask[solution.support] = True
        names, chosen = getattr(self, "feature_names_in_", None), np.sort(solution.support)
        self.selected_features_ = chosen if names is None else names[chosen]
        self.objective_ = solution.objective
        self.objective_history_ = solution.history
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver
        self.status_ = solution.status.value
        shares = self._shares(covariance)
        self.represented_variance_ratio_ = shares.represented
        self.panel_variance_ratio_ = shares.panel
        self.effective_features_ = shares.effective_features
        self.pca_variance_ratio_ = shares.pca
        self._warn_about_rank(covariance, variances)
        self.n_passes_ = covariance.n_passes
        self._weights_digest = covariance.weights_digest

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
                stacklevel=6,
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support_mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.covariance is None
        tags.input_tags.allow_nan = self._allows_nan()
        return tags


class SparseProjection(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
):
    """`transform` and `inverse_transform` of an estimator with `components_`."""

    components_: NDArray[np.floating]
    decoder_: NDArray[np.floating]
    mean_: FloatArray
    scale_: FloatArray | None
    _support_mask: NDArray[np.bool_]
    _validated: Callable[..., Any]
    _allows_nan: Callable[[], bool]

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Return the coordinates of X along the components, using the chosen features only.

        With ``missing="mean"`` or "pairwise", a missing value of X is taken to be the mean of the
        fit, and so adds nothing; with "raise" it is an error.
        """
        check_is_fitted(self)
        allows_nan = self._allows_nan()
        data = open_data(X, allow_missing=allows_nan)
        X = self._validated(
            data, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if allows_nan else True,
        )  # fmt: skip
        support = np.flatnonzero(self._support_mask)
        axes = self.components_[:, support].T
        if self.scale_ is not None:
            axes = axes / self.scale_[support, None]
        origin = self.mean_[support] @ axes
        fill = self.mean_[support] if allows_nan else None
        if data.rows is not None:
            return data.rows.project(support, axes, origin, fill)
        return projected(X[:, support], axes, origin, X.dtype, fill)

    def inverse_transform(self, X: Any) -> NDArray[np.floating]:
        """Return the points in feature space that have the given coordinates.

        Of all such points those nearest to the mean; features that are not used stay there. With
        ``criterion="represent"`` all features, by their regression on the scores of the fit.
        """
        check_is_fitted(self)
        X = check_array(require_numeric(X), dtype=(np.float64, np.float32))
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {X.shape[1]} columns, but {type(self).__name__} is expecting one for each "
                f"of its {self._n_features_out} components."
            )
        points = X @ self._decoder()
        if self.scale_ is not None:
            points = points * self.scale_
        return np.asarray(points + self.mean_, dtype=X.dtype)

    def panel(self) -> PanelTransformer:
        """Return a fitted transformer of the chosen features alone, with the same scores.

        Whoever measures new samples needs no other features: it takes arrays with just the chosen
        columns, in the order of ``get_support(indices=True)``, and data frames or files with these
        columns by name.

        Returns
        -------
        kspan.estimators.PanelTransformer
        """
        return PanelTransformer._of(self)

    def _decoder(self) -> NDArray[np.floating]:
        """Return the (m, d) matrix that takes coordinates back: the components if orthonormal."""
        if hasattr(self, "decoder_"):
            return self.decoder_
        gram = self.components_ @ self.components_.T
        if np.abs(gram - np.eye(len(gram))).max() <= 1e-5:
            return self.components_
        return np.linalg.pinv(self.components_.astype(np.float64)).T

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

"""What the row-sparse estimators share: parameters, fit and fitted attributes."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kspan.certificates import Certificate
from kspan.covariance import Covariance, as_covariance
from kspan.methods import LEVELS, ROW_SPARSE, certify, proved, solve
from kspan.problem import RowSparseProblem
from kspan.progress import Callback, combine, log_progress
from kspan.selection import STOPPED_EARLY, smallest_support
from kspan.solution import Solution
from kspan.solvers.starts import STARTS

# Options that go to `certify` and not to the solver.
CERTIFY_OPTIONS = ("checkpoint", "checkpoint_every", "k_grid")

FeatureList = Sequence[int] | Sequence[str] | NDArray[Any]


class FeatureSparseEstimator(BaseEstimator):  # type: ignore[misc]
    """Choose k features whose principal components explain the most variance."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_features_to_select": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "explained_share": [Interval(Real, 0, 1, closed="right")],
        "solver": [StrOptions(set(ROW_SPARSE))],
        "init": [None, StrOptions(set(STARTS)), "array-like"],
        "include": [None, "array-like"],
        "exclude": [None, "array-like"],
        "scale": ["boolean"],
        "covariance": [None, StrOptions({"precomputed"})],
        "certify": ["boolean", StrOptions(set(LEVELS))],
        "solver_options": [None, Mapping],
        "time_limit": [None, Interval(Real, 0, None, closed="neither")],
        "callback": [None, callable],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    certificate_: Certificate

    def __init__(
        self,
        n_components: int = 2,
        n_features_to_select: int | float | None = None,
        *,
        explained_share: float = 0.9,
        solver: str = "auto",
        init: str | NDArray[np.floating] | None = None,
        include: FeatureList | None = None,
        exclude: FeatureList | None = None,
        scale: bool = False,
        covariance: str | None = None,
        certify: bool | str = False,
        solver_options: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        callback: Callable[..., bool | None] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.n_features_to_select = n_features_to_select
        self.explained_share = explained_share
        self.solver = solver
        self.init = init
        self.include = include
        self.exclude = exclude
        self.scale = scale
        self.covariance = covariance
        self.certify = certify
        self.solver_options = solver_options
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the features and compute the components.

        Parameters
        ----------
        X : {array, DataFrame, sparse array} of shape (n_samples, n_features)
            The data, or with ``covariance="precomputed"`` an (n_features, n_features) matrix.
        y : ignored
        """
        started = time.perf_counter()
        covariance = self._as_covariance(X, reset=True)
        problem, solution = self._solve(covariance)
        solution = self._prove(problem, solution, started)
        self._keep(problem, solution)
        return self

    def _prove(self, problem: RowSparseProblem, solution: Solution, started: float) -> Solution:
        """Certify, if asked to, and return the solution that the certificate is about."""
        level = "exact" if self.solver == "exact" else self.certify
        if hasattr(self, "certificate_"):
            del self.certificate_  # of an earlier fit
        if not level or solution.status in STOPPED_EARLY:
            return solution
        options = self.solver_options or {}
        certificate = certify(
            problem,
            solution,
            "tight" if level is True else str(level),
            time_limit=self._time_left(started),
            callback=self._callback(),
            **{key: options[key] for key in CERTIFY_OPTIONS if key in options},
        )
        self.certificate_ = certificate
        if self.solver == "exact" or certificate.lower > solution.objective:
            better = proved(problem, solution, certificate)
            solution = better if self.solver == "exact" else replace(better, solver=solution.solver)
        return solution

    def _time_left(self, started: float) -> float | None:
        if self.time_limit is None:
            return None
        return max(self.time_limit - (time.perf_counter() - started), 1e-9)

    def _callback(self) -> Callback | None:
        return combine(self.callback, log_progress if self.verbose else None)

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return which features were chosen, as a mask or as sorted indices."""
        mask = self._get_support_mask()
        return np.flatnonzero(mask) if indices else mask

    def score(self, X: Any, y: Any = None) -> float:
        """Return the share of the variance of X that the components explain.

        The variance is that of X itself (about its own mean, divided by the scales of the fit),
        so X needs at least two samples; on the training data the score is
        ``explained_variance_ratio_.sum()``. With ``covariance="precomputed"``, X is a
        covariance.
        """
        check_is_fitted(self)
        covariance = self._as_covariance(X, reset=False)
        support = self.get_support(indices=True)
        W = self.components_[:, support].T.astype(np.float64)
        return float(np.sum(W * (covariance.submatrix(support) @ W)) / covariance.trace())

    def _as_covariance(self, X: Any, reset: bool) -> Covariance:
        precomputed = self.covariance == "precomputed"
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

    def _solve(self, covariance: Covariance) -> tuple[RowSparseProblem, Solution]:
        d, m = covariance.n_features, self.n_components
        include = self._feature_indices("include", d)
        exclude = self._feature_indices("exclude", d)

        def problem_at(k: int) -> RowSparseProblem:
            return RowSparseProblem(covariance, m, k, include, exclude)

        options = dict(self.solver_options or {})
        own = sorted(options.keys() & self.get_params().keys())
        if own:
            raise ValueError(f"{own[0]!r} is a parameter of its own, not one of solver_options.")
        random_state = check_random_state(self.random_state)
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        # The proof of "exact" comes after the search for a good solution.
        solver = "auto" if self.solver == "exact" else self.solver
        options = {key: value for key, value in options.items() if key not in CERTIFY_OPTIONS}
        started = time.perf_counter()

        def wanted(problem: RowSparseProblem) -> Solution:
            return solve(
                problem,
                solver,
                init=self.init,
                random_state=seed,
                time_limit=self._time_left(started),
                callback=self._callback(),
                **options,
            )

        k: Any = self.n_features_to_select
        if k is None:
            lower, upper = max(m, include.size), d - exclude.size
            problem_at(lower)  # complains about m, include and exclude before any work
            target = self.explained_share * float(covariance.leading(m).values.sum())
            problem, solution = smallest_support(
                problem_at,
                lower=lower,
                upper=upper,
                target=target * (1 - 1e-12),  # all features reach a share of 1 but for rounding
                guess_with=lambda problem: solve(problem, "ipu"),
                solve_with=wanted,
            )
            if problem.n_features_to_select == upper and solution.objective < target * (1 - 1e-9):
                warnings.warn(
                    f"The {upper} features that may be chosen reach a share of "
                    f"{self.explained_share * solution.objective / target:.3f}, less than "
                    f"explained_share={self.explained_share}.",
                    stacklevel=4,
                )
            return problem, solution
        problem = problem_at(int(k * d) if k < 1 else k)
        if self.covariance == "precomputed":
            covariance.leading(m)  # whatever the solver: this finds a large A that is not PSD
        return problem, wanted(problem)

    def _feature_indices(self, parameter: str, n_features: int) -> NDArray[np.intp]:
        """Turn names, indices or a mask into indices."""
        features = getattr(self, parameter)
        if features is None:
            return np.empty(0, dtype=np.intp)
        array = np.asarray(features)
        if array.dtype == bool:
            if array.shape != (n_features,):
                raise ValueError(
                    f"{parameter} is a mask of shape {array.shape}, but there are "
                    f"n_features={n_features}."
                )
            return np.flatnonzero(array)
        if array.dtype.kind in "UO" and all(isinstance(name, str) for name in array):
            names = getattr(self, "feature_names_in_", None)
            if names is None:
                raise ValueError(
                    f"{parameter} names features, but the data has no feature names; "
                    "use indices or a mask."
                )
            places = {name: place for place, name in enumerate(names)}
            missing = [name for name in array if name not in places]
            if missing:
                raise ValueError(f"{parameter} names {str(missing[0])!r}, which is not a feature.")
            return np.array([places[name] for name in array], dtype=np.intp)
        if array.size and (array.dtype.kind not in "iu" or array.ndim != 1):
            raise ValueError(
                f"{parameter} must hold feature names, feature indices or a mask, got {features!r}."
            )
        return np.unique(array).astype(np.intp)

    def _keep(self, problem: RowSparseProblem, solution: Solution) -> None:
        """Set the fitted attributes."""
        covariance = problem.covariance
        components = solution.loadings.T
        # scikit-learn's PCA: the entry of largest size in each component is positive.
        largest = np.abs(components).argmax(axis=1)
        signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
        self.components_ = (components * signs[:, None]).astype(covariance.dtype, copy=False)
        self.explained_variance_ = solution.explained_variance
        self.explained_variance_ratio_ = solution.explained_variance / covariance.trace()
        self.objective_ = solution.objective
        self.objective_history_ = solution.history
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver
        self.status_ = solution.status.value
        d = problem.n_features
        self.mean_ = np.zeros(d) if covariance.mean is None else covariance.mean
        self.scale_ = covariance.scale if self.scale else None
        self.n_components_ = problem.n_components
        self.n_features_to_select_ = problem.n_features_to_select
        if covariance.n_samples is not None:
            self.n_samples_ = covariance.n_samples
        elif hasattr(self, "n_samples_"):
            del self.n_samples_  # of an earlier fit, to data
        self._support_mask = np.zeros(d, dtype=bool)
        self._support_mask[solution.support] = True
        names = getattr(self, "feature_names_in_", None)
        self.selected_features_ = solution.support if names is None else names[solution.support]
        self._warn_about_rank(problem, solution)
        self.n_passes_ = covariance.n_passes

    def _warn_about_rank(self, problem: RowSparseProblem, solution: Solution) -> None:
        variances = solution.explained_variance
        rounding = problem.n_features * np.finfo(problem.covariance.dtype).eps
        if variances[-1] > rounding * variances[0]:
            return
        values = problem.covariance.leading(problem.n_components).values
        rank = int(np.count_nonzero(values > rounding * values[0]))
        if rank < problem.n_components:
            warnings.warn(
                f"n_components={problem.n_components} is above the rank of the covariance, "
                f"which is {rank}: the last {problem.n_components - rank} component(s) explain "
                "no variance.",
                stacklevel=5,
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self._support_mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.covariance is None
        return tags

"""What the row-sparse estimators share: parameters, fit and fitted attributes."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from kspan.arrays import Index
from kspan.certificates import Certificate
from kspan.covariance import Covariance
from kspan.covariance.streamed import RowStream, as_rows
from kspan.estimators.common import COMMON_CONSTRAINTS, CovarianceEstimator
from kspan.methods import CERTIFY_OPTIONS, LEVELS, ROW_SPARSE, certify, proved, solve
from kspan.problem import RowSparseProblem
from kspan.selection import STOPPED_EARLY, QuickSolver, smallest_support
from kspan.selection.features import Features, feature_indices
from kspan.solution import Solution
from kspan.solvers.starts import STARTS


class FeatureSparseEstimator(CovarianceEstimator):
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
        "certify": ["boolean", StrOptions(set(LEVELS))],
        **COMMON_CONSTRAINTS,
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
        include: Features | None = None,
        exclude: Features | None = None,
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
        if hasattr(self, "_stream"):
            del self._stream  # fit starts anew
        covariance = self._as_covariance(X, reset=True)
        problem, solution = self._solve(covariance)
        solution = self._prove(problem, solution, started)
        self._keep(problem, solution)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, *, refit: bool = True) -> Self:
        """Take in a block of rows, and choose the features for all rows so far.

        The order of the blocks does not matter, but for rounding. Up to 5000 features the
        covariance is accumulated exactly; beyond, it is a sketch of bounded size, and
        `stream_error_` says by how much the variance along any direction may be underestimated.

        Parameters
        ----------
        X : array, DataFrame or sparse array of shape (n_samples, n_features)
        y : ignored
        refit : bool, default=True
            False only takes the rows in: the last block then does the work for all.
        """
        if self.covariance == "precomputed":
            raise ValueError("partial_fit needs data, not covariance='precomputed'.")
        first = not hasattr(self, "_stream")
        X = validate_data(
            self, X, reset=first, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32)
        )
        if first:
            self._stream = RowStream(X.shape[1])
        self._stream.add(as_rows(X))
        if not refit:
            return self
        started = time.perf_counter()
        covariance = self._stream.covariance(scale=self.scale)
        self.stream_error_ = self._stream.error()
        problem, solution = self._solve(covariance)
        self._keep(problem, self._prove(problem, solution, started))
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

    def _solve(self, covariance: Covariance) -> tuple[RowSparseProblem, Solution]:
        d, m = covariance.n_features, self.n_components
        include = self._feature_indices("include", d)
        exclude = self._feature_indices("exclude", d)

        def problem_at(k: int) -> RowSparseProblem:
            return RowSparseProblem(covariance, m, k, include, exclude)

        options = self._options()
        seed = self._seed()
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
            # Warm starts nearly always guess the k that "auto" needs; for others IPU is closer.
            quick = QuickSolver() if solver == "auto" else partial(solve, solver="ipu")
            target = self.explained_share * float(covariance.leading(m).values.sum())
            problem, solution = smallest_support(
                problem_at,
                lower=lower,
                upper=upper,
                target=target * (1 - 1e-12),  # all features reach a share of 1 but for rounding
                guess_with=quick,
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

    def _feature_indices(self, parameter: str, n_features: int) -> Index:
        """Turn names, indices or a mask into indices."""
        names = getattr(self, "feature_names_in_", None)
        return feature_indices(parameter, getattr(self, parameter), n_features, names)

    def _keep(self, problem: RowSparseProblem, solution: Solution) -> None:
        """Set the fitted attributes."""
        covariance = problem.covariance
        self._keep_components(covariance, solution.loadings, solution.explained_variance)
        mask = np.zeros(problem.n_features, dtype=bool)
        mask[solution.support] = True
        self._keep_support(mask)
        self.objective_ = solution.objective
        self.objective_history_ = solution.history
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver
        self.status_ = solution.status.value
        self.n_features_to_select_ = problem.n_features_to_select
        self._warn_about_rank(covariance, solution.explained_variance)
        self.n_passes_ = covariance.n_passes

"""What the estimators share whose components all have the same features."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kspan.arrays import Index
from kspan.choosing_k.criteria import CRITERIA, asking
from kspan.choosing_k.features import Features, feature_indices
from kspan.choosing_k.panel import ByFeature, Panel
from kspan.choosing_k.smallest import guesser_for, readable_size, smallest_support
from kspan.covariance import Covariance
from kspan.covariance.streamed import RowStream, as_rows
from kspan.covariance.weights import checked_weights
from kspan.estimators.covariance_estimator import CovarianceEstimator, common_constraints
from kspan.io.numeric import require_numeric
from kspan.linalg.eigen import power_of_two
from kspan.linalg.representing import uncorrelated
from kspan.linalg.selection import placed
from kspan.problem import RepresentProblem, RowSparseProblem, SharedFeatures, Solution
from kspan.problem.copies import NEAR, Copies
from kspan.progress import Monitor
from kspan.proofs.search.prover import level_of, levels_of
from kspan.solvers.method import AnyMethod
from kspan.solvers.starts import STARTS
from kspan.solving import options_for, prove_solution, run_method


@dataclass(eq=False, repr=False)
class FeatureSparseEstimator(CovarianceEstimator):
    """Choose k features whose principal components explain the most variance."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "explained_share": [None, Interval(Real, 0, 1, closed="right")],
        "criterion": [StrOptions(set(CRITERIA))],
        "ridge": [None, Interval(Real, 0, None, closed="left")],
        "init": [None, StrOptions(set(STARTS)), "array-like"],
        "include": [None, "array-like"],
        "exclude": [None, "array-like"],
        "groups": [None, "array-like", Mapping],
        "group_rule": [None, StrOptions({"together"})],
        "n_groups": [None, Interval(Integral, 1, None, closed="left")],
        "max_per_group": [None, Interval(Integral, 1, None, closed="left"), Mapping],
        "costs": [None, "array-like", Mapping],
        "budget": [None, Interval(Real, 0, None, closed="neither")],
        "max_correlation": [None, Interval(Real, 0, 1, closed="right")],
        "certify": ["boolean", StrOptions(set(levels_of(RowSparseProblem)))],
        "n_jobs": [Integral, None],
        **common_constraints(RowSparseProblem, RepresentProblem),
    }

    n_components: int | float = 2
    n_features_to_select: int | float | None = None
    _: KW_ONLY
    explained_share: float | None = None
    criterion: str = "variance"
    ridge: float | None = None
    solver: str | AnyMethod = "auto"
    init: str | NDArray[np.floating] | None = None
    include: Features | None = None
    exclude: Features | None = None
    groups: ByFeature | None = None
    group_rule: str | None = None
    n_groups: int | None = None
    max_per_group: int | Mapping[Any, int] | None = None
    costs: ByFeature | None = None
    budget: float | None = None
    max_correlation: float | None = None
    certify: bool | str = False
    n_jobs: int | None = None

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the features and compute the components.

        Parameters
        ----------
        X : {array, DataFrame, sparse array, path, Covariance} of shape (n_samples, n_features)
            The data, or with ``covariance="precomputed"`` an (n_features, n_features) matrix.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, with the weights' sum less one in the place of n - 1: whole
            numbers are the same as repeating rows, zero as leaving them out. Only for data.
        """
        monitor = self._monitor()
        self._forget("_stream")  # fit starts anew
        return self._fit(self._as_covariance(X, reset=True, sample_weight=sample_weight), monitor)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, refit: bool = True
    ) -> Self:
        """Take in a block of rows, and choose the features for all rows so far.

        The order of the blocks does not matter, but for rounding. Up to 5000 features the
        covariance is accumulated exactly; beyond, it is a sketch of bounded size, and
        `stream_error_` says by how much the variance along any direction may be underestimated.

        Parameters
        ----------
        X : array, DataFrame or sparse array of shape (n_samples, n_features)
            Without missing values, whatever `missing` says.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, as in `fit`.
        refit : bool, default=True
            False only takes the rows in: the last block then does the work for all.
        """
        if self.covariance == "precomputed":
            raise ValueError("partial_fit needs data, not covariance='precomputed'.")
        monitor, first = self._monitor(), not hasattr(self, "_stream")
        X = validate_data(
            self,
            require_numeric(X),
            reset=first,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )
        if first:
            self._stream = RowStream(X.shape[1])
        weights = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        self._stream.add(as_rows(X), weights)
        if not refit:
            return self
        covariance = self._stream.covariance(scale=self.scale)
        self.stream_error_ = self._stream.error()
        return self._fit(covariance, monitor)

    def _fit(self, covariance: Covariance, monitor: Monitor) -> Self:
        """Choose, prove if asked to, and set the fitted attributes."""
        self._forget("certificate_")
        kind = CRITERIA[self.criterion]
        method = self._method(kind, init=self.init)
        level = method.proof_level or level_of(self.certify, kind)
        options = options_for(method, self._proof_options(self.n_jobs))
        self._count_components(covariance)
        problem, solution = self._choose(covariance, method.searching(), monitor)
        if level and not solution.status.stopped_early:
            solution, self.certificate_ = prove_solution(
                problem, solution, method, level, monitor, options
            )
        self.n_features_to_select_ = problem.n_features_to_select
        self._keep(covariance, replace(solution, solver=method.name))
        if isinstance(problem, RepresentProblem):
            self._keep_scores(covariance, solution)
        else:
            self._forget("decoder_")
        self._warn_about_copies(covariance, solution.support)
        return self

    def _keep_scores(self, covariance: Covariance, solution: Solution) -> None:
        """Set what differs when all features are to be told: uncorrelated scores, and the way back.

        Each score has the variance that it explains of all features, as those of PCA have.
        """
        support, m = solution.support, self.n_components_
        weights = solution.weights
        image = covariance.matmat(weights, support)
        size = np.sqrt(power_of_two(covariance.trace()))
        gram = weights.T @ image[support]
        turn, variances = uncorrelated(gram, (image / size).T @ (image / size))
        turn, variances = turn * size, variances * size**2
        scores, told = weights @ turn, variances > 0
        decoder = np.zeros((covariance.n_features, m))
        decoder[:, told] = image @ turn[:, told] / variances[told]
        signs = np.where(decoder[np.abs(decoder).argmax(axis=0), np.arange(m)] < 0, -1.0, 1.0)
        components = placed(scores * signs, support, covariance.n_features).T
        self.components_ = components.astype(covariance.dtype)
        self.decoder_ = (decoder * signs).T.astype(covariance.dtype)
        for rows in (self.components_, self.decoder_):
            rows += 0.0  # zeros have no sign
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / covariance.trace()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of the variance of X that the components explain.

        With ``criterion="variance"`` it is what their span explains, on the chosen features; on the
        training data ``explained_variance_ratio_.sum()``. With "represent" it is what
        ``inverse_transform(transform(X))`` tells of all features, by the regression of the fit:
        1 less the squared error's share. On new data that may be below zero.

        The variance is that of X itself (about its own mean, divided by the scales of the fit),
        so X needs at least two samples. With ``covariance="precomputed"``, X is a covariance.

        Parameters
        ----------
        X : as for `fit`
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            What each row counts, as in `fit`.
        """
        if self.criterion == "variance":
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        covariance = self._as_covariance(X, reset=False, sample_weight=sample_weight)
        support = self.get_support(indices=True)
        W = self.components_[:, support].T.astype(np.float64)
        P = self.decoder_.T.astype(np.float64)
        image = covariance.matmat(W, support)
        told = 2 * np.sum(P * image) - np.sum((P.T @ P) * (W.T @ image[support]))
        return float(told / covariance.trace())

    def _warn_about_copies(self, covariance: Covariance, support: Index) -> None:
        """Warn when most of the choice is near copies of a few features; not if it costs a read."""
        if self.max_correlation is not None or covariance.reads_are_costly:
            return
        copies = Copies.of(covariance.submatrix(support))
        if copies.is_most:
            warnings.warn(
                f"{copies.n_copied} of the {copies.n_features} chosen features are near copies of "
                f"another one (correlation above {NEAR}, up to {copies.largest:.4f}): they measure "
                "the same thing. max_correlation=0.95 leaves them out.",
                stacklevel=5,
            )

    def _choose(
        self, covariance: Covariance, method: AnyMethod, monitor: Monitor
    ) -> tuple[Any, Solution]:
        """Return the problem with its number of features, and what a method finds for it."""
        d, m = covariance.n_features, self.n_components_
        k: Any = self.n_features_to_select
        include = self._feature_indices("include", d)
        exclude = self._feature_indices("exclude", d)
        seed = self._seed()

        panel, names = Panel.of(self), getattr(self, "feature_names_in_", None)
        rules: dict[str, Any] = {
            "include": include, "exclude": exclude, "names": names,
            "ask": asking(self.criterion, self.ridge),
        }  # fmt: skip

        def wanted(problem: SharedFeatures) -> Solution:
            rng = np.random.default_rng(seed)
            return run_method(problem, method, monitor.inner(method.name), rng)

        if k is None and not panel.says_how_many:
            smallest = panel.smallest(covariance, m, **rules)
            if self.explained_share is not None:
                return self._fewest(smallest, method, wanted, self.explained_share, monitor)
            k = readable_size(smallest.choice, m)
        k = int(k * d) if k is not None and k < 1 else k
        problem = panel.problem(covariance, m, k, **rules)
        if self.covariance == "precomputed":
            covariance.leading(m)  # whatever the solver: this finds a large A that is not PSD
        return problem, wanted(problem)

    def _fewest(
        self, smallest: SharedFeatures, method: AnyMethod,
        wanted: Callable[[Any], Solution], share: float, monitor: Monitor,
    ) -> tuple[Any, Solution]:  # fmt: skip
        """Return the fewest features that keep a share of what plain PCA explains."""
        full = float(smallest.covariance.leading(self.n_components_).values.sum())
        target = share * full
        problem, solution = smallest_support(
            smallest,
            target=target * (1 - 1e-12),  # all features reach a share of 1 but for rounding
            guess_with=guesser_for(method, monitor.inner("guess", quiet=True)),
            solve_with=wanted,
        )
        most = problem.choice.most_features
        if problem.choice.size == most and solution.objective < target * (1 - 1e-9):
            warnings.warn(
                f"The {most} features that may be chosen reach a share of "
                f"{solution.objective / full:.3f}, less than "
                f"explained_share={share}.",
                stacklevel=6,
            )
        return problem, solution

    def _feature_indices(self, parameter: str, n_features: int) -> Index:
        """Turn names, indices or a mask into indices."""
        names = getattr(self, "feature_names_in_", None)
        return feature_indices(parameter, getattr(self, parameter), n_features, names)

"""`StiefelSparsePCA`: sparse components that stay orthonormal."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from kspan.covariance import Covariance
from kspan.estimators.covariance_estimator import common_constraints
from kspan.estimators.own_features import LoadingsEstimator
from kspan.method_tables import lists_methods
from kspan.problem import LoadingsSolution, Patterns, StiefelProblem
from kspan.progress import Monitor
from kspan.proofs.search.prover import level_of, levels_of
from kspan.solvers.method import AnyMethod
from kspan.solvers.stiefel.splitting import PENALTIES
from kspan.solvers.stiefel.stiefel_starts import STIEFEL_STARTS
from kspan.solvers.stiefel.two_stage import TwoStage
from kspan.solving import require_orthonormal, solve_with_proof

# alpha when neither it nor n_nonzero_coefs is given: this share of the largest useful one.
DEFAULT_SHARE = 0.05


@lists_methods(StiefelProblem)
@dataclass(eq=False, repr=False)
class StiefelSparsePCA(LoadingsEstimator):
    r"""Sparse PCA in which every component has features of its own and all stay orthonormal.

    .. math:: \max_{V'V = I} \mathrm{tr}(V'AV), \quad \|v_t\|_0 \le k_t
              \qquad\text{or}\qquad
              \min_{V'V = I} -\tfrac12 \mathrm{tr}(V'AV) + α\,Ω(V)

    with A the covariance of the data and Ω the sum of the sizes of all loadings ("l1") or of the
    lengths of the features' loadings ("l21"). Choose how sparse by counts (`n_nonzero_coefs`,
    `n_nonzero_total`) or by `alpha`; the two-stage method has `n_features_to_select` beside them.
    Nothing needs tuning: parameters are relative to the data's scale.

    Parameters
    ----------
    n_components : int or float, default=2
        m, the number of components, or the share of the variance that plain PCA with so many
        has: see `FeatureSparsePCA`.
    alpha : float, optional
        Weight of the penalty, in the units of a variance. More is sparser, up to the largest
        useful value, beyond which every component would be a single feature: more than that is an
        error that names it. By default, without counts, a twentieth of it.
    n_nonzero_coefs : int or sequence of int, optional
        At most so many features in each component: one number for all, or one for each. Then the
        t-th component has at most the t-th number; components with the same number are sorted by
        variance.
    n_nonzero_total : int, optional
        At most so many features in all components together; one that is used by two counts twice.
    disjoint : bool, default=False
        No two components share a feature. Needs one of the counts.
    n_features_to_select : int, optional
        With ``solver="two-stage"``: so many features in all.
    penalty : {"l1", "l21"}, default="l1"
        Leave out single loadings, or whole features.
    solver : str or method, default="auto"
        A name of the list below, or an object such as ``kspan.solvers.SADMM(gamma=0.5)``. "auto"
        gives the best value that its budget allows. The others do what their paper says: "sadmm"
        and "admm" find all components together, "deflation" one after the other (these need not
        be orthogonal), "two-stage" first the features and then the components on them.
    init : {"auto", "svd", "varimax", "coordinate", "random"} or array, optional
        Where to start; by default "svd", the principal components, and of ``solver="auto"`` "auto",
        which tries the next three.
    certify : bool or {"fast", "tight", "exact"}, default=False
        Under counts, prove how good all components are together; True means "tight". See
        `kspan.certify`. Better ones found on the way take their place.
    n_jobs : int, optional
        Threads of "auto" under counts, and nodes of a search for a proof that are worked on at a
        time: None is one, -1 as many as there are cores. Answer and proof do not depend on it.
    scale : bool, default=False
        Divide features by their standard deviation: work on correlations.
    covariance : {None, "precomputed"}, default=None
        With "precomputed", `fit` and `score` take a covariance matrix; `transform` takes data
        that is centred already.
    missing : {"raise", "mean", "pairwise"}, default="raise"
        What to do about NaN: refuse it, take the mean of its feature in its place, or compute each
        covariance from the samples that have both features. Then `transform` takes a missing value
        for the mean of the fit, so that it adds nothing.
    psd : {"mend", "raise"}, default="mend"
        What to do about a precomputed covariance (or one from pairs) that is not positive
        semidefinite, beyond rounding. "mend" warns by how much and takes it as it is: variances are
        its own, and upper bounds make up for what it lacks. See `kspan.as_covariance`.
    memory : path, `kspan.Memory` or joblib.Memory, optional
        Where to keep what was found out about the data before the search began: moments, A or XX',
        eigenpairs, never the data. The next fit of the same data, with other parameters, starts
        from there, with the same answer to the last digit. docs/choosing_k.md has a grid search.
    solver_options : dict, optional
        Of the method: ``gamma``, ``rho``, ``rho_max``, ``beta``, ``v_step`` ("polar" or "cg"),
        ``v_iter``, ``max_iter``, ``tol``; ``deflation`` ("deflation"); ``second_alpha``
        and ``first_share`` ("two-stage"); ``stabilised`` (these two: False for plain ADMM);
        ``n_restarts``, ``n_kicks`` and ``n_improved`` ("auto", under counts). See
        `kspan.solvers.stiefel`.
    time_limit : float, optional
        Seconds after which the best answer so far is returned.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    verbose : int, default=0
        Write a line for every step to standard error.
    random_state : int, RandomState instance or None, default=None
        For random starts. The same number gives the same answer.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows, with zeros that are exactly zero. Signs as in scikit-learn's PCA.
    explained_variance_ : (n_components,) array
        Adjusted variances: what the score of each component adds to those before it, the squared
        diagonal of R in ``XZ = QR`` divided by n - 1. Scores of sparse components are correlated,
        so that their plain variances would count the same variance more than once.
    explained_variance_ratio_ : the same by the total variance of the data
    represented_variance_ratio_, panel_variance_ratio_, pca_variance_ratio_, effective_features_
        What the scores, and the features that any component uses, tell of the variance of all
        features: as in `FeatureSparsePCA`.
    objective_ : float
        ``explained_variance_.sum()``.
    objective_history_ : array
        The penalised objective after every step of the splitting loop; of "auto" under counts the
        best variance so far.
    certificate_ : Certificate
        With `certify`: about the sum of the variances of all components, ``tr(V'AV)``.
    orthogonality_error_ : float
        The largest ``|V'V - I|``.
    n_nonzero_coefs_ : (n_components,) array
        Features in each component.
    alpha_ : float
        The weight used; 0 under counts.
    selected_features_ : names, or indices, of the features that any component uses
    n_iter_, n_passes_, n_samples_, n_components_ : int
    solver_, status_ : str
    mean_, scale_, n_features_in_, feature_names_in_ : as in `FeatureSparsePCA`

    Notes
    -----
    {methods}

    See Also
    --------
    FeatureSparsePCA : all components share the same features; with certificates.
    ElementSparsePCA : other methods with features of their own for each component.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import StiefelSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = StiefelSparsePCA(2, n_nonzero_coefs=[4, 3], scale=True, random_state=0).fit(wine)
    >>> pca.n_nonzero_coefs_
    array([4, 3])
    >>> round(float(pca.orthogonality_error_), 9)
    0.0
    >>> own = StiefelSparsePCA(3, n_nonzero_total=9, disjoint=True, scale=True, random_state=0)
    >>> own.fit(wine).n_nonzero_coefs_.sum(), len(own.selected_features_)
    (np.int64(9), 9)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [None, Interval(Real, 0, None, closed="left")],
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left"), "array-like"],
        "n_nonzero_total": [None, Interval(Integral, 1, None, closed="left")],
        "disjoint": ["boolean"],
        "n_features_to_select": [None, Interval(Integral, 1, None, closed="left")],
        "penalty": [StrOptions(set(PENALTIES))],
        "init": [None, StrOptions({"auto", *STIEFEL_STARTS}), "array-like"],
        "certify": ["boolean", StrOptions(set(levels_of(StiefelProblem)))],
        "n_jobs": [Integral, None],
        **common_constraints(StiefelProblem),
    }

    n_components: int | float = 2
    _: KW_ONLY
    alpha: float | None = None
    n_nonzero_coefs: int | Sequence[int] | None = None
    n_nonzero_total: int | None = None
    disjoint: bool = False
    n_features_to_select: int | None = None
    penalty: str = "l1"
    solver: str | AnyMethod = "auto"
    init: str | NDArray[np.floating] | None = None
    certify: bool | str = False
    n_jobs: int | None = None

    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        named, given = self.solver == "two-stage", self.n_features_to_select is not None
        if named != given and not isinstance(self.solver, TwoStage):  # which has its own number
            raise ValueError("n_features_to_select and solver='two-stage' go together.")
        method = self._method(
            StiefelProblem, init=self.init, n_features_to_select=self.n_features_to_select
        )
        if self.n_jobs is not None and "n_jobs" in method.options():
            own: dict[str, Any] = {"n_jobs": self.n_jobs}
            method = replace(method, **own)
        problem = self._problem(covariance)
        self.alpha_ = problem.alpha
        self._forget("certificate_")
        level = method.proof_level or level_of(self.certify, StiefelProblem)
        if level is None:
            return self._run(problem, method, monitor)
        if problem.patterns is None:
            raise ValueError(
                "certify needs counts (n_nonzero_coefs or n_nonzero_total): proofs are about the "
                "largest variance, not about a penalty."
            )
        require_orthonormal(method)
        rng = np.random.default_rng(self._seed())
        solution, certificates = solve_with_proof(
            problem, method, level, monitor, rng, self._proof_options(self.n_jobs)
        )
        if certificates:
            self.certificate_ = certificates[0]
        found: LoadingsSolution = solution
        return found

    def _problem(self, covariance: Covariance) -> StiefelProblem:
        """Return what the parameters ask: counts, or a penalty."""
        m = self.n_components_
        if self.n_nonzero_coefs is None and self.n_nonzero_total is None:
            if self.disjoint:
                raise ValueError("disjoint=True needs n_nonzero_coefs or n_nonzero_total.")
            free = StiefelProblem(covariance, m, 0.0, self.penalty)
            alpha = DEFAULT_SHARE * free.largest_alpha if self.alpha is None else self.alpha
            return replace(free, alpha=alpha)
        if self.alpha is not None:
            raise ValueError("Give alpha or counts (n_nonzero_coefs, n_nonzero_total), not both.")
        free = StiefelProblem(covariance, m)  # checks the number of components
        patterns = Patterns.of(
            covariance.n_features, m, self.n_nonzero_coefs, self.n_nonzero_total,
            disjoint=self.disjoint,
        )  # fmt: skip
        return replace(free, patterns=patterns)

"""`StiefelSparsePCA`: sparse components that stay orthonormal."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from kspan.covariance import Covariance
from kspan.estimators.covariance_estimator import common_constraints
from kspan.estimators.own_features import LoadingsEstimator
from kspan.method_tables import lists_methods
from kspan.problem import LoadingsSolution, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.method import AnyMethod
from kspan.solvers.stiefel.splitting import PENALTIES
from kspan.solvers.stiefel.stiefel_starts import STIEFEL_STARTS
from kspan.solvers.stiefel.two_stage import TwoStage

# alpha when neither it nor n_nonzero_coefs is given: this share of the largest useful one.
DEFAULT_SHARE = 0.05


@lists_methods(StiefelProblem)
@dataclass(eq=False, repr=False)
class StiefelSparsePCA(LoadingsEstimator):
    r"""Sparse PCA in which every component has features of its own and all stay orthonormal.

    .. math:: \min_{V'V = I} -\tfrac12 \mathrm{tr}(V'AV) + α\,Ω(V)

    with A the covariance of the data and Ω the sum of the sizes of all loadings ("l1") or of the
    lengths of the features' loadings ("l21"), by stabilised ADMM. Nothing needs tuning: parameters
    are relative to the data's scale. Choose how sparse by one of `alpha`, `n_nonzero_coefs` and,
    for the two-stage method, `n_features_to_select`.

    Parameters
    ----------
    n_components : int, default=2
        m, the number of components.
    alpha : float, optional
        Weight of the penalty, in the units of a variance. More is sparser, up to the largest
        useful value, beyond which every component would be a single feature: more than that is an
        error that names it. By default a twentieth of it.
    n_nonzero_coefs : int, optional
        Exactly so many features in each component, instead of `alpha`.
    n_features_to_select : int, optional
        With ``solver="two-stage"``: so many features in all.
    penalty : {"l1", "l21"}, default="l1"
        Leave out single loadings, or whole features.
    solver : str or method, default="sadmm"
        A name of the list below, or an object such as ``kspan.solvers.SADMM(gamma=0.5)``. "sadmm"
        and "admm" find all components together, "deflation" one after the other (these need not
        be orthogonal), "two-stage" first the features and then the components on them.
    init : {"auto", "svd", "varimax", "coordinate", "random"} or array, optional
        Where to start; "auto", the default, takes the best result of the next three.
    scale : bool, default=False
        Divide features by their standard deviation: work on correlations.
    covariance : {None, "precomputed"}, default=None
        With "precomputed", `fit` and `score` take a covariance matrix; `transform` takes data
        that is centred already.
    solver_options : dict, optional
        Of the method: ``gamma``, ``rho``, ``rho_max``, ``beta``, ``v_step`` ("polar" or "cg"),
        ``v_iter``, ``max_iter``, ``tol``; ``deflation`` ("deflation"); ``second_alpha``
        ("two-stage"); ``stabilised`` (these two: False for plain ADMM). See
        `kspan.solvers.stiefel`.
    time_limit : float, optional
        Seconds after which the best answer so far is returned.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    verbose : int, default=0
        Write a line for every step to standard error.
    random_state : int, RandomState instance or None, default=None
        For the random start.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows, with zeros that are exactly zero. Signs as in scikit-learn's PCA.
    explained_variance_ : (n_components,) array
        Adjusted variances: what the score of each component adds to those before it, the squared
        diagonal of R in ``XZ = QR`` divided by n - 1. Scores of sparse components are correlated,
        so that their plain variances would count the same variance more than once.
    explained_variance_ratio_ : the same by the total variance of the data
    objective_ : float
        ``explained_variance_.sum()``.
    objective_history_ : array
        The penalised objective after every step of the splitting loop.
    orthogonality_error_ : float
        The largest ``|V'V - I|``.
    n_nonzero_coefs_ : (n_components,) array
        Features in each component.
    alpha_ : float
        The weight used.
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
    >>> pca = StiefelSparsePCA(n_components=2, n_nonzero_coefs=4, scale=True).fit(wine)
    >>> pca.n_nonzero_coefs_
    array([4, 4])
    >>> round(float(pca.orthogonality_error_), 9)
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [None, Interval(Real, 0, None, closed="left")],
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "n_features_to_select": [None, Interval(Integral, 1, None, closed="left")],
        "penalty": [StrOptions(set(PENALTIES))],
        "init": [None, StrOptions(set(STIEFEL_STARTS)), "array-like"],
        **common_constraints(StiefelProblem),
    }

    n_components: int = 2
    _: KW_ONLY
    alpha: float | None = None
    n_nonzero_coefs: int | None = None
    n_features_to_select: int | None = None
    penalty: str = "l1"
    solver: str | AnyMethod = "sadmm"
    init: str | NDArray[np.floating] | None = None

    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        if self.alpha is not None and self.n_nonzero_coefs is not None:
            raise ValueError("Give alpha or n_nonzero_coefs, not both.")
        named, given = self.solver == "two-stage", self.n_features_to_select is not None
        if named != given and not isinstance(self.solver, TwoStage):  # which has its own number
            raise ValueError("n_features_to_select and solver='two-stage' go together.")
        method = self._method(
            StiefelProblem, init=self.init, n_nonzero_coefs=self.n_nonzero_coefs,
            n_features_to_select=self.n_features_to_select,
        )  # fmt: skip
        free = StiefelProblem(covariance, self.n_components, 0.0, self.penalty)
        self.alpha_ = DEFAULT_SHARE * free.largest_alpha if self.alpha is None else self.alpha
        problem = StiefelProblem(covariance, self.n_components, self.alpha_, self.penalty)
        return self._run(problem, method, monitor)

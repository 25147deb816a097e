"""`ElementSparsePCA`: sparse components by the methods of the field."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kspan.covariance import Covariance
from kspan.estimators.covariance_estimator import common_constraints
from kspan.estimators.own_features import LoadingsEstimator
from kspan.method_tables import lists_methods
from kspan.problem import ElementSparseProblem, LoadingsSolution, default_nonzero_coefs
from kspan.progress import Monitor
from kspan.solvers.method import AnyMethod
from kspan.solvers.one_by_one import DEFLATIONS


@lists_methods(ElementSparseProblem)
@dataclass(eq=False, repr=False)
class ElementSparsePCA(LoadingsEstimator):
    """Sparse PCA in which every component has k features of its own.

    Most of these methods find one component after the other and take each out of the covariance
    by a deflation; the block forms of GPower find all together. The components need not be
    orthogonal: `orthogonality_error_` says by how much they are not.

    Parameters
    ----------
    n_components : int, default=2
        m, the number of components.
    n_nonzero_coefs : int or None, default=None
        k, the number of features in each component; by default a fifth of the features, at
        least one.
    solver : str or method, default="tpower"
        A name of the list below, or an object such as ``kspan.solvers.IPM(max_iter=50)``.
    deflation : str or None, default=None
        "projection", "schur", "hotelling", "orthogonalized", "generalized" or "remove" (its
        features); by default the method's own. Block forms and "matching" have none.
    scale, covariance, solver_options, time_limit, callback, verbose, random_state
        As in `StiefelSparsePCA`; the options are those of the method in
        `kspan.solvers.elementsparse`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Unit rows, with zeros that are exactly zero. Signs as in scikit-learn's PCA.
    explained_variance_ : (n_components,) array
        Adjusted variances, see `StiefelSparsePCA`.
    explained_variance_ratio_, objective_, objective_history_, orthogonality_error_, \
n_nonzero_coefs_, selected_features_, n_iter_, n_passes_, solver_, status_, mean_, scale_
        As in `StiefelSparsePCA`.

    Notes
    -----
    {methods}

    See Also
    --------
    StiefelSparsePCA : orthonormal sparse components.
    FeatureSparsePCA : all components share the same features; with certificates.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import ElementSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = ElementSparsePCA(n_components=2, n_nonzero_coefs=3, scale=True).fit(wine)
    >>> pca.n_nonzero_coefs_
    array([3, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "deflation": [None, StrOptions(set(DEFLATIONS))],
        **common_constraints(ElementSparseProblem),
    }

    n_components: int = 2
    n_nonzero_coefs: int | None = None
    _: KW_ONLY
    solver: str | AnyMethod = "tpower"
    deflation: str | None = None

    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        k = self.n_nonzero_coefs or default_nonzero_coefs(covariance.n_features)
        problem = ElementSparseProblem(covariance, self.n_components, k)
        method = self._method(ElementSparseProblem, deflation=self.deflation)
        return self._run(problem, method, monitor)

"""`ElementSparsePCA`: sparse components by the methods of the field."""

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kspan.covariance import Covariance
from kspan.estimators.common import COMMON_CONSTRAINTS
from kspan.estimators.loadings import LoadingsEstimator
from kspan.methods import ELEMENT_SPARSE, solve
from kspan.problem import ElementSparseProblem, default_nonzero_coefs
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.deflation import DEFLATIONS


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
    solver : str, default="tpower"
        "tpower", "gpower-l0", "gpower-l1", "gpower-l0-block", "gpower-l1-block", "grqi", "ipm",
        "spannogram" (optimal for a low-rank approximation) or "matching" (no two components share
        a feature).
    deflation : str or None, default=None
        "projection", "schur", "hotelling", "orthogonalized", "generalized" or "remove" (its
        features); by default the
        method's own. Block forms and "matching" have none.
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
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions(set(ELEMENT_SPARSE))],
        "deflation": [None, StrOptions(set(DEFLATIONS))],
        **COMMON_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int = 2,
        n_nonzero_coefs: int | None = None,
        *,
        solver: str = "tpower",
        deflation: str | None = None,
        scale: bool = False,
        covariance: str | None = None,
        solver_options: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        callback: Callable[..., bool | None] | None = None,
        verbose: int | bool = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.solver = solver
        self.deflation = deflation
        self.scale = scale
        self.covariance = covariance
        self.solver_options = solver_options
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, covariance: Covariance) -> LoadingsSolution:
        options = self._options()
        if self.deflation is not None:
            if self.solver.endswith("-block") or self.solver == "matching":
                raise ValueError(f"solver={self.solver!r} has no deflation: it is not one by one.")
            options["deflation"] = self.deflation
        k = self.n_nonzero_coefs
        if k is None:
            k = default_nonzero_coefs(covariance.n_features)
        problem = ElementSparseProblem(covariance, self.n_components, k)
        return solve(
            problem,
            self.solver,
            random_state=self._seed(),
            time_limit=self.time_limit,
            callback=self._callback(),
            **options,
        )

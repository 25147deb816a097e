"""`ElementSparsePCA`: sparse components by the methods of the field, with proofs."""

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
from kspan.proofs.search.prover import levels_of
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
    n_components : int or float, default=2
        m, the number of components, or the share of the variance that plain PCA with so many
        has: see `FeatureSparsePCA`.
    n_nonzero_coefs : int or None, default=None
        k, the number of features in each component; by default a fifth of the features, at
        least one.
    solver : str or method, default="auto"
        A name of the list below, or an object such as ``kspan.solvers.IPM(max_iter=50)``. "exact"
        goes on until every component is proved optimal.
    deflation : str or None, default=None
        "projection", "schur", "hotelling", "orthogonalized", "generalized" or "remove" (its
        features); by default the method's own, mostly "projection". Block forms and "matching" have
        none.
    certify : bool or {"fast", "tight", "exact"}, default=False
        Prove how good every component is; True means "tight". See `kspan.certify`. A better one
        found on the way takes its place before the next one is looked for. "Better" is component by
        component, given those before it: the later ones then start from something else, so
        `objective_` may fall. Methods that find all components together have no proofs for several.
    n_jobs : int, optional
        Nodes of a search for a proof that are worked on at a time: None is one, -1 as many as there
        are cores. Answer and proof do not depend on it.
    scale, covariance, missing, psd, memory, solver_options, time_limit, callback, verbose, \
            random_state
        As in `StiefelSparsePCA`; the options are those of the method in
        `kspan.solvers.elementsparse`, and `checkpoint`, `checkpoint_every` and `k_grid` of
        `kspan.certify`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Unit rows, with zeros that are exactly zero. Signs as in scikit-learn's PCA.
    certificates_ : list of Certificate
        With `certify`, and of "exact": one for each component, on what those before have left
        (`kspan.solving.component_problems`).
    explained_variance_ : (n_components,) array
        Adjusted variances, see `StiefelSparsePCA`.
    explained_variance_ratio_, represented_variance_ratio_, panel_variance_ratio_, \
pca_variance_ratio_, effective_features_, objective_, objective_history_, orthogonality_error_, \
n_nonzero_coefs_, selected_features_, n_iter_, n_passes_, solver_, status_, mean_, scale_
        As in `StiefelSparsePCA`.

    Notes
    -----
    What a proof is about: that no unit vector with k features explains more of what those before it
    have left than the j-th component does, which may be off by the gap. What they have left is

    - "projection": the covariance in the space orthogonal to the component before; what those
      earlier still share with it may come back.
    - "orthogonalized": the covariance orthogonal to all components before.
    - "schur": the covariance of what the scores of all components before do not explain, by
      regression. Variances in it are what a component adds.
    - "remove": the covariance of the features that no component before uses.

    All are positive semidefinite, as proofs need. "hotelling" may leave negative eigenvalues, and
    "generalized" maximises a quotient and not a variance: of these there are proofs for a single
    component only.

    {methods}

    See Also
    --------
    StiefelSparsePCA : orthonormal sparse components.
    FeatureSparsePCA : all components share the same features.
    NonnegativeSparsePCA : components without negative loadings.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import ElementSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = ElementSparsePCA(
    ...     n_components=2, n_nonzero_coefs=3, scale=True, certify="exact", random_state=0
    ... ).fit(wine)
    >>> wine.columns[pca.components_[0] != 0].tolist()
    ['total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines']
    >>> [certificate.status.value for certificate in pca.certificates_]
    ['optimal', 'optimal']
    """

    _proofs_are_in: ClassVar[str] = "certificates_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "deflation": [None, StrOptions(set(DEFLATIONS))],
        "certify": ["boolean", StrOptions(set(levels_of(ElementSparseProblem)))],
        "n_jobs": [Integral, None],
        **common_constraints(ElementSparseProblem),
    }

    n_components: int | float = 2
    n_nonzero_coefs: int | None = None
    _: KW_ONLY
    solver: str | AnyMethod = "auto"
    deflation: str | None = None
    certify: bool | str = False
    n_jobs: int | None = None

    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        k = self.n_nonzero_coefs or default_nonzero_coefs(covariance.n_features)
        problem = ElementSparseProblem(covariance, self.n_components_, k)
        method = self._method(ElementSparseProblem, deflation=self.deflation)
        return self._run_with_proofs(problem, method, monitor, self.certify, self.n_jobs)

"""`NonnegativeSparsePCA`: sparse components without negative loadings, with proofs."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kspan.covariance import Covariance
from kspan.estimators.covariance_estimator import common_constraints
from kspan.estimators.own_features import LoadingsEstimator
from kspan.method_tables import lists_methods
from kspan.problem import LoadingsSolution, NonnegativeProblem, default_nonzero_coefs
from kspan.progress import Monitor
from kspan.proofs.search.prover import levels_of
from kspan.solvers.method import AnyMethod
from kspan.solvers.nonnegative.epsilon_net import NetMethod, achieved_by_net
from kspan.solvers.one_by_one import POSITIVE_DEFLATIONS
from kspan.solvers.registry import methods_for


@lists_methods(NonnegativeProblem)
@dataclass(eq=False, repr=False)
class NonnegativeSparsePCA(LoadingsEstimator):
    """Sparse PCA whose components add features up and never subtract them.

    Every component maximises the variance over unit vectors with at most k features and no
    negative loading. Features that enter a component thus move together, which makes parts of
    faces, sets of genes, or bands of a spectrum out of them.

    Parameters
    ----------
    n_components : int or float, default=2
        m, the number of components, or the share of the variance that plain PCA with so many
        has: see `FeatureSparsePCA`.
    n_nonzero_coefs : int or None, default=None
        k, the largest number of features in a component; by default a fifth of the features, at
        least one. A component uses fewer when no more help.
    rank : int, default=3
        Of the low-rank approximation that "auto", "spannogram" and "net" start from, when they
        are named; a method that is an object has its own, as for `epsilon`.
    epsilon : float, default=0.1
        What the net of directions ("auto", "net") may lose on that approximation, as a share.
    solver : str or method, default="auto"
        A name of the list below, or an object such as ``kspan.solvers.EM(n_restarts=20)``. "nspca"
        finds all components together, the others one after the other.
    deflation : {"remove", "projection", "orthogonalized"} or None, default=None
        How a component is taken out before the next one: its features are removed (the default),
        or its direction. "nspca" has none.
    certify : bool or {"fast", "net", "tight", "exact"}, default=False
        Prove how good every component is; True means "tight". See `kspan.certify`. A better one
        found on the way takes its place. "Better" is component by component, given those before
        it: the later ones then start from something else, so `objective_` may fall.
    n_jobs : int, optional
        Nodes of a search for a proof that are worked on at a time: None is one, -1 as many as there
        are cores. Answer and proof do not depend on it.
    scale, covariance, missing, psd, memory, solver_options, time_limit, callback, verbose, \
            random_state
        As in `StiefelSparsePCA`; the options are those of the method in
        `kspan.solvers.nonnegative`, and `checkpoint`, `checkpoint_every` and `k_grid` of
        `kspan.certify`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Unit rows without a negative entry, with zeros that are exactly zero.
    certificates_ : list of Certificate
        With `certify`: one for each component, on what those before have left
        (`kspan.solving.component_problems`).
    epsilon_ : float
        What the net of directions ("auto", "net") loses at most on the low-rank approximation, as a
        share; never above the `epsilon` of the method. From rank 3 on with probability
        1 - 1/n_features.
    explained_variance_ : (n_components,) array
        Adjusted variances, see `StiefelSparsePCA`.
    explained_variance_ratio_, represented_variance_ratio_, panel_variance_ratio_, \
pca_variance_ratio_, effective_features_, objective_, objective_history_, orthogonality_error_, \
n_nonzero_coefs_, selected_features_, n_iter_, n_passes_, solver_, status_, mean_, scale_
        As in `StiefelSparsePCA`.

    Notes
    -----
    {methods}

    See Also
    --------
    ElementSparsePCA : sparse components of either sign.
    FeatureSparsePCA : all components share the same features.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import NonnegativeSparsePCA
    >>> wine = load_wine(as_frame=True).data
    >>> pca = NonnegativeSparsePCA(
    ...     n_components=2, n_nonzero_coefs=3, scale=True, certify="exact", random_state=0
    ... ).fit(wine)
    >>> wine.columns[pca.components_[0] > 0].tolist()
    ['total_phenols', 'flavanoids', 'od280/od315_of_diluted_wines']
    >>> [certificate.status.value for certificate in pca.certificates_]
    ['optimal', 'optimal']
    """

    _proofs_are_in: ClassVar[str] = "certificates_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, 1, closed="right")],
        "deflation": [None, StrOptions(set(POSITIVE_DEFLATIONS))],
        "certify": ["boolean", StrOptions(set(levels_of(NonnegativeProblem)))],
        "n_jobs": [Integral, None],
        **common_constraints(NonnegativeProblem),
    }

    n_components: int | float = 2
    n_nonzero_coefs: int | None = None
    _: KW_ONLY
    rank: int = 3
    epsilon: float = 0.1
    solver: str | AnyMethod = "auto"
    deflation: str | None = None
    certify: bool | str = False
    n_jobs: int | None = None

    def _solve(self, covariance: Covariance, monitor: Monitor) -> LoadingsSolution:
        self._forget("epsilon_")
        k = self.n_nonzero_coefs or default_nonzero_coefs(covariance.n_features)
        problem = NonnegativeProblem(covariance, self.n_components_, k)
        method = self._nonnegative_method()
        if isinstance(method, NetMethod):
            self.epsilon_ = achieved_by_net(problem, method.rank, method.epsilon)
        return self._run_with_proofs(problem, method, monitor, self.certify, self.n_jobs)

    def _nonnegative_method(self) -> AnyMethod:
        """Return the method, with `rank` and `epsilon` if it has use for them."""
        own = {"deflation": self.deflation}
        if isinstance(self.solver, str):
            known = methods_for(NonnegativeProblem)[self.solver].options()
            own |= {name: getattr(self, name) for name in ("rank", "epsilon") if name in known}
        return self._method(NonnegativeProblem, **own)

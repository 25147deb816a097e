"""`NonnegativeSparsePCA`: sparse components without negative loadings, with proofs."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from kspan.certificates import Certificate
from kspan.covariance import Covariance
from kspan.estimators.common import COMMON_CONSTRAINTS
from kspan.estimators.loadings import LoadingsEstimator
from kspan.methods import CERTIFY_OPTIONS, NONNEGATIVE, NONNEGATIVE_LEVELS, solve
from kspan.problem import NonnegativeProblem, default_nonzero_coefs
from kspan.series import solve_and_prove
from kspan.solution import LoadingsSolution
from kspan.solvers.nonnegative.components import NONNEGATIVE_DEFLATIONS
from kspan.solvers.nonnegative.net import achieved_by_net


class NonnegativeSparsePCA(LoadingsEstimator):
    """Sparse PCA whose components add features up and never subtract them.

    Every component maximises the variance over unit vectors with at most k features and no
    negative loading. Features that enter a component thus move together, which makes parts of
    faces, sets of genes, or bands of a spectrum out of them.

    Parameters
    ----------
    n_components : int, default=2
        m, the number of components.
    n_nonzero_coefs : int or None, default=None
        k, the largest number of features in a component; by default a fifth of the features, at
        least one. A component uses fewer when no more help.
    rank : int, default=3
        Of the low-rank approximation that "auto", "spannogram" and "net" start from.
    epsilon : float, default=0.1
        What the net of directions ("auto", "net") may lose on that approximation, as a share.
    algorithm : {"auto", "spannogram", "net", "em", "nspca"}, default="auto"
        "auto" climbs from many starts and gives the best value; "spannogram" is optimal for the
        low-rank approximation, "net" nearly so; "em" and "nspca" are those of the field. "nspca"
        finds all components together.
    deflation : {"remove", "projection", "orthogonalized"} or None, default=None
        How a component is taken out before the next one: its features are removed (the default),
        or its direction. "nspca" has none.
    certify : bool or {"fast", "net", "tight", "exact"}, default=False
        Prove how good every component is; True means "tight". See `kspan.certify`.
    scale, covariance, solver_options, time_limit, callback, verbose, random_state
        As in `StiefelSparsePCA`; the options are those of the method in
        `kspan.solvers.nonnegative`, and `checkpoint`, `checkpoint_every` and `k_grid` of
        `kspan.certify`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Unit rows without a negative entry, with zeros that are exactly zero.
    certificates_ : list of Certificate
        With `certify`: one for each component, on what those before have left
        (`kspan.series.component_problems`).
    epsilon_ : float
        What the net of directions ("auto", "net") loses at most on the low-rank approximation, as a
        share; never above `epsilon`. From rank 3 on with probability 1 - 1/n_features.
    explained_variance_ : (n_components,) array
        Adjusted variances, see `StiefelSparsePCA`.
    explained_variance_ratio_, objective_, objective_history_, orthogonality_error_, \
n_nonzero_coefs_, selected_features_, n_iter_, n_passes_, solver_, status_, mean_, scale_
        As in `StiefelSparsePCA`.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero_coefs": [None, Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, 1, closed="right")],
        "algorithm": [StrOptions(set(NONNEGATIVE))],
        "deflation": [None, StrOptions(set(NONNEGATIVE_DEFLATIONS))],
        "certify": ["boolean", StrOptions(set(NONNEGATIVE_LEVELS))],
        **COMMON_CONSTRAINTS,
    }

    certificates_: list[Certificate]
    epsilon_: float

    def __init__(
        self,
        n_components: int = 2,
        n_nonzero_coefs: int | None = None,
        *,
        rank: int = 3,
        epsilon: float = 0.1,
        algorithm: str = "auto",
        deflation: str | None = None,
        certify: bool | str = False,
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
        self.rank = rank
        self.epsilon = epsilon
        self.algorithm = algorithm
        self.deflation = deflation
        self.certify = certify
        self.scale = scale
        self.covariance = covariance
        self.solver_options = solver_options
        self.time_limit = time_limit
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, covariance: Covariance) -> LoadingsSolution:
        if hasattr(self, "certificates_"):
            del self.certificates_  # of an earlier fit
        options = self._options()
        proof = {key: options.pop(key) for key in CERTIFY_OPTIONS if key in options}
        if self.algorithm in ("auto", "spannogram", "net"):
            options["rank"] = self.rank
        if self.algorithm in ("auto", "net"):
            options["epsilon"] = self.epsilon
        k = self.n_nonzero_coefs
        if k is None:
            k = default_nonzero_coefs(covariance.n_features)
        problem = NonnegativeProblem(covariance, self.n_components, k)
        if hasattr(self, "epsilon_"):
            del self.epsilon_
        if self.algorithm in ("auto", "net"):
            self.epsilon_ = achieved_by_net(problem, self.rank, self.epsilon)
        asked: dict[str, Any] = {
            "random_state": self._seed(), "time_limit": self.time_limit,
            "callback": self._callback(), **options,
        }  # fmt: skip
        if self.algorithm == "nspca":
            if self.deflation is not None:
                raise ValueError("algorithm='nspca' has no deflation: it is not one by one.")
            if self.certify and self.n_components > 1:
                raise ValueError(
                    "algorithm='nspca' finds all components together; certify needs one by one."
                )
        elif not self.certify:
            asked["deflation"] = self.deflation or "remove"
        if not self.certify:
            return solve(problem, self.algorithm, **asked)
        solution, self.certificates_ = solve_and_prove(
            problem,
            self.algorithm,
            "tight" if self.certify is True else str(self.certify),
            deflation=self.deflation or "remove",
            certify_options=proof,
            **asked,
        )
        return solution

"""`solve` and `certify`: from a problem and a method to an answer, from an answer to a proof."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, UnitCovariance
from kspan.linalg.selection import placed
from kspan.problem import (
    Candidate,
    ElementSparseProblem,
    LoadingsSolution,
    NonnegativeProblem,
    Outlook,
    RepresentProblem,
    RowSparseProblem,
    Solution,
    StiefelProblem,
    adjusted_variances,
    require_count,
)
from kspan.progress import Callback, Monitor, Status, worst
from kspan.proofs.check.certificate import OPTIMAL_GAP, Certificate
from kspan.proofs.check.claims import provable
from kspan.proofs.search.early import look_early, nodes_of
from kspan.proofs.search.proof import Heuristic
from kspan.proofs.search.prover import ProofOptions, levels_of, prove
from kspan.solvers.elementsparse.element_auto import ElementAuto
from kspan.solvers.method import (
    AnyMethod,
    ElementSparseMethod,
    RepresentMethod,
    RowSparseMethod,
    StiefelMethod,
    counted,
)
from kspan.solvers.nonnegative.ascent import climb
from kspan.solvers.one_by_one import (
    POSITIVE_DEFLATIONS,
    PROVABLE_DEFLATIONS,
    Component,
    Deflation,
    OneByOneMethod,
    Prove,
)
from kspan.solvers.registry import add_method, as_method, methods_for
from kspan.solvers.represent.represent_auto import RepresentAuto, improved
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.moves import polish
from kspan.solvers.starts import STARTS, Init
from kspan.solvers.stiefel.near import LoadingsNear
from kspan.storage import require_writable

Certifiable = RowSparseProblem | NonnegativeProblem | StiefelProblem | RepresentProblem
RandomState = int | np.random.Generator | np.random.RandomState | None

# From a relaxed selection to a support: what proofs ask for better answers.
HEURISTICS: dict[type, Heuristic] = {
    RowSparseProblem: polish,
    RepresentProblem: improved,
    NonnegativeProblem: climb,
    StiefelProblem: LoadingsNear(),
}

# What proofs of one component after the other can be about, the default first.
DEFLATIONS_OF: dict[type, tuple[str, ...]] = {
    ElementSparseProblem: PROVABLE_DEFLATIONS,
    NonnegativeProblem: POSITIVE_DEFLATIONS,
}


@overload
def solve(
    problem: RowSparseProblem | RepresentProblem, solver: str | AnyMethod = ..., *,
    random_state: RandomState = ..., callback: Callback | None = ...,
    time_limit: float | None = ..., **options: Any,
) -> Solution: ...  # fmt: skip


@overload
def solve(
    problem: ElementSparseProblem | StiefelProblem, solver: str | AnyMethod = ..., *,
    random_state: RandomState = ..., callback: Callback | None = ...,
    time_limit: float | None = ..., **options: Any,
) -> LoadingsSolution: ...  # fmt: skip


def solve(
    problem: RowSparseProblem | RepresentProblem | ElementSparseProblem | StiefelProblem,
    solver: str | AnyMethod = "auto",
    *,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> Solution | LoadingsSolution:
    """Solve a problem by a method.

    Parameters
    ----------
    problem : RowSparseProblem or RepresentProblem
        Or an `ElementSparseProblem`, `StiefelProblem` or `NonnegativeProblem`; the answer is then
        a `LoadingsSolution`.
    solver : str or method
        The name of a method, or an object such as ``kspan.solvers.IPU(max_iter=50)``, or one of
        your own. "auto" gives the best value its budget allows; "exact" goes on until that is
        proved optimal: the status is then "optimal", or "bounded" if it cannot be (use `certify`
        to keep the proof). docs/methods.md compares them all.
    random_state : int, generator or None
        The same integer gives the same answer.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    time_limit : float, optional
        Seconds after which the best answer so far is returned.
    **options
        Of a method that is named: the fields of its class (docs: "Methods in formulas").

    Returns
    -------
    Solution

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, solve
    >>> from kspan.datasets import load_pitprops
    >>> from kspan.solvers import IPU
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> problem = RowSparseProblem(A, 1, 5)
    >>> round(solve(problem, random_state=0).objective, 6)
    3.406155
    >>> solve(problem, IPU(init="random", n_restarts=5), random_state=0).solver
    'ipu'
    """
    if not methods_for(type(problem)):
        raise TypeError(f"solve needs a problem such as RowSparseProblem, got {problem!r}.")
    method = as_method(type(problem), solver, options)
    monitor = Monitor(method.name, callback, time_limit)
    return run_method(problem, method, monitor, generator(random_state))


def run_method(problem: Any, method: AnyMethod, monitor: Monitor, rng: np.random.Generator) -> Any:
    """Run a method, after forming A if it makes many products and that is within reach.

    A method that takes looks is told when it is proved that there is nothing left to find; its
    answer is "optimal" then.
    """
    if method.makes_many_products:
        problem.covariance.prepare()
    if not method.takes_look or not isinstance(problem, RowSparseProblem):
        return method.run(problem, monitor, rng)
    settled: list[Outlook] = []

    def look(problem: RowSparseProblem, best: Candidate) -> Outlook:
        outlook = look_early(problem, best, heuristic=polish, monitor=monitor)
        settled.extend([outlook] if outlook.is_settled else [])
        return outlook

    solution = method.run(problem, monitor, rng, look)  # type: ignore[call-arg]
    if settled and solution.objective >= settled[0].best.objective:
        solution = replace(solution, status=Status.OPTIMAL)
    return solution


def is_settled(problem: RowSparseProblem, support: Index) -> bool:
    """Say whether it can be proved at little cost that no support is better than a given one."""
    best, monitor = problem.refit(np.sort(support)), Monitor("look")
    problem.covariance.ensure_psd()  # bounds rely on it
    problem.covariance.prepare()
    outlook = look_early(problem, best, heuristic=polish, monitor=monitor)
    if outlook.is_settled:
        return outlook.best.objective <= best.objective * (1 + OPTIMAL_GAP)
    # The look may end elsewhere on the same data in another form.
    proof = prove_point(problem, best, "tight", monitor, _with_nodes(problem, ProofOptions()))
    return proof.status is Status.OPTIMAL


def _with_nodes(problem: Certifiable, options: ProofOptions) -> ProofOptions:
    """Let a proof take as many nodes as may have settled the search."""
    nodes = nodes_of(problem.choice.features.size)
    return replace(options, budgets=replace(options.budgets, tight_nodes=nodes))


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator of random numbers from whatever names one."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# --- proofs


def certify(
    problem: Certifiable | ElementSparseProblem,
    solution: Solution | LoadingsSolution,
    level: str = "tight",
    *,
    time_limit: float | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    k_grid: Sequence[int] = (),
    rank: int | None = None,
    epsilon: float | None = None,
    n_jobs: int | None = None,
) -> Certificate:
    """Prove how good a solution is.

    Parameters
    ----------
    problem : RowSparseProblem, NonnegativeProblem or ElementSparseProblem
        The last two with one component; see `component_problems` for several.
    solution : Solution or LoadingsSolution
        Of that problem. A better support found on the way takes its place in the certificate.
    level : {"fast", "tight", "exact"}
        Closed forms; a convex relaxation; the relaxation and a search for the proven optimum.
        For nonnegative problems also "net": the bound of the spannogram's paper, which holds with
        the probability ``certificate.confidence``.
    time_limit : float, optional
        Seconds after which the best proof so far is returned.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    checkpoint : path, optional
        A search writes its state there, atomically, every `checkpoint_every` seconds and at the
        end. If the file is there, the search goes on from it; the file of another problem is
        refused, and so is a place that cannot be written to, at once. What fails later costs the
        checkpoint, with a warning, but not the proof.
    k_grid : sequence of int
        More numbers of features at which to keep witnesses for ``certificate.upper_at``.
    rank, epsilon : int and float, optional
        Of level "net": the net's rank and what it may lose. By default the best of ranks 1 to 5
        with fine nets.
    n_jobs : int, optional
        Nodes of a search that are worked on at a time, in processes of their own, as scikit-learn
        counts them: None is one (or what `joblib.parallel_config` says), -1 is all cores. When
        there is a `dask.distributed` client, its workers do it. The proof does not depend on it.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, certify, solve
    >>> from kspan.datasets import load_pitprops
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> problem = RowSparseProblem(A, n_components=1, n_features_to_select=5)
    >>> certificate = certify(problem, solve(problem, random_state=0), level="exact")
    >>> certificate.status.value, round(certificate.lower, 6)
    ('optimal', 3.406155)
    """
    if level not in levels_of(type(problem)):
        known = list(levels_of(type(problem)))
        raise ValueError(f"level must be one of {known}, got {level!r}.")
    if rank is not None:
        require_count("rank", rank, 1)
    options = ProofOptions(checkpoint, checkpoint_every, tuple(k_grid), rank, epsilon, n_jobs)
    require_place(options)
    monitor = Monitor(level, callback, time_limit)
    return prove_point(problem, problem.point_of(solution), level, monitor, options)


def prove_point(
    problem: Certifiable | ElementSparseProblem,
    best: Candidate,
    level: str,
    monitor: Monitor,
    options: ProofOptions,
) -> Certificate:  # fmt: skip
    """Prove how good a point is, as far as a monitor allows."""
    problem = provable(problem)
    problem.covariance.ensure_psd()  # bounds rely on it
    problem.covariance.prepare()
    heuristic = HEURISTICS[type(problem)]
    return prove(problem, best, level, heuristic=heuristic, monitor=monitor, options=options)


def solve_with_proof(
    problem: Any,
    method: AnyMethod,
    level: str,
    monitor: Monitor,
    rng: np.random.Generator,
    options: ProofOptions,
) -> tuple[Any, list[Certificate]]:
    """Solve and prove; a better answer found by the proof takes the place of the first one.

    Of methods that find one component at a time, each component is proved on what those before it
    have left, and a better one takes its place before the next one is looked for. All others are
    proved as a whole, which takes a single component unless features are shared.

    Parameters
    ----------
    problem : RowSparseProblem, NonnegativeProblem or ElementSparseProblem
    method : for that kind of problem
    level : see `certify`
    monitor, rng : see `kspan.solvers.method.Method.run`
    options : of the proofs; a checkpoint gets the component's number appended

    Returns
    -------
    solution : as of `solve`
    certificates : list of Certificate
        None of a search that was stopped early. The j-th of several is about the j-th of
        ``component_problems(problem, solution.loadings)``.
    """
    options = options_for(method, options)
    if isinstance(method, OneByOneMethod):
        return _solve_with_proofs(problem, method, level, monitor, rng, options)
    require_single(problem, method)
    solution = run_method(problem, method.searching(), monitor.inner(method.name), rng)
    if solution.status.stopped_early:
        return replace(solution, solver=method.name), []
    solution, certificate = prove_solution(problem, solution, method, level, monitor, options)
    return solution, [certificate]


def _solve_with_proofs(
    problem: Any,
    method: OneByOneMethod,
    level: str,
    monitor: Monitor,
    rng: np.random.Generator,
    options: ProofOptions,
) -> tuple[LoadingsSolution, list[Certificate]]:
    """Find one component after the other, and prove each."""
    # A search for the optimum ends with its time; other components are found and bounded anyway.
    whole = None if method.proof_level is None else monitor
    m, proof = problem.n_components, _ComponentProof(problem, level, options, whole)
    if m > 1:
        require_provable(problem, method.deflation)
    problem.covariance.ensure_psd()  # before anything is taken out
    problem.covariance.prepare()
    search = method.searching()
    assert isinstance(search, OneByOneMethod)
    solution = search.run(problem, monitor, rng, prove=proof)
    statuses = [certificate.status for certificate in proof.certificates]
    if method.proof_level is not None and len(statuses) == m:
        status = worst(statuses)
    else:
        status = worst([solution.status, *(s for s in statuses if s.stopped_early)])
    return replace(solution, solver=method.name, status=status), proof.certificates


def require_single(problem: Any, method: AnyMethod) -> None:
    """Raise `ValueError` if proofs are about one component at a time, and a method about many."""
    if isinstance(problem, ElementSparseProblem) and problem.n_components > 1:
        raise ValueError(
            f"solver={method.name!r} finds all components together; certify needs one by one."
        )


def require_orthonormal(method: AnyMethod) -> None:
    """Raise `ValueError` if components of a method need not be orthogonal."""
    if isinstance(method, OneByOneMethod):
        raise ValueError(
            f"solver={method.name!r} gives components that need not be orthogonal; proofs are "
            "about orthonormal ones."
        )


def require_provable(problem: Any, deflation: str) -> None:
    """Raise `ValueError` unless there are proofs about what a deflation leaves."""
    known = DEFLATIONS_OF[type(problem)]
    if deflation in known:
        return
    why = {
        "hotelling": "what it leaves of A may have negative eigenvalues, and bounds need none. ",
        "generalized": "what it maximises is a quotient, and proofs are about variances. ",
    }.get(deflation, "")
    raise ValueError(
        f"deflation must be one of {list(known)} for proofs of several components, got "
        f"{deflation!r}{': ' if why else '.'}{why}".rstrip()
    )


def options_for(method: AnyMethod, options: ProofOptions) -> ProofOptions:
    """Return the options of a proof, with what the method says where they say nothing.

    To be asked for before any work is done: a place that cannot be written to raises `OSError`.
    """
    if isinstance(method, Exact | ElementExact | StiefelExact):
        if options.checkpoint is None:
            every = method.checkpoint_every
            options = replace(options, checkpoint=method.checkpoint, checkpoint_every=every)
        if options.n_jobs is None:
            options = replace(options, n_jobs=method.n_jobs)
    require_place(options)
    return options


def require_place(options: ProofOptions) -> None:
    """Raise `OSError` if the checkpoint could not be written."""
    if options.checkpoint is not None:
        require_writable(options.checkpoint)


def prove_solution(
    problem: Certifiable,
    solution: Any,
    method: AnyMethod,
    level: str,
    monitor: Monitor,
    options: ProofOptions,
) -> tuple[Any, Certificate]:
    """Prove a solution that a method found; return the one that the proof is about, and the proof.

    That is the solution itself, or a better one found on the way; stopped early if its proof was.
    """
    point = problem.point_of(solution)
    if solution.status is Status.OPTIMAL:
        options = _with_nodes(problem, options)
    certificate = prove_point(problem, point, level, monitor.inner(level), options)
    if method.proof_level is not None:
        solution = replace(solution, solver=method.name, status=certificate.status)
    elif solution.status is Status.OPTIMAL and certificate.status is not Status.OPTIMAL:
        # What is said of a fit with a certificate is what the certificate says.
        early = certificate.status.stopped_early
        solution = replace(solution, status=certificate.status if early else Status.COMPLETED)
    elif certificate.status.stopped_early:
        solution = replace(solution, status=worst([solution.status, certificate.status]))
    reached = point.objective if isinstance(problem, StiefelProblem) else solution.objective
    if certificate.lower > reached:
        solution = _improved(problem, solution, certificate)
    return solution, certificate


def _improved(problem: Certifiable, solution: Any, certificate: Certificate) -> Any:
    """Return a solution with the better point of its certificate."""
    history = np.append(solution.history, certificate.lower)
    if isinstance(problem, RowSparseProblem | RepresentProblem):
        best = problem.refit(certificate.support)
        return replace(
            solution, support=best.support, weights=best.weights,
            explained_variance=best.variances, history=history,
        )  # fmt: skip
    if isinstance(problem, StiefelProblem):
        support, weights = certificate.support, certificate.weights
        gram = weights.T @ problem.covariance.matmat(weights, support)[support]
        return replace(
            solution, loadings=placed(weights, support, problem.n_features),
            explained_variance=adjusted_variances(gram), history=history,
        )  # fmt: skip
    best = Candidate(certificate.support, certificate.weights, np.array([certificate.lower]))
    return replace(
        solution, loadings=best.loadings(problem.n_features),
        explained_variance=best.variances, history=history,
    )  # fmt: skip


class _ComponentProof:
    """Proves one component after the other: what `OneByOneMethod.run` asks after each."""

    def __init__(
        self, problem: ElementSparseProblem, level: str, options: ProofOptions,
        whole: Monitor | None = None,
    ):  # fmt: skip
        self.problem, self.level, self.options, self.whole = problem, level, options, whole
        self.certificates: list[Certificate] = []

    def __call__(self, left: Covariance, x: FloatArray, monitor: Monitor) -> FloatArray:
        """Return the vector that the certificate is about."""
        single = self.problem.alone(left)
        options = self.options
        if self.problem.n_components > 1 and options.checkpoint is not None:
            place = f"{os.fspath(options.checkpoint)}.{len(self.certificates) + 1}"
            options = replace(options, checkpoint=place)
        certificate = prove_point(
            single, single.best_from(x), self.level, monitor.inner(self.level), options
        )
        self.certificates.append(certificate)
        if self.whole is not None:
            self.whole.out_of_time()  # then it stops
        return placed(certificate.weights[:, 0], certificate.support, x.size)


def component_problems(
    problem: ElementSparseProblem, loadings: FloatArray, deflation: str | None = None
) -> list[Any]:
    """Return the problem that each column of the loadings solves, given those before it.

    Parameters
    ----------
    problem : ElementSparseProblem or NonnegativeProblem
    loadings : (d, m) array
    deflation : str, optional
        "projection", "schur", "orthogonalized" or "remove"; of a nonnegative problem all but
        "schur". By default "projection", of a nonnegative problem "remove".

    Returns
    -------
    list of RowSparseProblem, or of NonnegativeProblem
        Each with one component, and with what is left of A.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import NonnegativeProblem, as_covariance
    >>> from kspan.solving import component_problems
    >>> problem = NonnegativeProblem(as_covariance(np.eye(3), kind="covariance"), 2, 1)
    >>> second = component_problems(problem, np.eye(3)[:, :2])[1]
    >>> second.covariance.diagonal()
    array([0., 1., 1.])
    """
    if deflation is None:
        deflation = DEFLATIONS_OF[type(problem)][0]
    if loadings.shape[1] > 1:
        require_provable(problem, deflation)
    problem.covariance.ensure_psd()  # before anything is taken out
    left = Deflation(problem.covariance, deflation)
    found = []
    for x in loadings.T:
        found.append(problem.alone(left.current))
        if len(found) < loadings.shape[1]:
            left.remove(x)
    return found


@add_method
@dataclass(frozen=True, eq=False)
class Exact(RowSparseMethod):
    """Search for the proven optimum: `Auto`, then `certify` at level "exact".

    Parameters
    ----------
    init : see `~kspan.solvers.rowsparse.auto.Auto`
    checkpoint, checkpoint_every, n_jobs : see `kspan.certify`
    """

    name = "exact"
    summary = "`auto`, then branch and bound; with very many features, on those not ruled out"
    guarantee = "proved optimal, or a gap that says how far it can be"
    reference = "this project"
    starts = STARTS
    proof_level = "exact"

    init: Init = "low-rank"
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    n_jobs: int | None = None

    def searching(self) -> Auto:
        """What finds the answer that is then proved."""
        return Auto(init=self.init)

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Search, then prove."""
        solution, _ = solve_with_proof(problem, self, "exact", monitor, rng, ProofOptions())
        return solution


@add_method
@dataclass(frozen=True, eq=False)
class RepresentExact(RepresentMethod):
    """Search for the features that are proved to tell most: `RepresentAuto`, then `certify`."""

    name = "exact"
    summary = "`auto`, then a search through all that could be better"
    guarantee = "proved optimal, or a gap that says how far it can be"
    reference = "this project"
    proof_level = "exact"

    def searching(self) -> RepresentAuto:
        """What finds the answer that is then proved."""
        return RepresentAuto()

    def run(
        self, problem: RepresentProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Search, then prove."""
        solution, _ = solve_with_proof(problem, self, "exact", monitor, rng, ProofOptions())
        return solution


@add_method
@dataclass(frozen=True, eq=False)
class ElementExact(OneByOneMethod, ElementSparseMethod):
    """Search for the proven optimum, one component after the other.

    `ElementAuto`, then `certify` at level "exact", for each; the next one is looked for in what the
    proved one leaves.

    Parameters
    ----------
    deflation : str
        "projection", "schur", "orthogonalized" or "remove": see `kspan.solvers.one_by_one`. With
        one component any.
    n_restarts, n_kicks : see `~kspan.solvers.elementsparse.element_auto.ElementAuto`
    checkpoint, checkpoint_every, n_jobs : see `kspan.certify`
        A checkpoint gets the component's number appended.
    """

    name = "exact"
    summary = "`auto` for one component at a time, each followed by branch and bound"
    guarantee = "every component proved optimal in what is left, or a gap"
    reference = "this project"
    proof_level = "exact"

    n_restarts: int | None = counted(None, least=0)
    n_kicks: int | None = counted(None, least=0)
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    n_jobs: int | None = None

    def searching(self) -> ElementAuto:
        """What finds the components that are then proved."""
        return ElementAuto(self.deflation, self.n_restarts, self.n_kicks)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Find what is then proved."""
        return self.searching().find(left, problem, start, monitor, rng)

    def run(
        self, problem: ElementSparseProblem, monitor: Monitor, rng: np.random.Generator,
        prove: Prove | None = None,
    ) -> LoadingsSolution:  # fmt: skip
        """Search and prove."""
        if prove is not None:  # whoever proves has the say
            return self.searching().run(problem, monitor, rng, prove)
        solution, _ = solve_with_proof(problem, self, "exact", monitor, rng, ProofOptions())
        found: LoadingsSolution = solution
        return found


@add_method
@dataclass(frozen=True, eq=False)
class StiefelExact(StiefelMethod):
    """Search for the proven optimum of orthonormal components under counts.

    `StiefelAuto`, then `certify` at level "exact".

    Parameters
    ----------
    checkpoint, checkpoint_every, n_jobs : see `kspan.certify`
    """

    name = "exact"
    summary = "counts: `auto`, then branch and bound over the patterns of all components"
    guarantee = "proved optimal, or a gap that says how far it can be"
    reference = "this project"
    proof_level = "exact"

    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0
    n_jobs: int | None = None

    def searching(self) -> StiefelMethod:
        """What finds the answer that is then proved."""
        from kspan.solvers.stiefel.stiefel_auto import StiefelAuto  # compiled when it is used

        return StiefelAuto(n_jobs=self.n_jobs)

    def run(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Search, then prove."""
        solution, _ = solve_with_proof(problem, self, "exact", monitor, rng, ProofOptions())
        found: LoadingsSolution = solution
        return found

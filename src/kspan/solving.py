"""`solve` and `certify`: from a problem and a method to an answer, from an answer to a proof."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import Covariance
from kspan.linalg.selection import placed
from kspan.problem import (
    Candidate,
    ElementSparseProblem,
    LoadingsSolution,
    NonnegativeProblem,
    RowSparseProblem,
    Solution,
    StiefelProblem,
    require_count,
)
from kspan.progress import Callback, Monitor, worst
from kspan.proofs.check.certificate import Certificate
from kspan.proofs.search.proof import Heuristic
from kspan.proofs.search.prover import ProofOptions, levels_of, prove
from kspan.solvers.method import AnyMethod, RowSparseMethod
from kspan.solvers.nonnegative.ascent import climb
from kspan.solvers.one_by_one import POSITIVE_DEFLATIONS, Deflation, OneByOneMethod
from kspan.solvers.registry import add_method, as_method, methods_for
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.moves import polish
from kspan.solvers.starts import STARTS, Init
from kspan.storage import require_writable

Certifiable = RowSparseProblem | NonnegativeProblem
RandomState = int | np.random.Generator | np.random.RandomState | None

# From a relaxed selection to a support: what proofs ask for better answers.
HEURISTICS: dict[type, Heuristic] = {RowSparseProblem: polish, NonnegativeProblem: climb}


@overload
def solve(
    problem: RowSparseProblem, solver: str | AnyMethod = ..., *, random_state: RandomState = ...,
    callback: Callback | None = ..., time_limit: float | None = ..., **options: Any,
) -> Solution: ...  # fmt: skip


@overload
def solve(
    problem: ElementSparseProblem | StiefelProblem, solver: str | AnyMethod = ..., *,
    random_state: RandomState = ..., callback: Callback | None = ...,
    time_limit: float | None = ..., **options: Any,
) -> LoadingsSolution: ...  # fmt: skip


def solve(
    problem: RowSparseProblem | ElementSparseProblem | StiefelProblem,
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
    problem : RowSparseProblem
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
    """Run a method, after forming A if it makes many products and that is within reach."""
    if method.makes_many_products:
        problem.covariance.prepare()
    return method.run(problem, monitor, rng)


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator of random numbers from whatever names one."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# --- proofs


def certify(
    problem: Certifiable,
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
    problem : RowSparseProblem or NonnegativeProblem
        The latter with one component; see `component_problems` for several.
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
    problem: Certifiable, best: Candidate, level: str, monitor: Monitor, options: ProofOptions
) -> Certificate:
    """Prove how good a point is, as far as a monitor allows."""
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
    problem : RowSparseProblem, or NonnegativeProblem
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
        problem.covariance.prepare()
        proof = _ComponentProof(problem, level, options)
        solution = method.run(problem, monitor, rng, prove=proof)
        statuses = [c.status for c in proof.certificates if c.status.stopped_early]
        return replace(solution, status=worst([solution.status, *statuses])), proof.certificates
    solution = run_method(problem, method.searching(), monitor.inner(method.name), rng)
    if solution.status.stopped_early:
        return replace(solution, solver=method.name), []
    solution, certificate = prove_solution(problem, solution, method, level, monitor, options)
    return solution, [certificate]


def options_for(method: AnyMethod, options: ProofOptions) -> ProofOptions:
    """Return the options of a proof, with what the method says where they say nothing.

    To be asked for before any work is done: a place that cannot be written to raises `OSError`.
    """
    if isinstance(method, Exact):
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
    certificate = prove_point(problem, point, level, monitor.inner(level), options)
    if method.proof_level is not None:
        solution = replace(solution, solver=method.name, status=certificate.status)
    elif certificate.status.stopped_early:
        solution = replace(solution, status=worst([solution.status, certificate.status]))
    if certificate.lower > solution.objective:
        solution = _improved(problem, solution, certificate)
    return solution, certificate


def _improved(problem: Certifiable, solution: Any, certificate: Certificate) -> Any:
    """Return a solution with the better point of its certificate."""
    history = np.append(solution.history, certificate.lower)
    if isinstance(problem, RowSparseProblem):
        best = problem.refit(certificate.support)
        return replace(
            solution, support=best.support, weights=best.weights,
            explained_variance=best.variances, history=history,
        )  # fmt: skip
    best = Candidate(certificate.support, certificate.weights, np.array([certificate.lower]))
    return replace(
        solution, loadings=best.loadings(problem.n_features),
        explained_variance=best.variances, history=history,
    )  # fmt: skip


class _ComponentProof:
    """Proves one component after the other: what `OneByOneMethod.run` asks after each."""

    def __init__(self, problem: NonnegativeProblem, level: str, options: ProofOptions):
        self.problem, self.level, self.options = problem, level, options
        self.certificates: list[Certificate] = []

    def __call__(self, left: Covariance, x: FloatArray, monitor: Monitor) -> FloatArray:
        """Return the vector that the certificate is about."""
        single = NonnegativeProblem(left, 1, self.problem.n_nonzero_coefs)
        options = self.options
        if self.problem.n_components > 1 and options.checkpoint is not None:
            place = f"{os.fspath(options.checkpoint)}.{len(self.certificates) + 1}"
            options = replace(options, checkpoint=place)
        certificate = prove_point(
            single, single.best_from(x), self.level, monitor.inner(self.level), options
        )
        self.certificates.append(certificate)
        return placed(certificate.weights[:, 0], certificate.support, x.size)


def component_problems(
    problem: NonnegativeProblem, loadings: FloatArray, deflation: str = "remove"
) -> list[NonnegativeProblem]:
    """Return the problem that each column of the loadings solves, given those before it.

    Parameters
    ----------
    problem : NonnegativeProblem
    loadings : (d, m) array
    deflation : {"remove", "projection", "orthogonalized"}

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
    if deflation not in POSITIVE_DEFLATIONS:
        raise ValueError(
            f"deflation must be one of {list(POSITIVE_DEFLATIONS)}, got {deflation!r}."
        )
    left = Deflation(problem.covariance, deflation)
    found = []
    for x in loadings.T:
        found.append(NonnegativeProblem(left.current, 1, problem.n_nonzero_coefs))
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

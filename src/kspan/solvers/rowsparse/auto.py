"""Auto: Go, IPU from many starts, then pair swaps on the best of them.

IPU from the low-rank start alone is often far from the optimum on real data, and what it stops
at is a fixed point that single swaps can leave. So:

1. starts: Go's solution; random subspaces; the spans of m random columns of A, drawn by
   variance; random subspaces of the leading eigenvectors;
2. IPU on all starts at once: one product with A serves the whole batch;
3. pair swaps on the best distinct results, each followed by IPU;
4. kicks: a few features of the best support are exchanged at random, then IPU and swaps.

Data whose reads are costly (on disk, or with more than 100,000 sparse features) goes by way of a
few hundred candidate features: at most six passes, see `candidates.py`.

Cost: a few dozen times that of IPU. Budgets are counts, so the same seed gives the same answer.

Guarantee: never worse than Go and IPU from the low-rank start, but for data that goes by way of
candidates.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.threads import one_blas_thread
from kspan.problem import RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Candidate, Solution
from kspan.solvers.rowsparse.candidates import by_candidates, candidate_count, size_of_all
from kspan.solvers.rowsparse.fps import convex_candidate
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.rowsparse.ipu import IPU
from kspan.solvers.rowsparse.row_scores import from_subspaces, run_rule
from kspan.solvers.rowsparse.swaps import improve_by_swaps
from kspan.solvers.starts import Init, given_subspace, random_subspace

# How many of the distinct results of IPU go on to the swaps.
N_POLISHED = 5


def auto(
    problem: RowSparseProblem,
    *,
    init: Init = "low-rank",
    rng: np.random.Generator,
    n_restarts: int | None = None,
    max_iter: int = 20,
    max_sweeps: int = 50,
    n_kicks: int | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Find the best support that the budget allows.

    Parameters
    ----------
    problem : RowSparseProblem
    init : {"low-rank", "convex", "variance", "random"} or (d, m) array
        An array and the convex relaxation are added to the starts; the other names change
        nothing, as such starts are used anyway.
    rng : numpy.random.Generator
    n_restarts : int, optional
        Starts beyond the low-rank one. By default 96, fewer (down to 12) when k is above 100:
        about as many as take a few seconds.
    max_iter : int
        IPU steps from each start.
    max_sweeps : int
        Rounds of swaps from each of the best candidates.
    n_kicks : int, optional
        Random exchanges of the best support, each followed by IPU and swaps. By default a
        quarter of the restarts.
    callback, time_limit : see `kspan.progress`
    """
    for name, count in (("n_restarts", n_restarts), ("n_kicks", n_kicks)):
        if count is not None:
            require_count(name, count, 0)
    monitor = Monitor("auto", callback, time_limit)
    few = candidate_count(problem) < size_of_all(problem)
    if few and problem.covariance.reads_are_costly and isinstance(init, str):
        return by_candidates(
            problem,
            lambda small: auto(
                small, rng=rng, n_restarts=n_restarts, max_iter=max_iter, max_sweeps=max_sweeps,
                n_kicks=n_kicks, callback=callback, time_limit=monitor.time_left(),
            ),
            rng=rng, monitor=monitor,
        )  # fmt: skip
    if n_restarts is None:
        n_restarts = int(np.clip(9600 // problem.n_features_to_select, 12, 96))
    if n_kicks is None:
        n_kicks = n_restarts // 4
    history: list[float] = []
    n_iter = 0
    best = low_rank_candidate(problem)

    def ascend(starts: list[Candidate]) -> list[Candidate]:
        """IPU on all starts; distinct results, best first."""
        nonlocal best, n_iter
        run = run_rule(problem, IPU, starts, max_iter=max_iter, monitor=monitor)
        n_iter += run.n_iter
        history.extend(max(value, best.objective) for value in run.history)
        if run.best.objective > best.objective:
            best = run.best
        distinct = {c.support.tobytes(): c for c in run.last}
        return sorted(distinct.values(), key=lambda c: -c.objective)

    def polish(candidate: Candidate) -> Candidate:
        """Swaps, then IPU, then swaps again if IPU moved on."""
        nonlocal best, n_iter
        for _ in range(3):
            swapped, _settled = improve_by_swaps(
                problem, candidate, max_sweeps=max_sweeps, monitor=monitor
            )
            n_iter += 1
            moved = ascend([swapped])[0] if monitor.stopped is None else swapped
            best = max(best, swapped, moved, key=lambda c: c.objective)
            history.append(best.objective)
            if monitor.stopped or moved.objective <= swapped.objective * (1 + 1e-12):
                return max(swapped, moved, key=lambda c: c.objective)
            candidate = moved
        return candidate

    try:
        with one_blas_thread():
            if problem.n_features_to_select < problem.n_features:
                starts = [best]
                if not isinstance(init, str):
                    starts += from_subspaces(problem, IPU, [given_subspace(problem, init)])
                elif init == "convex":
                    starts.append(convex_candidate(problem, monitor))
                if n_restarts:
                    starts += from_subspaces(problem, IPU, _subspaces(problem, n_restarts, rng))
                results = ascend(starts)
                for candidate in results[:N_POLISHED]:
                    if monitor.stopped is None:
                        polish(candidate)
                for _ in range(n_kicks):
                    if monitor.stopped is not None:
                        break
                    polish(ascend([_kick(problem, best, rng)])[0])
            else:
                monitor.report(best.objective)
                history.append(best.objective)
    except KeyboardInterrupt:
        monitor.stopped = Status.INTERRUPTED
    return Solution.from_candidate(
        best, n_features=problem.n_features, solver="auto",
        status=monitor.stopped or Status.COMPLETED, history=history or [best.objective],
        n_iter=n_iter,
    )  # fmt: skip


def _subspaces(
    problem: RowSparseProblem, n_restarts: int, rng: np.random.Generator
) -> list[FloatArray]:
    """A third each: uniformly random, unit vectors drawn by variance, leading eigenvectors."""
    d, m = problem.n_features, problem.n_components
    variances = np.where(problem.allowed, problem.covariance.diagonal(), 0.0)
    chance = variances / variances.sum() if variances.sum() > 0 else np.full(d, 1 / d)
    n_likely = int(np.count_nonzero(chance))
    wide = problem.covariance.leading(min(d, 2 * m + 2)).vectors
    subspaces = []
    for i in range(n_restarts):
        if i % 3 == 0 and n_likely >= m:
            W = np.zeros((d, m))
            W[rng.choice(d, m, replace=False, p=chance), np.arange(m)] = 1.0
        elif i % 3 == 1:
            W = wide @ random_subspace(wide.shape[1], m, rng)
        else:
            W = random_subspace(d, m, rng)
        subspaces.append(W)
    return subspaces


def _kick(problem: RowSparseProblem, candidate: Candidate, rng: np.random.Generator) -> Candidate:
    """Exchange about a third of the features that are free to go for random others."""
    free = np.setdiff1d(candidate.support, problem.include)
    outside = problem.allowed.copy()
    outside[candidate.support] = False
    pool = np.flatnonzero(outside)
    count = min(max(1, free.size // 3), pool.size, free.size)
    if not count:
        return candidate
    gone = rng.choice(free, count, replace=False)
    come = rng.choice(pool, count, replace=False)
    return problem.refit(np.sort(np.append(np.setdiff1d(candidate.support, gone), come)))

"""The features for every k of a path: by the walk, on candidates, or by a method at each k."""

from dataclasses import replace

import numpy as np

from kspan.methods import solve
from kspan.problem import RowSparseProblem
from kspan.progress import Callback, Monitor, Status
from kspan.selection.moves import ProblemAt
from kspan.selection.walk import Walk
from kspan.solution import Candidate, Solution
from kspan.solvers.rowsparse.candidates import by_candidates, candidate_count, size_of_all
from kspan.solvers.rowsparse.go import low_rank_candidate


def choose_supports(
    problem_at: ProblemAt, ks: list[int], solver: str, rng: np.random.Generator,
    report: Callback | None, time_limit: float | None,
) -> tuple[dict[int, Candidate], Status | None]:  # fmt: skip
    """Return the best point for each k, and why it stopped early, if it did."""
    monitor = Monitor("path", report, time_limit)
    found: dict[int, Candidate] = {}
    problem = problem_at(ks[-1])
    try:
        if solver not in ("auto", "exact"):
            _solve_each(problem_at, ks, solver, rng, monitor, found)
        elif problem.covariance.reads_are_costly and candidate_count(problem) < size_of_all(
            problem
        ):
            _walk_on_candidates(problem_at, ks, rng, monitor, found)
        else:
            walk = Walk(problem_at, ks, rng=rng, monitor=monitor)
            found = walk.best  # what is there when an interrupt comes counts
            walk.run()
    except KeyboardInterrupt:
        monitor.stopped = Status.INTERRUPTED
    if not found:
        found[ks[0]] = low_rank_candidate(problem_at(ks[0]))
    return found, monitor.stopped


def _solve_each(
    problem_at: ProblemAt, ks: list[int], solver: str, rng: np.random.Generator,
    monitor: Monitor, found: dict[int, Candidate],
) -> None:  # fmt: skip
    seed = int(rng.integers(2**31))
    for k in ks:
        problem = problem_at(k)
        solution = solve(problem, solver, random_state=seed, time_limit=monitor.time_left())
        # Loadings of its own explain less than the best ones on the same features.
        found[k] = problem.refit(np.sort(solution.support))
        monitor.solver = f"path k={k}"
        if solution.status is Status.INTERRUPTED:
            monitor.stopped = Status.INTERRUPTED
        if monitor.report(found[k].objective):
            return


def _walk_on_candidates(
    problem_at: ProblemAt, ks: list[int], rng: np.random.Generator, monitor: Monitor,
    found: dict[int, Candidate],
) -> None:  # fmt: skip
    """Walk on a few hundred candidate features, so that data on disk is read a few times only."""
    walks: dict[int, dict[int, Candidate]] = {}

    def walk_on(small: RowSparseProblem) -> Solution:
        """As one solution on all candidates, whose columns are the loadings of every k.

        All of them are then scored on all features at once, and what is missing gets in.
        """
        walk = Walk(lambda k: replace(small, n_features_to_select=k), ks, rng=rng, monitor=monitor)
        d = small.n_features
        walks[d] = walk.best
        walk.run()
        points = list(walk.best.values())
        variances = np.concatenate([point.variances for point in points])
        loadings = np.hstack([point.loadings(d) for point in points])
        return Solution(
            np.arange(d), loadings, variances, d, "path", Status.COMPLETED, variances[:1], 1
        )

    whole = by_candidates(problem_at(ks[-1]), walk_on, rng=rng, monitor=monitor)
    for k, point in walks[whole.support.size].items():
        found[k] = replace(point, support=whole.support[point.support])

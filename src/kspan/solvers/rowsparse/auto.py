"""Auto: Go, IPU from many starts, then pair swaps on the best of them.

IPU from the low-rank start alone is often far from the optimum on real data, and what it stops
at is a fixed point that single swaps can leave. So:

1. starts: Go's solution; random subspaces; the spans of m random columns of A, drawn by
   variance; random subspaces of the leading eigenvectors;
2. IPU on all starts at once: one product with A serves the whole batch;
3. pair swaps on the best distinct results, each followed by IPU;
4. kicks: a few features of the best support are exchanged at random, then IPU and swaps;
5. where variances are alike, 2 and 3 once more from the features most related to one of them, or to
   m unlike ones (`row_starts.py`), and from the best few points with one component exchanged for
   a group of related features (`exchange.py`), as long as that helps; then kicks again.

Data whose reads are costly (on disk, or with more than 100,000 sparse features) goes by way of a
few hundred candidate features: at most six passes, see `candidates.py`.

Who can bound the problem is asked once, after the first climb (`Look`): small problems are often
settled by a bound in less time than all other starts take. Then the search is over.

Ends and kicks that IPU leaves far below the best point are not polished (`WORTH`).

Cost: a few dozen times that of IPU. Budgets are counts, so the same seed gives the same answer.

Guarantee: never worse than Go and IPU from the low-rank start, but for data that goes by way of
candidates.
"""

from dataclasses import dataclass, replace
from math import isclose
from typing import ClassVar

import numpy as np

from kspan.linalg.machine import one_blas_thread
from kspan.linalg.rounding import IMPROVEMENT
from kspan.problem import Candidate, Look, RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod, counted
from kspan.solvers.rowsparse.candidates import Found, on_candidates, wants_candidates
from kspan.solvers.rowsparse.exchange import exchanged
from kspan.solvers.rowsparse.fps import convex_candidate
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.rowsparse.ipu import PROXY
from kspan.solvers.rowsparse.leaders import Leaders, find_leaders
from kspan.solvers.rowsparse.moves import IPU_STEPS, SWEEPS, Climber, kicked, random_starts
from kspan.solvers.rowsparse.row_scores import from_subspaces
from kspan.solvers.rowsparse.row_starts import row_starts
from kspan.solvers.starts import STARTS, Init, given_subspace

# How many of the distinct results of IPU go on to the swaps, and of theirs to exchanges.
N_POLISHED, N_EXCHANGED = 5, 6

# Points whose components are exchanged, at most: new ones may be among the best few.
MOST_EXCHANGED = 20

# Kicks that share their products with A, all from the same point.
KICKS_AT_ONCE = 8

# A search that a relaxation leads needs fewer starts and kicks by this factor.
LED = 2

# Ends that are this share below the best point are left alone: swaps do not bring them up again.
WORTH = 0.03


@dataclass(frozen=True, eq=False)
class Auto(RowSparseMethod):
    """The best support that the budget allows.

    Parameters
    ----------
    init : {"low-rank", "convex", "variance", "random"} or (d, m) array
        An array and the convex relaxation are added to the starts; the other names change
        nothing, as such starts are used anyway.
    n_restarts : int, optional
        Starts beyond the low-rank one. By default 48, fewer (down to 12) when k is above 100.
        Half of that where a relaxation leads the search.
    max_iter : int
        IPU steps from each start.
    max_sweeps : int
        Rounds of swaps from each of the best candidates.
    n_kicks : int, optional
        Random exchanges of the best support, each followed by IPU and swaps. By default half
        of the restarts.
    """

    name = "auto"
    summary = "Go, IPU from many starts, pair swaps, random kicks; groups of correlated features"
    guarantee = "never worse than Go and IPU on data in memory, up to 100,000 features"
    reference = "this project"
    starts = STARTS
    takes_look: ClassVar[bool] = True

    init: Init = "low-rank"
    n_restarts: int | None = counted(None, least=0)
    max_iter: int = counted(IPU_STEPS, least=0)
    max_sweeps: int = counted(SWEEPS, least=0)
    n_kicks: int | None = counted(None, least=0)

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator,
        look: Look | None = None,
    ) -> Solution:  # fmt: skip
        """Search among all features or, if reads are costly, among candidates.

        `look` bounds the problem, and says when there is nothing left to find.
        """
        if isinstance(self.init, str) and wants_candidates(problem):
            return self._run_on_candidates(problem, monitor, rng)
        climber = Climber(
            problem, low_rank_candidate(problem), monitor, max_iter=self.max_iter,
            max_sweeps=self.max_sweeps,
        )  # fmt: skip
        with monitor.interruptible(), one_blas_thread():
            self._climb(climber, rng, look)
        best = climber.best
        return Solution.from_candidate(
            best, n_features=problem.n_features, solver=self.name,
            status=monitor.stopped or Status.COMPLETED,
            history=climber.history or [best.objective], n_iter=climber.n_iter,
        )  # fmt: skip

    def _climb(self, climber: Climber, rng: np.random.Generator, look: Look | None) -> None:
        """Climb from all starts, polish the best ends, then kick the very best."""
        problem, monitor = climber.problem, climber.monitor
        if problem.choice.size == problem.n_features:  # nothing to choose
            monitor.report(climber.best.objective)
            climber.history.append(climber.best.objective)
            return
        self._climb_from(climber, [climber.best, *self._given_starts(problem, monitor)])
        n_restarts, n_kicks = self.n_restarts, self.n_kicks
        if n_restarts is None:
            n_restarts = int(np.clip(4800 // problem.choice.size, 12, 48))
        if n_kicks is None:
            n_kicks = n_restarts // 2
        if look is not None and not monitor.out_of_time():
            outlook = look(problem, climber.best)
            climber.take(outlook.best)
            climber.history.append(climber.best.objective)
            if outlook.is_settled:
                return
            if outlook.is_led:
                n_restarts, n_kicks = n_restarts // LED, n_kicks // LED
        if n_restarts and not monitor.out_of_time():
            self._climb_from(climber, random_starts(problem, n_restarts, rng, monitor))
        self._kick(climber, n_kicks, rng)
        before = climber.best
        if not monitor.out_of_time() and (leaders := find_leaders(problem, monitor)):
            self._climb_from(climber, row_starts(problem, leaders))
            if problem.n_components > 1:  # one alone gives way to a leader: a start from its row
                self._exchange(climber, leaders)
            if climber.best is not before:  # as many kicks as the others had
                self._kick(climber, n_kicks, rng)

    def _climb_from(self, climber: Climber, starts: list[Candidate]) -> None:
        """Climb, and polish the best ends that are not far below the best point."""
        for candidate in climber.ascend(starts)[:N_POLISHED]:
            far = candidate.objective < climber.best.objective * (1 - WORTH)
            if climber.monitor.stopped is None and not far:
                climber.polish(candidate)

    def _exchange(self, climber: Climber, leaders: Leaders) -> None:
        """Exchange components of the best few ends, and of those that come up by that."""
        tried: list[float] = []
        for _ in range(MOST_EXCHANGED):
            ends = [
                end for end in climber.best_ends(N_EXCHANGED)
                if not any(isclose(end.objective, value, rel_tol=IMPROVEMENT) for value in tried)
            ]  # fmt: skip
            if not ends or climber.monitor.out_of_time():
                break
            tried.append(ends[0].objective)
            starts = exchanged(climber.problem, ends[0], leaders, climber.monitor)
            if starts:
                self._climb_from(climber, starts)

    def _kick(self, climber: Climber, n_kicks: int, rng: np.random.Generator) -> None:
        """Kick the best point, some times at once, and go up from where that leads."""
        problem = climber.problem
        for first in range(0, n_kicks, KICKS_AT_ONCE):
            if climber.monitor.stopped is not None:
                break
            support, count = climber.best.support, min(KICKS_AT_ONCE, n_kicks - first)
            kicks = {s.tobytes(): s for s in (kicked(problem, support, rng) for _ in range(count))}
            self._climb_from(climber, problem.refit_all(list(kicks.values())))

    def _given_starts(self, problem: RowSparseProblem, monitor: Monitor) -> list[Candidate]:
        """Return the start that the user asks for, unless there is one like it anyway."""
        if not isinstance(self.init, str):
            return from_subspaces(problem, PROXY, [given_subspace(problem, self.init)], monitor)
        return [convex_candidate(problem, monitor)] if self.init == "convex" else []

    def _run_on_candidates(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        rounds: list[Solution] = []

        def work(small: RowSparseProblem) -> Found[Solution]:
            solution = self.run(small, monitor, rng)
            rounds.append(solution)
            return Found(solution, solution.loadings, solution.objective)

        found = on_candidates(problem, work, rng=rng, monitor=monitor)
        history = np.concatenate([solution.history for solution in rounds])
        return replace(
            found.result, support=found.features[found.result.support],
            n_features=problem.n_features, history=np.maximum.accumulate(history),
            n_iter=sum(solution.n_iter for solution in rounds),
        )  # fmt: skip

r"""Auto: the best orthonormal sparse components that a budget of steps allows.

With a penalty: SADMM from three starts and with two γ, tried on the features with the largest
variances; the best of them goes on with all features, the objective is lowered further on the
pattern that it ends with (`pattern`), and the answer is never worse than single features.

With counts,

.. math:: \max \mathrm{tr}(U'AU) \quad U'U = I, \quad \|u_t\|_0 \le k_t
          \;(\textstyle\sum_t \|u_t\|_0 \le K,\; \text{supports disjoint})

1. starts: principal components, as they are and rotated to be as sparse as they get; single
   features; TPower with deflation; the SADMM loop at ten α; groups of one, two, … components that
   share their features, by row-sparse IPU, one group after the other; random ones; the best that
   share no feature;
2. from each, the features with the largest entries of AU make the next pattern while that helps;
3. from the best few, moves of one feature and of two (`pattern_search`), then from the best of all
   random kicks.

With many features all this is done on candidates: those that score best in the first starts.
Afterwards those outside that would gain are added, and the search goes on.

Cost: some thousand fits of small patterns; on large data about ten runs of TPower. Budgets are
counts, so the same seed gives the same answer.

Guarantee: orthonormal to 1e-10, a feasible pattern.

Not from a paper.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, DenseCovariance
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.selection import placed, top_k
from kspan.parallel import threads
from kspan.problem import LoadingsSolution, Patterns, RowSparseProblem, StiefelProblem
from kspan.progress import Monitor, Status
from kspan.solvers.method import counted
from kspan.solvers.one_by_one import Deflation
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.tpower import leading_vector
from kspan.solvers.starts import Init, random_subspace
from kspan.solvers.stiefel.cardinality import bisected
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.pattern_search import PatternSearch, Point
from kspan.solvers.stiefel.sadmm import SplittingMethod
from kspan.solvers.stiefel.splitting import Settings, Split
from kspan.solvers.stiefel.stiefel_deflation import even_limits
from kspan.solvers.stiefel.stiefel_starts import (
    PORTFOLIO,
    STIEFEL_STARTS,
    starting_points,
    varimax,
)

# The starts are compared on at most so many features, for so many steps, and with γ and ρ
# multiplied by each of these: on real data no single γ is best, and a third of it often helps.
SCOUT_FEATURES, SCOUT_STEPS, SCOUT_GAMMAS = 1000, 60, (1.0, 1 / 3)
SCOUT_GAIN = 1e-3

# Candidates under counts: at least so many, and twice as many as may be used up to the second.
FEWEST_CANDIDATES, MOST_CANDIDATES, N_MORE, MOST_ROUNDS = 400, 2000, 60, 3

# Points from which moves are tried: at least so many, and at most, as long as they take no more
# than a share of the budget. Orders of the columns that are tried from each start.
N_IMPROVED, MOST_IMPROVED, START_SHARE, MOST_ORDERS = 5, 40, 0.3, 24

# So many of the best points are kicked, and so many kicks there are without common features.
POOL, DISJOINT_KICKS = 10, 30


@dataclass(frozen=True, eq=False)
class StiefelAuto(SplittingMethod):
    """The best orthonormal sparse components that the budget allows.

    Parameters
    ----------
    init : {"auto", "svd", "varimax", "coordinate", "random"} or (d, m) array
        "auto" is all of the next three. Others are the one start with a penalty, and one more
        under counts.
    gamma, rho, rho_max, beta, v_step, v_iter, max_iter, tol
        Of the splitting loop, see `SADMM`. A γ or ρ other than the default is not varied.
    n_restarts : int
        Random starts under counts.
    n_kicks : int, optional
        Random changes of the best patterns under counts; by default 5m², fewer on large problems.
    n_improved : int, optional
        Points from which moves are tried under counts; by default 5, on small problems up to 40.
    n_jobs : int, optional
        Threads that try moves under counts: None is one, -1 as many as there are cores. The answer
        does not depend on it.
    """

    name = "auto"
    summary = "a penalty: SADMM from several starts; counts: many starts, then a search by moves"
    guarantee = "orthonormal to 1e-10"
    reference = "this project"
    starts = ("auto", *STIEFEL_STARTS)

    init: Init = "auto"
    gamma: float = 0.3
    n_restarts: int = counted(20, least=0)
    n_kicks: int | None = counted(None, least=0)
    n_improved: int | None = counted(None, least=1)
    n_jobs: int | None = None

    def run(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Solve for the problem's α, or with its counts."""
        if problem.patterns is None:
            return self._penalised(problem, monitor, rng)
        solver = Joint(problem, self.settings, monitor)
        with monitor.interruptible(), one_blas_thread(), threads(self.n_jobs) as pool:
            search = _Counted(self, solver, problem.patterns, rng, pool)
            search.run()
        return solver.answer(search.best, monitor.stopped or Status.COMPLETED, self.name)

    def _penalised(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Run the loop from the best of the starts, and lower the objective where it ends."""
        solver, begin, rivals = self._prepare(problem, monitor, rng)
        state = solver.run(begin)
        winner, V, value = solver.best_start(state)
        for rival in rivals:
            other = solver.objective(rival)
            if other < value:
                V, value = rival, other
        V = solver.descend(V, V != 0, solver.alpha)[0]
        return solver.answer(V, state.status(winner), self.name)

    def _prepare(
        self, problem: StiefelProblem, monitor: Monitor, rng: np.random.Generator
    ) -> tuple[Joint, Split, list[FloatArray]]:
        """Return the solver of a problem, where it begins, and what it must not be worse than.

        It begins at one point: where the best of all starts and γ ended on the features with the
        largest variances. A run on all features costs a pass over the data in every step; these
        do not. Their best result, and single features, are rivals: with a large α the loop may
        end above them.
        """
        d, r, settings = problem.n_features, problem.n_components, self.settings
        if not (isinstance(self.init, str) and self.init == "auto"):
            starts = starting_points(problem.covariance, r, self.init, rng)
            return Joint(problem, settings, monitor), Split.at(starts), []
        chosen, part = _scouted(problem)
        starts = starting_points(part.covariance, r, "auto", rng)
        best, begin = settings, Split.at(starts[:1]).lifted(0, chosen, d)
        lowest: float | None = None
        rivals = np.zeros((2, d, r))
        rivals[:, chosen] = starts[PORTFOLIO.index("coordinate")]
        own = (settings.gamma, settings.rho) != (Settings.gamma, Settings.rho)
        for factor in (1.0,) if own else SCOUT_GAMMAS:  # what the user sets stays
            trial = replace(settings, gamma=settings.gamma * factor, rho=settings.rho * factor)
            scout = Joint(part, replace(trial, max_iter=min(SCOUT_STEPS, trial.max_iter)), monitor)
            state = scout.run(Split.at(starts))
            i, point, value = scout.best_start(state)
            # A smaller γ takes more steps; a small gain is not worth them.
            if lowest is None or value < lowest - SCOUT_GAIN * abs(lowest):
                best, begin, lowest = trial, state.lifted(i, chosen, d), value
                rivals[1, chosen] = point
            if monitor.stopped:
                break
        return Joint(problem, best, monitor), begin, list(rivals)


def _scouted(problem: StiefelProblem) -> tuple[Index, StiefelProblem]:
    """Return the features with the largest variances, and the problem on those."""
    r = problem.n_components
    chosen = top_k(problem.covariance.diagonal(), max(SCOUT_FEATURES, r))
    covariance: Covariance = problem.covariance
    if (covariance.n_samples or 0) > chosen.size:
        covariance = DenseCovariance(covariance.submatrix(chosen))  # smaller than the data
    elif chosen.size < problem.n_features:
        covariance = covariance.restrict(chosen)
    part = StiefelProblem(covariance, r, 0.0, problem.penalty)
    return chosen, replace(part, alpha=min(problem.alpha, part.largest_alpha))


class _Counted:
    """The search under counts.

    Attributes
    ----------
    best : (d, r), the best loadings so far
    """

    def __init__(
        self, method: StiefelAuto, solver: Joint, patterns: Patterns, rng: np.random.Generator,
        pool: ThreadPoolExecutor | None,
    ):  # fmt: skip
        self.method, self.solver, self.patterns, self.rng = method, solver, patterns, rng
        self.pool = pool
        self.monitor = solver.monitor
        covariance, r = solver.problem.covariance, solver.problem.n_components
        self.best = starting_points(covariance, r, "coordinate", rng)[0]

    def run(self) -> None:
        """Find starts among all features, then search among candidates."""
        starts = list(self._starts())
        if self.monitor.out_of_time():
            return
        chosen = self._candidates(starts)
        self._keep(_OnCandidates(self, chosen).search(starts), chosen)
        for _ in range(MOST_ROUNDS):
            more = self._more(chosen)
            if self.monitor.stopped or not more.size:
                break
            chosen = np.union1d(chosen, more)
            self._keep(_OnCandidates(self, chosen).go_on(self.best[chosen]), chosen)

    def _keep(self, point: Point, chosen: Index) -> None:
        self.best = placed(point.U, chosen, len(self.best))

    def _starts(self) -> Iterator[FloatArray]:
        """Yield loadings (d, r) to start from."""
        covariance, r = self.solver.problem.covariance, self.patterns.n_components
        yield from starting_points(covariance, r, "auto", self.rng)
        if not (isinstance(self.method.init, str) and self.method.init in ("auto", *PORTFOLIO)):
            yield from starting_points(covariance, r, self.method.init, self.rng)
        for init in ("low-rank", "variance"):
            if (found := self._one_by_one(init)) is not None:
                yield found
        yield from self._by_splitting()

    def _by_splitting(self) -> Iterator[FloatArray]:
        """Yield where the SADMM loop ends at several α, with all its starts at once."""
        problem = replace(self.solver.problem, patterns=None)
        loop = Joint(problem, self.method.settings, self.monitor.inner(quiet=True))
        r = problem.n_components
        begin = Split.at(starting_points(problem.covariance, r, "auto", self.rng))
        for scores, V in bisected(loop, begin, self.patterns.total):
            yield np.where(scores > 1.0, V, 0.0) if (scores > 1.0).any(axis=0).all() else V

    def _one_by_one(self, init: str) -> FloatArray | None:
        """Return components by TPower and deflation: near, but not orthogonal.

        None when time is up before the last of them.
        """
        problem = self.solver.problem
        left = Deflation(problem.covariance, "remove" if self.patterns.disjoint else "projection")
        limits = even_limits(self.patterns)
        loadings = np.zeros((problem.n_features, limits.size))
        for t in np.argsort(-limits, kind="stable"):
            if self.monitor.out_of_time():
                return None
            run = leading_vector(
                RowSparseProblem(left.current, 1, int(limits[t])), init=init,
                rng=np.random.default_rng(0), monitor=self.monitor.inner(quiet=True),
            )  # fmt: skip
            loadings[:, t] = run.best.loadings(len(loadings))[:, 0]
            left.remove(loadings[:, t])
        return loadings

    def _candidates(self, starts: list[FloatArray]) -> Index:
        """Return the features with the best scores in any column of the starts."""
        d = len(self.best)
        size = max(FEWEST_CANDIDATES, 2 * self.patterns.size)
        size = max(min(size, MOST_CANDIDATES), int(self.patterns.limits.max()))
        if d <= size:
            return np.arange(d)
        U = np.hstack(starts)
        image = np.abs(self.solver.product(U))
        image /= np.maximum(image.max(axis=0), np.finfo(float).tiny)
        return top_k(np.maximum(image, np.abs(U) > 0.1).max(axis=1), size)

    def _more(self, chosen: Index) -> Index:
        """Return features outside that would gain in exchange for one inside."""
        d = len(self.best)
        if chosen.size == d:
            return np.empty(0, dtype=np.intp)
        rows = np.flatnonzero(self.best.any(axis=1))
        U, image = self.best, self.solver.product(self.best)
        gram = U.T @ image
        pull = np.abs(image - U @ (gram - np.diag(np.diagonal(gram))))
        weakest = np.array([np.abs(U[U[:, t] != 0, t]).min() for t in range(U.shape[1])])
        inside = np.diagonal(gram) * weakest
        score = np.max(pull / np.maximum(inside, np.finfo(float).tiny), axis=1)
        score[chosen], score[rows] = 0.0, 0.0
        best = top_k(score, N_MORE)
        return best[score[best] > 1.0]


class _OnCandidates:
    """The search among some of the features."""

    def __init__(self, whole: _Counted, chosen: Index):
        self.whole, self.chosen, self.rng = whole, chosen, whole.rng
        solver = whole.solver
        self.patterns = whole.patterns.on(chosen.size)
        S = solver.problem.covariance.submatrix(chosen) / solver.unit
        monitor = solver.monitor.inner(unit=solver.unit)
        self.climber = PatternSearch(S, self.patterns, monitor, whole.pool)
        self.alike = bool((self.patterns.limits == self.patterns.limits[0]).all())

    def search(self, starts: list[FloatArray]) -> Point:
        """Climb from all starts, try moves from the best few ends, then kicks of the best."""
        climber, method = self.climber, self.whole.method
        ends: list[Point] = [self._from(U[self.chosen])[0] for U in starts[:1]]
        for U in (*(U[self.chosen] for U in starts), *self._own_starts(), *self._disjoint(starts)):
            if climber.monitor.out_of_time():
                break
            ends += [climber.climb(point) for point in self._from(U)]
        pool: list[Point] = []
        for point in _distinct(ends)[: method.n_improved or MOST_IMPROVED]:
            if len(pool) >= N_IMPROVED and climber.spent > START_SHARE:
                break
            pool = _distinct([*pool, climber.improve(point)])
        n_kicks = method.n_kicks
        for _ in range(5 * self.patterns.n_components**2 if n_kicks is None else n_kicks):
            if climber.spent > 1 or climber.monitor.out_of_time():
                break
            pool = _distinct([*pool, climber.improve(self._kicked(pool))])[:POOL]
        self.whole.solver.history += climber.history or [pool[0].value]
        return pool[0]

    def _kicked(self, pool: list[Point]) -> Point:
        """Change one of the best points at random, or give it a component of another one."""
        rng = self.rng
        point = pool[0] if rng.random() < 0.5 else pool[int(rng.integers(len(pool)))]
        if len(pool) == 1 or rng.random() < 0.6:
            return self.climber.kicked(point, rng)
        other = pool[int(rng.integers(len(pool)))]
        t, s = rng.integers(point.U.shape[1], size=2)
        U = point.U.copy()
        U[:, t] = other.U[:, s]
        return self.climber.climb(self.climber.fit(self.climber.own_scores(U), U))

    def go_on(self, U: FloatArray) -> Point:
        """Try moves from loadings that are feasible already."""
        point = self.climber.improve(self.climber.on_mask(U != 0, U))
        self.whole.solver.history += self.climber.history
        return point

    def _from(self, U: FloatArray) -> list[Point]:
        """Return points near U; with other limits for other columns, in several orders of them."""
        r = U.shape[1]
        orders: list[tuple[int, ...]] = [tuple(range(r))]
        if not self.alike:
            drawn = (
                permutations(range(r)) if r <= 4 else (self.rng.permutation(r) for _ in range(8))
            )
            orders += [tuple(order) for order in drawn][:MOST_ORDERS]
        points = []
        for order in orders:
            W = U[:, list(order)]
            points.append(self.climber.fit(self.climber.own_scores(W), W))
            points.append(self.climber.fit(self.climber.scores(W), W))
        return points

    def _own_starts(self) -> Iterator[FloatArray]:
        """Yield more loadings to start from: groups, then random ones."""
        S, r = self.climber.S, self.patterns.n_components
        yield from self._grouped()
        for _ in range(self.whole.method.n_restarts):
            yield S @ random_subspace(len(S), r, self.rng)

    def _disjoint(self, starts: list[FloatArray]) -> Iterator[FloatArray]:
        """Yield components that share no feature: moves are cheap there, and often end higher."""
        patterns, whole, r = self.patterns, self.climber, self.patterns.n_components
        if patterns.disjoint or r == 1:
            return
        apart = Patterns.of(
            len(whole.S), r, patterns.limits.tolist(), patterns.total, disjoint=True
        )  # fmt: skip
        climber = PatternSearch(whole.S, apart, whole.monitor.inner(quiet=True), whole.pool)
        near = [U[self.chosen] for U in starts] + list(self._grouped())
        ends = [climber.climb(climber.fit(climber.own_scores(U), U)) for U in near]
        pool = _distinct([climber.improve(point) for point in _distinct(ends)[:N_IMPROVED]])
        rng = self.rng.spawn(1)[0]
        for _ in range(DISJOINT_KICKS):
            if not pool or climber.monitor.out_of_time():
                break
            kicked = climber.improve(climber.kicked(pool[0], rng))
            pool = _distinct([*pool, kicked])[:POOL]
        yield from (point.U for point in pool[:2])

    def _grouped(self) -> Iterator[FloatArray]:
        """Yield components of which groups share their features, one group after the other."""
        r = self.patterns.n_components
        limits = even_limits(self.patterns)
        order = np.argsort(-limits, kind="stable")
        small = len(self.climber.S) <= 100 and r <= 5
        sizes = list(_compositions(r)) if small else [(1,) * r, (r,)]
        for kind in ("projection", "remove"):
            for groups in sizes if not self.patterns.disjoint else [(1,) * r]:
                loadings = self._group_by_group(groups, limits[order], kind)
                if loadings is not None:
                    yield loadings[:, np.argsort(order, kind="stable")]

    def _group_by_group(
        self, groups: tuple[int, ...], limits: Index, kind: str
    ) -> FloatArray | None:
        S = self.climber.S
        every = np.arange(len(S))
        left = Deflation(DenseCovariance(S), kind)
        parts: list[FloatArray] = []
        quick = Auto(n_restarts=8, n_kicks=0)
        done = 0
        for m in groups:
            k = max(int(limits[done]), m)
            available = np.flatnonzero(left.current.diagonal() > 1e-12)
            if k > len(S) or available.size < k or self.climber.monitor.out_of_time():
                return None
            # Added up: an update on top of S would be multiplied anew in every step.
            rest = left.current if done == 0 else DenseCovariance(left.current.submatrix(every))
            problem = RowSparseProblem(rest, m, k)
            found = quick.run(problem, self.climber.monitor.inner(quiet=True), self.rng)
            W = found.loadings
            parts.append(varimax(W) if m > 1 else W)
            if done + m < limits.size:
                for w in W.T:
                    left.remove(w)
            done += m
        return np.hstack(parts)


def _compositions(r: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write r as a sum of positive numbers, in any order."""
    if r == 0:
        yield ()
    for first in range(1, r + 1):
        for rest in _compositions(r - first):
            yield (first, *rest)


def _distinct(points: list[Point]) -> list[Point]:
    """Return the points with different values, the best first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: -point.value):
        if not found or point.value < found[-1].value * (1 - 1e-9):
            found.append(point)
    return found

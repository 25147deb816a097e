r"""The best orthonormal loadings on any feasible pattern, from given ones: a local search.

.. math:: \max \mathrm{tr}(U'SU) \quad U'U = I, \quad \text{the pattern of } U \text{ feasible}

From a point: (1) the features with the largest entries of SU make the next pattern, as long as the
value grows; (2) moves of single features, best guess first, each tried by fitting the loadings to
the new pattern, the first that helps is taken; when none does, moves of two (`pattern_moves`);
(3) kicks: a part of one component, or all of it, is drawn anew, and 1 and 2 go on from there.

All on a small dense S: that of all features, or of candidates. Budgets are numbers of trials, by
what a trial costs.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.problem import Patterns
from kspan.progress import Monitor
from kspan.solvers.stiefel.cardinality import disjoint_part, repaired
from kspan.solvers.stiefel.pattern import drop_lone_overlaps
from kspan.solvers.stiefel.pattern_moves import Guesses, joined


def _kernels() -> Any:
    """Return the kernels, which are compiled when they are used for the first time."""
    from kspan.linalg import pattern_kernels

    return pattern_kernels


# A share of the value by which a point must be better to count as such.
GAIN = 1e-9

MAX_EXCHANGES = 30

# Multiplications that the moves from one point may cost, how many trials that is at most with few
# features and with many, where guesses must do, and the share of it for moves of two.
SCAN_COST, MOST_TRIALS, MANY_FEATURES, DOUBLE = 3e8, 4000, 60, 4

# Trials between two looks at the clock, the parts of them that threads share out, and what a trial
# must cost to be worth a thread.
N_TRIALS, N_PARTS, THREAD_COST = 50, 5, 5e4

# Multiplications after which no more kicks are begun.
WHOLE_COST = 2e10


@dataclass(frozen=True)
class Point:
    """Orthonormal loadings (n, r) on a feasible pattern, and tr(U'SU)."""

    value: float
    U: FloatArray
    mask: Mask


class PatternSearch:
    """Climbs on a dense S whose largest eigenvalue is about one.

    Parameters
    ----------
    S : (n, n)
    patterns : of n features and r components
    monitor : asked whether to stop, told of every better value
    pool : threads that try moves, several parts of them at a time; the answer is the same
    """

    def __init__(
        self, S: FloatArray, patterns: Patterns, monitor: Monitor,
        pool: ThreadPoolExecutor | None = None,
    ):  # fmt: skip
        self.S, self.patterns, self.monitor = np.ascontiguousarray(S), patterns, monitor
        self.n_trials = 0
        self._ends: set[bytes] = set()  # where no move helps
        self.history: list[float] = []
        limits, r = patterns.limits.astype(float), patterns.n_components
        system = (r * (r + 1) / 2) ** 3 / 3
        step = float(limits @ limits) + 3 * (float(limits.sum()) * r * r + system)
        self.trial_cost = 20 * step  # a fit takes about so many steps
        most = MOST_TRIALS if len(S) <= MANY_FEATURES else MOST_TRIALS // 10
        self.most = int(np.clip(SCAN_COST / self.trial_cost, 20, most))
        self.pool = pool if self.trial_cost >= THREAD_COST else None

    # --- from scores to a point

    def scores(self, U: FloatArray) -> FloatArray:
        """Return what each entry of SU is worth; comparable between columns."""
        image = self.S @ U
        values = np.maximum(np.sum(U * image, axis=0), 1e-12)
        return np.asarray(image * image / values)

    def own_scores(self, U: FloatArray) -> FloatArray:
        """Return what each entry of U is worth; the same as `scores` for eigenvectors."""
        return np.asarray(U * U * np.sum(U * (self.S @ U), axis=0))

    def fit(self, scores: FloatArray, U: FloatArray) -> Point:
        """Return loadings near U on the feasible pattern with the largest scores."""
        U = np.where(U == 0, 1e-9, U)  # a column must not vanish on its features
        mask = self.patterns.select(scores)
        if not self.patterns.disjoint:
            mask = repaired(mask, scores)
        return self.on_mask(mask, U)

    def on_mask(self, mask: Mask, U: FloatArray) -> Point:
        """Return the best loadings near U on a pattern, or on a smaller one if it has none."""
        everywhere = np.ones(mask.shape[1], dtype=bool)
        if not self.patterns.disjoint:
            # Columns that are alike lead nowhere; random ones are not.
            rng = np.random.default_rng(0)
            other = rng.standard_normal(U.shape)
            for trial, near in ((mask, U), (mask, other), (drop_lone_overlaps(U, mask), U)):
                W, value = _kernels().raise_on_pattern(self.S, near, trial, 200, 1e-10, -1.0)
                if np.isfinite(value):
                    return Point(value, W, trial)
            mask = disjoint_part(mask, U)
        W, value = _kernels().leading_on_pattern(self.S, U, mask, everywhere)
        return Point(value, W, mask)

    # --- from a point to better ones

    def climb(self, point: Point) -> Point:
        """Move to the pattern of the largest entries of SU while that helps."""
        for _ in range(MAX_EXCHANGES):
            if self.monitor.out_of_time():
                break
            image = self.S @ point.U
            other = self.fit(self.scores(point.U), image)
            if not self._better(other, point):
                break
            point = other
        return point

    def improve(self, point: Point, *, double: bool = True) -> Point:
        """Make moves that help until none does."""
        while not self.monitor.out_of_time():
            name = self._name(point)
            if name in self._ends:
                break
            guesses = Guesses(self.S, point.U, point.mask, self.patterns)
            single = joined([guesses.single(self.most), guesses.between(self.most)])
            other = self._try(point, single.best(self.most))
            if other is None and double and point.U.shape[1] > 1:
                most = max(self.most // DOUBLE, 1)
                other = self._try(point, guesses.double(most).best(most))
            if other is None:
                self._ends.add(name)
                break
            point = other
            self._tell(point)
        return point

    def _name(self, point: Point) -> bytes:
        """Return what tells a point from others, whatever the order of columns that are alike."""
        columns = zip(self.patterns.limits, point.mask.T, strict=True)
        keys = [(int(limit), bytes(column)) for limit, column in columns]
        value = round(point.value * 1e7)
        return repr((value, sorted(keys))).encode()

    def _try(self, point: Point, moves: Index) -> Point | None:
        """Return where the first move that helps leads, fitted well; None if none does."""

        def tried(part: Index) -> tuple[int, FloatArray, Mask, float]:
            found: tuple[int, FloatArray, Mask, float] = _kernels().first_better(
                self.S, point.U, point.mask, point.value, part, self.patterns.disjoint,
                GAIN * abs(point.value),
            )  # fmt: skip
            return found

        for start in range(0, len(moves), N_TRIALS):
            if self.monitor.out_of_time():
                return None
            several = moves[start : start + N_TRIALS]
            # Parts that threads try at a time: the first of them that has found something counts.
            size = N_TRIALS if self.pool is None else N_TRIALS // N_PARTS
            parts = [several[i : i + size] for i in range(0, len(several), size)]
            results = map(tried, parts) if self.pool is None else self.pool.map(tried, parts)
            for part, (number, U, mask, _) in zip(parts, results, strict=True):
                self.n_trials += len(part) if number < 0 else number + 1
                if number >= 0:
                    return self.on_mask(mask, U)
        return None

    @property
    def spent(self) -> float:
        """What the trials so far have cost, as a share of what all may cost."""
        return self.n_trials * self.trial_cost / WHOLE_COST

    def kicked(self, point: Point, rng: np.random.Generator) -> Point:
        """Draw a part of one component anew, or all of it."""
        n, r = point.U.shape
        t = int(rng.integers(r))
        scores = self.scores(point.U)
        largest = float(scores.max())
        rows = np.flatnonzero(point.mask[:, t])
        share = float(rng.choice([0.3, 0.6, 1.0]))
        gone = rng.choice(rows, size=max(1, round(share * rows.size)), replace=False)
        scores[gone, t] *= rng.uniform(0.0, 0.5, gone.size)
        drawn = rng.choice(n, size=min(n, max(1, gone.size)), replace=False)
        scores[drawn, t] += largest * rng.uniform(size=drawn.size)
        U = self.S @ point.U
        if share == 1.0:
            U[:, t] = self.S @ rng.standard_normal(n)
        return self.climb(self.fit(scores, U))

    def _better(self, other: Point, point: Point) -> bool:
        return other.value > point.value + GAIN * abs(point.value)

    def _tell(self, point: Point) -> None:
        self.history.append(max([point.value, *self.history[-1:]]))
        self.monitor.report(self.history[-1])

r"""The spannogram: the best nonnegative sparse vector for a matrix of low rank, by enumeration.

.. math:: \max_x \|V'x\|^2 \quad x \ge 0,\; \|x\| = 1,\; \|x\|_0 \le k

for V of n rows and d columns. The support of an optimal x is the set of the k largest positive
entries of Vc, for :math:`c = V'x/\|V'x\|`. The directions c that have the same support form a
cone, given by inequalities :math:`v_i'c \ge v_j'c`, and :math:`v_i'c \ge 0` or ≤ 0. When V has full
column rank the cone has an extreme ray, where d - 1 independent ones of them hold with equality:
there d rows, or d - 1 rows and zero, are tied. So all supports are next to one of the
:math:`\binom{n+1}{d}` directions ("vertices") at which d of n + 1 rows, a row of zeros being one of
these, have the same value.

1. Rule out rows that no optimal x uses, and fix those that all use (`spannogram_boxes`).
2. Sweep all vertices of the other rows (`spannogram_kernels`). At a vertex whose tied value is
   positive, the supports next to it are the rows T above and any k - \|T\| of the tied rows; where
   it is zero, T and *any* of the tied rows up to that number.
3. Solve :math:`\max \|V_I c\|^2,\, V_I c \ge 0,\, \|c\| = 1` on every support I whose eigenvalue
   :math:`λ_1(V_I'V_I)` is above the best value so far (`cone_quadratic`).

For d = 1 the answer is the k largest positive entries of V or of -V.

Cost: :math:`O(m^d \log m)` for the m rows that step 1 leaves, and :math:`O(k^{d-1})` for each
support of step 3. Memory: O(n) and a bounded list of supports.

Guarantee: optimal up to rounding, of 1e-11 of the value. Rows are moved by 1e-11 of the longest for
step 2, so that no more than d are tied, but the true ones are used in steps 1 and 3.

Reference: Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML
2014, algorithms 1 and 2.

Differs from the paper in: where the tied value is zero, algorithm 2 as printed keeps all tied rows
if there is room for them. Supports that have only some of them are next to the vertex as well, and
the optimum may be on one of those. Step 1 is not in the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy.linalg

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.selection import largest_positive
from kspan.linalg.spannogram_boxes import FEW_ROWS, SLACK, ascend, rule_out, starts
from kspan.linalg.spannogram_sweep import (
    Map,
    Supports,
    candidate_supports,
    default_threads,
    expected_seconds,
    vertex_count,
    worker_threads,
)  # fmt: skip

# Told the best value so far; returns whether to stop.
Report = Callable[[float], bool]

# Directions in which V is below this share of its norm are left out.
WEAK_DIRECTION = 1e-9

# Free rows must span all directions by more than this share of the widest.
SPAN_TOL = 1e-6

# Entries of V c that may be set to zero without a loss: their squares are rounding.
POSITIVE_TOL = 1e-10

# Supports solved between two reports, on each thread.
SUPPORTS_A_REPORT = 64


@dataclass(frozen=True)
class LowRankOptimum:
    """The best vector found.

    Attributes
    ----------
    support : sorted rows with a positive weight, k at most
    weights : their weights, a unit vector
    value : ‖V'x‖²
    complete : whether it is the optimum, and not only the best before a stop
    """

    support: Index
    weights: FloatArray
    value: float
    complete: bool


@dataclass(frozen=True)
class Spannogram:
    """What there is to enumerate for V and k.

    Attributes
    ----------
    V : (n, d) rows that are not zero, the longest of length near one, full column rank
    k : number of rows in a support, at most
    rows : (n,) their places among the rows given
    unit : what the rows given were divided by
    fixed, free : (n,) rows that are in every support to be tried, and rows that may be
    direction : (d,) the best c known
    settled : whether that is known to be the best there is
    few : whether all subsets of the free rows are tried, instead of those at vertices
    stopped : whether `report` asked to stop
    """

    V: FloatArray
    k: int
    rows: Index
    unit: float
    fixed: Mask
    free: Mask
    direction: FloatArray
    settled: bool = False
    few: bool = False
    stopped: bool = False

    @property
    def n_vertices(self) -> int:
        """The number of vertices to sweep."""
        if self.settled or self.few or self.stopped:
            return 0
        return vertex_count(int(self.free.sum()), self.V.shape[1])

    @property
    def seconds(self) -> float:
        """About how long sweeping them takes on one core."""
        return expected_seconds(self.n_vertices, self.V.shape[1])


def prepare(
    V: FloatArray, k: int, *, eliminate: bool = True, report: Report | None = None
) -> Spannogram:
    """Scale V, reduce it to its rank, rule out rows, and find a good direction to begin with.

    Parameters
    ----------
    V : (n, d) array
    k : number of entries of x, at most; 1 ≤ k ≤ n
    eliminate : whether to rule out rows before the enumeration
    report : told the best value so far several times a second; it stops the search by returning
        True
    """
    sizes = np.abs(V).max(axis=1, initial=0.0)
    rows = np.flatnonzero(sizes > 0)
    if rows.size == 0:
        rows, V, k = np.zeros(1, dtype=np.intp), np.zeros((1, 1)), 1
    # A power of two, so that nothing is rounded.
    unit = float(np.exp2(np.floor(np.log2(sizes.max())))) if sizes.any() else 1.0
    reduced = _full_rank(V[rows] / unit)
    n, d = reduced.shape
    k = min(k, n)
    everything = np.ones(n, dtype=bool)
    task = Spannogram(reduced, k, rows, unit, ~everything, everything, np.zeros(d))
    if d == 1:
        _, direction = ascend(reduced, starts(1), k)
        return replace(task, direction=direction, settled=True)
    if not eliminate:
        _, direction = ascend(reduced, starts(d), k)
        return replace(task, direction=direction)
    stopped = False

    def stop(value: float) -> bool:
        nonlocal stopped
        stopped = report is not None and report(value * unit**2)
        return stopped

    left = rule_out(reduced, k, stop)
    few = int(left.free.sum()) <= FEW_ROWS
    fixed, free = (left.fixed, left.free) if few else _spanning(reduced, left.fixed, left.free)
    return replace(
        task, fixed=fixed, free=free, direction=left.direction, settled=left.closed, few=few,
        stopped=stopped,
    )  # fmt: skip


def enumerate_supports(
    task: Spannogram, *, report: Report | None = None, n_threads: int | None = None
) -> LowRankOptimum:
    """Find the unit vector x ≥ 0 with the largest ‖V'x‖ among all supports that are left.

    Parameters
    ----------
    task : what `prepare` made of V and k
    report : see there; a keyboard interrupt stops the enumeration too
    n_threads : by default one for a small task, else as many as numba uses

    Examples
    --------
    >>> import numpy as np
    >>> V = np.array([[1.0, 0.0], [0.5, 0.8], [-0.5, 0.9], [0.3, -2.0]])
    >>> best = enumerate_supports(prepare(V, 2))
    >>> best.support, best.weights.round(3), round(best.value, 3)
    (array([0, 3]), array([0.096, 0.995]), 4.119)
    """
    best = _Best(task)
    complete = task.settled
    if not (task.settled or task.stopped):
        n_threads = n_threads or default_threads(task.n_vertices)
        try:
            with worker_threads(n_threads) as threads:
                complete = _try_all(task, best, report, threads, n_threads)
        except KeyboardInterrupt:
            complete = False
    return best.optimum(complete)


def _try_all(
    task: Spannogram, best: "_Best", report: Report | None, threads: Map, n_threads: int
) -> bool:
    """Solve (P_d) on all supports; return whether it came to the end."""
    from kspan.linalg.spannogram_kernels import best_nonnegative  # numba is slow to import

    V, fixed = np.ascontiguousarray(task.V[task.free]), np.ascontiguousarray(task.V[task.fixed])
    room = task.k - len(fixed)

    def solve(supports: Supports) -> tuple[Supports, FloatArray] | None:
        direction = np.zeros(V.shape[1])
        _, winner = best_nonnegative(fixed, V, supports, best.floor, direction)
        return None if winner < 0 else (supports[winner], direction)

    rounds = candidate_supports(
        V, room, lambda: best.floor, fixed=fixed.T @ fixed, threads=threads, n_threads=n_threads
    )
    for supports in [_subsets(len(V), room)] if task.few else rounds:
        for start in range(0, max(len(supports), 1), SUPPORTS_A_REPORT * n_threads):
            part = supports[start : start + SUPPORTS_A_REPORT * n_threads]
            pieces = [piece for piece in np.array_split(part, n_threads) if len(piece)]
            for answer in threads(solve, pieces):
                if answer is not None:
                    inside = task.fixed.copy()
                    inside[task.free] = answer[0] > 0
                    best.offer(inside, answer[1])
            if report is not None and report(best.value * task.unit**2):
                return False
    return True


class _Best:
    """The best support so far, the entries of V c on it, and the sum of their squares."""

    def __init__(self, task: Spannogram):
        self.task = task
        self.value, self.inside, self.scores = -1.0, task.fixed, np.zeros(0)
        x = largest_positive((task.V @ task.direction)[:, None], task.k)[:, 0]
        self.offer(x > 0, task.direction)

    @property
    def floor(self) -> float:
        """What is worth a look has to be above this."""
        return self.value * (1 + SLACK)

    def offer(self, inside: Mask, direction: FloatArray) -> None:
        """Take a support with a direction that is positive on it, if it is better."""
        rows = self.task.V[inside]
        # If the leading eigenvector is positive on the support as well, it is the best there.
        scores = rows @ np.linalg.eigh(rows.T @ rows)[1][:, -1]
        scores = scores if scores.sum() >= 0 else -scores
        if scores.min(initial=0.0) < -POSITIVE_TOL:
            scores = rows @ direction
        scores = np.maximum(scores, 0.0)
        value = float(scores @ scores)
        if value > self.value:
            self.value, self.inside, self.scores = value, inside, scores

    def optimum(self, complete: bool) -> LowRankOptimum:
        """Return the vector, with its value computed from the rows themselves."""
        task = self.task
        if self.value <= 0:  # V is zero
            return LowRankOptimum(task.rows[:1], np.ones(1), 0.0, complete)
        positive = self.scores > 0
        places = np.flatnonzero(self.inside)[positive]
        weights = self.scores[positive] / np.linalg.norm(self.scores)
        image = weights @ task.V[places]
        value = float(image @ image) * task.unit**2
        return LowRankOptimum(task.rows[places], weights, value, complete)


def _subsets(m: int, room: int) -> Supports:
    """Return all subsets of m rows with at most `room` members, as ones."""
    every = np.array(list(product((0, 1), repeat=m)), dtype=np.uint8).reshape(2**m, m)
    return every[every.sum(axis=1) <= room]


def _full_rank(V: FloatArray) -> FloatArray:
    """Return V, or a matrix of fewer columns, with (almost) the same VV'."""
    left, sizes, _ = np.linalg.svd(V, full_matrices=False)
    rank = max(int((sizes > WEAK_DIRECTION * sizes[0]).sum()), 1)
    return V if rank == V.shape[1] else left[:, :rank] * sizes[:rank]


def _spanning(V: FloatArray, fixed: Mask, free: Mask) -> tuple[Mask, Mask]:
    """Make some more rows free if the free ones do not span the space, as the sweep needs.

    That is always allowed: a row that could be fixed or ruled out need not be.
    """
    sizes = np.linalg.svd(V[free], compute_uv=False)
    if sizes.size < V.shape[1] or sizes[-1] <= SPAN_TOL * sizes[0]:
        spanning = scipy.linalg.qr(V.T, mode="r", pivoting=True)[-1][: V.shape[1]]
        free = free.copy()
        free[spanning] = True
    return fixed & ~free, free

r"""Exactly k features in each component: λ by bisection, then trimmed and refitted.

Steps: α is bisected (on a logarithmic scale, each solve starting from the last one) towards the
largest one at which every component has at least k features; at each α on the way, the k largest
loadings of each component are kept, made orthonormal within that pattern, and the variance is
raised there. Two more patterns come from TPower, one component at a time. From the best three,
exchange steps go on: the k features of each component with the largest entries of AV make the next
pattern, as long as the variance grows.

Two components that share exactly one feature cannot be orthogonal: one of them gives it up and
takes its next best feature.

Cost: a dozen runs of the splitting loop. Passes over the data: two a step of each.

Guarantee: k features in each component, orthonormal to 1e-10.

Differs from the paper in: the paper varies λ until the counts are about right, and does not say
how it equalises them.
"""

import numpy as np

from kspan.arrays import FloatArray, Mask
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem
from kspan.problem.choice import is_count
from kspan.progress import Deadline, Status
from kspan.solvers.one_by_one import Deflation
from kspan.solvers.rowsparse.tpower import leading_vector
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.pattern import orthonormal_on, patience
from kspan.solvers.stiefel.splitting import Split

N_ALPHAS = 10
N_EXCHANGED = 3  # of the best patterns
MAX_EXCHANGES = 30


def with_cardinality(solver: Joint, begin: Split, k: int) -> tuple[FloatArray, Status]:
    """Find orthonormal loadings with k features in each component.

    Parameters
    ----------
    solver : the problem; its α is not used
    begin : where the first run begins
    k : features in each component
    """
    d, r = begin.V.shape[1:]
    if not (is_count(k) and 1 <= k <= d):
        raise ValueError(f"n_nonzero_coefs must be an integer between 1 and {d}, got {k!r}.")
    if k * r > d and k < r:
        raise ValueError(
            f"n_nonzero_coefs={k} is too small: {r} orthonormal components on {d} features need "
            f"{r} features each, or {k * r} features in all."
        )
    found = _Patterns(solver, k)
    for init in ("low-rank", "variance"):
        one_by_one = _one_by_one(solver, k, init)
        if one_by_one is not None:
            found.add(np.abs(one_by_one), one_by_one)
    found.bisect(begin)
    return found.best(), solver.monitor.stopped or Status.COMPLETED


class _Patterns:
    """Loadings with k features in each component, and their objectives."""

    def __init__(self, solver: Joint, k: int):
        self.solver, self.k = solver, k
        self.found: list[tuple[float, FloatArray]] = []
        self.late = False  # one more was tried after the end of the time

    def add(self, scores: FloatArray, U: FloatArray) -> None:
        """Take in what there is near U on the best-scored features, unless time is up."""
        over = self.solver.monitor.out_of_time()
        if over and (self.found or self.late):
            return
        self.late = over
        self._descend(trim(scores, U, self.k, patience(self.solver.monitor)))

    def _descend(self, trimmed: tuple[FloatArray, Mask] | None) -> None:
        if trimmed is not None:
            W, value = self.solver.descend(*trimmed, alpha=0.0)
            self.found.append((value, W))

    def bisect(self, begin: Split) -> None:
        """Bisect α; every run on the way, from where the last one ended, gives patterns."""
        high = self.solver.problem.largest_alpha / self.solver.unit
        low = 1e-4 * high
        for _ in range(N_ALPHAS):
            alpha = float(np.sqrt(low * high))
            state = self.solver.run_at(alpha, begin)
            counts = np.count_nonzero(state.Y, axis=1)  # (s, r)
            for V, Y in zip(state.V, state.Y, strict=True):
                self.add(np.where(Y != 0, np.abs(V) + 1.0, np.abs(V)), V)
            begin = Split.at(state.V)
            if self.solver.monitor.stopped:
                break
            if (counts.min(axis=1) >= self.k).any():
                low = alpha
            else:
                high = alpha
        if not self.found:
            blocks = coordinate_blocks(self.solver.product(begin.V[0]), self.k)
            self._descend((blocks, blocks != 0))

    def best(self) -> FloatArray:
        """Return the best loadings after exchanges from the best few."""
        self.found.sort(key=lambda pair: pair[0])
        ends = [_exchange(self.solver, V, value, self.k) for value, V in self.found[:N_EXCHANGED]]
        return min(ends, key=lambda pair: pair[0])[1]


def _one_by_one(solver: Joint, k: int, init: str) -> FloatArray | None:
    """Return components with k features each by TPower and deflation: near, but not orthogonal.

    None when time is up before the last of them.
    """
    left = Deflation(solver.problem.covariance, "projection")
    r = solver.problem.n_components
    loadings = np.zeros((solver.problem.n_features, r))
    for j in range(r):
        if solver.monitor.out_of_time():
            return None
        run = leading_vector(
            RowSparseProblem(left.current, 1, k), init=init, rng=np.random.default_rng(0),
            monitor=solver.monitor,
        )  # fmt: skip
        loadings[:, j] = run.best.loadings(len(loadings))[:, 0]
        left.remove(loadings[:, j])
    return loadings


def _exchange(solver: Joint, V: FloatArray, value: float, k: int) -> tuple[float, FloatArray]:
    """Move to the pattern of the largest entries of SV while that helps."""
    for _ in range(MAX_EXCHANGES):
        if solver.monitor.out_of_time():
            break
        image = solver.product(V)
        trimmed = trim(np.abs(image), image, k, patience(solver.monitor))
        if trimmed is None:
            break
        W, lower = solver.descend(*trimmed, alpha=0.0)
        if lower >= value - 1e-9 * abs(value):
            break
        V, value = W, lower
    return value, V


def trim(
    scores: FloatArray, U: FloatArray, k: int, deadline: Deadline
) -> tuple[FloatArray, Mask] | None:
    """Return orthonormal loadings near U on the k best-scored features of each column.

    None if there are none: the columns are too alike.
    """
    d, r = U.shape
    mask = np.zeros((d, r), dtype=bool)
    for j in range(r):
        mask[top_k(scores[:, j], k), j] = True
    banned = np.zeros((d, r), dtype=bool)
    for _ in range(4 * r * r + 8):
        lone = _lone_overlap(mask)
        if lone is None:
            V = orthonormal_on(U, mask, deadline)
            return None if V is None else (V, mask)
        i, a, b = lone
        weaker = a if scores[i, a] < scores[i, b] else b
        banned[i, weaker] = True
        mask[i, weaker] = False
        free = np.where(mask[:, weaker] | banned[:, weaker], -np.inf, scores[:, weaker])
        new = int(np.argmax(free))
        if not np.isfinite(free[new]):
            return None
        mask[new, weaker] = True
    return None


def _lone_overlap(mask: Mask) -> tuple[int, int, int] | None:
    """Return a feature and the two columns that share it and nothing else."""
    shared = mask.astype(float).T @ mask.astype(float)
    pairs = np.argwhere(np.triu(shared == 1, 1))
    if not pairs.size:
        return None
    a, b = (int(column) for column in pairs[0])
    return int(np.flatnonzero(mask[:, a] & mask[:, b])[0]), a, b


def coordinate_blocks(scores: FloatArray, k: int) -> FloatArray:
    """Return loadings on disjoint features, or shared if there are too few: a last resort."""
    d, r = scores.shape
    V = np.zeros((d, r))
    if k * r > d:
        rows = top_k(np.linalg.norm(scores, axis=1), max(k, r))
        V[rows] = np.linalg.qr(scores[rows] + 1e-3 * np.eye(rows.size, r))[0]
        return V
    free = np.ones(d, dtype=bool)
    for j in range(r):
        rows = top_k(np.where(free, np.abs(scores[:, j]), -1.0), k)
        V[rows, j] = np.where(scores[rows, j] == 0, 1.0, scores[rows, j])
        V[:, j] /= np.linalg.norm(V[:, j])
        free[rows] = False
    return V

"""One problem for the splitting loop, and the way from its end to sparse, orthonormal loadings."""

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.selection import placed, top_k
from kspan.problem import LoadingsSolution, Patterns, StiefelProblem
from kspan.progress import Deadline, Monitor, Status
from kspan.solvers.stiefel.pattern import (
    NO_LIMIT,
    descend,
    drop_lone_overlaps,
    orthonormal_on,
    patience,
)
from kspan.solvers.stiefel.splitting import Penalty, Settings, Split, split

# Up to this many features the pattern's part of A is formed for the last descent.
PATTERN_LIMIT = 2000


class Joint:
    """One problem in units in which the largest eigenvalue of A is one."""

    def __init__(self, problem: StiefelProblem, settings: Settings, monitor: Monitor):
        self.problem, self.settings, self.monitor = problem, settings, monitor
        self.unit = float(problem.covariance.leading(1).values[0]) or 1.0
        self.penalty = Penalty(problem.penalty)
        self.history: list[float] = []

    @property
    def alpha(self) -> float:
        """α in these units."""
        return self.problem.alpha / self.unit

    def product(self, W: FloatArray) -> FloatArray:
        """Return S W."""
        return self.problem.covariance.matmat(W) / self.unit

    def run(self, begin: Split) -> Split:
        """Run the splitting loop."""
        return self.run_at(self.alpha, begin)

    def run_at(self, alpha: float, begin: Split) -> Split:
        """Run the splitting loop with another α, in these units."""
        state = split(self.product, begin, alpha, self.penalty, self.settings, self.monitor)
        self.history += state.history
        return state

    def best_start(self, state: Split) -> tuple[int, FloatArray, float]:
        """Return which start has the best sparse loadings, these, and their objective."""
        deadline = patience(self.monitor)
        points: list[FloatArray] = []
        for V, Y in zip(state.V, state.Y, strict=True):
            if not (points and deadline.passed):
                points.append(self.sparse(V, Y, deadline))
        values = [self.objective(V) for V in points]
        winner = int(np.argmin(values))
        return winner, points[winner], values[winner]

    def sparse(self, V: FloatArray, Y: FloatArray, deadline: Deadline) -> FloatArray:
        """Return orthonormal loadings near V with the zeros of Y."""
        mask = self.penalty.pattern(Y)
        for j in np.flatnonzero(~mask.any(axis=0)):
            mask[np.argmax(np.abs(V[:, j])), j] = True  # a component has at least one feature
        used = np.asarray(mask.any(axis=1))
        missing = V.shape[1] - int(used.sum())
        if missing > 0:  # orthonormal components need as many features as there are of them
            mask[top_k(np.where(used, -1.0, np.linalg.norm(V, axis=1)), missing)] = True
        rows = np.flatnonzero(mask.any(axis=1))
        return placed(on_pattern(V[rows], mask[rows], deadline), rows, len(V))

    def objective(self, V: FloatArray) -> float:
        """Return -½tr(V'SV) + αΩ(V)."""
        rows = np.flatnonzero(V.any(axis=1))
        W = V[rows]
        image = self.problem.covariance.matmat(W, rows)[rows] / self.unit
        return float(self.alpha * self.penalty.value(W) - 0.5 * np.sum(W * image))

    def descend(self, V: FloatArray, mask: Mask, alpha: float) -> tuple[FloatArray, float]:
        """Lower the objective within a pattern."""
        rows = np.flatnonzero(mask.any(axis=1))
        part = self.problem.covariance.restrict(rows)
        if rows.size <= PATTERN_LIMIT:
            S = part.submatrix(np.arange(rows.size)) / self.unit
            W, value = descend(
                lambda W: S @ W, V[rows], mask[rows], alpha, self.penalty, monitor=self.monitor
            )
        else:
            W, value = descend(
                lambda W: part.matmat(W) / self.unit, V[rows], mask[rows], alpha, self.penalty,
                max_iter=5, monitor=self.monitor,
            )  # fmt: skip
        return placed(W, rows, len(V)), value

    def answer(self, V: FloatArray, status: Status, solver: str) -> LoadingsSolution:
        """Sort the components by variance and dress them up; the history is in data units."""
        rows = np.flatnonzero(V.any(axis=1))
        gram = V[rows].T @ self.problem.covariance.matmat(V[rows], rows)[rows]
        if self.penalty.kind == "l21" and V[rows].all():
            # Only the span is determined: row lengths do not change when it is turned.
            values, turn = np.linalg.eigh((gram + gram.T) / 2)
            V, gram = V @ turn, np.diag(values)
        order = order_of(np.diagonal(gram), self.problem.patterns)
        return LoadingsSolution.from_loadings(
            V[:, order], gram[np.ix_(order, order)], solver=solver, status=status,
            history=[value * self.unit for value in self.history], n_iter=len(self.history),
        )  # fmt: skip


def order_of(variances: FloatArray, patterns: Patterns | None) -> Index:
    """Return the components by variance, the largest first; those with other limits stay apart."""
    limits = np.zeros(variances.size) if patterns is None else patterns.limits
    order = np.arange(variances.size)
    for limit in np.unique(limits):
        alike = np.flatnonzero(limits == limit)
        order[alike] = alike[np.argsort(-variances[alike], kind="stable")]
    return order


def on_pattern(U: FloatArray, mask: Mask, deadline: Deadline = NO_LIMIT) -> FloatArray:
    """Return orthonormal loadings near U within a pattern, or within a slightly smaller one.

    Where Newton's method finds none, whole rows of the pattern are used: that always works when
    there are at least r of them, and if not, unit vectors are the last resort.
    """
    d, r = U.shape
    for trial in (mask, drop_lone_overlaps(U, mask)):
        V = orthonormal_on(U, trial, deadline)
        if V is not None:
            return np.where(trial, V, 0.0)
    rows = np.broadcast_to(mask.any(axis=1, keepdims=True), mask.shape)
    V = orthonormal_on(U, rows) if rows[:, 0].sum() >= r else None
    return V if V is not None else np.eye(d, r)

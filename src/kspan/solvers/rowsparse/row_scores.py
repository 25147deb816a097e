r"""One view of IPU, SOAP, SRT and TPower: score the rows of AW, keep the k best, fit W on them.

With :math:`B = AW`, each gives row i the score :math:`b_i M b_i'`; only M and what is put on the
k best rows differ.

============  =================================  ==============================
method        M                                  new W on the chosen rows
============  =================================  ==============================
IPU           :math:`(W'AW)^\dagger`             leading eigenvectors of A there
SOAP          :math:`(W'A^2W)^{-1}`              orthonormal basis of B there
SRT, TPower   identity                           orthonormal basis of B there
============  =================================  ==============================

A `RowRule` is such a choice; this module applies it to a batch of candidates, with one product
with A for all of them, and runs it from any start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.problem.problems import STACK_LIMIT
from kspan.progress import Monitor, Status
from kspan.solvers.loop import Run, iterate
from kspan.solvers.method import RowSparseMethod, checked, counted
from kspan.solvers.rowsparse.fps import convex_candidate
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.shifts import require_lift
from kspan.solvers.starts import STARTS, Init, given_subspace, random_subspace, variance_subspace

# A product of a batch has at most so many entries: it cannot be stopped.
PRODUCT_ENTRIES = 1 << 22


@dataclass(frozen=True)
class RowRule:
    """What distinguishes the methods of this family.

    Attributes
    ----------
    score : ``(B, values) -> scores``, where B = AW and W'B = diag(values)
    refits : whether the new W is the best one on the chosen rows, or just a basis of B there.
        With it the objective never decreases.
    """

    score: Callable[[FloatArray, FloatArray], FloatArray]
    refits: bool


def step(
    problem: RowSparseProblem,
    rule: RowRule,
    batch: Sequence[Candidate],
    monitor: Monitor,
    shift: float = 0.0,
) -> list[Candidate]:
    """Move every candidate one step; fewer when time is up. One product with A serves many."""
    size, moved = _share(problem, batch), list[Candidate]()
    for first in range(0, len(batch), size):
        if not (moved and monitor.out_of_time()):
            part = batch[first : first + size]
            moved += _step_at_once(problem, rule, part, monitor, shift)
    return moved


def _step_at_once(
    problem: RowSparseProblem,
    rule: RowRule,
    batch: Sequence[Candidate],
    monitor: Monitor,
    shift: float,
) -> list[Candidate]:
    m = problem.n_components
    union = np.unique(np.concatenate([candidate.support for candidate in batch]))
    stacked = np.zeros((union.size, m * len(batch)))
    for i, candidate in enumerate(batch):
        rows = np.searchsorted(union, candidate.support)
        stacked[rows, i * m : (i + 1) * m] = candidate.weights
    products = np.hsplit(problem.covariance.matmat(stacked, union), len(batch))
    if shift:
        products = [product.copy() for product in products]
        for candidate, B in zip(batch, products, strict=True):
            B[candidate.support] += shift * candidate.weights
    # W'AW is diagonal: W holds principal axes.
    values = [candidate.variances + shift for candidate in batch]
    return _move(problem, rule, products, values, monitor)


def from_subspaces(
    problem: RowSparseProblem,
    rule: RowRule,
    subspaces: Sequence[FloatArray],
    monitor: Monitor,
    shift: float = 0.0,
) -> list[Candidate]:
    """Return the first feasible point from each orthonormal W, not sparse in general.

    At least one; fewer than there are subspaces when time is up.
    """
    size, moved = _share(problem, subspaces), list[Candidate]()
    for first in range(0, len(subspaces), size):
        if moved and monitor.out_of_time():
            break
        part = subspaces[first : first + size]
        products = problem.covariance.matmat(np.hstack(part))
        rotated, values = [], []
        for W, B in zip(part, np.hsplit(products, len(part)), strict=True):
            B = B + shift * W
            G = W.T @ B
            ritz, rotation = np.linalg.eigh((G + G.T) / 2)
            rotated.append(B @ rotation)
            values.append(ritz)
        moved += _move(problem, rule, rotated, values, monitor)
    return moved


def _share(problem: RowSparseProblem, batch: Sequence[object]) -> int:
    """Return how many of a batch share a product with A."""
    most = PRODUCT_ENTRIES // (problem.n_features * problem.n_components)
    return min(max(most, 1), len(batch))


def _move(
    problem: RowSparseProblem,
    rule: RowRule,
    products: Sequence[FloatArray],
    values: Sequence[FloatArray],
    monitor: Monitor,
) -> list[Candidate]:
    """Return the next candidates; small ones all at once, large ones until time is up."""
    size = len(products) if problem.choice.size <= STACK_LIMIT else 1
    moved: list[Candidate] = []
    for first in range(0, len(products), size):
        if moved and monitor.out_of_time():
            break
        part = products[first : first + size]
        scores = map(rule.score, part, values[first : first + size])
        supports: list[Index] = [problem.select(each) for each in scores]
        if rule.refits:
            moved += problem.refit_all(supports)
        else:
            bases = [B[support] for B, support in zip(part, supports, strict=True)]
            moved += problem.on_spans(supports, bases)
    return moved


def starting_points(
    problem: RowSparseProblem,
    rule: RowRule,
    init: Init,
    *,
    rng: np.random.Generator,
    n_restarts: int = 1,
    shift: float = 0.0,
    monitor: Monitor,
) -> list[Candidate]:
    """Return the feasible points that a start stands for: one, or one for each restart."""
    if not isinstance(init, str):
        subspaces = [given_subspace(problem, init)]
    elif init == "low-rank":
        return [low_rank_candidate(problem, shift=shift)]
    elif init == "convex":
        return [convex_candidate(problem, monitor)]
    elif init == "variance":
        subspaces = [variance_subspace(problem)]
    else:
        d, m = problem.n_features, problem.n_components
        subspaces = [random_subspace(d, m, rng) for _ in range(n_restarts)]
    return from_subspaces(problem, rule, subspaces, monitor, shift)


def run_rule(
    problem: RowSparseProblem,
    rule: RowRule,
    first: Sequence[Candidate],
    *,
    max_iter: int,
    monitor: Monitor,
    shift: float = 0.0,
) -> Run:
    """Iterate a rule from a batch of candidates."""
    return iterate(
        first,
        lambda batch: step(problem, rule, batch, monitor, shift),
        max_iter=max_iter,
        monitor=monitor,
        monotone=rule.refits,
    )


@dataclass(frozen=True, eq=False)
class RestartedMethod(RowSparseMethod):
    """A method that goes up from a start, or from several random ones.

    Attributes
    ----------
    own_start : where it starts unless told
    """

    own_start: ClassVar[str] = "low-rank"
    starts = STARTS

    init: Init | None = None
    n_restarts: int = counted(1, least=1)

    @property
    def start(self) -> Init:
        """Where it starts: as told, at random for several restarts, or as the method does."""
        if self.init is None:
            return "random" if self.n_restarts > 1 else self.own_start
        if self.n_restarts > 1 and not (isinstance(self.init, str) and self.init == "random"):
            raise ValueError("n_restarts needs init='random': other starts are always the same.")
        return self.init

    def check_options(self) -> None:
        """Restarts go with random starts."""
        _ = self.start


@dataclass(frozen=True, eq=False)
class RowRuleMethod(RestartedMethod):
    """A method that runs a rule from a start, or from the best of several random ones."""

    rule: ClassVar[RowRule]

    max_iter: int = counted(200, least=0)
    shift: float = checked(0.0, require_lift)

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Iterate the rule; the best point on the way counts."""
        try:
            first = starting_points(
                problem, self.rule, self.start, rng=rng, n_restarts=self.n_restarts,
                shift=self.shift, monitor=monitor,
            )  # fmt: skip
        except KeyboardInterrupt:
            # Not even a start yet: Go's solution, which costs next to nothing.
            monitor.stopped = Status.INTERRUPTED
            first = [low_rank_candidate(problem, shift=self.shift)]
        run = run_rule(
            problem, self.rule, first, max_iter=self.max_iter, monitor=monitor, shift=self.shift
        )
        return Solution.from_candidate(
            run.best, n_features=problem.n_features, solver=self.name, status=run.status,
            history=run.history, n_iter=run.n_iter,
        )  # fmt: skip


def row_norms(B: FloatArray) -> FloatArray:
    """Return the lengths of the rows, relative to the largest entry so that all stay in range."""
    size = np.abs(B).max(initial=0.0)
    if size == 0:
        return np.zeros(B.shape[0])
    lengths: FloatArray = np.linalg.norm(B / size, axis=1)
    return lengths

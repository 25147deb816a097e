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

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Candidate, Solution
from kspan.solvers.loop import Run, iterate
from kspan.solvers.rowsparse.fps import convex_candidate
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.starts import Init, given_subspace, random_subspace, variance_subspace


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
    problem: RowSparseProblem, rule: RowRule, batch: Sequence[Candidate], shift: float = 0.0
) -> list[Candidate]:
    """Move every candidate one step. One product with A serves the whole batch."""
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
    return _move(problem, rule, products, [candidate.variances + shift for candidate in batch])


def from_subspaces(
    problem: RowSparseProblem,
    rule: RowRule,
    subspaces: Sequence[FloatArray],
    shift: float = 0.0,
) -> list[Candidate]:
    """Return the first feasible point from each orthonormal W, not sparse in general."""
    products = problem.covariance.matmat(np.hstack(subspaces))
    rotated, values = [], []
    for W, B in zip(subspaces, np.hsplit(products, len(subspaces)), strict=True):
        B = B + shift * W
        G = W.T @ B
        ritz, rotation = np.linalg.eigh((G + G.T) / 2)
        rotated.append(B @ rotation)
        values.append(ritz)
    return _move(problem, rule, rotated, values)


def _move(
    problem: RowSparseProblem,
    rule: RowRule,
    products: Sequence[FloatArray],
    values: Sequence[FloatArray],
) -> list[Candidate]:
    supports: list[Index] = [
        problem.select(rule.score(B, ritz)) for B, ritz in zip(products, values, strict=True)
    ]
    if rule.refits:
        return problem.refit_all(supports)
    bases = [B[support] for B, support in zip(products, supports, strict=True)]
    return problem.on_spans(supports, bases)


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
    require_count("n_restarts", n_restarts, 1)
    if n_restarts > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError("n_restarts needs init='random': other starts are always the same.")
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
    return from_subspaces(problem, rule, subspaces, shift)


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
        lambda batch: step(problem, rule, batch, shift),
        max_iter=max_iter,
        monitor=monitor,
        monotone=rule.refits,
    )


def solve_by_rule(
    problem: RowSparseProblem,
    rule: RowRule,
    name: str,
    *,
    init: Init,
    rng: np.random.Generator,
    n_restarts: int,
    max_iter: int,
    shift: float,
    callback: Callback | None,
    time_limit: float | None,
) -> Solution:
    """Run a rule from a start, or from the best of several random ones, to a `Solution`."""
    if not (np.isfinite(shift) and shift >= 0):
        raise ValueError(f"shift must be a finite number, 0 or more, got {shift!r}.")
    monitor = Monitor(name, callback, time_limit)
    try:
        first = starting_points(
            problem, rule, init, rng=rng, n_restarts=n_restarts, shift=shift, monitor=monitor
        )
    except KeyboardInterrupt:
        # Not even a start yet: Go's solution, which costs next to nothing.
        monitor.stopped = Status.INTERRUPTED
        first = [low_rank_candidate(problem, shift=shift)]
    run = run_rule(problem, rule, first, max_iter=max_iter, monitor=monitor, shift=shift)
    return Solution.from_candidate(
        run.best, n_features=problem.n_features, solver=name, status=run.status,
        history=run.history, n_iter=run.n_iter,
    )  # fmt: skip


def row_norms(B: FloatArray) -> FloatArray:
    """Return the lengths of the rows, relative to the largest entry so that all stay in range."""
    size = np.abs(B).max(initial=0.0)
    if size == 0:
        return np.zeros(B.shape[0])
    lengths: FloatArray = np.linalg.norm(B / size, axis=1)
    return lengths

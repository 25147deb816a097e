r"""IPU: iterative proxy update, a monotone ascent for the row-sparse problem.

.. math:: P_t = A W_t (W_t' A W_t)^\dagger W_t' A, \quad
          I = \text{top}_k\,\mathrm{diag}(P_t), \quad W_{t+1} = \mathrm{eig}_m(A_{II})

P_t has rank m and lies below A, with equality on the span of W_t, so the best support for P_t
(which Go finds exactly) is at least as good for A. Only the diagonal of P_t is computed.

Cost: O(dkm + k³) a step for a covariance. Passes over the data: three a step (scores, back,
and the k new columns).

Guarantee: the objective never decreases (Theorem 5.5); the subspace converges (Theorem 5.8).

Reference: Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020,
Algorithm 2 and footnote 3.

Differs from the paper in: it stops when the support repeats, which is when the paper's
``W_t = W_{t-1}`` holds; the shift A + εI (ε = 0.1 there) is off by default, as what it does
depends on the scale of the data.
"""

from collections.abc import Sequence

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import RowSparseProblem
from kspan.progress import Callback, Monitor
from kspan.solution import Candidate, Solution
from kspan.solvers.loop import iterate
from kspan.solvers.rowsparse.go import low_rank_candidate
from kspan.solvers.starts import Init, given_subspace, random_subspace


def ipu(
    problem: RowSparseProblem,
    *,
    init: Init = "low-rank",
    rng: np.random.Generator,
    max_iter: int = 20,
    shift: float = 0.0,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Solve by Algorithm 2 from one start.

    Parameters
    ----------
    problem : RowSparseProblem
    init : {"low-rank", "random"} or (d, m) array
        Go's solution, a random subspace, or a subspace to start from.
    rng : numpy.random.Generator
        Used by the random start only.
    max_iter : int
    shift : float
        ε of the paper: choose features by A + εI. The objective is always that of A.
    callback, time_limit : see `kspan.progress`
    """
    monitor = Monitor("ipu", callback, time_limit)
    if isinstance(init, str) and init == "low-rank":
        first = low_rank_candidate(problem, shift=shift)
    elif isinstance(init, str):
        W = random_subspace(problem.n_features, problem.n_components, rng)
        first = from_subspaces(problem, [W], shift)[0]
    else:
        first = from_subspaces(problem, [given_subspace(problem, init)], shift)[0]
    run = iterate(
        [first], lambda batch: step(problem, batch, shift), max_iter=max_iter, monitor=monitor
    )
    return Solution.from_candidate(
        run.best, n_features=problem.n_features, solver="ipu", status=run.status,
        history=run.history, n_iter=run.n_iter,
    )  # fmt: skip


def step(
    problem: RowSparseProblem, batch: Sequence[Candidate], shift: float = 0.0
) -> list[Candidate]:
    """Move every candidate one step. One product with A serves the whole batch."""
    if len(batch) == 1:
        union, stacked = batch[0].support, batch[0].weights
    else:
        union = np.unique(np.concatenate([candidate.support for candidate in batch]))
        m = problem.n_components
        stacked = np.zeros((union.size, m * len(batch)))
        for i, candidate in enumerate(batch):
            rows = np.searchsorted(union, candidate.support)
            stacked[rows, i * m : (i + 1) * m] = candidate.weights
    products = problem.covariance.matmat(stacked, union)
    moved = []
    for candidate, B in zip(batch, np.hsplit(products, len(batch)), strict=True):
        B = B.copy() if shift else B
        if shift:
            B[candidate.support] += shift * candidate.weights
        # W'AW is diagonal: W holds principal axes.
        scores = proxy_diagonal(B, candidate.variances + shift)
        moved.append(problem.refit(problem.select(scores)))
    return moved


def from_subspaces(
    problem: RowSparseProblem, subspaces: Sequence[FloatArray], shift: float = 0.0
) -> list[Candidate]:
    """Return the first feasible point from each orthonormal W, not sparse in general."""
    products = problem.covariance.matmat(np.hstack(subspaces))
    candidates = []
    for W, B in zip(subspaces, np.hsplit(products, len(subspaces)), strict=True):
        B = B + shift * W
        G = W.T @ B
        values, rotation = np.linalg.eigh((G + G.T) / 2)
        scores = proxy_diagonal(B @ rotation, values)
        candidates.append(problem.refit(problem.select(scores)))
    return candidates


def proxy_diagonal(B: FloatArray, values: FloatArray) -> FloatArray:
    """Return the diagonal of ``B diag(values)^† B'``, where B = AW and W'B = diag(values)."""
    cutoff = np.finfo(float).eps * B.shape[0] * values.max(initial=0.0)
    kept = values > cutoff
    # Dividing before squaring keeps huge and tiny scales in range.
    scaled = B[:, kept] / np.sqrt(values[kept])
    diagonal: FloatArray = np.einsum("ij,ij->i", scaled, scaled)
    return diagonal

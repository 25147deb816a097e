r"""SRT: power iteration on a subspace in which only the k longest rows survive.

.. math:: S = A W_t, \quad I = \text{top}_k \|S_{i:}\|, \quad
          W_{t+1} = \mathrm{qf}(S_{I:}) \text{ on } I, \text{ zero elsewhere}

Two forms. Offline, A is the covariance of all samples and the steps are repeated. Streaming, each
step takes the covariance of the next block of samples, so that the data is read once and O(dm)
numbers are kept; the first blocks are used without truncation, as a start.

Cost: O(dkm) a step for a covariance. Passes over the data: offline two a step, and one over the k
new columns of each start, for the objective alone; streaming one in all, and one more over the k
chosen columns at the end.

Guarantee: none on the objective, which may fall. Under a spiked model the streaming form
converges to the sparse subspace.

Reference: Yang, Xu, Streaming Sparse Principal Component Analysis, ICML 2015.

Differs from the paper in: offline, it returns its best iterate and not the last one, and stops
when the subspace no longer moves. Streaming, the share of blocks without truncation is a number
and not an accuracy, as the accuracy cannot be known; the row parameter is k itself; the mean of
the data is known beforehand.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Solution
from kspan.solvers.rowsparse.row_scores import RowRule, row_norms, solve_by_rule
from kspan.solvers.starts import Init, random_subspace


def srt(
    problem: RowSparseProblem,
    *,
    init: Init = "low-rank",
    rng: np.random.Generator,
    n_restarts: int = 1,
    max_iter: int = 200,
    shift: float = 0.0,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Solve by the offline form; returns the best iterate, as it is not monotone.

    Parameters
    ----------
    problem : RowSparseProblem
    init, rng, n_restarts : see `kspan.solvers.rowsparse.ipu.ipu`
    max_iter : int
    shift : float
        Iterate with A + shift·I. The objective is always that of A.
    callback, time_limit : see `kspan.progress`
    """
    return solve_by_rule(
        problem, SRT, "srt", init=init, rng=rng, n_restarts=n_restarts, max_iter=max_iter,
        shift=shift, callback=callback, time_limit=time_limit,
    )  # fmt: skip


def streaming_srt(
    problem: RowSparseProblem,
    *,
    rng: np.random.Generator,
    block_size: int | None = None,
    warm_up: float = 0.25,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Solution:
    """Solve in one pass over the rows of the data.

    Parameters
    ----------
    problem : RowSparseProblem
        Its covariance must come from data.
    rng : numpy.random.Generator
        For the random subspace it starts from.
    block_size : int, optional
        Samples in a step. By default about k log d, but at most an eighth of the samples.
    warm_up : float
        Share of the blocks that are used without truncation.
    callback, time_limit : see `kspan.progress`
        Reports carry NaN as the objective: knowing it would take another pass.
    """
    monitor = Monitor("streaming-srt", callback, time_limit)
    covariance = problem.covariance
    d, m, k = problem.n_features, problem.n_components, problem.n_features_to_select
    n = covariance.n_samples or 1
    if block_size is None:
        block_size = max(min(int(np.ceil(k * np.log(d + 1))), n // 8), m, 1)
    require_count("block_size", block_size, 1)
    if not 0 <= warm_up <= 1:
        raise ValueError(f"warm_up must be a share between 0 and 1, got {warm_up}.")
    n_warm = int(warm_up * max(1, n // block_size))
    nothing = np.finfo(float).eps * float(covariance.diagonal().max())
    W = random_subspace(d, m, rng)
    S, n_iter, status = W, 0, Status.COMPLETED
    try:
        for block in covariance.row_blocks(block_size):
            n_iter += 1
            product = block.matmat(W)
            if np.abs(product).max() > nothing:  # rows at the mean tell nothing
                S = product
                W = _basis(S)
                if n_iter > n_warm:
                    support = problem.select(row_norms(S))
                    W = np.zeros((d, m))
                    W[support] = _basis(S[support])
            if monitor.report(float("nan")):
                status = monitor.stopped or status
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    support = problem.select(row_norms(S))
    best = problem.on_span(support, S[support])
    return Solution.from_candidate(
        best, n_features=d, solver="streaming-srt", status=status, history=[best.objective],
        n_iter=n_iter,
    )  # fmt: skip


def _basis(S: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns, whatever their scale."""
    return np.linalg.qr(S / (np.abs(S).max(initial=0.0) or 1.0))[0]


def _lengths(B: FloatArray, values: FloatArray) -> FloatArray:
    return row_norms(B)


SRT = RowRule(score=_lengths, refits=False)

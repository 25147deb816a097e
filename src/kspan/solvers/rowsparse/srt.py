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

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.problem import RowSparseProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RowSparseMethod, counted
from kspan.solvers.rowsparse.row_scores import RowRule, RowRuleMethod, row_norms
from kspan.solvers.starts import random_subspace


def _lengths(B: FloatArray, values: FloatArray) -> FloatArray:
    return row_norms(B)


LENGTH = RowRule(score=_lengths, refits=False)


@dataclass(frozen=True, eq=False)
class SRT(RowRuleMethod):
    """The offline form; returns the best iterate, as it is not monotone.

    Parameters
    ----------
    init, n_restarts : see `~kspan.solvers.rowsparse.ipu.IPU`
    max_iter : int
    shift : float
        Iterate with A + shift·I. The objective is always that of A.
    """

    name = "srt"
    summary = "orthogonal iteration that keeps the k longest rows"
    reference = "Yang, Xu, ICML 2015"
    rule = LENGTH


@dataclass(frozen=True, eq=False)
class StreamingSRT(RowSparseMethod):
    """The streaming form: one pass over the rows of the data, which must be there.

    Reports carry NaN as the objective: knowing it would take another pass.

    Parameters
    ----------
    block_size : int, optional
        Samples in a step. By default about k log d, but at most an eighth of the samples.
    warm_up : float
        Share of the blocks that are used without truncation.
    """

    name = "streaming-srt"
    summary = "SRT on one block of samples after the other: for data to be read only once"
    reference = "Yang, Xu, ICML 2015"

    block_size: int | None = counted(None, least=1)
    warm_up: float = 0.25

    def check_options(self) -> None:
        """The warm-up is a share."""
        if not 0 <= self.warm_up <= 1:
            raise ValueError(f"warm_up must be a share between 0 and 1, got {self.warm_up}.")

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Take one step for each block; the random subspace it starts from is all that is drawn."""
        covariance = problem.covariance
        d, m = problem.n_features, problem.n_components
        block_size, n_warm = self._blocks(problem)
        nothing = np.finfo(float).eps * float(covariance.diagonal().max())
        W = random_subspace(d, m, rng)
        S, n_iter = W, 0
        with monitor.interruptible():
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
                    break
        support = problem.select(row_norms(S))
        best = problem.on_span(support, S[support])
        return Solution.from_candidate(
            best, n_features=d, solver=self.name, status=monitor.stopped or Status.COMPLETED,
            history=[best.objective], n_iter=n_iter,
        )  # fmt: skip

    def _blocks(self, problem: RowSparseProblem) -> tuple[int, int]:
        """Return the number of samples in a block, and of blocks without truncation."""
        n, size = problem.covariance.n_samples or 1, self.block_size
        if size is None:
            wanted = int(np.ceil(problem.choice.size * np.log(problem.n_features + 1)))
            size = max(min(wanted, n // 8), problem.n_components, 1)
        return size, int(self.warm_up * max(1, n // size))


def _basis(S: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns, whatever their scale."""
    return np.linalg.qr(S / (np.abs(S).max(initial=0.0) or 1.0))[0]

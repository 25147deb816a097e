r"""Auto: many starts, monotone ascent on A itself, then pair swaps.

.. math:: \max_x x'Ax \quad \|x\|_2 = 1,\; x \ge 0,\; \|x\|_0 \le k

Steps: (1) starts from a net of directions in the leading eigenspace (`epsilon_net.py`), from both
signs of every leading eigenvector, from the features of largest variance, and random ones, as EM
has. (2) From each up to a local maximum of x'Ax (`ascent.py`), all at once. (3) Pair swaps from the
best.

Cost: as many ascents as starts, O(dk) a step and start for a covariance. Passes over the data:
those of the eigenpairs, then two a step for all starts together.

Guarantee: at least what the ε-net guarantees. How good it is says a certificate.

Not from a paper.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import UnitCovariance
from kspan.linalg.selection import top_k
from kspan.problem import NonnegativeProblem
from kspan.progress import Monitor, Status
from kspan.solvers.method import counted
from kspan.solvers.nonnegative.ascent import ascend
from kspan.solvers.nonnegative.epsilon_net import NetMethod, scan_net
from kspan.solvers.one_by_one import Component

# Candidates of the net that are starts, features of largest variance, and local maxima from
# which swaps are tried.
N_NET, N_VARIANCE, N_SWAPPED = 20, 10, 4


@dataclass(frozen=True, eq=False)
class NonnegativeAuto(NetMethod):
    """Nonnegative sparse components by ascents from many starts.

    Parameters
    ----------
    deflation : {"remove", "projection", "orthogonalized"}
    rank, epsilon : of the net, see `~kspan.solvers.nonnegative.epsilon_net.Net`
    n_restarts : int
        Random starts.
    """

    name = "auto"
    summary = (
        "ascents on A from many starts (a net, eigenvectors, columns, random), then pair swaps"
    )
    guarantee = "at least that of `net`"
    reference = "this project"

    n_restarts: int = counted(20, least=0)

    def find(
        self, left: UnitCovariance, problem: NonnegativeProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Ascend from all starts, then swap from the best."""
        k = problem.n_nonzero_coefs
        climbed = ascend(left, self._starts(left, k, monitor, rng), k, monitor=monitor)
        order = np.argsort(-climbed.values, kind="stable")
        _, first = np.unique(climbed.values[order].round(12), return_index=True)
        best = order[np.sort(first)[:N_SWAPPED]]
        swapped = ascend(left, climbed.vectors[:, best], k, swaps=True, monitor=monitor)
        done = climbed.converged and swapped.converged
        return Component(
            swapped.best,
            climbed.history + swapped.history,
            climbed.n_iter + swapped.n_iter,
            Status.COMPLETED if done else monitor.stopped or Status.MAX_ITER,
        )

    def _starts(
        self, left: UnitCovariance, k: int, monitor: Monitor, rng: np.random.Generator
    ) -> FloatArray:
        """Return the starts in the columns."""
        n = left.n_features
        V, C = self.net(left, rng)
        scanned = scan_net(V, [k], C, n_best=N_NET, monitor=monitor)[0].vectors
        largest = top_k(left.diagonal(), min(N_VARIANCE, n))
        return np.hstack([
            scanned, np.maximum(V, 0.0), np.maximum(-V, 0.0),
            np.maximum(left.columns(largest), 0.0),
            np.abs(rng.standard_normal((n, self.n_restarts))),
        ])  # fmt: skip

r"""Auto: many starts, monotone ascent on A itself, then pair swaps.

.. math:: \max_x x'Ax \quad \|x\|_2 = 1,\; x \ge 0,\; \|x\|_0 \le k

Steps: (1) starts from a net of directions in the leading eigenspace (`net.py`), from both signs of
every leading eigenvector, from the features of largest variance, and random ones, as EM has. (2)
From each up to a local maximum of x'Ax (`ascent.py`), all at once. (3) Pair swaps from the best.

Cost: as many ascents as starts, O(dk) a step and start for a covariance. Passes over the data:
those of the eigenpairs, then two a step for all starts together.

Guarantee: at least what the ε-net guarantees. How good it is says a certificate.

Not from a paper.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.linalg.net import direction_count, net_directions
from kspan.linalg.selection import top_k
from kspan.problem import NonnegativeProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import Component
from kspan.solvers.low_rank import low_rank_factor
from kspan.solvers.nonnegative.ascent import ascend
from kspan.solvers.nonnegative.components import one_by_one
from kspan.solvers.nonnegative.net import scan_net

# Candidates of the net that are starts, features of largest variance, and local maxima from
# which swaps are tried.
N_NET, N_VARIANCE, N_SWAPPED = 20, 10, 4


def auto(
    problem: NonnegativeProblem,
    *,
    rank: int = 3,
    epsilon: float = 0.1,
    n_restarts: int = 20,
    rng: np.random.Generator,
    deflation: str = "remove",
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m nonnegative sparse components by ascents from many starts.

    Parameters
    ----------
    problem : NonnegativeProblem
    rank, epsilon : of the net, see `net`
    n_restarts : int
        Random starts.
    rng : numpy.random.Generator
        Draws them, and the directions of the net.
    deflation : {"remove", "projection", "orthogonalized"}
    callback, time_limit : see `kspan.progress`
    """
    require_count("rank", rank, 1)
    require_count("n_restarts", n_restarts, 0)
    n, k = problem.n_features, problem.n_nonzero_coefs
    rank = min(rank, n)
    direction_count(epsilon, rank, 1 / max(n, 2))  # raises before any work is done

    def find(covariance: Covariance, start: FloatArray | None, monitor: Monitor) -> Component:
        V = low_rank_factor(covariance, rank)
        count = direction_count(epsilon, V.shape[1], 1 / max(n, 2))
        C = net_directions(V.shape[1], count, rng)
        scanned = scan_net(V, [k], C, n_best=N_NET, monitor=monitor)[0].vectors
        largest = top_k(covariance.diagonal(), min(N_VARIANCE, n))
        starts = np.hstack([
            scanned, np.maximum(V, 0.0), np.maximum(-V, 0.0),
            np.maximum(covariance.columns(largest), 0.0),
            np.abs(rng.standard_normal((n, n_restarts))),
        ])  # fmt: skip
        climbed = ascend(covariance, starts, k, monitor=monitor)
        order = np.argsort(-climbed.values, kind="stable")
        _, first = np.unique(climbed.values[order].round(12), return_index=True)
        best = order[np.sort(first)[:N_SWAPPED]]
        swapped = ascend(covariance, climbed.vectors[:, best], k, swaps=True, monitor=monitor)
        done = climbed.converged and swapped.converged
        return Component(
            swapped.best,
            climbed.history + swapped.history,
            climbed.n_iter + swapped.n_iter,
            Status.COMPLETED if done else monitor.stopped or Status.MAX_ITER,
        )

    return one_by_one(
        problem, find, name="auto", deflation=deflation, callback=callback, time_limit=time_limit
    )

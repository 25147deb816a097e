r"""Spannogram: the optimum of the best approximation of low rank, by enumeration.

.. math:: \max_x x'A_d x \quad \|x\| = 1,\; x \ge 0,\; \|x\|_0 \le k,
   \qquad A_d = VV' = \sum_{i \le d} λ_i u_i u_i'

The supports that an optimum may have are those of the k largest positive entries of Vc, for all
directions c in d dimensions; they are next to the directions at which d of the features (or zero)
are tied. `kspan.linalg.spannogram` has the enumeration, and the proof.

Cost: :math:`O(n^d \log n)` for n features if nothing can be ruled out. As a rule almost all of them
are ruled out at once, and thousands of features at rank 3 take well under a second. Passes over the
data: those of d eigenvectors.

Guarantee: each x is optimal for :math:`A_d`, A being what the components before have left. With
:math:`\tilde A = A - A_d`, any feasible y has

.. math:: y'Ay \le y'A_dy + y'\tilde Ay \le x'A_dx + λ_{d+1},

so x is optimal when A has rank d, and :math:`x'Ax \ge \mathrm{OPT} - λ_{d+1}`.

Reference: Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML
2014, algorithms 1 and 2.

Differs from the paper in: supports at vertices where the tied value is zero are complete, which
they are not in algorithm 2 as printed; features are ruled out by a bound before the enumeration.
"""

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.linalg.spannogram import LowRankOptimum, Report, enumerate_supports, prepare
from kspan.problem import NonnegativeProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import Component
from kspan.solvers.elementsparse.spannogram import require_affordable
from kspan.solvers.low_rank import low_rank_factor
from kspan.solvers.nonnegative.components import one_by_one


def spannogram(
    problem: NonnegativeProblem,
    *,
    rank: int = 3,
    eliminate: bool = True,
    max_vertices: int | None = 50_000_000,
    deflation: str = "remove",
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m nonnegative components, each optimal for what is left of A at a low rank.

    Parameters
    ----------
    problem : NonnegativeProblem
    rank : int
        d. The variance beyond the d leading directions is not seen by the search.
    eliminate : bool
        Rule out features before the enumeration. Without it every vertex is visited.
    max_vertices : int or None
        Refuse, with `ValueError`, to enumerate more than this.
    deflation : {"remove", "projection", "orthogonalized"}
    callback, time_limit : see `kspan.progress`
        Reports during the enumeration tell the variance in the d leading directions only.
    """
    require_count("rank", rank, 1)
    if max_vertices is not None:
        require_count("max_vertices", max_vertices, 1)

    def find(covariance: Covariance, start: FloatArray | None, monitor: Monitor) -> Component:
        V = low_rank_factor(covariance, rank)
        best = spannogram_component(
            V, problem.n_nonzero_coefs, eliminate=eliminate, max_vertices=max_vertices,
            report=monitor.report,
        )  # fmt: skip
        vector = np.zeros(problem.n_features)
        vector[best.support] = best.weights
        product = covariance.matmat(best.weights[:, None], best.support)[:, 0]
        variance = float(vector @ product)
        status = Status.COMPLETED
        if best.complete:
            monitor.report(variance)
        else:  # if nobody asked to stop, it was the keyboard
            status = monitor.stopped = monitor.stopped or Status.INTERRUPTED
        return Component(vector, [variance], 1, status)

    return one_by_one(
        problem, find, name="spannogram", deflation=deflation, callback=callback,
        time_limit=time_limit,
    )  # fmt: skip


def spannogram_component(
    V: FloatArray,
    k: int,
    *,
    eliminate: bool = True,
    max_vertices: int | None = 50_000_000,
    report: Report | None = None,
) -> LowRankOptimum:
    """Find the unit vector x ≥ 0 with at most k entries and the largest x'VV'x.

    Parameters
    ----------
    V : (n, d) array
    k : number of entries, at most
    eliminate, max_vertices : as in `spannogram`
    report : told the best value so far; it stops the search by returning True

    Returns
    -------
    LowRankOptimum
        Support, weights, value, and whether the value is proved to be the largest.

    Examples
    --------
    >>> import numpy as np
    >>> V = np.array([[1.0, 0.0], [0.5, 0.8], [-0.5, 0.9], [0.3, -2.0]])
    >>> best = spannogram_component(V, 2)
    >>> best.support, round(best.value, 3), best.complete
    (array([0, 3]), 4.119, True)
    """
    task = prepare(V, k, eliminate=eliminate, report=report)
    require_affordable(
        task.n_vertices, task.seconds, max_vertices, n_features=int(task.free.sum()),
        rank=task.V.shape[1], other="solver='net'",
    )  # fmt: skip
    return enumerate_supports(task, report=report)

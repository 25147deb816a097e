r"""Spannogram: the optimum of the best approximation of low rank, by enumeration.

.. math:: \max_x x'A_d x \quad \|x\| = 1,\; x \ge 0,\; \|x\|_0 \le k,
   \qquad A_d = VV' = \sum_{i \le d} λ_i u_i u_i'

The supports that an optimum may have are those of the k largest positive entries of Vc, for all
directions c in d dimensions; they are next to the directions at which d of the features (or zero)
are tied. `kspan.linalg.low_rank_enumeration` has the enumeration, and the proof.

Cost: :math:`O(n^d \log n)` for n features if nothing can be ruled out. As a rule almost all of them
are ruled out at once, and thousands of features at rank 3 take well under a second. Passes over the
data: those of d eigenvectors. ``shift="auto"`` needs no more: it comes from the trace.

Guarantee: each x is optimal for :math:`A_d`, A being what the components before have left. With
:math:`\tilde A = A - A_d`, any feasible y has

.. math:: y'Ay \le y'A_dy + y'\tilde Ay \le x'A_dx + λ_{d+1},

so x is optimal when A has rank d, and :math:`x'Ax \ge \mathrm{OPT} - λ_{d+1}`. Before anything is
computed, Theorem 1 says which share of the optimum that is (`kspan.proofs.nspca_rho`).

With ``shift="auto"`` also optimal when :math:`A = σI + C`, C ⪰ 0 of rank d (the paper's Section 1):
:math:`V = U_d(Λ_d - σI)^{1/2}`, σ being the mean of the eigenvalues beyond the d leading ones. As
x'Ax = σ + x'(A - σI)x for unit vectors, and what is left of A - σI has eigenvalues between
:math:`λ_n - σ` and :math:`λ_{d+1} - σ`, or 0, any A has

.. math:: x'Ax \ge \mathrm{OPT} - (λ_{d+1} - λ_n) .

Of what is left after the first component the former is true with "remove": then it is the same
matrix on the other features. Projections leave no constant on the diagonal.

Reference: Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML
2014, algorithms 1 and 2.

Differs from the paper in: supports at vertices where the tied value is zero are complete, which
they are not in algorithm 2 as printed; features are ruled out by a bound before the enumeration.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import UnitCovariance
from kspan.linalg.low_rank_enumeration import LowRankOptimum, Report, enumerate_supports, prepare
from kspan.linalg.selection import placed
from kspan.problem import NonnegativeProblem
from kspan.progress import Monitor, Status
from kspan.solvers.elementsparse.signed_spannogram import require_affordable
from kspan.solvers.method import checked, counted
from kspan.solvers.one_by_one import Component, NonnegativeOneByOneMethod
from kspan.solvers.shifts import require_shift, shift_of
from kspan.solvers.starts import low_rank_factor


@dataclass(frozen=True, eq=False)
class Spannogram(NonnegativeOneByOneMethod):
    """Nonnegative components, each optimal for what is left of A at a low rank.

    Reports during the enumeration tell the variance in the d leading directions only, and no more
    of that than is above the noise that a shift takes off.

    Parameters
    ----------
    deflation : {"remove", "projection", "orthogonalized"}
    rank : int
        d. The variance beyond the d leading directions is not seen by the search.
    eliminate : bool
        Rule out features before the enumeration. Without it every vertex is visited.
    max_vertices : int or None
        Refuse, with `ValueError`, to enumerate more than this.
    shift : float or "auto"
        Enumerate for A + shift·I at rank d: -σ takes off what noise adds to every eigenvalue; those
        that fall below zero count as zero, and if all do there is no shift. "auto" takes off the
        mean of the eigenvalues beyond the d leading ones, anew for every component.
    """

    name = "spannogram"
    summary = "enumerates all supports that a low-rank approximation can ask for"
    guarantee = (
        "a component is optimal if A has that rank, else within the next eigenvalue of the "
        'optimum; with `shift="auto"` the first also if σI is added to that'
    )
    reference = "Asteris et al., ICML 2014"

    rank: int = counted(3, least=1)
    eliminate: bool = True
    max_vertices: int | None = counted(50_000_000, least=1)
    shift: float | str = checked(0.0, require_shift)

    def find(
        self, left: UnitCovariance, problem: NonnegativeProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Enumerate for one component."""
        shift = shift_of(left, self.rank, self.shift, left.unit)
        lift = max(shift, 0.0)  # that much of what is found is not variance
        best = spannogram_component(
            low_rank_factor(left, self.rank, shift), problem.n_nonzero_coefs,
            eliminate=self.eliminate, max_vertices=self.max_vertices,
            report=lambda value: monitor.report(max(value - lift, 0.0)),
        )  # fmt: skip
        vector = placed(best.weights, best.support, problem.n_features)
        product = left.matmat(best.weights[:, None], best.support)[:, 0]
        variance = float(vector @ product)
        status = Status.COMPLETED
        if best.complete:
            monitor.report(variance)
        else:  # if nobody asked to stop, it was the keyboard
            status = monitor.stopped = monitor.stopped or Status.INTERRUPTED
        return Component(vector, [variance], 1, status)


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
    eliminate, max_vertices : as in `Spannogram`
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

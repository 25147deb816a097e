r"""Signed spannogram: the best of all supports that directions of low rank have.

With :math:`A_d = VV'` the best approximation of rank d, every direction c in d dimensions has a
support: the k largest entries of \|Vc\|. The one of the sparse component that is optimal for A_d is
among them, with :math:`c = V'x`. They are next to the directions at which d features are tied in
size, :math:`±v_{i_1}'c = … = ±v_{i_d}'c`, and are enumerated there:

1. Leave out features that are in none of them (`kspan.linalg.spannogram_boxes.selectable`).
2. Sweep all :math:`2^{d-1}\binom{n}{d}` vertices, circle by circle
   (`kspan.linalg.spannogram_kernels`, on the rows of V and their negatives).
3. Score each support S by :math:`λ_1(A_{SS})`, A being what the components before have left, unless
   :math:`λ_1((A_d)_{SS}) + λ_{d+1}(A)`, which is at least as large, is below the best score so far.

Cost: :math:`O(2^d n^d \log n)`, and an eigenvector of order k for every support that is scored.
Passes over the data: those of d + 1 eigenvectors, and one for each of those supports.

With a shift s it is all the same for A + sI, whose best supports are those of A: V has the leading
eigenvalues :math:`(λ_i + s)_+`, and as :math:`λ_1(A_{SS}) = λ_1((A + sI)_{SS}) - s`, what is added
in step 3 is :math:`(λ_{d+1} + s)_+ - s`.

Guarantee: with ``exact=True`` no support of the spannogram has a larger :math:`λ_1(A_{SS})`, and
one of them is optimal for :math:`A_d`. So each component is optimal when A has rank d, and else its
variance is at least :math:`\mathrm{OPT} - λ_{d+1}`. With ``shift="auto"``, s = -σ and σ the mean of
the eigenvalues beyond the d leading ones, the first is also optimal when :math:`A = σI + C`, C ⪰ 0
of rank d (and every other with ``deflation="remove"``), and for any A its variance is at least
:math:`\mathrm{OPT} - (λ_{d+1} - λ_n)`; `kspan.solvers.nonnegative.nonnegative_spannogram` says why,
and whose statement it is. With ``exact=False`` one choice of tied features is taken at each vertex,
which may miss the best support; the paper bounds the loss for k much larger than d.

Reference: Papailiopoulos, Dimakis, Korokythakis, Sparse PCA through Low-rank Approximations, ICML
2013.

Differs from the paper in: features are left out by a test that is never cut short; a bound decides
which supports need an eigenvector.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import UnitCovariance
from kspan.linalg.spannogram_boxes import ascend, selectable, starts
from kspan.linalg.spannogram_sweep import (
    candidate_supports,
    default_threads,
    expected_seconds,
    vertex_count,
    worker_threads,
)  # fmt: skip
from kspan.problem import Candidate, ElementSparseProblem, RowSparseProblem
from kspan.progress import Monitor, Status
from kspan.solvers.method import ElementSparseMethod, Unaffordable, checked, counted
from kspan.solvers.one_by_one import Component, OneByOneMethod
from kspan.solvers.shifts import require_shift, shift_of
from kspan.solvers.starts import beyond_rank, low_rank_factor

# Supports scored between two reports.
SCORED_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class SignedSpannogram(OneByOneMethod, ElementSparseMethod):
    """Sparse components, each with the best support of a spannogram.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    rank : int
        d.
    exact : bool
        Try all choices of tied features at a vertex, not only one.
    eliminate : bool
        Leave out features that are in no support before the enumeration.
    max_vertices : int or None
        Refuse, with `ValueError`, to enumerate more than this.
    shift : float or "auto"
        Enumerate for A + shift·I at rank d: -σ takes off what noise adds to every eigenvalue; those
        that fall below zero count as zero, and if all do there is no shift. "auto" takes off the
        mean of the eigenvalues beyond the d leading ones, anew for every component.
    """

    name = "spannogram"
    summary = "the best of all supports that a low-rank approximation can ask for"
    guarantee = (
        "a component is optimal if A has that rank, else within the next eigenvalue of the "
        'optimum; with `shift="auto"` the first also if σI is added to that'
    )
    reference = "Papailiopoulos et al., ICML 2013"

    rank: int = counted(2, least=1)
    exact: bool = True
    eliminate: bool = True
    max_vertices: int | None = counted(50_000_000, least=1)
    shift: float | str = checked(0.0, require_shift)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Enumerate for one component."""
        scan = _SupportScan(left, problem.n_nonzero_coefs, self, monitor)
        with monitor.interruptible():
            scan.run()
        vector = scan.best.loadings(problem.n_features)[:, 0]
        return Component(vector, scan.history, scan.n_scored, monitor.stopped or Status.COMPLETED)


class _SupportScan:
    """The search for one component. It begins with the best support that a climb finds."""

    def __init__(
        self, covariance: UnitCovariance, k: int, options: SignedSpannogram, monitor: Monitor
    ):
        self.problem = RowSparseProblem(covariance, 1, k)
        self.options, self.monitor, rank = options, monitor, options.rank
        covariance.leading(min(rank + 1, covariance.n_features))  # once for both
        shift = shift_of(covariance, rank, options.shift, covariance.unit)
        V = low_rank_factor(covariance, rank, shift)
        self.tail = max(beyond_rank(covariance, V.shape[1]), -shift)  # (λ + s)₊ - s
        self.rows = np.flatnonzero(V.any(axis=1))
        self.unit = float(np.linalg.norm(V, axis=1).max()) or 1.0
        self.V = V[self.rows] / self.unit
        self.best = self.problem.refit(self._first_support(V))
        self.history = [self.best.objective]
        self.n_scored = 1

    def _first_support(self, V: FloatArray) -> Index:
        """Return the features with the largest sizes of v'c for a good c, constant ones last."""
        k = self.problem.choice.size
        scores = np.zeros(len(V))
        if self.V.size:
            both = np.vstack([self.V, -self.V])
            _, c = ascend(both, starts(self.V.shape[1]), min(k, len(self.V)))
            scores[self.rows] = np.abs(self.V @ c)
        return self.problem.select(scores)

    def run(self) -> None:
        """Score all supports, until the monitor says stop."""
        k, d = self.problem.choice.size, self.V.shape[1]
        if d < 2 or len(self.V) <= k:
            return  # there is only one support, and it is scored
        kept = np.arange(len(self.V))
        if self.options.eliminate:
            kept = np.flatnonzero(selectable(self.V, k, self.monitor.out_of_time))
            if self.monitor.stopped:
                return
        V, rows = self.V[kept], self.rows[kept]
        if len(V) <= k:
            return
        n_vertices = vertex_count(len(V), d, signed=True)
        require_affordable(
            n_vertices, expected_seconds(n_vertices, d), self.options.max_vertices,
            n_features=len(V),
            rank=d, other="another solver",
        )  # fmt: skip
        n_threads = default_threads(n_vertices)
        with worker_threads(n_threads) as threads:
            rounds = candidate_supports(
                V, k, self._floor, signed=True, simple=not self.options.exact, threads=threads,
                n_threads=n_threads,
            )  # fmt: skip
            for supports in rounds:
                for first in range(0, max(len(supports), 1), SCORED_AT_ONCE):
                    part = supports[first : first + SCORED_AT_ONCE]
                    self._score([rows[np.flatnonzero(support)] for support in part])
                    if self.monitor.report(self.best.objective):
                        return

    def _floor(self) -> float:
        """What λ₁ of A_d on a support has to be above for λ₁ of A to beat the best."""
        return (self.best.objective - self.tail) / self.unit**2

    def _score(self, supports: list[Index]) -> None:
        if not supports:
            return
        self.n_scored += len(supports)
        winner = max(self.problem.refit_all(supports), key=_objective)
        if winner.objective > self.best.objective:
            self.best = winner
            self.history.append(winner.objective)


def _objective(candidate: Candidate) -> float:
    return candidate.objective


def require_affordable(
    n_vertices: int, seconds: float, limit: int | None, *, n_features: int, rank: int, other: str
) -> None:
    """Raise `Unaffordable`, a `ValueError`, when there are more vertices than the limit."""
    if limit is None or n_vertices <= limit:
        return
    raise Unaffordable(
        f"The spannogram of rank {rank} of the {n_features:,} features that could not be ruled "
        f"out has {n_vertices:,} vertices, about {_in_words(seconds)} on one core; the limit is "
        f"max_vertices={limit:,}. Lower the rank, use {other}, or raise max_vertices."
    )


def _in_words(seconds: float) -> str:
    for name, size in (("years", 3.2e7), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} seconds"

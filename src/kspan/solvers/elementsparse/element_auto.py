r"""Auto: one component after the other, each by the row-sparse `auto` and by all other methods.

.. math:: \max_x x'A_jx \quad \|x\|_2 = 1,\; \|x\|_0 \le k

for j = 1, …, m, where :math:`A_j` is what the deflation has left of A: the row-sparse problem with
one component.

Steps, for each component: (1) `kspan.solvers.rowsparse.auto` on :math:`A_j`: IPU from many starts,
pair swaps, kicks. (2) Every other method of this folder that finds one component at a time; those
that find all at once too, when there is only one. (3) If one of them is better, pair swaps and IPU
from there. With generalized deflation, what is compared is the quotient that it maximises; what
Hotelling's leaves is searched with a multiple of the identity added, so that it is positive
semidefinite: the best vector is the same.

Cost: that of the row-sparse `auto`, and about as much again for the others. Passes over the data:
data whose reads are costly goes by way of candidates, see `kspan.solvers.rowsparse.candidates`, at
most six for each component; the other methods, which need hundreds, are then left out.

Guarantee: given the same components before it, no component explains less of what is left than that
of any other method with its default options, the deflation being the same; but for data that goes
by way of candidates. How good it is says a certificate.

Not from a paper.
"""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import UnitCovariance
from kspan.linalg.rounding import IMPROVEMENT
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor
from kspan.solvers.method import AnyMethod, ElementSparseMethod, Unaffordable, counted
from kspan.solvers.one_by_one import Component, Deflation, OneByOneMethod
from kspan.solvers.registry import methods_for
from kspan.solvers.rowsparse.auto import Auto
from kspan.solvers.rowsparse.candidates import wants_candidates
from kspan.solvers.rowsparse.moves import Climber


@dataclass(frozen=True, eq=False)
class ElementAuto(OneByOneMethod, ElementSparseMethod):
    """Sparse components, each the best that many methods find.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    n_restarts, n_kicks : int, optional
        Of the row-sparse search, see `~kspan.solvers.rowsparse.auto.Auto`.
    """

    name = "auto"
    summary = "the row-sparse `auto` for one component at a time, and all other methods of the list"
    guarantee = (
        "no component explains less than that of another method, given those before it and the "
        "same deflation; on data in memory, up to 100,000 features"
    )
    reference = "this project"

    n_restarts: int | None = counted(None, least=0)
    n_kicks: int | None = counted(None, least=0)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Search with starts of its own."""
        search = Auto(n_restarts=self.n_restarts, n_kicks=self.n_kicks)
        found = search.run(problem.alone(left), monitor, rng)
        return Component(found.loadings[:, 0], list(found.history), found.n_iter, found.status)

    def next_component(
        self, problem: ElementSparseProblem, left: Deflation, unit: float, monitor: Monitor,
        rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Search, then ask the other methods."""
        others = deepcopy(rng)  # they draw what they would draw without the search
        lifted = left.lifted()  # the search takes for granted that A is positive semidefinite
        own = super().next_component(problem, lifted, unit, monitor, rng)
        history = [value - left.lacking / unit for value in own.history]
        single = problem.alone(UnitCovariance(lifted.current, unit))
        if wants_candidates(single):
            return replace(own, history=history)
        best, value, n_iter = own.vector, left.value(own.vector), own.n_iter
        with monitor.interruptible():  # what is found already stays
            for method in _other_methods(problem.n_components):
                if monitor.out_of_time():
                    break
                quiet = monitor.inner(quiet=True)
                try:
                    found = _one_component(method(), problem, left, unit, quiet, others)
                except Unaffordable:
                    continue
                n_iter += found.n_iter
                if (reached := left.value(found.vector)) > value * (1 + IMPROVEMENT):
                    best, value = found.vector, reached
                monitor.report(value / unit)
        history.append(value / unit)
        if best is not own.vector and left.kind != "generalized" and not monitor.stopped:
            climber = Climber(single, single.best_from(best), monitor)
            climber.polish(climber.best)
            best = climber.best.loadings(problem.n_features)[:, 0]
            history.append(left.value(best) / unit)
            n_iter += climber.n_iter
        status = monitor.stopped or own.status
        return Component(best, history, n_iter, status)


def _other_methods(n_components: int) -> list[type[AnyMethod]]:
    """Return the methods of one component at a time; of a single one, all others."""
    return [
        method
        for method in methods_for(ElementSparseProblem).values()
        if method is not ElementAuto
        and method.proof_level is None
        and (n_components == 1 or issubclass(method, OneByOneMethod))
    ]


def _one_component(
    method: AnyMethod, problem: ElementSparseProblem, left: Deflation, unit: float,
    monitor: Monitor, rng: np.random.Generator,
) -> Component:  # fmt: skip
    """Return what a method finds in what is left."""
    if isinstance(method, OneByOneMethod):
        return method.next_component(problem, left, unit, monitor, rng)
    covariance = UnitCovariance(left.current, unit)
    single = ElementSparseProblem(covariance, 1, problem.n_nonzero_coefs)
    found = method.run(single, monitor, rng)
    return Component(found.loadings[:, 0], list(found.history), found.n_iter, found.status)

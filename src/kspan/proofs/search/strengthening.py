r"""Tightening the relaxation with row cones that a whole subtree of a search shares.

The relaxation of `relaxation.py` knows P ⪯ Diag(z) only. Row cones (`proofs/check/bounds.py`) say
that a row of P has few entries, and their multipliers G and α turn A into another matrix and an
offset to the scores: the same relaxation, in as many unknowns. Here they are looked for, by the
iteration of `cone_relaxation.py`. It is a rough one, and need be no better: the relaxation then
finds the best B for these G and α to all digits.

Where few features have a share in z, only these take part: for the others P is almost zero. Where
most have one, as on correlations, all do, and what the iteration finds bounds the node too.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import places_in
from kspan.problem import Choice
from kspan.progress import Monitor
from kspan.proofs.check.bounds import Bound, Cones, dual_bound
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.screening import screen
from kspan.proofs.search.cone_relaxation import ConeRelaxation, ConeSnapshot
from kspan.proofs.search.tree_state import Budgets

CHECK_EVERY = 25  # steps between two looks at the bound
SMALLEST_SHARE = 1e-3  # of z that lets a feature take part
MOST = 0.5  # when this share of the features takes part, all do


@dataclass(frozen=True)
class Strengthened:
    """Cones on some features, and what the iteration found on the way.

    Parameters
    ----------
    features : places in the node
    cones : on these features
    factor : of B, on these features
    bound : on the node; None when not all of its features take part
    z : the relaxed selection, on these features
    start : where to go on
    n_eigensolves : int
    """

    features: Index
    cones: Cones
    factor: FloatArray
    bound: Bound | None
    z: FloatArray
    start: ConeSnapshot
    n_eigensolves: int


def taking_part(choice: Choice, z: FloatArray) -> Index:
    """Return the features that are worth cones, given a relaxed selection."""
    T = np.flatnonzero(choice.forced | (z > SMALLEST_SHARE))
    return np.arange(z.size) if T.size > MOST * z.size else T


def strengthen(
    known: KnownMatrix,
    m: int,
    choice: Choice,
    features: Index,
    *,
    lower: float,
    enough: float,
    budgets: Budgets,
    monitor: Monitor,
    start: ConeSnapshot | None = None,
    near: Index | None = None,
) -> Strengthened | None:
    """Look for cones on some features of a node; None when there is nothing to be found.

    Parameters
    ----------
    known, m, choice : A of the node, components, and what may be chosen there
    features : those that take part; all of them, given a start
    lower, enough : what was reached, and a bound that needs no improvement
    budgets, monitor : when to stop; the best cones so far count
    start : where an earlier call left off
    near : places of a good support of the node, if there is one
    """
    inside, part, whole = choice.on(features), known.on(features), features.size == len(known.A)
    if not inside.has_options:
        return None
    near = None if near is None else places_in(near, features)
    iteration = ConeRelaxation(part.A, m, inside, start=start, near=near)
    best: tuple[Bound, FloatArray, Cones] | None = None
    steps, n_eigensolves = 0, 0
    lowest = [np.inf] * budgets.strengthen_window  # the best bound after the last few looks
    while True:
        for _ in range(CHECK_EVERY):
            iteration.step()
            steps += 1
            if monitor.out_of_time():
                break
        factor, cones = iteration.witness()
        cones = cones.compact(choice.size - 1)
        n_eigensolves += 1
        try:
            bound = dual_bound(part, factor, m, inside, cones.on(np.arange(features.size)))
        except (FloatingPointError, np.linalg.LinAlgError):
            break
        before = np.inf if best is None else best[0].value
        if bound.value < before:
            best = bound, factor, cones
        # Bounds need not fall at every look, so those of several are compared.
        lowest.append(min(before, bound.value))
        gained = lowest[-1 - budgets.strengthen_window] - lowest[-1]
        n_settled = screen(bound, choice, lower).n_settled if whole else 0
        smaller = n_settled > budgets.clearly_smaller * choice.free.size
        slow = gained < budgets.strengthen_patience * (lowest[-1] - enough)
        spent = steps >= budgets.strengthen_iter or monitor.out_of_time()
        if smaller or slow or spent or bound.value <= enough:
            break
    if best is None:
        return None
    bound, factor, cones = best
    return Strengthened(
        features, cones, factor, bound if whole else None, iteration.z.astype(np.float64),
        iteration.snapshot(), n_eigensolves + iteration.n_eigensolves,
    )  # fmt: skip

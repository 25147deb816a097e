"""A proof in two parts: one witness settles features, another bounds what is left."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kspan.arrays import Index
from kspan.proofs.check.claims import Problem, Witness, feature_numbers, follow, need
from kspan.proofs.check.known import data_error


@dataclass(frozen=True)
class ScreenedWitness(Witness):
    """Supports with a feature of `removed` are bounded by `level`, all others by the rest.

    Parameters
    ----------
    first : Witness
        Its `levels` bound the supports that have a feature.
    removed : features of the problem
    level : float
        The largest of their levels, in the units of the problem.
    rest : Witness
        Of the problem on the other allowed features, numbered anew.
    """

    first: Witness
    removed: Index
    level: float
    rest: Witness

    @property
    def method(self) -> str:
        """What bounds the rest counts."""
        return self.rest.method

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        removed = feature_numbers(self.removed, problem.n_features, "witness: removed")
        need(removed.size > 0, "witness: removes nothing")
        need(isinstance(self.first, Witness), "witness: lacks its first part")
        need(isinstance(self.rest, Witness), "witness: lacks its second part")
        may_go = problem.choice.allowed & ~problem.choice.forced
        need(bool(may_go[removed].all()), "witness: removes what may not be")
        level = float(self.first.levels(problem)[removed].max())
        # Another's A differs by its noise, which is left off when features are called settled.
        follow("level of what is removed", level, self.level, data_error(problem)[1])
        rest = rest_of(problem, removed)
        return level if rest is None else max(level, self.rest.evaluate(rest))

    def settled(self, lower: float) -> tuple[Index, Index]:
        """Return what is removed, if its level is below."""
        nothing = np.empty(0, dtype=np.intp)
        return nothing, np.sort(self.removed) if self.level < lower else nothing


def rest_of(problem: Any, removed: Index) -> Any:
    """Return the problem on the allowed features that are not removed; None when there is none."""
    kept = np.setdiff1d(problem.choice.features, removed)
    choice = problem.choice.on(kept)
    if choice.is_empty or kept.size < problem.n_components:
        return None
    return problem.changed(covariance=problem.covariance.restrict(kept), choice=choice)

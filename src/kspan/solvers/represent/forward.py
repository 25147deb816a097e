r"""Forward selection: one feature after the other, each the one that tells most.

With as many components as features (m = k) the next feature is the one that adds most to the
variance of all features that those chosen explain by linear regression:

.. math:: j = \arg\max \|A'_j\|^2 / (a'_{jj} + noise_j), \qquad
          A' = A - A_{:S} (A_{SS} + noise)^{-1} A_{S:}

With fewer components it is the one that adds most to what is explained of the m leading principal
components, as nobody can tell more with m scores than these do.

Cost: O(nk²) for n features, and two columns of A and of A² a step; see `pool.py` for what that is.
Passes over the data: none on data in memory whose samples are few or whose A is formed; one where
it goes by way of candidates.

Guarantee: none; on uncorrelated features it is optimal.

Reference: the rank-one updates are those of Farahat, Ghodsi and Kamel, "An efficient greedy method
for unsupervised feature selection", ICDM 2011, equations 12 to 14; for a target of few directions
those of orthogonal least squares (Chen, Billings and Luo 1989).
Differs from the papers in: noise of the features, rules about which of them go together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kspan.arrays import Index, Mask
from kspan.linalg.machine import one_blas_thread
from kspan.linalg.selection import places_in
from kspan.problem import Candidate, Choice, RepresentProblem, Solution
from kspan.progress import Monitor, Status
from kspan.solvers.method import RepresentMethod
from kspan.solvers.represent.exploring import Growing, Target
from kspan.solvers.represent.pool import Pool, pool_of


@dataclass(frozen=True, eq=False)
class Forward(RepresentMethod):
    """Add the feature that tells most, until there are k."""

    name = "forward"
    summary = "one feature after the other, each the one that tells most"
    guarantee = "–"
    reference = "Farahat, Ghodsi and Kamel 2011"

    def run(
        self, problem: RepresentProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Select forwards."""
        pool = pool_of(problem)
        with monitor.interruptible(), one_blas_thread():
            places = grown(pool, first_target(problem, pool), monitor)
        if monitor.stopped is not None and pool.choice.objection(places) is not None:
            places = pool.choice.select(pool.variances)
        found = problem.refit(pool.features[places])
        monitor.report(found.objective)
        return Solution.from_candidate(
            found, n_features=problem.n_features, solver=self.name,
            status=monitor.stopped or Status.COMPLETED, history=[found.objective],
            n_iter=found.support.size,
        )  # fmt: skip


def first_target(problem: RepresentProblem, pool: Pool) -> Target:
    """Return what nobody can tell more of: the leading components; everything for m = k."""
    if problem.n_components >= problem.choice.size:
        return Target(None)
    pairs = problem.covariance.leading(problem.n_components)
    return Target(pairs.vectors[pool.features] * (pairs.values / problem.scale))


def grown(pool: Pool, target: Target, monitor: Monitor, start: Index | None = None) -> Index:
    """Return a choice that is made one feature (or group that goes together) after the other.

    Parameters
    ----------
    pool, target : what from, and what for
    monitor : asked whether to stop; what is missing then is taken by what it would add
    start : features to begin with
    """
    choice = pool.choice if start is None else pool.choice.settled(fixed=start)
    growing = Growing(pool, target, choice.size)
    for place in choice.include:
        growing.add(int(place))
    while (free := _free(choice, growing.places)).any():
        scores = growing.gains()
        scores[pool.variances <= 0] = -1.0
        if monitor.out_of_time():
            break
        scores = choice.with_whole(np.where(free, scores, -np.inf))
        choice = choice.settled(fixed=[int(np.argmax(scores))])
        for place in np.setdiff1d(choice.include, growing.places):
            growing.add(int(place))
    chosen = np.sort(np.array(growing.places, dtype=np.intp))
    if choice.objection(chosen) is None:
        return chosen
    try:
        return choice.settled(fixed=chosen).select(np.maximum(growing.gains(), 0.0))
    except ValueError:  # rules leave too few to go with these
        return pool.choice.select(pool.variances)


def _free(choice: Choice, places: list[int]) -> Mask:
    """Return which features may come next."""
    free = choice.allowed & ~choice.forced
    if len(places) >= choice.size:
        free[:] = False
    return free


def keep_growing(problem_at: Callable[[int], RepresentProblem], best: dict[int, Candidate]) -> None:
    """Let no k tell less than the one before it: those features and more are a choice too."""
    for before, k in pairwise(sorted(best)):
        if best[k].objective < best[before].objective:
            problem = problem_at(k)
            pool = pool_of(problem)
            start = places_in(best[before].support, pool.features)
            if start is None or problem.choice.has_rules:
                continue
            places = grown(pool, first_target(problem, pool), Monitor("grow"), start)
            found = problem.refit(pool.features[places])
            if found.objective > best[k].objective:
                best[k] = found

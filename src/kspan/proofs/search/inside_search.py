"""Which features to relax where A is too large as a whole: those that may be worth a place.

Of the others row cones in closed form say enough (`check/partly_known.py`). How much a feature must
be worth for a place is known when the relaxation is: it begins with the features that count by a
guess, and those that turn out to be worth as much as the last ones chosen, or nearly, come in.

The guess: of what the components explain, about one half is the Ky Fan sum and the other half the
scores, so that the eigenvalues are about V/2r, and a score about V/2K on average. Leukemia, r = 3,
k = 10 and 20: 15.3 and 19.4 where the guess is 14.7 and 21.2; the smallest scores are 0.7 of the
average. Some 300 of 7129 features are worth as much with k = 10, and 700 with k = 20.
"""

from dataclasses import replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Patterns
from kspan.progress import Monitor
from kspan.proofs.check.partly_known import PartlyKnown, parted
from kspan.proofs.check.pattern_tree import other_counts
from kspan.proofs.check.teams import first_teams, team_cut_levels, teams_bound, tidy
from kspan.proofs.search.pattern_tree_search import relaxed_teams
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.team_relaxation import TeamRelaxation, TeamsSnapshot
from kspan.proofs.search.tree_state import Budgets

FIRST_SHARE = 0.7  # of a score on average, for a feature to be among the first
NEARLY = 0.1  # of a score on average, that a feature may lack for a place
ROUNDS = 4
TIME_SHARE = 0.25  # of what is left
MORE = 1.05  # a round that brings no more features than this is the last


def choose_relaxed(
    proof: Proof, patterns: Patterns, budgets: Budgets
) -> tuple[PartlyKnown, TeamsSnapshot | None]:
    """Return what is known of A when the features that count are inside, and a point to begin at.

    `TimeoutError` when the monitor says stop.
    """
    problem, stop = proof.problem, proof.monitor.out_of_time
    sizes, most = other_counts(patterns), min(budgets.dense_limit, problem.n_features)
    everything = np.arange(problem.n_features)
    nothing = PartlyKnown.of(problem, everything[:0], sizes, stop=stop)
    value = proof.lower / nothing.scale
    score = value / (2 * patterns.total)
    # Entries between two features outside count half, and here none is inside.
    first = replace(nothing, squares=4 * nothing.squares)
    level = value / (2 * patterns.n_components)
    worth = first.outside_scores(everything, int(sizes[-1]), level)
    wanted = worth >= FIRST_SHARE * score
    inside = _best(worth, proof.support, min(max(int(wanted.sum()), budgets.least_inside), most))
    part, start = proof.monitor.inner(quiet=True, share=TIME_SHARE), None
    known = PartlyKnown.of(problem, inside, sizes, stop=stop)
    for _ in range(ROUNDS):
        if inside.size >= most or part.out_of_time():
            break
        found, start = _competing(proof, part, known, patterns, budgets, score, start)
        if found.size <= inside.size:
            break
        is_last = found.size <= MORE * inside.size
        rank = np.where(np.isin(everything, inside), np.inf, worth)
        rank[np.setdiff1d(everything, found)] = -np.inf
        inside = _best(rank, proof.support, min(found.size, most))
        known = PartlyKnown.of(problem, inside, sizes, stop=stop)
        start = None if start is None else start.widened(inside)
        if is_last:
            break
    return known, start


def choose_wider(
    proof: Proof, known: PartlyKnown, patterns: Patterns, budgets: Budgets
) -> PartlyKnown | None:
    """Return the same with twice as many features inside; None if there can be no more.

    `TimeoutError` when the monitor says stop.
    """
    n_inside, d = known.inside.size, known.n_features
    size = min(2 * n_inside, budgets.dense_limit, d)
    if size <= n_inside:
        return None
    level = proof.lower / known.scale / (2 * patterns.n_components)
    worth = known.outside_scores(np.arange(d), int(known.sizes[-1]), level)
    worth[known.inside] = np.inf
    inside = _best(worth, proof.support, size)
    stop = proof.monitor.out_of_time
    return PartlyKnown.of(proof.problem, inside, known.sizes, stop=stop)


def _best(worth: FloatArray, support: Index, size: int) -> Index:
    """Return the features that are worth most, and those of the best loadings, in order."""
    worth = worth.copy()
    worth[support] = np.inf
    return np.sort(np.argsort(-worth, kind="stable")[: max(size, support.size)])


def _competing(
    proof: Proof, monitor: Monitor, known: PartlyKnown, patterns: Patterns, budgets: Budgets,
    score: float, start: TeamsSnapshot | None,
) -> tuple[Index, TeamsSnapshot | None]:  # fmt: skip
    """Relax for some steps; return the features inside and those that are nearly worth a place.

    And where that ended.
    """
    teams = tidy(first_teams(patterns), patterns)
    relaxed = None if teams is None else relaxed_teams(known, teams)
    if teams is None or relaxed is None:
        return known.inside, start
    loadings = proof.best.loadings(known.n_features)
    near = loadings[:, np.argsort(-patterns.limits, kind="stable")]
    relax = TeamRelaxation(known, relaxed, patterns, start=start, near=near)
    for _ in range(budgets.inside_iter):
        relax.step()
        if monitor.out_of_time():
            break
    proof.n_eigensolves += relax.n_eigensolves
    try:
        bound = teams_bound(known, teams, relax.witness(), patterns)
    except (FloatingPointError, np.linalg.LinAlgError):
        return known.inside, None
    outside = parted(known, np.arange(known.n_features))[1]
    competes = np.zeros(outside.size, dtype=bool)
    for with_it, _ in team_cut_levels(bound, teams, patterns):
        competes |= with_it[outside] >= bound.value - NEARLY * score
    return np.union1d(known.inside, outside[competes]), relax.snapshot()

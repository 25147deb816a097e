r"""Ways to a better support under rules about which features go together.

A swap of two features may break a rule, and a better support may have another number of features.
So a feature comes in (or goes), and the choice is made anew with scores that keep what is there:
first the new one, then the chosen features by what they are worth as far as the rules let them,
then others by what they would add. What comes out is tried exactly.

Guarantee: every accepted step raises the objective. Not from a paper.
"""

from collections.abc import Callable, Sequence

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import top_k
from kspan.problem import Candidate, Choice
from kspan.progress import Monitor

# Scores of what is there, and of what has to come in; those of all others are below one.
THERE, FIRST = 2.0, 1e6

RefitAll = Callable[[Sequence[Index]], list[Candidate]]


def improve_by_insertions(
    choice: Choice, candidate: Candidate, refit_all: RefitAll,
    keys_of: Callable[[Candidate], FloatArray], *, max_sweeps: int, n_trials: int,
    monitor: Monitor,
) -> tuple[Candidate, bool]:  # fmt: skip
    """Insert and remove until nothing tried helps.

    Parameters
    ----------
    choice : with rules
    candidate : where to start
    refit_all : returns the best points on supports
    keys_of : returns `insertion_keys` of a point
    max_sweeps, n_trials, monitor : see `kspan.solvers.rowsparse.swaps.improve_by_swaps`
    """
    for _ in range(max_sweeps):
        if monitor.out_of_time():
            return candidate, False
        supports = neighbours(choice, candidate.support, keys_of(candidate), n_trials)
        trials = refit_all(supports) if supports else []
        best = max(trials, key=lambda trial: trial.objective, default=candidate)
        if not best.objective > candidate.objective * (1 + IMPROVEMENT):
            return candidate, monitor.stopped is None
        candidate = best
        if monitor.report(candidate.objective):
            return candidate, False
    return candidate, False


def neighbours(choice: Choice, support: Index, keys: FloatArray, n_trials: int) -> list[Index]:
    """Return supports with a feature more, or without one of those that are worth least."""
    coming = np.where(choice.coming(support), keys, -1.0)
    outside = top_k(coming, min(n_trials, int((coming > 0).sum())))
    inside = support[choice.leaving(support)]
    inside = inside[top_k(-keys[inside], min(n_trials, inside.size))]
    found = {support.tobytes(): support}
    for feature, key in [(None, 0.0), *((j, FIRST) for j in outside), *((i, -1.0) for i in inside)]:
        changed = keys.copy()
        if feature is not None:
            changed[feature] = key
        new = choice.select(changed)
        found.setdefault(new.tobytes(), new)
    return list(found.values())[1:]


def insertion_keys(
    added: FloatArray, worth: FloatArray, support: Index, varies: Mask
) -> FloatArray:
    """Return scores: above two for what is there, below one for others, negative for constants.

    Parameters
    ----------
    added : (d,) what each feature would add
    worth : (k,) what each chosen feature is worth
    support : the chosen features
    varies : (d,) mask
    """
    keys = added / max(float(added.max()), 1e-300)
    keys[support] = THERE + worth / max(float(worth.max()), 1e-300)
    keys[~varies] = -1.0
    return keys

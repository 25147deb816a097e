r"""Ways to a better support under rules about which features go together.

A swap of two features may break a rule, and a better support may have another number of features.
So a feature comes in (or goes), and the choice is made anew with scores that keep what is there:
first the new one, then the chosen features by their share of the variance as far as the rules let
them, then others by what the present directions explain of them. What comes out is tried exactly.

Guarantee: every accepted step raises the objective. Not from a paper.
"""

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.eigen import power_of_two
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import top_k
from kspan.problem import Candidate, RowSparseProblem
from kspan.progress import Monitor

# Scores of what is there, and of what has to come in; those of all others are below one.
THERE, FIRST = 2.0, 1e6


def improve_by_insertions(
    problem: RowSparseProblem, candidate: Candidate, *, max_sweeps: int, n_trials: int,
    monitor: Monitor,
) -> tuple[Candidate, bool]:  # fmt: skip
    """Insert and remove until nothing tried helps; see `swaps.improve_by_swaps`."""
    for _ in range(max_sweeps):
        if monitor.out_of_time():
            return candidate, False
        supports = neighbours(problem, candidate, n_trials)
        trials = problem.refit_all(supports) if supports else []
        best = max(trials, key=lambda trial: trial.objective, default=candidate)
        if not best.objective > candidate.objective * (1 + IMPROVEMENT):
            return candidate, monitor.stopped is None
        candidate = best
        if monitor.report(candidate.objective):
            return candidate, False
    return candidate, False


def neighbours(problem: RowSparseProblem, candidate: Candidate, n_trials: int) -> list[Index]:
    """Return supports with a feature more, or without one of those that explain least."""
    choice, support = problem.choice, candidate.support
    keys = _keys(problem, candidate)
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


def _keys(problem: RowSparseProblem, candidate: Candidate) -> FloatArray:
    """Return scores: above two for what is there, below one for others, negative for constants."""
    covariance, support = problem.covariance, candidate.support
    variances = covariance.diagonal()
    scale = power_of_two(max(candidate.objective, float(variances.max())))
    ritz, W = candidate.variances / scale, candidate.weights
    product = covariance.matmat(W, support) / scale
    corner = np.maximum(variances, 0.0) / scale
    added = np.minimum(np.sum(product**2, axis=1) / max(float(ritz.max()), 1e-300), corner)
    added = np.maximum(added, 1e-3 * corner)
    keys = added / max(float(added.max()), 1e-300)
    shares = (W**2) @ ritz
    keys[support] = THERE + shares / max(float(shares.max()), 1e-300)
    keys[(variances <= 0)] = -1.0
    return keys

r"""`suggest_k`: a number of features, and why.

Three numbers speak for a k:

*The share*: the smallest k of the path that keeps a share of what plain PCA explains.

*The knee* of the curve of explained variance f, as Kneedle has it: with k and f both scaled to run
from 0 to 1 along the path, the k farthest above the chord from the first point to the last,

.. math:: D(k) = \frac{f(k) - f(k_1)}{f(k_t) - f(k_1)} - \frac{k - k_1}{k_t - k_1} .

It depends on where the path begins and ends. The curve of optima g lies in the band, objective ≤ g
≤ upper. A k is no knee of any such curve if D(knee) > D(k) for all of them, which holds if the
least possible ``(g(knee) - g(k)) / (g(k_t) - g(k_1))``, from the edges of the band, is above
``(knee - k) / (k_t - k_1)``. The knee is certain when that settles every other k.

*Stability* (`selection_stability`), if it was measured for some k.

**The rule.** The suggestion is the k that keeps the share (the knee, if the path never does). If
stability was measured at numbers of features between the knee and that k, both included, it is the
most stable of those, the smallest of equals.

Reference: Satopää, Albrecht, Irwin, Raghavan, Finding a "Kneedle" in a Haystack, ICDCS Workshops
2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.choosing_k.result import ROUNDING, SparsityPath
from kspan.choosing_k.stability import Stability


@dataclass(frozen=True)
class Suggestion:
    """A number of features, and why.

    Attributes
    ----------
    k : int
        The suggestion.
    reasons : list of str
        In whole sentences; the last one says how `k` was chosen.
    share, k_for_share : float, int or None
        The share asked for, and the smallest k that keeps it; None if the path never does.
    at_least : int
        No selection of fewer features keeps the share: this is proved. Where nothing is (see
        `ComponentPath`), the fewest there can be.
    knee, knee_is_certain : int, bool
        The knee of the curve found, and whether that of the optima must be the same.
    possible_knees : (p,) array
        All k that the band leaves possible.
    k_most_stable : int or None
        Of those for which stability was given.
    """

    k: int
    reasons: list[str]
    share: float
    k_for_share: int | None
    at_least: int
    knee: int
    knee_is_certain: bool
    possible_knees: Index
    k_most_stable: int | None


def suggest_k(
    path: SparsityPath,
    *,
    share: float = 0.9,
    stability: Stability | Sequence[Stability] | None = None,
) -> Suggestion:
    """Suggest how many features to take, with reasons.

    Parameters
    ----------
    path : SparsityPath
    share : float, default=0.9
        Of what plain PCA explains with as many components.
    stability : Stability or a sequence of them, optional
        Measured with `selection_stability` at some of the path's k.

    Returns
    -------
    Suggestion

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import sparsity_path, suggest_k
    >>> path = sparsity_path(load_wine().data, 2, scale=True, random_state=0)
    >>> suggestion = suggest_k(path, share=0.9)
    >>> suggestion.k
    10
    >>> suggestion.reasons[0]
    '10 features keep 91.6% of what plain PCA explains; it is proved that fewer cannot keep 90%.'
    """
    measured = [stability] if isinstance(stability, Stability) else list(stability or ())
    at_least = path.no_fewer_than(share)
    reached = path.explained.max() >= share * (1 - ROUNDING)
    k_for_share = path.smallest(share) if reached else None
    place = find_knee(path.k, path.objective)
    possible = possible_knees(path.k, path.objective, path.upper, place)
    knee, certain = int(path.k[place]), int(possible.sum()) == 1
    reasons = [
        _about_share(path, share, k_for_share, at_least),
        _about_knee(path, place, possible),
    ]
    k = knee if k_for_share is None else k_for_share
    why = (
        "it is the knee, as the path does not reach the share"
        if k_for_share is None
        else (f"it is the smallest number that keeps {share:.0%}")
    )
    best = _most_stable(measured, 0, path.n_features)
    if best is not None:
        reasons.append(_about_stability(measured, best))
        between = _most_stable(measured, min(k, knee), max(k, knee))
        if between is not None and between.n_features_to_select != k:
            why = (
                f"of the numbers between the knee ({knee}) and {k} that were resampled, its "
                "selection is the most stable"
            )
            k = between.n_features_to_select
    reasons.append(f"Suggested: {k} {path.counted}, because {why}.")
    return Suggestion(
        k, reasons, share, k_for_share, at_least, knee, certain, path.k[possible],
        None if best is None else best.n_features_to_select,
    )  # fmt: skip


def find_knee(k: Index, curve: FloatArray) -> int:
    """Return the place of the point farthest above the chord; the first one of equals.

    Examples
    --------
    >>> import numpy as np
    >>> find_knee(np.array([1, 2, 3, 4]), np.array([0.0, 8.0, 9.0, 10.0]))
    1
    """
    rise = curve[-1] - curve[0]
    if k.size < 3 or not rise > 0:
        return 0
    return int(np.argmax((curve - curve[0]) / rise - (k - k[0]) / (k[-1] - k[0])))


def possible_knees(k: Index, objective: FloatArray, upper: FloatArray, knee: int) -> Mask:
    """Say which points may be the knee of a curve inside the band."""
    possible = np.ones(k.size, dtype=bool)
    # The least and the largest that the curve may rise from one end to the other.
    least, largest = objective[-1] - upper[0], upper[-1] - objective[0]
    if k.size < 3 or not least > 0:
        return possible
    ahead = objective[knee] - upper  # what the knee is above the others, at least
    lead = np.where(ahead >= 0, ahead / largest, ahead / least)
    possible = lead <= (k[knee] - k) / (k[-1] - k[0])
    possible[knee] = True
    return possible


def _most_stable(measured: Sequence[Stability], first: int, last: int) -> Stability | None:
    inside = [s for s in measured if first <= s.n_features_to_select <= last]
    return max(inside, key=lambda s: (s.nogueira, -s.n_features_to_select), default=None)


# --- sentences


def _about_share(path: SparsityPath, share: float, k: int | None, at_least: int) -> str:
    if k is None:
        most = int(path.explained.argmax())
        return (
            f"Even {path.k[most]} {path.counted} keep only {path.explained[most]:.1%} "
            f"{_of_plain_pca(path)}."
        )
    kept = path.explained[path.k == k][0]
    text = f"{k} {path.counted} keep {kept:.1%} {_of_plain_pca(path)}"
    if not path.is_bounded:
        return f"{text}; whether fewer could is not proved."
    if at_least >= k:
        return f"{text}; it is proved that fewer cannot keep {share:.0%}."
    return f"{text}; it is proved that fewer than {at_least} cannot keep {share:.0%}."


def _of_plain_pca(path: SparsityPath) -> str:
    added = "" if path.measured == "explained variance" else f" ({path.measured})"
    return f"of what plain PCA explains{added}"


def _about_knee(path: SparsityPath, place: int, possible: Mask) -> str:
    knee, places = path.k[place], path.k[possible]
    text = f"The curve bends most at {knee} {path.counted}, which keep {path.explained[place]:.1%}"
    if not path.is_bounded:
        return f"{text}."
    if places.size == 1:
        return f"{text}; the best possible curve must bend there too."
    return f"{text}; that of the best possible one may bend from {places[0]} to {places[-1]}."


def _about_stability(measured: Sequence[Stability], best: Stability) -> str:
    values = ", ".join(
        f"{s.nogueira:.2f} at {s.n_features_to_select}"
        for s in sorted(measured, key=lambda s: s.n_features_to_select)
    )
    return (
        f"On {best.n_resamples} resamples of the rows the selection agrees best at "
        f"{best.n_features_to_select} features (1 is always the same, 0 is chance: {values})."
    )

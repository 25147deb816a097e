"""`sparsity_path`: the variance explained with k features, in all or in each component."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kspan.choosing_k.band import certify_some, checked, upper_band
from kspan.choosing_k.begin import Beginning, begin
from kspan.choosing_k.criteria import CRITERIA, asking
from kspan.choosing_k.features import Features
from kspan.choosing_k.own_features import (
    KINDS,
    OwnFeatures,
    OwnWalk,
    component_path,
    own_method,
)
from kspan.choosing_k.panel import Panel
from kspan.choosing_k.result import SparsityPath
from kspan.choosing_k.walk import choose_supports
from kspan.covariance.matrix import Psd
from kspan.linalg.machine import one_blas_thread
from kspan.problem import (
    Candidate,
    Choice,
    StiefelProblem,
    require_count,
    shares_along,
)
from kspan.progress import Callback, Monitor, Status, worst
from kspan.proofs import Certificate
from kspan.solvers.method import AnyMethod
from kspan.solvers.registry import as_method
from kspan.solvers.represent.forward import keep_growing
from kspan.solvers.rowsparse.moves import keep_rising
from kspan.solving import RandomState, generator

# The grid: every k up to the first number of features, or with more of them up to the second,
# then steps of a fifth, no further than the third.
EVERY_K, EVERY_K_OF_MANY, LARGEST_K = 200, 50, 200
STEP = 1.2

# The grid of components with features of their own, where every k takes a solve of its own: every
# k up to the first number, then steps of a fifth, no further than the second.
EVERY_OWN_K, LARGEST_OWN_K = 6, 30

# Features that all components share.
SHARED = "features"

# The walk's share of a time limit; the rest is for proofs.
TIME_TO_WALK = 0.6


def sparsity_path(
    X: Any,
    n_components: int = 2,
    *,
    estimator: str = SHARED,
    disjoint: bool = False,
    ks: Sequence[int] | None = None,
    include: Features | None = None,
    exclude: Features | None = None,
    panel: Panel | None = None,
    criterion: str = "variance",
    ridge: float | None = None,
    scale: bool = False,
    covariance: str | None = None,
    sample_weight: Any = None,
    missing: str = "raise",
    psd: Psd = "mend",
    solver: str | AnyMethod = "auto",
    certify: bool | str = True,
    certify_at: Sequence[int] | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    verbose: int | bool = 0,
) -> SparsityPath:
    """Choose k features for every k, and bound what is possible at each.

    The data is decomposed once. Every k starts from what its neighbours found
    (`kspan.choosing_k.walk`), and a few certificates bound all k (`kspan.choosing_k.band`).

    Components may have features of their own instead, k in each: see `estimator`. Then every k is
    solved and proved like a fit (`kspan.choosing_k.own_features`).

    Parameters
    ----------
    X : array, DataFrame, sparse array, path, or `Covariance`
        What `kspan.as_covariance` takes.
    n_components : int, default=2
        m.
    estimator : {"features", "orthonormal", "separate", "nonnegative"}, default="features"
        All components share k features; or each has at most k of its own, as in
        `StiefelSparsePCA`, `ElementSparsePCA` and `NonnegativeSparsePCA`.

        - "orthonormal": `objective` and `upper` are about the sum of all variances, ``tr(V'AV)``.
          What components share counts in each of them.
        - "separate", "nonnegative": one component has a band too. Several are found one after the
          other, each in what those before it left; `objective` is what they explain together.
          **Nothing is proved about that sum**: `upper` and `gap` are NaN, the certificates are
          about single components (`ComponentPath.component_gap`).
    disjoint : bool, default=False
        With "orthonormal": no two components share a feature.
    ks : sequence of int, optional
        The numbers of features. By default every k from m to d when there are at most 200
        features; else every k up to 50, then steps of a fifth up to 200: nobody reads more. Of
        features in each component every k up to 6, then steps of a fifth up to d or 30.
    include, exclude : names, indices or masks, optional
        Features that must, and must not, be chosen; of shared ones.
    panel : Panel, optional
        Rules that every choice has to keep, of shared features. k is "at most" then, and the path
        has those k only at which a support of that size is possible.
    criterion : {"variance", "represent"}, default="variance"
        What shared features are chosen for, see `FeatureSparsePCA`: what components made of them
        explain, or what their scores tell of all features. With "represent" every k is solved for
        itself.
    ridge : float, optional
        Of "represent", see `RepresentProblem`.
    scale : bool, default=False
        Divide every feature by its standard deviation, to work on correlations.
    covariance : {None, "precomputed"}
        "precomputed": X is a covariance matrix.
    sample_weight : array of shape (n_samples,), optional
        What each row counts.
    missing : {"raise", "mean", "pairwise"}, default="raise"
        What to do about missing values, see `kspan.as_covariance`.
    psd : {"mend", "raise"}, default="mend"
        What to do about a matrix that is not positive semidefinite, see `kspan.as_covariance`.
    solver : str or method, default="auto"
        "auto" is the warm-started walk: about as good as `kspan.solve` with "auto" at each k, in
        a fraction of the time, and never below "ipu". "exact" proves every k at level "exact". Any
        other method of `kspan.solve` is run at each k, and its features get the best loadings.
        Of orthonormal components "auto" starts from those of the k before, in place of random ones,
        and tries less.
    certify : bool or {"fast", "tight", "exact"}, default=True
        True is "tight". False leaves the bounds that come for free.
    certify_at : sequence of int, optional
        Numbers of features at which to prove; three by default, and all of features in each
        component.
    random_state : int, generator or None
        The same integer gives the same answer.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every k; returning True stops.
    time_limit : float, optional
        Seconds after which what is done is returned: at least one k.
    verbose : int or bool
        Log to standard error.

    Returns
    -------
    SparsityPath
        A `ComponentPath`, which has more, unless all components share their features.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import sparsity_path
    >>> path = sparsity_path(load_wine().data, 2, scale=True, random_state=0)
    >>> path.k[[0, -1]], path.smallest(share=0.9)
    (array([ 2, 13]), 10)
    >>> bool((path.objective <= path.upper).all())
    True

    Four features in each of two orthonormal components, and what may be missing at most:

    >>> own = sparsity_path(
    ...     load_wine().data, 2, estimator="orthonormal", ks=[2, 3, 4], scale=True, random_state=0
    ... )
    >>> own.components_at(4), bool((own.gap < 0.05).all())
    ([array([ 5,  6,  8, 11]), array([ 0,  4,  9, 12])], True)
    """
    _check_estimator(estimator, disjoint, include, exclude, panel)
    own, ask = estimator != SHARED, asking(criterion, ridge)
    if own and criterion != "variance":
        raise ValueError(f"criterion={criterion!r} needs estimator={SHARED!r}, got {estimator!r}.")
    method = own_method(estimator, solver) if own else as_method(CRITERIA[criterion], solver, {})
    begun = begin(
        X, "path", method, certify, scale=scale, covariance=covariance, missing=missing, psd=psd,
        sample_weight=sample_weight, callback=callback, time_limit=time_limit, verbose=verbose,
    )  # fmt: skip
    A, names, level, monitor = begun.covariance, begun.names, begun.level, begun.monitor
    if own:
        require_count("n_components", n_components, 1)
        problems = OwnFeatures(A, n_components, estimator, disjoint)
        problems.at(1)  # complains before any work is done
        thin = steps_between(1, min(A.n_features, LARGEST_OWN_K), EVERY_OWN_K)
        wanted = _checked_ks(thin if ks is None else ks, 1, A.n_features)
        prove_at = _checked_places(certify_at, wanted)
        A.prepare()
        walk = OwnWalk(problems, method, level, generator(random_state), monitor)
        with one_blas_thread():
            walk.run(wanted, wanted if prove_at is None else prove_at)
        return component_path(walk, names)
    smallest = _smallest_problem(begun, n_components, include, exclude, panel, ask)
    limits = smallest.choice.size, smallest.choice.most_features
    wanted = _checked_ks(grid_between(*limits) if ks is None else ks, *limits)
    if smallest.choice.has_rules:
        wanted = _possible(smallest.choice, wanted, named=ks is not None)
    certify_at = _checked_places(certify_at, wanted)
    A.prepare()
    with one_blas_thread():
        walking = monitor.inner(share=TIME_TO_WALK if level else None)
        rng = generator(random_state)
        best = choose_supports(smallest.at, wanted, method.searching(), rng, walking)
        stopped = walking.stopped
        certificates: list[Certificate] = []
        if level and monitor.stopped is None:
            everywhere = method.proof_level is not None
            certificates, late = certify_some(
                smallest.at, best, level, certify_at, monitor, everywhere=everywhere
            )
            stopped = late or stopped
    (keep_growing if criterion == "represent" else keep_rising)(smallest.at, best)
    if stopped is None and method.proof_level is not None:
        stopped = worst([Status.COMPLETED, *(proof.status for proof in certificates)])
    return _summary(smallest, best, certificates, names, method, stopped, monitor)


def _possible(choice: Choice, ks: list[int], *, named: bool) -> list[int]:
    """Return the numbers of features that supports under rules can have at most.

    Numbers that the user has named are kept; `ValueError` if there is no support.
    """
    smaller = {k: choice.resized(k) for k in ks}
    if not named:
        sizes = {small.size for small in smaller.values() if not small.is_empty}
        smaller = {k: choice.resized(k) for k in sorted(sizes)}
    possible = [k for k, small in smaller.items() if small.has_supports]
    if named and (lost := sorted(set(ks) - set(possible))):
        raise ValueError(f"ks holds {lost[0]}: no choice of so few features keeps the rules.")
    return possible


def _check_estimator(
    estimator: str, disjoint: bool, include: Features | None, exclude: Features | None,
    panel: Panel | None,
) -> None:  # fmt: skip
    """Raise `ValueError` about what does not go together."""
    if estimator != SHARED and estimator not in KINDS:
        raise ValueError(f"estimator must be one of {[SHARED, *KINDS]}, got {estimator!r}.")
    if disjoint and KINDS.get(estimator) is not StiefelProblem:
        raise ValueError(f"disjoint=True needs estimator='orthonormal', got {estimator!r}.")
    if estimator != SHARED and (include is not None or exclude is not None):
        raise ValueError(f"include and exclude need estimator={SHARED!r}, got {estimator!r}.")
    if estimator != SHARED and panel is not None and not panel.is_plain:
        raise ValueError(f"A panel needs estimator={SHARED!r}, got {estimator!r}.")


def _smallest_problem(
    begun: Beginning, n_components: int, include: Features | None, exclude: Features | None,
    panel: Panel | None, ask: Callable[..., Any],
) -> Any:  # fmt: skip
    """Return the problem with the fewest features; complains before any work is done."""
    require_count("n_components", n_components, 1)
    rules = Panel() if panel is None else panel
    return rules.smallest(
        begun.covariance, n_components, include=begun.indices("include", include),
        exclude=begun.indices("exclude", exclude), names=begun.names, ask=ask,
    )  # fmt: skip


def _summary(
    smallest: Any, best: dict[int, Candidate], certificates: list[Certificate],
    names: list[str] | None, method: AnyMethod, stopped: Status | None, monitor: Monitor,
) -> SparsityPath:  # fmt: skip
    """Put the path together, with the band that holds the optima."""
    A, m, done = smallest.covariance, smallest.n_components, sorted(best)
    objective = np.maximum.accumulate([best[k].objective for k in done])
    band = upper_band(smallest.at(done[-1]), done, certificates)

    def at_least(place: int) -> float:
        point = best[done[place]]
        return smallest.at(done[place]).claimed_value(point.support, point.weights)

    supports = [best[k].support for k in done]
    represented, panel = shares_along(A, supports, [best[k].weights for k in done])
    return SparsityPath(
        k=np.array(done, dtype=np.intp), objective=objective,
        upper=checked(objective, band, at_least), supports=supports,
        n_components=m, n_features=A.n_features, full=float(A.leading(m).values.sum()),
        total_variance=A.trace(), feature_names=names, solver=method.name,
        status=(stopped or Status.COMPLETED).value, certificates=certificates,
        n_passes=A.n_passes, seconds=monitor.seconds, represented=represented, panel=panel,
        ridge=getattr(smallest, "ridge", None),
    )  # fmt: skip


def grid_between(lower: int, upper: int) -> list[int]:
    """Return the numbers of features of a path between two limits.

    Examples
    --------
    >>> grid_between(2, 6)
    [2, 3, 4, 5, 6]
    >>> grid_between(48, 300)
    [48, 49, 50, 60, 72, 87, 105, 126, 152, 183, 200]
    """
    if upper <= EVERY_K:
        return list(range(lower, upper + 1))
    return steps_between(lower, max(min(upper, LARGEST_K), lower), EVERY_K_OF_MANY)


def steps_between(lower: int, last: int, every: int) -> list[int]:
    """Return every number from `lower` up to one, then steps of a fifth up to `last`.

    Examples
    --------
    >>> steps_between(1, 30, 6)
    [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 30]
    """
    grid = list(range(lower, min(every, last) + 1)) or [lower]
    while grid[-1] < last:
        grid.append(min(int(np.ceil(grid[-1] * STEP)), last))
    return grid


def _checked_places(certify_at: Sequence[int] | None, wanted: list[int]) -> Sequence[int] | None:
    """Return where to prove, after checking that the path goes there."""
    if certify_at is not None and (unknown := sorted(set(certify_at) - set(wanted))):
        raise ValueError(f"certify_at holds {unknown[0]}, which is not on the path: {wanted}.")
    return certify_at


def _checked_ks(ks: Sequence[int], lower: int, upper: int) -> list[int]:
    """Return the user's numbers, sorted and without repeats."""
    for k in ks:
        require_count("every number in ks", k, 1)
        if not lower <= k <= upper:
            raise ValueError(f"ks holds {k}; it must lie between {lower} and {upper}.")
    if not len(ks):
        raise ValueError("ks is empty.")
    return sorted({int(k) for k in ks})

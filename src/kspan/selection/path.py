"""`sparsity_path`: the variance explained with k features for every k, from one decomposition."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kspan.certificates import Certificate, CertificateStatus
from kspan.linalg.threads import one_blas_thread
from kspan.methods import LEVELS, ROW_SPARSE, RandomState, generator
from kspan.problem import RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status, combine, log_progress
from kspan.selection.band import checked, upper_band
from kspan.selection.features import Features, feature_indices, named_covariance
from kspan.selection.moves import keep_rising
from kspan.selection.proofs import certify_some, where
from kspan.selection.result import SparsityPath
from kspan.selection.supports import choose_supports

# The grid: every k up to the first number of features, or with more of them up to the second,
# then steps of a fifth, no further than the third.
EVERY_K, EVERY_K_OF_MANY, LARGEST_K = 200, 50, 1000
STEP = 1.2

# The walk's share of a time limit; the rest is for proofs.
TIME_TO_WALK = 0.6


def sparsity_path(
    X: Any,
    n_components: int = 2,
    *,
    ks: Sequence[int] | None = None,
    include: Features | None = None,
    exclude: Features | None = None,
    scale: bool = False,
    covariance: str | None = None,
    solver: str = "auto",
    certify: bool | str = True,
    certify_at: Sequence[int] | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    verbose: int | bool = 0,
) -> SparsityPath:
    """Choose k features for every k, and bound what is possible at each.

    The data is decomposed once. Every k starts from what its neighbours found
    (`kspan.selection.walk`), and a few certificates bound all k (`kspan.selection.band`).

    Parameters
    ----------
    X : array, DataFrame, sparse array, path, or `Covariance`
        What `kspan.as_covariance` takes.
    n_components : int, default=2
        m.
    ks : sequence of int, optional
        The numbers of features. By default every k from m to d when there are at most 200
        features; else every k up to 50, then steps of a fifth up to d, or 1000 if d is more.
    include, exclude : names, indices or masks, optional
        Features that must, and must not, be chosen.
    scale : bool, default=False
        Divide every feature by its standard deviation, to work on correlations.
    covariance : {None, "precomputed"}
        "precomputed": X is a covariance matrix.
    solver : str, default="auto"
        "auto" is the warm-started walk: about as good as `kspan.solve` with "auto" at each k, in
        a fraction of the time, and never below "ipu". "exact" proves every k at level "exact". Any
        other method of `kspan.solve` is run at each k, and its features get the best loadings.
    certify : bool or {"fast", "tight", "exact"}, default=True
        True is "tight". False leaves the bounds that come for free.
    certify_at : sequence of int, optional
        Numbers of features at which to prove; three by default.
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import sparsity_path
    >>> path = sparsity_path(load_wine().data, 2, scale=True, random_state=0)
    >>> path.k[[0, -1]], path.smallest(share=0.9)
    (array([ 2, 13]), 10)
    >>> bool((path.objective <= path.upper).all())
    True
    """
    if covariance not in (None, "precomputed"):
        raise ValueError(f"covariance must be None or 'precomputed', got {covariance!r}.")
    if solver not in ROW_SPARSE:
        raise ValueError(f"solver must be one of {sorted(ROW_SPARSE)}, got {solver!r}.")
    if not isinstance(certify, bool | np.bool_) and certify not in LEVELS:
        raise ValueError(f"certify must be a bool or one of {list(LEVELS)}, got {certify!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}.")
    A, names = named_covariance(X, scale=scale, precomputed=covariance == "precomputed")
    d = A.n_features
    inside = feature_indices("include", include, d, names)
    outside = feature_indices("exclude", exclude, d, names)

    def problem_at(k: int) -> RowSparseProblem:
        return RowSparseProblem(A, n_components, k, inside, outside)

    require_count("n_components", n_components, 1)
    lower, upper = max(n_components, inside.size), d - outside.size
    problem_at(lower)  # complains about m, include and exclude before any work
    wanted = default_grid(lower, upper) if ks is None else _checked_ks(ks, lower, upper)
    level = "tight" if certify is True else str(certify or "")
    level = "exact" if solver == "exact" else level
    report = combine(callback, log_progress if verbose else None)
    monitor = Monitor("path", report, time_limit)
    A.prepare()
    full = float(A.leading(n_components).values.sum())
    with one_blas_thread():
        best, stopped = choose_supports(
            problem_at, wanted, solver, generator(random_state), report,
            None if time_limit is None else time_limit * (TIME_TO_WALK if level else 1.0),
        )  # fmt: skip
        done = sorted(best)
        at = where(done, certify_at, upper, everywhere=solver == "exact")
        certificates: list[Certificate] = []
        if level and stopped not in (Status.STOPPED, Status.INTERRUPTED):
            certificates, late = certify_some(problem_at, best, level, at, monitor, report)
            stopped = late or stopped
    keep_rising(problem_at, best)
    objective = np.maximum.accumulate([best[k].objective for k in done])
    band = checked(objective, upper_band(problem_at(done[-1]), done, certificates), d)
    unproved = solver == "exact" and any(
        certificate.status is not CertificateStatus.OPTIMAL for certificate in certificates
    )
    return SparsityPath(
        k=np.array(done, dtype=np.intp), objective=objective, upper=band,
        supports=[best[k].support for k in done], n_components=int(n_components), n_features=d,
        full=full, total_variance=A.trace(), feature_names=names, solver=solver,
        status=(stopped or (Status.UNPROVED if unproved else Status.COMPLETED)).value,
        certificates=certificates, n_passes=A.n_passes, seconds=monitor.seconds,
    )  # fmt: skip


def default_grid(lower: int, upper: int) -> list[int]:
    """Return the numbers of features of a path between two limits.

    Examples
    --------
    >>> default_grid(2, 6)
    [2, 3, 4, 5, 6]
    >>> default_grid(48, 300)
    [48, 49, 50, 60, 72, 87, 105, 126, 152, 183, 220, 264, 300]
    """
    if upper <= EVERY_K:
        return list(range(lower, upper + 1))
    last = max(min(upper, LARGEST_K), lower)
    grid = list(range(lower, min(EVERY_K_OF_MANY, last) + 1)) or [lower]
    while grid[-1] < last:
        grid.append(min(int(np.ceil(grid[-1] * STEP)), last))
    return grid


def _checked_ks(ks: Sequence[int], lower: int, upper: int) -> list[int]:
    """Return the user's numbers, sorted and without repeats."""
    for k in ks:
        require_count("every number in ks", k, 1)
        if not lower <= k <= upper:
            raise ValueError(f"ks holds {k}; it must lie between {lower} and {upper}.")
    if not len(ks):
        raise ValueError("ks is empty.")
    return sorted({int(k) for k in ks})

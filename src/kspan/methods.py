"""`solve` and `certify`: the registry of methods by name, and proofs of what they find."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.certificates import Certificate, CertificateStatus
from kspan.certificates.levels import Certifier
from kspan.problem import RowSparseProblem
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Solution
from kspan.solvers.loop import iterate
from kspan.solvers.rowsparse.auto import auto
from kspan.solvers.rowsparse.brute_force import brute_force
from kspan.solvers.rowsparse.go import go
from kspan.solvers.rowsparse.ipu import ipu, step
from kspan.solvers.rowsparse.swaps import improve_by_swaps
from kspan.solvers.starts import Init

LEVELS = ("fast", "tight", "exact")


def certify(
    problem: RowSparseProblem,
    solution: Solution,
    level: str = "tight",
    *,
    time_limit: float | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    k_grid: Sequence[int] = (),
) -> Certificate:
    """Prove how good a solution is.

    Parameters
    ----------
    problem : RowSparseProblem
    solution : Solution
        Of that problem. A better support found on the way takes its place in the certificate.
    level : {"fast", "tight", "exact"}
        Closed forms; a convex relaxation; the relaxation and a search for the proven optimum.
    time_limit : float, optional
        Seconds after which the best proof so far is returned.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    checkpoint : path, optional
        A search writes its state there, atomically, every `checkpoint_every` seconds and at the
        end. If the file is there, the search goes on from it; the file of another problem is
        refused.
    k_grid : sequence of int
        More numbers of features at which to keep witnesses for ``certificate.upper_at``.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, certify, solve
    >>> from kspan.datasets import load_pitprops
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> problem = RowSparseProblem(A, n_components=1, n_features_to_select=5)
    >>> certificate = certify(problem, solve(problem, random_state=0), level="exact")
    >>> certificate.status.value, round(certificate.lower, 6)
    ('optimal', 3.406155)
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {list(LEVELS)}, got {level!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}.")
    if solution.n_features != problem.n_features:
        raise ValueError("The solution belongs to a problem with another number of features.")
    if solution.support.size != problem.n_features_to_select:
        raise ValueError("The solution belongs to a problem with another n_features_to_select.")
    support = set(solution.support.tolist())
    if not support.issuperset(problem.include) or not support.isdisjoint(problem.exclude):
        raise ValueError("The solution breaks include or exclude of the problem.")
    return Certifier(
        problem,
        solution.support,
        level=level,
        heuristic=lambda *where: polish(problem, *where),
        time_limit=time_limit,
        callback=callback,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        k_grid=k_grid,
    ).run()


def polish(problem: RowSparseProblem, scores: FloatArray, include: Index, exclude: Index) -> Index:
    """Turn a relaxed selection into a support: the k best scores, IPU, then pair swaps."""
    inside = replace(problem, include=include, exclude=exclude)
    monitor = Monitor("polish")
    start = inside.refit(inside.select(scores))
    run = iterate([start], lambda batch: step(inside, batch), max_iter=20, monitor=monitor)
    better, _ = improve_by_swaps(inside, run.best, max_sweeps=10, monitor=monitor)
    return better.support


def exact(
    problem: RowSparseProblem,
    *,
    init: Init = "low-rank",
    rng: np.random.Generator,
    callback: Callback | None = None,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Solution:
    """Search for the proven optimum: "auto", then `certify` at level "exact"."""
    first = auto(problem, init=init, rng=rng, callback=callback, time_limit=time_limit)
    if first.status is not Status.COMPLETED:
        return replace(first, solver="exact")
    certificate = certify(
        problem, first, "exact", time_limit=time_limit, callback=callback,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every,
    )  # fmt: skip
    return proved(problem, first, certificate)


def proved(problem: RowSparseProblem, first: Solution, certificate: Certificate) -> Solution:
    """Return the solution that a certificate is about: `first`, or a better one found since."""
    best = problem.refit(certificate.support)
    return Solution.from_candidate(
        best, n_features=problem.n_features, solver="exact", status=_PROVED[certificate.status],
        history=[*first.history.tolist(), best.objective], n_iter=first.n_iter,
    )  # fmt: skip


_PROVED = {
    CertificateStatus.OPTIMAL: Status.COMPLETED,
    CertificateStatus.BOUNDED: Status.UNPROVED,
    CertificateStatus.TIME_LIMIT: Status.TIME_LIMIT,
    CertificateStatus.INTERRUPTED: Status.INTERRUPTED,
    CertificateStatus.STOPPED: Status.STOPPED,
}

ROW_SPARSE: dict[str, Callable[..., Solution]] = {
    "auto": auto,
    "exact": exact,
    "go": go,
    "ipu": ipu,
    "brute-force": brute_force,
}

STARTS = ("low-rank", "random")


def solve(
    problem: RowSparseProblem,
    solver: str = "auto",
    *,
    init: Init = "low-rank",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> Solution:
    """Solve a problem by the named method.

    Parameters
    ----------
    problem : RowSparseProblem
    solver : {"auto", "exact", "go", "ipu", "brute-force"}
        "auto" gives the best value its budget allows; "exact" goes on until that is proved
        optimal (use `certify` to keep the proof); the others do what their paper says.
    init : {"low-rank", "random"} or (d, m) array
        Where methods that iterate start.
    random_state : int, generator or None
        The same integer gives the same answer.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    time_limit : float, optional
        Seconds after which the best answer so far is returned.
    **options
        What the method itself takes: ``max_iter`` (ipu, auto), ``shift`` (go, ipu),
        ``refine`` (go), ``n_restarts``, ``max_sweeps``, ``n_kicks`` (auto), ``max_supports``
        (brute-force), ``checkpoint``, ``checkpoint_every`` (exact).

    Returns
    -------
    Solution

    Examples
    --------
    >>> from kspan import RowSparseProblem, as_covariance, solve
    >>> from kspan.datasets import load_pitprops
    >>> A = as_covariance(load_pitprops().covariance, kind="covariance")
    >>> solution = solve(RowSparseProblem(A, 1, 5), random_state=0)
    >>> round(solution.objective, 6)
    3.406155
    """
    if solver not in ROW_SPARSE:
        raise ValueError(f"solver must be one of {sorted(ROW_SPARSE)}, got {solver!r}.")
    if isinstance(init, str) and init not in STARTS:
        raise ValueError(f"init must be one of {list(STARTS)} or an array, got {init!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}.")
    method = ROW_SPARSE[solver]
    known = set(signature(method).parameters)
    unknown = set(options) - known
    if unknown:
        allowed = sorted(known - {"problem", "init", "rng", "callback", "time_limit"})
        raise ValueError(
            f"solver {solver!r} has no option {sorted(unknown)[0]!r}; it takes {allowed}."
        )
    # Methods that do not iterate have no use for a start or for random numbers.
    if "init" in known:
        options["init"] = init
    if "rng" in known:
        options["rng"] = _generator(random_state)
    return method(problem, callback=callback, time_limit=time_limit, **options)


def _generator(
    random_state: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)

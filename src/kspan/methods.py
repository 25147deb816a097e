"""`solve`: the registry of methods by name."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from kspan.problem import RowSparseProblem
from kspan.progress import Callback
from kspan.solution import Solution
from kspan.solvers.rowsparse.auto import auto
from kspan.solvers.rowsparse.brute_force import brute_force
from kspan.solvers.rowsparse.go import go
from kspan.solvers.rowsparse.ipu import ipu
from kspan.solvers.starts import Init

ROW_SPARSE: dict[str, Callable[..., Solution]] = {
    "auto": auto,
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
    solver : {"auto", "go", "ipu", "brute-force"}
        "auto" gives the best value its budget allows; the others do what their paper says.
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
        (brute-force).

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

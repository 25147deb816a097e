"""`solve` and `certify`: the registry of methods by name, and proofs of what they find."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from typing import Any, overload

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.certificates import Certificate, CertificateStatus
from kspan.certificates.branch_and_bound import Heuristic
from kspan.certificates.levels import Certifier
from kspan.covariance.masked import MaskedCovariance
from kspan.problem import (
    ElementSparseProblem,
    NonnegativeProblem,
    RowSparseProblem,
    StiefelProblem,
    require_count,
)
from kspan.progress import Callback, Monitor, Status
from kspan.solution import Candidate, LoadingsSolution, Solution
from kspan.solvers.elementsparse.gpower import gpower, gpower_block
from kspan.solvers.elementsparse.grqi import grqi
from kspan.solvers.elementsparse.ipm import ipm
from kspan.solvers.elementsparse.matching import matching
from kspan.solvers.elementsparse.spannogram import signed_spannogram
from kspan.solvers.elementsparse.tpower import tpower_deflated
from kspan.solvers.nonnegative.ascent import ascend
from kspan.solvers.nonnegative.auto import auto as nonnegative_auto
from kspan.solvers.nonnegative.em import em
from kspan.solvers.nonnegative.net import net
from kspan.solvers.nonnegative.nspca import nspca
from kspan.solvers.nonnegative.spannogram import spannogram
from kspan.solvers.rowsparse.auto import auto
from kspan.solvers.rowsparse.brute_force import brute_force
from kspan.solvers.rowsparse.cssp import cssp
from kspan.solvers.rowsparse.fps import fps
from kspan.solvers.rowsparse.go import go
from kspan.solvers.rowsparse.ipu import IPU, ipu
from kspan.solvers.rowsparse.row_scores import run_rule
from kspan.solvers.rowsparse.soap import soap
from kspan.solvers.rowsparse.srt import srt, streaming_srt
from kspan.solvers.rowsparse.swaps import improve_by_swaps
from kspan.solvers.rowsparse.tpower import tpower
from kspan.solvers.starts import STARTS, Init
from kspan.solvers.stiefel.admm import admm
from kspan.solvers.stiefel.deflated import deflated
from kspan.solvers.stiefel.sadmm import sadmm
from kspan.solvers.stiefel.splitting import Settings
from kspan.solvers.stiefel.starts import STIEFEL_STARTS
from kspan.solvers.stiefel.two_stage import two_stage

# Methods that make so few products from one start that A need not be formed.
FEW_PRODUCTS = ("go", "ipu")
LEVELS = ("fast", "tight", "exact")
NONNEGATIVE_LEVELS = ("fast", "net", "tight", "exact")

# Options of an estimator that go to `certify` and not to the solver.
CERTIFY_OPTIONS = ("checkpoint", "checkpoint_every", "k_grid")


def certify(
    problem: RowSparseProblem | NonnegativeProblem,
    solution: Solution | LoadingsSolution,
    level: str = "tight",
    *,
    time_limit: float | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    k_grid: Sequence[int] = (),
    rank: int | None = None,
    epsilon: float | None = None,
) -> Certificate:
    """Prove how good a solution is.

    Parameters
    ----------
    problem : RowSparseProblem or NonnegativeProblem
        The latter with one component; see `kspan.series.component_problems` for several.
    solution : Solution or LoadingsSolution
        Of that problem. A better support found on the way takes its place in the certificate.
    level : {"fast", "tight", "exact"}
        Closed forms; a convex relaxation; the relaxation and a search for the proven optimum.
        For nonnegative problems also "net": the bound of the spannogram's paper, which holds with
        the probability ``certificate.confidence``.
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
    rank, epsilon : int and float, optional
        Of level "net": the net's rank and what it may lose. By default the best of ranks 1 to 5
        with fine nets.

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
    levels = NONNEGATIVE_LEVELS if isinstance(problem, NonnegativeProblem) else LEVELS
    if level not in levels:
        raise ValueError(f"level must be one of {list(levels)}, got {level!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}.")
    if rank is not None:
        require_count("rank", rank, 1)
    problem.covariance.ensure_psd()  # bounds rely on it
    problem.covariance.prepare()
    if isinstance(problem, NonnegativeProblem):
        best = _nonnegative_point(problem, solution)
        heuristic: Heuristic = partial(climb, problem)
    else:
        best = _row_sparse_point(problem, solution)
        heuristic = partial(polish, problem)
    return Certifier(
        problem,
        best,
        level=level,
        heuristic=heuristic,
        time_limit=time_limit,
        callback=callback,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        k_grid=k_grid,
        net=(rank, epsilon),
    ).run()


def _row_sparse_point(
    problem: RowSparseProblem, solution: Solution | LoadingsSolution
) -> Candidate:
    """Return the best point on the solution's support, after checking that it fits."""
    if not isinstance(solution, Solution):
        raise TypeError("A RowSparseProblem needs a Solution.")
    if solution.n_features != problem.n_features:
        raise ValueError("The solution belongs to a problem with another number of features.")
    if solution.support.size != problem.n_features_to_select:
        raise ValueError("The solution belongs to a problem with another n_features_to_select.")
    support = set(solution.support.tolist())
    if not support.issuperset(problem.include) or not support.isdisjoint(problem.exclude):
        raise ValueError("The solution breaks include or exclude of the problem.")
    return problem.refit(np.sort(solution.support))


def _nonnegative_point(
    problem: NonnegativeProblem, solution: Solution | LoadingsSolution
) -> Candidate:
    """Return the solution's vector, or a better one on its support."""
    if problem.n_components != 1:
        raise ValueError(
            "A certificate is about one nonnegative component: "
            "`kspan.series.component_problems` makes one problem for each."
        )
    x = solution.loadings
    if x.shape != (problem.n_features, 1):
        raise ValueError("The solution belongs to a problem with other features or components.")
    x = x[:, 0]
    support = np.flatnonzero(x)
    if not (x >= 0).all() or not 1 <= support.size <= problem.n_nonzero_coefs:
        raise ValueError("The solution has negative loadings, or more than n_nonzero_coefs.")
    given, refitted = problem.on_vector(support, x[support]), problem.refit(support)
    return refitted if refitted.objective > given.objective else given


def climb(problem: NonnegativeProblem, scores: FloatArray, include: Index, exclude: Index) -> Index:
    """Turn a relaxed selection into a support: from the k best scores up to a local maximum."""
    keep = problem.allowed.copy()
    keep[exclude] = False
    covariance = MaskedCovariance(problem.covariance, keep)
    starts = np.where(keep, np.sqrt(np.maximum(scores, 0.0)), 0.0)[:, None]
    return np.flatnonzero(ascend(covariance, starts, problem.n_nonzero_coefs).best)


def polish(problem: RowSparseProblem, scores: FloatArray, include: Index, exclude: Index) -> Index:
    """Turn a relaxed selection into a support: the k best scores, IPU, then pair swaps."""
    inside = replace(problem, include=include, exclude=exclude)
    monitor = Monitor("polish")
    start = inside.refit(inside.select(scores))
    run = run_rule(inside, IPU, [start], max_iter=20, monitor=monitor)
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
    "soap": soap,
    "srt": srt,
    "streaming-srt": streaming_srt,
    "cssp": cssp,
    "tpower": tpower,
    "fps": fps,
    "brute-force": brute_force,
}


ELEMENT_SPARSE: dict[str, Callable[..., LoadingsSolution]] = {
    "tpower": tpower_deflated,
    "gpower-l0": partial(gpower, norm="l0"),
    "gpower-l1": partial(gpower, norm="l1"),
    "gpower-l0-block": partial(gpower_block, norm="l0"),
    "gpower-l1-block": partial(gpower_block, norm="l1"),
    "grqi": grqi,
    "ipm": ipm,
    "spannogram": signed_spannogram,
    "matching": matching,
}

STIEFEL: dict[str, Callable[..., LoadingsSolution]] = {
    "sadmm": sadmm,
    "admm": admm,
    "deflation": deflated,
    "two-stage": two_stage,
}

NONNEGATIVE: dict[str, Callable[..., LoadingsSolution]] = {
    "auto": nonnegative_auto,
    "spannogram": spannogram,
    "net": net,
    "em": em,
    "nspca": nspca,
}

RandomState = int | np.random.Generator | np.random.RandomState | None


# By the kind of problem: its methods, and the names of their starts.
REGISTRY: dict[
    type, tuple[Mapping[str, Callable[..., Solution | LoadingsSolution]], tuple[str, ...]]
] = {
    RowSparseProblem: (ROW_SPARSE, STARTS),
    ElementSparseProblem: (ELEMENT_SPARSE, STARTS),
    StiefelProblem: (STIEFEL, STIEFEL_STARTS),
    NonnegativeProblem: (NONNEGATIVE, ()),
}


@overload
def solve(
    problem: RowSparseProblem,
    solver: str = ...,
    *,
    init: Init | None = ...,
    random_state: RandomState = ...,
    callback: Callback | None = ...,
    time_limit: float | None = ...,
    **options: Any,
) -> Solution: ...


@overload
def solve(
    problem: ElementSparseProblem | StiefelProblem | NonnegativeProblem,
    solver: str = ...,
    *,
    init: Init | None = ...,
    random_state: RandomState = ...,
    callback: Callback | None = ...,
    time_limit: float | None = ...,
    **options: Any,
) -> LoadingsSolution: ...


def solve(
    problem: RowSparseProblem | ElementSparseProblem | StiefelProblem,
    solver: str = "auto",
    *,
    init: Init | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> Solution | LoadingsSolution:
    """Solve a problem by the named method.

    Parameters
    ----------
    problem : RowSparseProblem
        Or an `ElementSparseProblem`, `StiefelProblem` or `NonnegativeProblem` with the methods of
        `ElementSparsePCA`, `StiefelSparsePCA` and `NonnegativeSparsePCA`; the answer is then a
        `LoadingsSolution`.
    solver : str
        "auto" gives the best value its budget allows; "exact" goes on until that is proved
        optimal (use `certify` to keep the proof). The others do what their paper says: "go",
        "ipu", "soap", "srt", "streaming-srt" (one pass over data), "cssp", "tpower", "fps",
        "brute-force".
    init : {"low-rank", "convex", "variance", "random"} or (d, m) array, optional
        Where methods that iterate start: Go's solution; the convex relaxation of FPS cut to k
        rows; the features with the largest variances; a random subspace. By default "low-rank",
        and "variance" for "tpower", whose array has one column.
    random_state : int, generator or None
        The same integer gives the same answer.
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every step; returning True stops.
    time_limit : float, optional
        Seconds after which the best answer so far is returned.
    **options
        What the method itself takes: ``max_iter`` (ipu, soap, srt, tpower, fps, auto), ``shift``
        (go, ipu, soap, srt), ``n_restarts`` (ipu, soap, srt, tpower: random starts, the best
        result counts; auto), ``refine`` (go, cssp, fps), ``columns`` (cssp), ``gradual``
        (tpower), ``penalty``, ``tol`` (fps), ``block_size``, ``warm_up`` (streaming-srt),
        ``max_sweeps``, ``n_kicks`` (auto), ``max_supports`` (brute-force), ``checkpoint``,
        ``checkpoint_every`` (exact).

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
    if type(problem) not in REGISTRY:
        raise TypeError(f"solve needs a problem such as RowSparseProblem, got {problem!r}.")
    registry, starts = REGISTRY[type(problem)]
    if solver not in registry:
        raise ValueError(f"solver must be one of {sorted(registry)}, got {solver!r}.")
    if isinstance(init, str) and init not in starts:
        raise ValueError(f"init must be one of {list(starts)} or an array, got {init!r}.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit!r}.")
    method = registry[solver]
    parameters = signature(method).parameters
    known = {name for name, kind in parameters.items() if kind.kind is not kind.VAR_KEYWORD}
    if len(known) < len(parameters):
        known |= {setting.name for setting in fields(Settings)}
    unknown = set(options) - known
    if unknown:
        allowed = sorted(known - {"problem", "init", "rng", "callback", "time_limit"})
        raise ValueError(
            f"solver {solver!r} has no option {sorted(unknown)[0]!r}; it takes {allowed}."
        )
    # Methods that do not iterate have no use for a start or for random numbers.
    if "init" in known and init is not None:
        options["init"] = init
    if "rng" in known:
        options["rng"] = generator(random_state)
    if solver not in FEW_PRODUCTS or options.get("n_restarts"):
        problem.covariance.prepare()
    return method(problem, callback=callback, time_limit=time_limit, **options)


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator of random numbers from whatever names one."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)

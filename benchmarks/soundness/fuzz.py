"""The loop: draw problems, run routes, count, keep failures, until time is up."""

import signal
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.soundness.all_routes import ROUTES
from benchmarks.soundness.counts import Counts
from benchmarks.soundness.examine import examine
from benchmarks.soundness.problems import KINDS, draw
from benchmarks.soundness.reduce import Failure, reduced
from benchmarks.soundness.routes import quick_threads

# Routes on each problem: they share its enumeration.
ROUTES_PER_CASE = 6

# Seconds of computing after which a single case is a failure of its own.
PATIENCE = 30.0

# Seconds that each process may spend on making failures small, at the end.
REDUCING = 20.0


def fuzz(
    seconds: float, seed: int, kinds: tuple[str, ...] = tuple(KINDS),
    routes: tuple[str, ...] = tuple(ROUTES),
) -> tuple[Counts, list[Failure]]:  # fmt: skip
    """Try problems in this process for some seconds; return counts and failures."""
    signal.signal(signal.SIGVTALRM, _out_of_patience)
    rng = np.random.default_rng(seed)
    weights = np.array([ROUTES[route].weight for route in routes])
    counts, failures = Counts(), {}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        case = draw(rng, kinds)
        truth = case.truth()
        for route in rng.choice(routes, ROUTES_PER_CASE, p=weights / weights.sum()):
            route, own_seed = str(route), int(rng.integers(2**31))
            started = time.perf_counter()
            signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
            judgement = examine(case, route, own_seed, truth)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            counts.note(case.kind, route, judgement, time.perf_counter() - started)
            for claim, sentence in judgement.wrong:
                failure = Failure(case, route, own_seed, claim, sentence)
                failures.setdefault(failure.group, failure)
    return counts, list(failures.values())


def fuzz_in_processes(
    seconds: float, seed: int, processes: int, **only: Any
) -> tuple[Counts, list[Failure]]:
    """`fuzz`, in several processes with a seed each; failures come back reduced."""
    seeds = [int(s.generate_state(1)[0]) for s in np.random.SeedSequence(seed).spawn(processes)]
    tasks = [(seconds, own_seed, only) for own_seed in seeds]
    if processes == 1:
        return _fuzz_one(tasks[0])
    counts, failures = Counts(), {}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for found, failed in pool.map(_fuzz_one, tasks):
            counts.add(found)
            for failure in failed:
                failures.setdefault(failure.group, failure)
    return counts, list(failures.values())


def _fuzz_one(task: tuple[float, int, dict[str, Any]]) -> tuple[Counts, list[Failure]]:
    seconds, seed, only = task
    quick_threads()
    counts, failures = fuzz(seconds, seed, **only)
    share = min(REDUCING / max(len(failures), 1), 5.0)
    return counts, [reduced(failure, share) for failure in failures]


def _out_of_patience(signum: int, frame: Any) -> None:
    raise TimeoutError(f"not done after {PATIENCE:.0f} seconds of computing")

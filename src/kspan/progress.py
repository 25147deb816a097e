"""One progress report, one place that decides to stop early, for every iterative method."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a method ended. `advice` says in a sentence what that means for the user."""

    CONVERGED = "converged"
    COMPLETED = "completed"
    MAX_ITER = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by callback"

    @property
    def advice(self) -> str:
        """A sentence on what to do about it."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "Nothing changed in the last step; more iterations would not help.",
    Status.COMPLETED: "The method did all it sets out to do.",
    Status.MAX_ITER: "The last step still improved; raise max_iter.",
    Status.TIME_LIMIT: "Time ran out and this is the best answer so far; raise time_limit.",
    Status.INTERRUPTED: "Interrupted by the keyboard; this is the best answer so far.",
    Status.STOPPED: "The callback asked to stop; this is the best answer so far.",
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told. It stops the method by returning True."""

    solver: str
    iteration: int
    objective: float
    seconds: float


Callback = Callable[[Progress], bool | None]


def log_progress(progress: Progress) -> None:
    """Write one line for each step to standard error: the callback behind ``verbose``."""
    sys.stderr.write(
        f"[kspan] {progress.solver:12s} step {progress.iteration:4d}   "
        f"explained variance {progress.objective:.8g}   {progress.seconds:.1f} s\n"
    )


def combine(*callbacks: Callback | None) -> Callback | None:
    """Return one callback that calls all of them and stops when any asks to."""
    given = [callback for callback in callbacks if callback is not None]
    if not given:
        return None

    def call_all(progress: Progress) -> bool:
        answers = [callback(progress) for callback in given]
        return any(answers)

    return call_all


class Monitor:
    """Counts the steps of a solve, reports each one, and says when to stop early.

    Parameters
    ----------
    solver : name that the reports carry
    callback : called with a `Progress` after every step
    time_limit : seconds, counted from now
    """

    def __init__(
        self, solver: str, callback: Callback | None = None, time_limit: float | None = None
    ):
        self.solver = solver
        self.callback = callback
        self.time_limit = time_limit
        self.stopped: Status | None = None
        self._started = time.perf_counter()
        self._steps = 0

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._started

    def report(self, objective: float) -> bool:
        """Count a step and report it. Returns True when the method must stop now."""
        self._steps += 1
        if self.callback is not None:
            progress = Progress(self.solver, self._steps, objective, self.seconds)
            if self.callback(progress):
                self.stopped = Status.STOPPED
        if self.time_limit is not None and self.seconds > self.time_limit:
            self.stopped = Status.TIME_LIMIT
        return self.stopped is not None

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
    UNPROVED = "not proved optimal"

    @property
    def advice(self) -> str:
        """A sentence on what to do about it."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "Nothing changed in the last step; more iterations would not help.",
    Status.COMPLETED: "The method did all it sets out to do.",
    Status.MAX_ITER: "The last step still changed the answer; raise max_iter.",
    Status.TIME_LIMIT: "Time ran out and this is the best answer so far; raise time_limit.",
    Status.INTERRUPTED: "Interrupted by the keyboard; this is the best answer so far.",
    Status.UNPROVED: "The search ended with a gap; the certificate says how large it is.",
    Status.STOPPED: "The callback asked to stop; this is the best answer so far.",
}


@dataclass(frozen=True)
class Progress:
    """What a callback is told. It stops the method by returning True.

    `objective` is the best value so far. Proofs also tell `upper` and, when they search, the
    numbers of nodes done and open and of features left in the node with the largest bound.
    """

    solver: str
    iteration: int
    objective: float
    seconds: float
    upper: float | None = None
    n_nodes: int | None = None
    n_open: int | None = None
    n_features_left: int | None = None

    @property
    def gap(self) -> float | None:
        """The share of the optimum that may be lost, at most; None without an upper bound."""
        if self.upper is None:
            return None
        return (self.upper - self.objective) / self.upper if self.upper > 0 else 0.0


Callback = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Reading:
    """How far a pass over data in blocks has got."""

    label: str
    n_passes: int  # the number of this pass, the first being 1
    rows: int
    n_rows: int
    seconds: float  # since the pass began


def log_reading(reading: Reading) -> None:
    """Show passes and rows on standard error: what ``verbose`` does for data in blocks.

    A terminal gets a bar that grows, anything else a line when a pass is done.
    """
    done = reading.rows >= reading.n_rows
    terminal = sys.stderr.isatty()
    if not (done or terminal):
        return
    text = f"{reading.rows:,} of {reading.n_rows:,} rows   {reading.seconds:.1f} s"
    if terminal:
        filled = BAR_WIDTH * reading.rows // max(reading.n_rows, 1)
        text = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)}  {text}"
    start, end = ("\r", "\n" if done else "") if terminal else ("", "\n")
    sys.stderr.write(f"{start}[kspan] pass {reading.n_passes:3d}   {text}{end}")
    sys.stderr.flush()


BAR_WIDTH = 24


def log_progress(progress: Progress) -> None:
    """Write one line for each step to standard error: the callback behind ``verbose``."""
    if progress.upper is None:
        sys.stderr.write(
            f"[kspan] {progress.solver:12s} step {progress.iteration:4d}   "
            f"explained variance {progress.objective:.8g}   {progress.seconds:.1f} s\n"
        )
        return
    if progress.iteration == 1:
        sys.stderr.write(_SEARCH_HEADER)
    counts = (progress.n_nodes, progress.n_open, progress.n_features_left)
    nodes, still_open, features = ("-" if count is None else str(count) for count in counts)
    sys.stderr.write(
        f"{progress.seconds:8.1f} {nodes:>8} {still_open:>8} {features:>9} "
        f"{progress.objective:>14.8g} {progress.upper:>14.8g} {progress.gap:>9.4%}\n"
    )


_SEARCH_HEADER = "    time    nodes     open  features          lower          upper       gap\n"


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

    def time_left(self) -> float | None:
        """Return what is left of the time limit, at least a moment."""
        return None if self.time_limit is None else max(self.time_limit - self.seconds, 1e-9)

    def report(
        self,
        objective: float,
        *,
        upper: float | None = None,
        n_nodes: int | None = None,
        n_open: int | None = None,
        n_features_left: int | None = None,
    ) -> bool:
        """Count a step and report it. Returns True when the method must stop now."""
        self._steps += 1
        if self.callback is not None:
            progress = Progress(
                self.solver, self._steps, objective, self.seconds,
                upper, n_nodes, n_open, n_features_left,
            )  # fmt: skip
            if self.callback(progress):
                self.stopped = Status.STOPPED
        return self.out_of_time()

    def out_of_time(self) -> bool:
        """Say whether the method must stop now, without a report."""
        if self.time_limit is not None and self.seconds > self.time_limit:
            self.stopped = self.stopped or Status.TIME_LIMIT
        return self.stopped is not None

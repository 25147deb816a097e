"""How methods and proofs report and stop: status with advice, the deadline, the monitor.

Every loop reports to a `Monitor` and asks it whether to go on; there is no other way to do either.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a method, or a proof, ended. `advice` says in a sentence what that means for the user."""

    CONVERGED = "converged"
    COMPLETED = "completed"
    MAX_ITER = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by callback"
    OPTIMAL = "optimal"
    BOUNDED = "bounded"

    @property
    def advice(self) -> str:
        """A sentence on what to do about it."""
        return _ADVICE[self]

    @property
    def stopped_early(self) -> bool:
        """Whether there was more to do: time, callback or keyboard ended it."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.STOPPED)


_ADVICE = {
    Status.CONVERGED: "Nothing changed in the last step; more iterations would not help.",
    Status.COMPLETED: "The method did all it sets out to do.",
    Status.MAX_ITER: "The last step still changed the answer; raise max_iter.",
    Status.TIME_LIMIT: (
        "Time ran out; this is the best answer so far, and all bounds hold. Give it more time."
    ),
    Status.INTERRUPTED: (
        "Interrupted by the keyboard; this is the best answer so far, and all bounds hold."
    ),
    Status.STOPPED: (
        "The callback asked to stop; this is the best answer so far, and all bounds hold."
    ),
    Status.OPTIMAL: "No choice of features is better (up to 1e-6 of its value).",
    Status.BOUNDED: "A gap is left; the certificate's advice says what may close it.",
}

# From worst to best.
_SEVERITY = (
    Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT, Status.MAX_ITER, Status.BOUNDED,
    Status.COMPLETED, Status.CONVERGED, Status.OPTIMAL,
)  # fmt: skip


def worst(statuses: Iterable[Status]) -> Status:
    """Return the status of the part that ended worst: stopped before not settled."""
    return min(statuses, key=_SEVERITY.index)


class Deadline:
    """A moment after which no more work is begun, handed down to all who do a part of it.

    Parameters
    ----------
    seconds : float, optional
        From now; None for no limit.

    Examples
    --------
    >>> Deadline(60).passed, Deadline(None).left
    (False, inf)
    """

    def __init__(self, seconds: float | None = None):
        if seconds is not None and not seconds > 0:
            raise ValueError(f"time_limit must be positive, got {seconds!r}.")
        self._end = math.inf if seconds is None else time.perf_counter() + seconds

    # Every process has a counter of its own: a moment travels as a time of day.

    def __getstate__(self) -> float:
        return time.time() + (self._end - time.perf_counter())

    def __setstate__(self, moment: float) -> None:
        self._end = time.perf_counter() + (moment - time.time())

    @property
    def left(self) -> float:
        """Seconds until then, at least zero; infinite without a limit."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether that moment is over."""
        return time.perf_counter() > self._end

    def part(self, share: float) -> "Deadline":
        """Return an earlier one, after a share of the time that is left."""
        return self.within(share * self.left)

    def within(self, seconds: float) -> "Deadline":
        """Return one that is at most so many seconds away, and no later than this one."""
        earlier = Deadline()
        earlier._end = min(self._end, time.perf_counter() + seconds)
        return earlier


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
        return relative_gap(self.objective, self.upper)


def relative_gap(lower: float, upper: float) -> float:
    """Return the share of `upper` that `lower` may be short of the optimum, at most."""
    return max(0.0, (upper - lower) / upper) if upper > 0 else 0.0


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
    deadline : when time is up; or seconds from now, or None for no limit
    """

    def __init__(
        self,
        solver: str,
        callback: Callback | None = None,
        deadline: Deadline | float | None = None,
    ):
        self.solver = solver
        self.callback = callback
        self.deadline = deadline if isinstance(deadline, Deadline) else Deadline(deadline)
        self.unit = 1.0
        self._parent: Monitor | None = None
        self._stopped: Status | None = None
        self._started = time.perf_counter()
        self._steps = 0

    def inner(
        self,
        solver: str | None = None,
        *,
        quiet: bool = False,
        unit: float = 1.0,
        share: float | None = None,
    ) -> "Monitor":
        """Return the monitor of a part of the work.

        Whoever stops the part, by keyboard or callback, stops the whole; the end of the part's
        time does not.

        Parameters
        ----------
        solver : name in reports; that of the whole by default
        quiet : report nothing
        unit : what the part's variances are measured in; reports are in the user's units
        share : of the time that is left
        """
        deadline = self.deadline if share is None else self.deadline.part(share)
        part = Monitor(solver or self.solver, None if quiet else self.callback, deadline)
        part.unit, part._parent = self.unit * unit, self
        return part

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._started

    @property
    def stopped(self) -> Status | None:
        """Why the work must end before it is done, if it must."""
        if self._stopped is None and self._parent is not None:
            return self._parent.stopped
        return self._stopped

    @stopped.setter
    def stopped(self, status: Status) -> None:
        self._stopped = status
        if self._parent is not None and status is not Status.TIME_LIMIT:
            self._parent.stopped = status

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let the keyboard end what is done in the block, which goes on behind it."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = Status.INTERRUPTED

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
                self.solver, self._steps, objective * self.unit, self.seconds,
                None if upper is None else upper * self.unit, n_nodes, n_open, n_features_left,
            )  # fmt: skip
            if self.callback(progress):
                self.stopped = Status.STOPPED
        return self.out_of_time()

    def out_of_time(self) -> bool:
        """Say whether the method must stop now, without a report."""
        if self.stopped is None and self.deadline.passed:
            self.stopped = Status.TIME_LIMIT
        return self.stopped is not None

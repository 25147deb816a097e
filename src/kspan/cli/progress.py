"""Progress on standard error: a bar on a terminal, a line every few seconds in a pipe."""

import time
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

if TYPE_CHECKING:
    from kspan.progress import Progress, Reading

# Seconds between two lines in a pipe.
LINE_EVERY = 5.0


class Watcher:
    """Shows what estimators and data tell of their progress.

    Parameters
    ----------
    quiet : show nothing
    """

    def __init__(self, quiet: bool = False):
        self.console = Console(stderr=True)
        self.bar: Any = None
        self.quiet = quiet
        self._gap = 1.0
        self._started = self._last = time.perf_counter()

    def __enter__(self) -> Self:
        if not self.quiet and self.console.is_terminal:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
            from rich.progress import TimeElapsedColumn as Elapsed

            self.bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                Elapsed(),
                console=self.console,
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("starting", total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def on_step(self, progress: "Progress") -> None:
        """Show a step of a solver, or of a proof: the callback for estimators."""
        text = f"{progress.solver}: explained variance {progress.objective:.6g}"
        if progress.gap is not None:
            # A stage may begin with a bound worse than that of the one before, which still holds.
            first = progress.iteration == 1
            self._gap = progress.gap if first else min(progress.gap, self._gap)
            text = f"proof: gap {self._gap:.3%}"
            if progress.n_nodes is not None:
                text += f", {progress.n_nodes} nodes, {progress.n_open} open"
        self._show(text, None, None)

    def on_rows(self, reading: "Reading") -> None:
        """Show how far a pass over the data is."""
        text = f"pass {reading.n_passes}: {reading.rows:,} of {reading.n_rows:,} rows"
        self._show(text, reading.rows, reading.n_rows)

    def stage(self, text: str) -> None:
        """Say what comes next."""
        self._show(text, None, None)

    def _show(self, text: str, done: int | None, total: int | None) -> None:
        if self.quiet:
            return
        if self.bar is not None:
            self.bar.update(self.task, description=text, completed=done or 0, total=total)
            return
        now = time.perf_counter()
        if now - self._last >= LINE_EVERY:
            self._last = now
            self.console.print(
                f"kspan: {text} ({now - self._started:.0f} s)",
                markup=False, highlight=False, soft_wrap=True,
            )  # fmt: skip

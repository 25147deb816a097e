"""What happens to programs: they are killed, the disk is full, somebody presses Ctrl-C."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.soundness.problems import scratch_file
from benchmarks.soundness.routes import BRANCH, RELAX, WIDE, Trial
from kspan import storage
from kspan.progress import Monitor
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.tree_state import Budgets
from kspan.solving import prove_point

# Small problems are done before anybody could kill them: every step takes so long at least.
STEP_SECONDS = 0.002


def kill(trial: Trial) -> None:
    """SIGKILL in the middle of a search: it goes on from its file, to the same certificate."""
    place = scratch_file(".killed")
    place.unlink(missing_ok=True)
    point, problem = trial.start(), trial.problem
    options = ProofOptions(checkpoint=place, checkpoint_every=0.0, budgets=BRANCH)
    plain = ProofOptions(budgets=BRANCH)
    straight = prove_point(problem, point, "exact", Monitor("exact"), plain)
    child = os.fork()
    if child == 0:
        try:
            monitor = Monitor("exact", lambda _: time.sleep(STEP_SECONDS))
            prove_point(problem, point, "exact", monitor, options)
        finally:
            os._exit(0)
    time.sleep(trial.rng.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    resumed = prove_point(problem, point, "exact", Monitor("exact"), options)
    place.unlink(missing_ok=True)
    trial.check(resumed)
    same = resumed.digest == straight.digest
    trial.judge.need(same, "killed", "a search that was killed ends in another certificate")


def full_disk(trial: Trial) -> None:
    """A checkpoint that cannot be written: the proof comes back all the same."""
    place = scratch_file(".full")
    place.unlink(missing_ok=True)
    with failing_writes(trial.rng.uniform(0.1, 1.0), trial.rng):
        certificate = trial.prove("exact", BRANCH, checkpoint=place, checkpoint_every=0.0)
    trial.check(certificate)
    left = [name for name in os.listdir(place.parent) if name.startswith(f".{place.name}")]
    trial.judge.need(not left, "leftovers", f"temporary files are left behind: {left}")
    place.unlink(missing_ok=True)


@contextmanager
def failing_writes(share: float, rng: Any) -> Iterator[None]:
    """Let a share of all writes to files fail as on a full disk."""
    real = storage.replacing

    @contextmanager
    def sometimes(path: Any) -> Iterator[Any]:
        with real(path) as file:
            yield file
            if rng.random() < share:
                raise OSError(errno.ENOSPC, "No space left on device", os.fspath(path))

    storage.replacing = sometimes
    try:
        yield
    finally:
        storage.replacing = real


def interrupt(trial: Trial) -> None:
    """Ctrl-C: what comes back holds. Outside of searches Python may raise, as it always does."""
    budgets = [RELAX, BRANCH, WIDE, Budgets()][trial.rng.integers(4)]
    level = str(trial.rng.choice(["tight", "exact"]))
    if trial.rng.random() < 0.5:
        steps = int(trial.rng.integers(1, 6))
        trial.check(trial.prove(level, budgets, callback=PressAfter(steps)))
        return
    before = signal.signal(signal.SIGALRM, press)
    try:
        point, problem = trial.start(), trial.problem
        signal.setitimer(signal.ITIMER_REAL, 10 ** trial.rng.uniform(-4, -1.5))
        options = ProofOptions(budgets=budgets)
        certificate = prove_point(problem, point, level, Monitor(level), options)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        trial.judge.refused += 1
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    trial.check(certificate)


class PressAfter:
    """A callback during which Ctrl-C is pressed, once, after a number of steps."""

    def __init__(self, steps: int):
        self.steps = steps

    def __call__(self, progress: Any) -> None:
        """Count, and press."""
        self.steps -= 1
        if self.steps == 0:
            raise KeyboardInterrupt


def press(signum: int, frame: Any) -> None:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt

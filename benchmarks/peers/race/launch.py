"""Start one runner, watch the clock, and say what became of it."""

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.race.entries import ROOT, Entry

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LOADING = 120.0  # seconds that imports and reading may take before the first fit


@dataclass
class Outcome:
    """What a runner left: its record, what each fit found, and why it ended early."""

    record: dict[str, Any] = field(default_factory=dict)
    found: list[dict[str, np.ndarray]] = field(default_factory=list)
    failure: str = ""

    @property
    def is_late(self) -> bool:
        return self.failure.startswith("no answer within")


@dataclass(frozen=True)
class Limits:
    """Seconds for a fit, and for a search; GiB for a process."""

    seconds: float = 120.0
    memory: float = 12.0


def run(
    python: Path, entry: Entry, line: str, data: Path, m: int, k: int, limits: Limits,
    dense: bool = False, weak: tuple[float, ...] = (),
) -> Outcome:  # fmt: skip
    """Run one entry in a process of its own and return what it left.

    `weak` are penalties that need no fit: they leave too many features, or take too long.
    """
    with tempfile.TemporaryDirectory(prefix="kspan-race-") as name:
        folder = Path(name)
        task = {
            "fit": entry.fit, "kind": entry.kind, "default": entry.default, "line": line,
            "data": str(data), "dense": dense, "m": m, "k": k, "limit": limits.seconds,
            "memory": limits.memory, "folder": name, "weak": weak,
        }  # fmt: skip
        (folder / "task.json").write_text(json.dumps(task))
        late = _watch(python, folder, limits)
        return _collect(folder, late)


def _watch(python: Path, folder: Path, limits: Limits) -> str:
    """Wait for the runner; end it when one fit takes too long, and return why."""
    command = [str(python), "-m", "benchmarks.peers.race.runner", str(folder / "task.json")]
    surroundings = {**os.environ, **dict.fromkeys(THREADS, "1"), "TQDM_DISABLE": "1"}
    surroundings.pop("PYTHONPATH", None)
    with (folder / "output").open("w") as output:
        runner = subprocess.Popen(
            command, cwd=ROOT, env=surroundings, stdout=output, stderr=subprocess.STDOUT
        )
        begun, mark = time.time(), folder / "started"
        while runner.poll() is None:
            time.sleep(0.05)
            if mark.exists():
                late = time.time() - mark.stat().st_mtime > limits.seconds
            else:
                late = time.time() - begun > LOADING
            if late:
                runner.kill()
                runner.wait()
                return f"no answer within {limits.seconds:g} s"
    if runner.returncode < 0:
        return f"the process died of signal {-runner.returncode}"
    return ""


def _collect(folder: Path, late: str) -> Outcome:
    outcome = Outcome(failure=late)
    path = folder / "record.json"
    if path.exists():
        outcome.record = json.loads(path.read_text())
        outcome.failure = outcome.record.get("error", late)
    elif not late:
        lines = (folder / "output").read_text().strip().splitlines()
        outcome.failure = lines[-1] if lines else "no answer, and no message"
    for one in outcome.record.get("fits", []):
        with np.load(folder / one["file"]) as arrays:
            outcome.found.append(dict(arrays))
    outcome.failure = scrub(outcome.failure)
    return outcome


def scrub(message: str, most: int = 200) -> str:
    """Return the first line of a message, without paths and addresses.

    Examples
    --------
    >>> scrub("cannot open /home/me/data.npy, see https://example.org/help for more")
    'cannot open <path>, see <address> for more'
    """
    line = message.strip().splitlines()[0] if message.strip() else ""
    line = re.sub(r"\w+://[^\s'\",)]+", "<address>", line)
    line = re.sub(r"(?<![\w<.])[~.]?/[\w.~+-]+(/[^\s'\",:;)]*)?", "<path>", line)
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"

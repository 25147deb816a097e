"""One method on one data set, in a process and an environment of its own.

Run: ``python -m benchmarks.peers.race.runner task.json``; the launcher does. Nothing of kspan is
imported here. After each fit what was found is on disk, so that a fit that takes too long costs
only itself. Nothing is scored here.
"""

import json
import math
import os
import resource
import statistics
import sys
import time
import traceback
import warnings
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

SHORT, REPEATS = 3.0, 5  # seconds, fits: what is shorter is repeated


class Runner:
    """Fits, times, and writes down what came out."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.folder = Path(task["folder"])
        self.weak = task["weak"]  # penalties known to leave too many features, or to take too long
        self.record: dict[str, Any] = {"fits": [], "done": False}

    def run(self) -> None:
        from benchmarks.peers.race.data import read
        from benchmarks.peers.race.fits import FITS

        task = self.task
        self.record["versions"] = {
            one.metadata["Name"]: one.version for one in distributions() if one.metadata["Name"]
        }
        self.call = FITS[task["fit"]]()
        self.X = read(Path(task["data"]))
        if task["dense"]:
            self.X = self.X.toarray()
        self.record["baseline"] = _forget_peak()
        for value in self.values():
            self.fit(value)
        self.repeat()
        self.record["done"] = True
        self.write()

    def values(self) -> Any:
        """Yield the settings to fit with."""
        from benchmarks.peers.race.search import by_cardinality, by_penalty

        task = self.task
        m, k = task["m"], task["k"]
        if task["line"] != "at k" or task["kind"] == "exact":
            return iter([task["default"]])
        if task["kind"] == "penalty":
            found = by_penalty(self.used, task["default"], k)
        else:
            found = by_cardinality(self.used, m, k)
        return self.within_time(found)

    def within_time(self, values: Any) -> Any:
        started = time.monotonic()
        for value in values:
            if value in self.weak:
                continue
            yield value
            if time.monotonic() - started > self.task["limit"]:
                self.record["search"] = "ended by the time limit"
                return

    def used(self, value: Any) -> float:
        if value in self.weak:
            return math.inf
        return next(one["features"] for one in self.record["fits"] if one["value"] == value)

    def timed(self, value: Any) -> tuple[np.ndarray, float, float]:
        """Fit, and return what came out, the seconds, and the processor's seconds."""
        task = self.task
        (self.folder / "started").touch()
        started, worked = time.perf_counter(), time.process_time()
        found = self.call(self.X, task["m"], task["k"], value)
        worked = time.process_time() - worked
        return np.asarray(found), time.perf_counter() - started, worked

    def fit(self, value: Any) -> None:
        self.record["trying"] = value
        self.write()
        found, seconds, worked = self.timed(value)
        name = f"found{len(self.record['fits'])}.npz"
        if found.ndim == 1:
            np.savez(self.folder / name, support=found)
            features = len(set(found.tolist()))
        else:
            np.savez(self.folder / name, loadings=found)
            features = int(np.any(found != 0, axis=1).sum())
        self.record["fits"].append(
            {
                "value": value,
                "features": features,
                "times": [seconds],
                "cpu": [worked],
                "file": name,
            }
        )
        self.write()

    def repeat(self) -> None:
        """Time again what was short: the fits that may be shown."""
        fits = [one for one in self.record["fits"] if one["features"] <= self.task["k"]]
        fits = fits if len(self.record["fits"]) > 1 and fits else self.record["fits"][-1:]
        for one in sorted(fits, key=lambda one: -one["features"])[:2]:
            while len(one["times"]) < REPEATS and sum(one["times"]) < SHORT:
                _, seconds, worked = self.timed(one["value"])
                one["times"].append(seconds)
                one["cpu"].append(worked)
        self.write()

    def write(self) -> None:
        """Replace the record on disk in one step."""
        self.record["peak"] = _peak()
        for one in self.record["fits"]:
            one["seconds"] = statistics.median(one["times"])
        draft = self.folder / "record.tmp"
        draft.write_text(json.dumps(self.record))
        os.replace(draft, self.folder / "record.json")


def _peak() -> float:
    """Return the largest memory this process has had since `_forget_peak`, in MB."""
    return _status("VmHWM")


def _forget_peak() -> float:
    """Start to measure the peak anew, and return the memory in use, in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(key: str) -> float:
    # Not ru_maxrss: a child starts with that of its parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text())
    warnings.simplefilter("ignore")
    most = int(task["memory"] * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    runner = Runner(task)
    try:
        runner.run()
    except BaseException as error:
        traceback.print_exc()
        runner.record["error"] = f"{type(error).__name__}: {error}"
        runner.write()
        sys.exit(1)


if __name__ == "__main__":
    main()

"""One data set: everybody at every m and k, kspan before and after the others, and the judge."""

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers.race.data import save
from benchmarks.peers.race.entries import Entry
from benchmarks.peers.race.evaluate import Judge
from benchmarks.peers.race.launch import Limits, Outcome, run
from benchmarks.peers.race.meet import versions_of
from benchmarks.peers.represent.entries import ENTRIES, KS, MS, REPRESENT, SETS, WITHOUT_M

LONG = 10.0  # seconds: what takes longer runs once


@dataclass
class Meeting:
    """What is known so far about one data set."""

    name: str
    X: Any
    path: Path
    pythons: dict[str, Path]
    failures: dict[str, str]
    limits: Limits
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)  # who ran out of time, and where
    refused: dict[str, str] = field(default_factory=dict)  # who does not take sparse data
    done: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def answer(self, entry: Entry, m: int, k: int) -> dict[str, Any]:
        """Return support and seconds of one entry, or why there are none."""
        if entry.environment in self.failures:
            return {"message": self.failures[entry.environment]}
        key = entry.fit, k
        if entry.fit in WITHOUT_M and key in self.done:
            return self.done[key]
        if entry.name in self.late:
            return {"message": self.late[entry.name]}
        found = self._run(entry, m, k)
        if entry.fit in WITHOUT_M:
            self.done[key] = found
        return found

    def _run(self, entry: Entry, m: int, k: int) -> dict[str, Any]:
        dense = entry.name in self.refused
        outcome = self._outcome(entry, m, k, dense)
        if sparse.issparse(self.X) and not dense and "error" in outcome.record:
            self.refused[entry.name] = outcome.failure
            outcome = self._outcome(entry, m, k, dense=True)
            dense = True
        self.versions |= versions_of(entry, outcome)
        words = "given a dense copy" if dense else ""
        if not outcome.found:
            message = "; ".join(part for part in (outcome.failure, words) if part)
            if dense:
                message = f"refuses sparse data ({self.refused[entry.name]}); {message}"
            if outcome.is_late:
                self.late[entry.name] = f"not run: at k={k}, m={m} {message}"
            return {"message": message}
        fit = outcome.record["fits"][0]
        return {
            "support": np.unique(outcome.found[0]["support"]), "times": fit["times"],
            "note": "; ".join(part for part in (entry.note, words) if part),
        }  # fmt: skip

    def _outcome(self, entry: Entry, m: int, k: int, dense: bool) -> Outcome:
        python = self.pythons[entry.environment]
        return run(python, entry, "at k", self.path, m, k, self.limits, dense=dense)


def meet(
    name: str, pythons: dict[str, Path], failures: dict[str, str], limits: Limits, folder: Path
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, dict[str, str]]]:
    """Return the rows of a data set, what is true of the whole set, and the versions used."""
    X, path = save(name, folder, SETS)
    meeting = Meeting(name, X, path, pythons, failures, limits)
    judges = {m: Judge(X, m) for m in MS}
    total, d = judges[MS[0]].total(), X.shape[1]
    # Of the sparse set this is a limit, far above every k.
    rank = min(X.shape) if sparse.issparse(X) else _rank(X)
    about = {
        "title": SETS[name].title, "rank": rank, "features": d, **vars(limits),
        "PCA": {str(m): judge.most() / total for m, judge in judges.items()},
    }  # fmt: skip
    rows = []
    for k in (k for k in KS if k < d):  # the quick ones first, so that the late are known
        for m in MS:
            found = {entry.name: meeting.answer(entry, m, k) for entry in ENTRIES}
            ours = next(entry for entry in ENTRIES if entry.name == REPRESENT)
            if statistics.median(found[REPRESENT]["times"]) < LONG:
                found[REPRESENT]["times"] += meeting.answer(ours, m, k)["times"]
            for entry in ENTRIES:
                row = {"data": name, "m": m, "k": k, "peer": entry.name}
                row |= _judged(found[entry.name], judges[m], total)
                rows.append(row)
                _say(row)
    rows.sort(key=lambda row: (row["m"], row["k"]))
    return rows, about, meeting.versions


def _judged(found: dict[str, Any], judge: Judge, total: float) -> dict[str, Any]:
    if "message" in found:
        return {"share": None, "seconds": None, "note": found["message"]}
    support = found["support"]
    return {
        "share": judge.told(support) / total, "seconds": statistics.median(found["times"]),
        "times": found["times"], "note": found["note"], "support": support.tolist(),
    }  # fmt: skip


def _rank(X: np.ndarray) -> int:
    """Return the rank of centred data."""
    return int(np.linalg.matrix_rank(X - X.mean(axis=0)))


def _say(row: dict[str, Any]) -> None:
    shown = "–" if row["share"] is None else f"{row['share']:.6%} {row['seconds']:.3g} s"
    print(row["data"], row["m"], row["k"], row["peer"], shown, row["note"], flush=True)

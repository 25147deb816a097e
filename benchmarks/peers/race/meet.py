"""One data set: all entries in turn, kspan between them, and the judge's rows."""

import statistics
from pathlib import Path
from typing import Any

from scipy import sparse

from benchmarks.peers.race.data import SETS, M, save
from benchmarks.peers.race.entries import ENTRIES, Entry
from benchmarks.peers.race.evaluate import Judge, best_answer, score
from benchmarks.peers.race.launch import Limits, Outcome, run

SHOWN = ("numpy", "scipy", "scikit-learn")  # versions shown beside the package's own
LONG = 10.0  # seconds: what takes longer runs in one round only


def order() -> list[tuple[Entry, str]]:
    """Return who runs when: all of kspan before, amid and after the others."""
    ours = [(one, "at k") for one in ENTRIES if one.is_ours]
    theirs = [(one, line) for one in ENTRIES if not one.is_ours for line in one.lines]
    half = len(theirs) // 2
    return [*ours, *theirs[:half], *ours, *theirs[half:], *ours]


def race(
    name: str, pythons: dict[str, Path], failures: dict[str, str], limits: Limits, folder: Path
) -> tuple[list[dict[str, Any]], float, dict[str, dict[str, str]]]:
    """Return the rows of a data set, what PCA's scores tell, and the versions that were used."""
    X, path = save(name, folder)
    judge, k = Judge(X, M), SETS[name].k
    rows: dict[tuple[str, str, bool], dict[str, Any]] = {}
    versions: dict[str, dict[str, str]] = {}
    refused: set[str] = set()
    weak: dict[str, tuple[float, ...]] = {}
    for entry, line in order():
        if entry.environment in failures:
            rows[entry.name, line, False] = failed(
                name, k, entry, line, failures[entry.environment]
            )
            continue
        for dense in (False, True):
            key = entry.name, line, dense
            if dense != (entry.name in refused):
                continue  # a dense copy only for those that refuse a sparse matrix
            if rows.get(key, {}).get("seconds", 0.0) > LONG:
                continue  # one round is enough
            outcome = attempt(pythons[entry.environment], entry, line, path, k, limits, dense, weak)
            versions |= versions_of(entry, outcome)
            row = judged(name, judge, k, entry, line, outcome)
            if sparse.issparse(X) and not entry.is_ours:
                words = "given a dense copy" if dense else "given the sparse matrix"
                row["note"] = "; ".join(part for part in (row["note"], words) if part)
            if sparse.issparse(X) and row["status"] == "failed" and "error" in outcome.record:
                refused.add(entry.name)
            rows[key] = pooled(rows[key], row) if key in rows else row
            _say(rows[key])
    return list(rows.values()), judge.most(), versions


def attempt(
    python: Path, entry: Entry, line: str, path: Path, k: int, limits: Limits, dense: bool,
    weak: dict[str, tuple[float, ...]],
) -> Outcome:  # fmt: skip
    """Run an entry; a search that hangs at a penalty goes on, once, at stronger ones.

    What is learnt about weak penalties is kept in `weak`, so that no fit is made twice for it.
    """
    outcomes: list[Outcome] = []
    searches = entry.kind == "penalty" and line == "at k"
    for _ in range(2 if searches else 1):
        known = weak.get(entry.name, ())
        outcome = run(python, entry, line, path, M, k, limits, dense=dense, weak=known)
        outcomes.append(outcome)
        if entry.kind == "penalty":
            tried = [one["value"] for one in outcome.record.get("fits", []) if one["features"] > k]
            if outcome.is_late and "trying" in outcome.record:
                tried.append(outcome.record["trying"])
            weak[entry.name] = (*known, *tried)
        if not outcome.is_late:
            break
    return joined(outcomes)


def joined(outcomes: list[Outcome]) -> Outcome:
    """Return the outcomes of one search as one."""
    last = outcomes[-1]
    if len(outcomes) == 1:
        return last
    filled = [one for one in outcomes if one.record]
    record = {key: value for one in filled for key, value in one.record.items()}
    record["fits"] = [fit for one in filled for fit in one.record["fits"]]
    record["peak"] = max((one.record["peak"] for one in filled), default=0.0)
    return Outcome(record, [found for one in outcomes for found in one.found], last.failure)


def judged(
    name: str, judge: Judge, k: int, entry: Entry, line: str, outcome: Outcome
) -> dict[str, Any]:
    """Return the row of one outcome."""
    if not outcome.found:
        return failed(name, k, entry, line, outcome.failure)
    if line == "at k":
        which, scored = best_answer(judge, outcome.found, k)
        if scored["features"] == 0:
            reason = outcome.failure or outcome.record.get("search", "ended")
            message = f"no fit of the search used any feature and ended in time; {reason}"
            return failed(name, k, entry, line, message)
    else:
        which, scored = 0, score(judge, outcome.found[0], None)
    fit = outcome.record["fits"][which]
    notes = [entry.note]
    if len(outcome.found) > 1:
        notes.append(f"best of {len(outcome.found)} fits, {_setting(entry)}={fit['value']:.4g}")
    if scored["scored"].startswith("longest"):
        notes.append(f"{fit['features']} features cut to {k}")
    if outcome.failure or outcome.record.get("search"):
        notes.append("search " + (outcome.record.get("search") or f"ended: {outcome.failure}"))
    return {
        **_who(name, k, entry, line), "status": "ok", **scored,
        "seconds": fit["seconds"], "times": fit["times"], "cpu times": fit["cpu"],
        "search seconds": sum(sum(one["times"][:1]) for one in outcome.record["fits"]),
        "fits": len(outcome.found), "value": fit["value"],
        "peak MB": outcome.record["peak"],
        "fit MB": outcome.record["peak"] - outcome.record["baseline"],
        "note": "; ".join(note for note in notes if note),
    }  # fmt: skip


def failed(name: str, k: int, entry: Entry, line: str, message: str) -> dict[str, Any]:
    return {
        **_who(name, k, entry, line), "status": "failed", "message": message, "note": entry.note,
    }  # fmt: skip


def pooled(first: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Return one row of two rounds of the same entry: all times, the larger memory."""
    if "failed" in (first["status"], again["status"]):
        return first if first["status"] == "failed" else again
    if abs(first["variance"] - again["variance"]) > 1e-9 * first["variance"]:
        raise AssertionError(f"{first['peer']} answers differently in two rounds")
    times = first["times"] + again["times"]
    memory = {key: max(first[key], again[key]) for key in ("peak MB", "fit MB")}
    cpu = first["cpu times"] + again["cpu times"]
    seconds = statistics.median(times)
    return {**first, **memory, "times": times, "cpu times": cpu, "seconds": seconds}


def _who(name: str, k: int, entry: Entry, line: str) -> dict[str, Any]:
    return {
        "data": name, "peer": entry.name, "environment": entry.environment, "line": line, "k": k,
    }  # fmt: skip


def _setting(entry: Entry) -> str:
    return "features each" if entry.kind == "cardinality" else "penalty"


def versions_of(entry: Entry, outcome: Outcome) -> dict[str, dict[str, str]]:
    installed = outcome.record.get("versions", {})
    names = [name for name in (entry.environment, *SHOWN) if name in installed]
    return {entry.environment: {name: installed[name] for name in dict.fromkeys(names)}}


def _say(row: dict[str, Any]) -> None:
    end = (
        f"{row['features']} features, {row['variance']:.6g}, {row['seconds']:.3g} s"
        if row["status"] == "ok"
        else row["message"]
    )
    print(f"{row['data']}: {row['peer']}, {row['line']}: {end} ({row['note']})", flush=True)

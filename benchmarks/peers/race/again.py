"""The chosen features of a race that was run before rows kept them: each winner's fit once more.

Run: ``python -m benchmarks.peers.race.again``. Of every row at k only the one fit that it shows is
made again, with the setting that the search had found: no search, and no new times. A fit must
explain what the row says; what does not is left without its second measure, and says so. Adds what
kspan chooses with ``criterion="represent"``, for the table at a glance of docs/race.md.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.peers.race.__main__ import HERE, write
from benchmarks.peers.race.data import SETS, M, save
from benchmarks.peers.race.entries import ENTRIES
from benchmarks.peers.race.environments import cache_folder, install
from benchmarks.peers.race.evaluate import Judge, score
from benchmarks.peers.race.launch import Limits, run
from benchmarks.peers.race.meet import representing

CLOSE = 1e-6  # how far the variance of the same fit may be off, relatively


def again(row: dict[str, Any], judge: Judge, data: Path, pythons: dict[str, Path]) -> str:
    """Add features and second measure to a row; return why if that fails."""
    (entry,) = (entry for entry in ENTRIES if entry.name == row["peer"])
    if entry.environment not in pythons:
        return "its environment cannot be made"
    entry = replace(entry, default=row["value"])
    dense = "given a dense copy" in row["note"]
    outcome = run(pythons[entry.environment], entry, "again", data, M, row["k"], Limits(), dense)
    if not outcome.found:
        return outcome.failure
    scored = score(judge, outcome.found[0], row["k"])
    if abs(scored["variance"] / row["variance"] - 1) > CLOSE:
        return f"explains {scored['variance']:.8g} now, {row['variance']:.8g} then"
    row |= {key: scored[key] for key in ("support", "told")}
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="for environments")
    options = parser.parse_args()
    record = json.loads((HERE / "race.json").read_text())
    rows = [row for row in record["rows"] if row["line"] == "at k" and row["status"] == "ok"]
    pythons, _ = install({row["environment"] for row in rows}, options.cache)
    for name in SETS:
        X, path = save(name, options.cache / "data")
        judge = Judge(X, M)
        record["sets"][name]["told by PCA"] = judge.most()
        record["sets"][name]["represent"] = representing(
            judge, path, SETS[name].k, pythons["kspan"], Limits()
        )
        for row in (row for row in rows if row["data"] == name and "told" not in row):
            failure = again(row, judge, path, pythons)
            row.setdefault("told", None)
            row.setdefault("support", None)
            print(name, row["peer"], failure or row["told"], flush=True)
        (HERE / "race.json").write_text(json.dumps(record, indent=1) + "\n")
    write(record)


if __name__ == "__main__":
    main()

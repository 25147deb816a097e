"""kspan and its peers on the same data, each in an environment of its own.

Run: ``python -m benchmarks.peers.race``. Needs KSPAN_DATA, an index that pip can install from,
and matplotlib. Environments are made on the first run, under ``--cache``. Writes race.json,
race.md and race.png beside this file, and the tables in docs/race.md; ``--draw`` only
makes these again, and ``--sets digits colon`` runs some sets anew and keeps the rest of race.json.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.measure import fill, machine
from benchmarks.peers.race.data import SETS, M
from benchmarks.peers.race.entries import ENVIRONMENTS
from benchmarks.peers.race.environments import cache_folder, install
from benchmarks.peers.race.figure import draw
from benchmarks.peers.race.launch import Limits
from benchmarks.peers.race.meet import race
from benchmarks.peers.race.table import glance, markdown, summary

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "race.md"


def write(record: dict[str, Any]) -> None:
    (HERE / "race.json").write_text(json.dumps(record, indent=1) + "\n")
    (HERE / "race.md").write_text(markdown(record))
    draw(record, HERE / "race.png")
    fill(PAGE, "race.json", summary(record))
    fill(PAGE, "race.json: at a glance", glance(record))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="for environments")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="run only these anew")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="for one fit")
    parser.add_argument("--memory", type=float, default=Limits.memory, help="GiB for a process")
    parser.add_argument("--draw", action="store_true", help="only draw race.json again")
    options = parser.parse_args()
    path = HERE / "race.json"
    if options.draw:
        write(json.loads(path.read_text()))
        return
    limits = Limits(options.seconds, options.memory)
    record: dict[str, Any] = {"rows": [], "environments": {}}
    if options.sets and path.exists():
        record = json.loads(path.read_text())
    names = options.sets or list(SETS)
    record |= {"machine": machine(), "m": M, "sets": record.get("sets", {})}
    pythons, failures = install(ENVIRONMENTS, options.cache)
    for name in names:
        rows, about, versions = race(name, pythons, failures, limits, options.cache / "data")
        kept = [row for row in record["rows"] if row["data"] != name]
        record["rows"] = sorted(kept + rows, key=lambda row: list(SETS).index(row["data"]))
        record["environments"] |= versions
        record["sets"][name] = {
            "title": SETS[name].title, "k": SETS[name].k, **about, **vars(limits),
        }  # fmt: skip
        record["sets"] = {name: record["sets"][name] for name in SETS if name in record["sets"]}
        path.write_text(json.dumps(record, indent=1) + "\n")
    write(record)


if __name__ == "__main__":
    main()

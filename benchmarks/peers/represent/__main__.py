"""How much of a whole table can be told from k of its features: kspan and its peers.

Run: ``python -m benchmarks.peers.represent``. Needs KSPAN_DATA, an index that pip can install from,
and matplotlib. Environments are those of the race, made on the first run under ``--cache``. Writes
represent.json, represent.md and represent.png beside this file, and the table in
docs/which_question.md; ``--draw`` only makes these again, and ``--sets digits colon`` runs some
sets anew and keeps the rest of represent.json.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.measure import fill, machine
from benchmarks.peers.race.environments import cache_folder, install
from benchmarks.peers.race.launch import Limits
from benchmarks.peers.represent.entries import ENTRIES, KS, MS, SETS
from benchmarks.peers.represent.figure import draw
from benchmarks.peers.represent.meet import meet
from benchmarks.peers.represent.table import markdown, outcome, summary

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "which_question.md"


def write(record: dict[str, Any]) -> None:
    (HERE / "represent.json").write_text(json.dumps(record) + "\n")
    (HERE / "represent.md").write_text(markdown(record))
    draw(record, HERE / "represent.png")
    fill(PAGE, "represent.json", f"{summary(record)}\n\n{outcome(record)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="for environments")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), help="run only these anew")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="for one fit")
    parser.add_argument("--memory", type=float, default=Limits.memory, help="GiB for a process")
    parser.add_argument("--draw", action="store_true", help="only draw represent.json again")
    options = parser.parse_args()
    path = HERE / "represent.json"
    if options.draw:
        write(json.loads(path.read_text()))
        return
    limits = Limits(options.seconds, options.memory)
    record: dict[str, Any] = {"rows": [], "environments": {}, "sets": {}}
    if options.sets and path.exists():
        record = json.loads(path.read_text())
    record |= {"machine": machine(), "m": MS, "k": KS}
    pythons, failures = install({entry.environment for entry in ENTRIES}, options.cache)
    order = list(SETS)
    for name in options.sets or order:
        rows, about, versions = meet(name, pythons, failures, limits, options.cache / "data")
        kept = [row for row in record["rows"] if row["data"] != name]
        record["rows"] = sorted(kept + rows, key=lambda row: order.index(row["data"]))
        record["environments"] |= versions
        record["sets"] = {one: ({**record["sets"], name: about})[one] for one in order
                          if one in record["sets"] or one == name}  # fmt: skip
        path.write_text(json.dumps(record) + "\n")
    write(record)


if __name__ == "__main__":
    main()

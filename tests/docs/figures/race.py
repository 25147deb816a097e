"""Figures of docs/race.md."""

from benchmarks.peers.race import table
from tests.docs.figures.reading import Claim, at_least, at_most, result

RECORD = result("peers/race/race")
REAL = ("digits", "nus_wide", "colon", "leukemia", "tdt2")


def rows(name):
    found = {row["peer"]: row for row in table.comparable(RECORD["rows"], name)}
    peers = [row for row in found.values() if row["environment"] != "kspan"]
    return found, peers


def on_real_data():
    shares = []
    for name in REAL:
        found, peers = rows(name)
        best = max(row["variance"] for row in peers)
        assert best < found["kspan ipu"]["variance"]
        shares.append(100 * best / found["kspan auto"]["variance"])
    return at_least(min(shares)), at_most(max(shares))


def always_fastest():
    for name in RECORD["sets"]:
        found, _ = rows(name)
        assert min(found.values(), key=lambda row: row["seconds"])["peer"] == "variance top-k"
    return []


CLAIMS: list[Claim] = [
    (
        "On the five real sets no peer reaches kspan's `auto`: the best of them explains {} to "
        "{}% of what it does, and less than `ipu`,",
        on_real_data,
    ),
    ("kspan is not the fastest: `variance top-k` always is,", always_fastest),
]

NOT_MEASURED: list[str] = []

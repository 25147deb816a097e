"""What is committed of how long people wait."""

import json

import pytest

from benchmarks.peers.waiting import HERE, SLACK
from benchmarks.peers.waiting_rows import ROWS

FOUND = {row["row"]: row for row in json.loads((HERE / "waiting.json").read_text())["rows"]}


def test_every_row_was_measured():
    assert list(FOUND) == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_nothing_is_reached_less_than_before(name):
    before, now = FOUND[name]["reached before"], FOUND[name]["reached now"]
    if before != "":
        assert now >= before - SLACK * abs(before)


def test_paths_of_genes_are_narrow_where_a_number_is_suggested():
    for name in ("path, colon, m=3", "path, leukemia, m=3"):
        words = dict(part.rsplit(" ", 1) for part in FOUND[name]["more"].split(", "))
        assert float(words["gap there"]) < 0.05
        assert FOUND[name]["now s"] < 20


def test_the_command_takes_less_than_fifteen_seconds():
    (command,) = (row for name, row in FOUND.items() if name.startswith("command"))
    assert command["now s"] < 15


def test_a_quick_row_runs_again():
    run, _ = ROWS["auto, wine, m=2 k=5"]
    assert run()["objective"] == pytest.approx(
        FOUND["auto, wine, m=2 k=5"]["reached now"], rel=1e-9
    )

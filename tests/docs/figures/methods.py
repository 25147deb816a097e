"""Figures of docs/methods.md."""

from tests.docs.figures.reading import Claim, percent, result

ROWS = {row["data"]: row for row in result("papers/fspca/a_priori")["rows"]}


def spiked():
    row = ROWS["spiked"]
    assert row["Go, shift is optimal"] == row["proved by fast"] == row["draws"]
    return row["draws"], row["Go is optimal"], row["draws"]


def worse():
    row = ROWS["pitprops"]
    assert (row["m"], row["k"]) == (3, 5)
    return [percent(1 - row["Go, shift"] / row["Go"])]


CLAIMS: list[Claim] = [
    ("of {} small ones drawn at random Go alone solves {}, and with the shift all {}", spiked),
    ("(Go with m=3, k=5 on pitprops: {}% less)", worse),
]

NOT_MEASURED: list[str] = []

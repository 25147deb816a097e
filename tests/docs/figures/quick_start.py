"""Figures of docs/quick_start.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = [
    "kspan needs Python 3.11 or newer",
    "all of the 86 million ways to choose 12 of 30 columns",  # as in certificates.md
    "for 90% of the variance of all columns",  # an example
]

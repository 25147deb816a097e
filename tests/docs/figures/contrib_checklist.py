"""Figures of docs/contrib_checklist.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = ["a coverage of 80% or more", "| 3.11, 3.12 and 3.13 |"]

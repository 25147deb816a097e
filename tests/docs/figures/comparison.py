"""Figures of docs/comparison.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = ["This is version 0.1.0."]

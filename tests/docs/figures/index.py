"""Figures of docs/index.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = ["try it in five minutes"]

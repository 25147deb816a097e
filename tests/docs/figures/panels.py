"""Figures of docs/panels.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = ["near copies (a correlation above 0.99)"]  # when a fit warns

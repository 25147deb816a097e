"""Figures of docs/data.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = [  # limits of the code
    "What lies more than 5% of the largest eigenvalue below zero is refused",
    "from pairs, more than 100%.",
]

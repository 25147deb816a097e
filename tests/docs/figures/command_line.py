"""Figures of docs/command_line.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = [
    "Files of numbers beyond 1 GiB",  # a limit of the code
    "| 0.9 | of what plain PCA explains |",  # a default
]

"""Figures of docs/records.md."""

from tests.docs.figures.reading import Claim

CLAIMS: list[Claim] = []

NOT_MEASURED = ["would unpack to more than 1 GiB, or eight times its own size if that is more,"]

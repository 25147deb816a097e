"""Figures of docs/big_data.md."""

from tests.docs.figures.reading import Claim, result

ROWS = {row["solver"]: row for row in result("scale/very_sparse")["rows"]}

CLAIMS: list[Claim] = [
    ("100,000 × 1,000,000 with 10⁷ entries takes {:.1f} GB.", lambda: [ROWS["auto"]["peak"]]),
]

NOT_MEASURED: list[str] = []

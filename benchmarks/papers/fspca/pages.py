"""Tables of docs/fspca.md from the committed results: ``python -m benchmarks.pages`` fills them."""

import json
from pathlib import Path

from benchmarks.certificates.pages import table
from benchmarks.papers.fspca.table2 import IN_THE_PAPER, SCHEMES

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "fspca.md"

# Rows of the page's Table 2, which shows the low-rank start.
SHOWN = ("SOAP, last iterate", "SRT, last iterate", "CSSP, refitted", "Go", "IPU", "kspan auto",
         "kspan exact")  # fmt: skip
START = "low-rank"


def hits() -> str:
    """Return how often each method finds the optimum, with the paper's figures in brackets."""
    ours = json.loads((HERE / "table2.json").read_text())["tables"]
    paper = json.loads((HERE / "paper.json").read_text())["table2"]

    def cell(method: str, scheme: str) -> str:
        found = f"{ours[scheme][method][START]['HF'][0]:.2f}"
        if method not in IN_THE_PAPER:
            return found
        return f"{found} ({paper[scheme][IN_THE_PAPER[method]][START]['HF']:.2f})"

    lines = [[method, *(cell(method, scheme) for scheme in SCHEMES)] for method in SHOWN]
    return table(["", *SCHEMES], lines)


def texts() -> dict[str, str]:
    """Return what belongs at which mark of the page."""
    return {"table2.json": hits()}

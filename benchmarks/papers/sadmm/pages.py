"""Tables of docs/sadmm.md from the committed results.

``python -m benchmarks.pages`` fills them.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.certificates.pages import table
from benchmarks.papers.sadmm.data import REAL
from benchmarks.papers.sadmm.table2 import K, claims, to_bound

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "sadmm.md"

# What the page calls the methods.
ROWS = {
    "GPower-l0": "GPower-l0", "GPower-l1": "GPower-l1", "GRQI": "GRQI", "IPM": "IPM",
    "TPower": "TPower", "GPower-l0-B": "GPower-l0-B", "GPower-l1-B": "GPower-l1-B",
    "StSPCA-D": "StSPCA-D", "StSPCA": "**StSPCA (joint)**",
    "StSPCA-2S, K=k": "two-stage, 50 in all",
    "StSPCA-2S, K=rk, k each": "two-stage, 150 in all, 50 each",
    "StSPCA-2S, K=rk": "two-stage, 150 in all",
    "orthonormal auto": "orthonormal `auto` (kspan's own)",
    "row-sparse auto, K=k": "row-sparse `auto`, 50 in all",
    "row-sparse auto, K=rk": "row-sparse `auto`, 150 in all",
}  # fmt: skip


def sets() -> dict[str, Any]:
    """Return the results on the sets as they were published."""
    record = json.loads((HERE / "table2.json").read_text())["sets"]
    return {name: record[name] for name in REAL}


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def spans() -> str:
    """Return what spans explain, in percent of plain PCA's."""
    lines = [
        [label, *(percent(s["methods"][name]["span"] / s["plain PCA"]) for s in sets().values())]
        for name, label in ROWS.items()
    ]
    bound = [percent(s["bound"]["span"] / s["plain PCA"]) for s in sets().values()]
    lines.append(["*proved: no 150 features explain more than*", *bound])
    return table(["span, % of PCA's", *sets()], lines)


def distances() -> str:
    """Return how far each method is below the bound, in percent of it."""
    lines = [
        [
            label,
            *(percent(to_bound(s["methods"][name], s["bound"], "span")) for s in sets().values()),
        ]
        for name, label in ROWS.items()
    ]
    return table(["% below the bound", *sets()], lines)


# The claims of the paper that a data set may break, as `claims` has them, and the page's words.
CLAIMS = {
    "StSPCA ≥ each deflation method": "joint ≥ each deflation",
    "StSPCA-2S, K=k ≥ StSPCA": "two-stage, 50 in all ≥ joint",
    "StSPCA-2S, K=rk, k each ≥ StSPCA": "two-stage, 50 each ≥ joint",
    "StSPCA-2S, K=rk ≥ StSPCA": "two-stage, 150 in all ≥ joint",
}
MEASURES = ("span", "adjusted", "raw")


def all_sets() -> dict[str, Any]:
    """Return the results on all sets with 50 features in each component, normalised ones too."""
    record = json.loads((HERE / "table2.json").read_text())["sets"]
    return {name: one for name, one in record.items() if one["k"] == K}


def inequalities() -> str:
    """Return in which measures the paper's inequalities hold on each set."""

    def cell(claim: str, one: dict[str, Any]) -> str:
        held = [measure for measure in MEASURES if not claims(one, measure)[claim]]
        return {0: "–", len(MEASURES): "all"}.get(len(held), ", ".join(held))

    lines = [[name, *(cell(claim, one) for claim in CLAIMS)] for name, one in all_sets().items()]
    return table(["holds in", *CLAIMS.values()], lines)


def baselines() -> str:
    """Return what two-stage has to be read beside, in percent of it."""
    rows = json.loads((HERE / "baselines.json").read_text())["rows"]
    names = {
        "PCA's scores": "plain PCA's scores",
        "Go": "Go's scores",
        "Wang": "Wang et al. (SOAP)",
        "auto": "row-sparse `auto`",
    }
    lines = [
        [row["data"], row["K"], *(percent(row[name] / row["two-stage"]) for name in names)]
        for row in rows
    ]
    return table(["two-stage = 100", "K", *names.values()], lines)


def texts() -> dict[str, str]:
    """Return what belongs at which mark of the page."""
    return {
        "table2.json: span": spans(),
        "table2.json: below the bound": distances(),
        "table2.json: inequalities": inequalities(),
        "baselines.json": baselines(),
    }

"""Tables of docs/nspca.md from the committed results: ``python -m benchmarks.pages`` fills them."""

import json
from pathlib import Path

from benchmarks.certificates.pages import seconds, table
from benchmarks.papers.nspca.data import paper
from benchmarks.papers.nspca.figures456 import floored, net_share, share

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "nspca.md"
NAMES = {"cbcl": "CBCL faces", "leukemia": "leukemia (another set)", "lrs": "LRS"}
CASES = {
    "LRS": "LRS, 93 features, k=20",
    "CBCL, k=40": "CBCL, 361 features, k=40",
    "CBCL, k=180": "CBCL, 361 features, k=180",
    "5000 features": "synthetic, 5000 features, k=50",
}


def shares() -> str:
    """Return the shares that the paper prints, and ours."""
    sets = json.loads((HERE / "figures456.json").read_text())["sets"]
    lines = []
    for name, printed in paper().items():
        for row in sets[name]["rows"]:
            if row["k"] in printed:
                ours = f"**{floored(share(row))}**"
                ours += ", optimal" if row["proof"]["status"] == "optimal" else ""
                lines.append([
                    NAMES[name], row["k"], f"{printed[row['k']]:g}", f"{net_share(row):.3f}", ours,
                    f"{seconds(row['proof']['seconds'])} s",
                ])  # fmt: skip
    head = ["", "k", "printed in the paper", "the paper's method and bound, here",
            "`auto` and kspan's certificate", "proof takes"]  # fmt: skip
    return table(head, lines)


def cost() -> str:
    """Return what the exact spannogram takes."""
    cases = json.loads((HERE / "cost.json").read_text())["cases"]
    head = ["exact spannogram", "rank", "vertices", "seconds", "seconds, visiting every vertex",
            "asked for"]  # fmt: skip
    lines = []
    for name, label in CASES.items():
        one, quick, slow = cases[name], cases[name]["default"], cases[name]["every vertex"]
        lines.append([
            label, one["rank"], f"{quick['vertices']:,} of {slow['vertices']:,}",
            seconds(quick["seconds"]), seconds(slow["seconds"]), f"{one['asked']:g}",
        ])  # fmt: skip
    return table(head, lines)


def texts() -> dict[str, str]:
    """Return what belongs at which mark of the page."""
    return {"figures456.json": shares(), "cost.json": cost()}

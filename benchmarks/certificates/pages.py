"""Tables of the documentation, README's sentences and the figure, from the committed results.

Run: ``python -m benchmarks.certificates.pages`` after a benchmark.
"""

import json
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.measure import fill

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "certificates.md"
METHODS = ROOT / "docs" / "methods.md"
HOW_GOOD = ROOT / "benchmarks" / "papers" / "fspca" / "how_good.json"
FIGURE = ROOT / "docs" / "images" / "gap_against_time.png"

SAMPLES = {"leukemia": 72, "colon": 62, "duke": 49, "dlbcl": 77, "prostate": 102}

Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    """Return the rows of a committed result."""
    rows: Rows = json.loads((HERE / f"{name}.json").read_text())["rows"]
    return rows


def share(value: float) -> str:
    """Return a gap as people read it."""
    return "0" if value < 5e-7 else f"{100 * value:.2g}%"


def seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def table(head: list[str], lines: list[list[Any]]) -> str:
    """Return a Markdown table."""
    cells = [head, ["---"] * len(head), *([str(cell) for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells).replace("| --- ", "|---")


def dense(rows: Rows) -> str:
    head = ["data (features)", "m", "k", "trace bound", "Theorem 5.1", "relaxation", "tight",
            "exact", "nodes", "seconds"]  # fmt: skip
    lines = [
        [f"{r['data']} ({r['d']})", r["m"], r["k"], share(r["trace gap"]),
         share(r["Theorem 5.1 gap"]), share(r["plain relaxation gap"]), share(r["tight gap"]),
         r["exact status"], r["nodes"], seconds(r["exact s"])]
        for r in rows
    ]  # fmt: skip
    return table(head, lines)


def wide(rows: Rows) -> str:
    head = ["wide data (samples × genes)", "m", "k", "trace bound", "tight", "method", "seconds",
            "peak MB"]  # fmt: skip
    lines = [
        [f"{r['data']} ({SAMPLES[r['data']]} × {r['d']})", r["m"], r["k"], share(r["trace gap"]),
         share(r["tight gap"]), r["method"], seconds(r["tight s"]), f"{r['peak MB']:.0f}"]
        for r in rows
    ]  # fmt: skip
    return table(head, lines)


def any_width(rows: Rows) -> str:
    head = ["data (features)", "m", "k", "`auto`", "fast", "tight", "seconds", "exact", "seconds",
            "`verify`, seconds"]  # fmt: skip
    lines = [
        [f"{r['data']} ({r['d']})", r["m"], r["k"], f"{r['value']:.6g}", share(r["fast gap"]),
         share(r["tight gap"]), seconds(r["tight s"]), outcome(r), seconds(r["exact s"]),
         seconds(r["verify s"])]
        for r in rows
    ]  # fmt: skip
    return table(head, lines)


def outcome(row: dict[str, Any]) -> str:
    """Return what an exact proof ended with."""
    if row.get("trivial"):
        return "optimal (copies)"
    return "optimal" if row["exact status"] == "optimal" else share(row["exact gap"])


def together() -> str:
    """Return the sentences of docs/methods.md about orthonormal components."""
    rows = [r for r in rows_of("joint") if r["r"] <= 3 and r["d"] <= 500]
    large = [r for r in rows if r["d"] >= 100]
    words = (
        '`StiefelSparsePCA(certify="exact")` proves all components together. Of '
        f"{len(rows)} problems with two or three components (13 to 500 features, 2 to 20 in each "
        f"component) {proved(rows)} are proved optimal, each in at most two and a half minutes on "
        f"one core, and the largest gap left is {largest(rows)}. Of those with hundreds of "
        f"features it is {proved(large)} of {len(large)}."
    )
    return textwrap.fill(words, 100)


def pitprops(rows: Rows) -> str:
    """Return the proofs of pitprops: a line for each r, a column for each k."""
    own = {(r["r"], r["k"]): r for r in rows if r["data"] == "pitprops" and not r["disjoint"]}
    sizes = sorted({k for _, k in own})

    def cell(row: dict[str, Any]) -> str:
        done = row["exact status"] == "optimal"
        return f"optimal ({seconds(row['exact s'])} s)" if done else share(row["exact gap"])

    lines = [[r, *(cell(own[r, k]) for k in sizes)] for r in sorted({r for r, _ in own})]
    return table(["r", *(f"k = {k}" for k in sizes)], lines)


def joint(rows: Rows) -> str:
    head = ["data (features)", "r", "k", "supports", "`auto`", "fast", "tight", "seconds", "exact",
            "seconds", "nodes", "`verify`, seconds"]  # fmt: skip
    lines = [
        [f"{r['data']} ({r['d']})", r["r"], r["k"], "disjoint" if r["disjoint"] else "any",
         f"{r['value']:.6g}", share(r["fast gap"]), share(r["tight gap"]), seconds(r["tight s"]),
         outcome(r), seconds(r["exact s"]), r["nodes"], seconds(r["verify s"])]
        for r in rows
        if r["disjoint"] or r["data"] != "pitprops"
    ]  # fmt: skip
    return table(head, lines)


def telling(rows: Rows) -> str:
    head = ["data (features)", "m", "k", "told", "PCA tells", "proved: at most", "gap", "by",
            "supports tried", "seconds"]  # fmt: skip
    lines = [
        [f"{r['data']} ({r['d']})", r["m"], r["k"], f"{100 * r['told']:.2f}%",
         f"{100 * r['PCA']:.2f}%", f"{100 * r['at most']:.2f}%",
         "optimal" if r["status"] == "optimal" else share(r["gap"]), r["proved by"],
         tried(r), seconds(r["proof s"])]
        for r in rows
        if r["ridge"] == 1e-5
    ]  # fmt: skip
    return table(head, lines)


def tried(row: dict[str, Any]) -> str:
    """Return how much of all supports a scan has tried."""
    if not row["proved by"].startswith("search of all"):
        return "–"
    return f"{100 * row['tried'] / row['supports']:.0f}% of {row['supports']:.2g}"


def small(rows: Rows) -> str:
    counts = [tuple(map(int, row["proved optimal"].split(" of "))) for row in rows]
    longest = max(row["exact s"] for row in rows)
    return (
        f"Pitprops and wine (13 features), every k and m = 1, 2, 3: {sum(a for a, _ in counts)} of "
        f"{sum(b for _, b in counts)} proved optimal, at most {seconds(longest)} s each."
    )


def glance() -> str:
    """Return README's sentences about proofs."""
    lymphoma = [row for row in rows_of("dense") if row["data"] == "lymphoma"]
    assert all(row["exact status"] == "optimal" for row in lymphoma)
    wide_row = next(r for r in rows_of("wide") if (r["data"], r["m"]) == ("leukemia", 3))
    scaled = [row for row in rows_of("standardised") if not row["trivial"]]
    one = [row for row in scaled if row["m"] == 1]
    several = [row for row in scaled if row["m"] > 1]
    unscaled, words = rows_of("unscaled"), rows_of("words")
    published = json.loads((HERE / "published.json").read_text())["lymphoma"]["gaps"].values()
    dense_words = (
        "On the 500 genes of the lymphoma data (m = 1 to 3, k = 10 to 30) kspan proves the optimum "
        f"in {seconds(min(r['exact s'] for r in lymphoma))} to "
        f"{seconds(max(r['exact s'] for r in lymphoma))} seconds; published bounds for m = 2 and 3 "
        f"leave gaps of {min(published):.0f} to {max(published):.0f}% after up to two hours. On "
        "7129 genes (leukemia as log(max(x, 20)), m=3, k=50) it proves a gap of "
        f"{share(wide_row['tight gap'])} in {seconds(wide_row['tight s'])} seconds, and of "
        f"{share(as_it_comes())} on the values as they come."
    )
    exact_words = (
        f'With `certify="exact"` and five minutes each, {proved(unscaled)} of {len(unscaled)} '
        "problems on five tables of 2000 to 12,600 genes (four of them in logarithms) are proved "
        f"optimal, and the largest gap left is {largest(unscaled)}; on a covariance of 2000 words "
        f"{proved(words)} of {len(words)}, and {largest(words)}. On standardised data "
        f"(`scale=True`, genes in logarithms) it is {proved(one)} of {len(one)}, and "
        f"{largest(one)}, for one component, and {proved(several)} of {len(several)}, and "
        f"{largest(several)}, for three: there, with more than 2500 features, the sum of their "
        "variances is all the bound there is."
    )
    return "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in (dense_words, exact_words))


def as_it_comes() -> float:
    """Return the gap on leukemia without logarithms, m = 3, k = 50."""
    rows: Rows = json.loads(HOW_GOOD.read_text())["rows"]
    (row,) = (r for r in rows if (r["data"], r["preparation"]) == ("leukemia", "as it comes"))
    return float(1 - row["values"]["auto"] / row["upper"])


def proved(rows: Rows) -> int:
    return sum(row["exact status"] == "optimal" for row in rows)


def largest(rows: Rows) -> str:
    return share(max(row["exact gap"] for row in rows))


def texts() -> dict[tuple[Path, str], str]:
    """Return what belongs where: pages, and the marks in them."""
    return {
        (PAGE, "dense.json"): dense(rows_of("dense")),
        (PAGE, "wide.json"): wide(rows_of("wide")),
        (PAGE, "small.json"): small(rows_of("small")),
        (PAGE, "standardised.json"): any_width(rows_of("standardised")),
        (PAGE, "unscaled.json"): any_width(rows_of("unscaled")),
        (PAGE, "words.json"): any_width(rows_of("words")),
        (PAGE, "joint.json: pitprops"): pitprops(rows_of("joint")),
        (PAGE, "joint.json"): joint(rows_of("joint")),
        (PAGE, "telling.json"): telling(rows_of("telling")),
        (README, "certificates"): glance(),
        (METHODS, "joint.json"): together(),
    }


def draw(path: Path) -> None:
    """Draw how gaps fall with time: a panel for each table, a line for each problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    histories = json.loads((HERE / "gap_history.json").read_text())
    panels = {
        "covariance of 2000 words": "words",
        "wide genes, not scaled": "unscaled",
        "standardised": "standardised",
    }
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True)
    for axis, (title, name) in zip(axes, panels.items(), strict=True):
        for case, points in histories.items():
            group, _, m, _ = case.split()
            points = [(max(s, 0.05), max(100 * g, 1e-5)) for s, g in points]
            if group != name or max(g for _, g in points) <= 1e-5:  # copies: no gap at all
                continue
            x, y = zip(*points, strict=True)
            line = {"linestyle": "-", "color": "#1d4ed8"} if m == "1" else {
                "linestyle": "--", "color": "#c2410c"}  # fmt: skip
            axis.step(x, y, where="post", linewidth=1.1, alpha=0.8, **line)
            axis.plot(x[-1], y[-1], marker="o", markersize=3.5, color=line["color"])
        axis.set(xscale="log", yscale="log", title=title, xlabel="seconds")
        axis.grid(visible=True, color="0.92")
    axes[0].set_ylabel("gap, % of the upper bound")
    for label, style, colour in (("m = 1", "-", "#1d4ed8"), ("m = 3", "--", "#c2410c")):
        axes[0].plot([], [], linestyle=style, color=colour, label=label)
    axes[0].legend(frameon=False)
    figure.suptitle("The gap of a proof against time, one line a problem (on the floor: optimal)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    for (page, mark), text in texts().items():
        fill(page, mark, text)
    draw(FIGURE)

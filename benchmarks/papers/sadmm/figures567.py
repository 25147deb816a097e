"""Figures 5 to 7: variance and time for r = 1, 3, 5 components and 50 to 500 features each.

GCM, Breast and News20 could not be had: synthetic data of the shapes of the first two, and
TDT2 for the third. Run: ``python -m benchmarks.papers.sadmm.figures567``. Needs KSPAN_DATA, and
matplotlib for the picture. Writes figures567.json, figures567.md and figures567.png beside this
file; ``--draw`` only draws from the JSON. ``--sets``, ``--rs``, ``--ks`` and ``--methods`` run a
part.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.measure import machine
from benchmarks.papers.sadmm.data import LARGE, large
from benchmarks.papers.sadmm.methods import METHODS
from benchmarks.papers.sadmm.scores import measures, plain_pca

HERE = Path(__file__).parent
RS = (1, 3, 5)
# Fewer points where a run takes long.
KS = {"gcm": (50, 150, 300, 500), "breast": (50, 150, 500), "tdt2": (50, 150, 500)}
NAMES = tuple(name for name in METHODS if "start" not in name and name != "TPower, gradual")
# Manopt's formulation needs the centred data as a dense array.
NOT_ON_TEXT = ("Manopt",)
SAME_WHEN_ONE = ("StSPCA-2S, K=rk", "StSPCA-2S, K=rk, k each", "row-sparse auto, K=rk")
TIME_LIMIT = 60.0


def run_set(
    X: Any, rs: tuple[int, ...], ks: tuple[int, ...], names: tuple[str, ...],
    time_limit: float | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return one row for each r, k and method."""
    rows = []
    for r in rs:
        best = plain_pca(X, r)
        for k in ks:
            for name in names:
                # With one component both readings of two-stage and row-sparse are the same.
                if r == 1 and name in SAME_WHEN_ONE:
                    continue
                started = time.perf_counter()
                answer = METHODS[name](X, r, k, time_limit)
                seconds = time.perf_counter() - started
                found = measures(X, answer.loadings)
                rows.append({
                    "r": r, "k": k, "method": name, "seconds": seconds, "status": answer.status,
                    **{which: found[which] / best for which in ("span", "adjusted", "raw")},
                    "features": found["features"],
                })  # fmt: skip
    return rows


def methods_for(name: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the methods that can run on a data set."""
    return tuple(m for m in wanted if not (name == "tdt2" and m in NOT_ON_TEXT))


def markdown(record: dict[str, Any]) -> str:
    """Return the variance of the span and seconds, one table for each data set and r."""
    lines = [
        "# Figures 5 to 7 of the SADMM paper, run again", "",
        "What the span of the loadings explains, in percent of plain PCA's with as many "
        "components, then seconds of one run on one thread. k is the number of features in each "
        f"component. Every method had {record['time limit']:g} seconds, after which it had to "
        "give what it had: * marks those. GCM, Breast and News20 could not be had: "
        + "; ".join(f"`{name}` is {what}" for name, what in LARGE.items())
        + ". With r=1 the readings of two-stage and row-sparse are the same.", "",
    ]  # fmt: skip
    for name, rows in record["sets"].items():
        lines += [f"## {name}", ""]
        for r in dict.fromkeys(row["r"] for row in rows):
            table = {(row["method"], row["k"]): row for row in rows if row["r"] == r}
            ks = sorted({k for _, k in table})
            lines += [
                f"r={r}", "", "| | " + " | ".join(f"k={k}" for k in ks) + " |",
                "|---" * (len(ks) + 1) + "|",
            ]  # fmt: skip
            for method in dict.fromkeys(method for method, _ in table):
                cells = []
                for k in ks:
                    row = table.get((method, k))
                    late = "*" if row and row["status"] == "time limit" else ""
                    cells.append(f"{row['span']:.2%}, {row['seconds']:.1f} s{late}" if row else "")
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
            lines.append("")
    return "\n".join(lines)


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw variance and time against k: two lines for each data set, a column for each r."""
    import matplotlib.pyplot as plt

    sets = record["sets"]
    rs = list(dict.fromkeys(row["r"] for rows in sets.values() for row in rows))
    figure, axes = plt.subplots(
        2 * len(sets), len(rs), figsize=(4 * len(rs) + 2, 6 * len(sets)), squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    for line, (name, rows) in enumerate(sets.items()):
        for column, r in enumerate(rs):
            above, below = axes[2 * line, column], axes[2 * line + 1, column]
            for i, method in enumerate(NAMES):
                mine = [row for row in rows if row["r"] == r and row["method"] == method]
                style = {
                    "marker": "osv^Dx*<>ph+d"[i % 13], "ms": 4, "color": f"C{i % 10}",
                    "ls": "-" if method.startswith(("StSPCA", "row")) else "--", "label": method,
                }  # fmt: skip
                ks = [row["k"] for row in mine]
                above.plot(ks, [row["span"] for row in mine], **style)
                below.semilogy(ks, [row["seconds"] for row in mine], **style)
            above.set(title=f"{name}, r={r}", ylabel="variance of the span, by plain PCA's")
            below.set(xlabel="features in each component", ylabel="seconds")
            for axis in (above, below):
                axis.grid(alpha=0.3)
    handles, labels = axes[0, -1].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(LARGE))
    parser.add_argument("--rs", nargs="+", type=int, default=RS)
    parser.add_argument("--ks", nargs="+", type=int, help="instead of each set's own")
    parser.add_argument("--methods", nargs="+", default=NAMES)
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figures567")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        sets: dict[str, Any] = {}
        for name in options.sets:
            names = methods_for(name, tuple(options.methods))
            with threadpool_limits(1):
                ks = tuple(options.ks or KS[name])
                sets[name] = run_set(large(name), tuple(options.rs), ks, names, options.time_limit)
            record = {"machine": machine(), "time limit": options.time_limit, "sets": sets}
            json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

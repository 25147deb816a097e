"""Figure 4b: the objective step by step, from the SVD and from random starts.

Run: ``python -m benchmarks.papers.sadmm.starts``. Needs matplotlib for the picture. Writes
starts.json, starts.md and starts.png beside this file; ``--draw`` only draws from the JSON.
``--size`` and ``--seeds`` run a part.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import machine
from benchmarks.papers.sadmm.data import synthetic
from benchmarks.papers.sadmm.scores import objective, recovery_error
from kspan import as_covariance, solve
from kspan.problem import StiefelProblem

HERE = Path(__file__).parent
SIZE = (1000, 1000)
R = 2
SHARES = (0.01, 0.05, 0.2)
SEEDS = 10
STARTS = ("svd", "varimax", "coordinate")
# The history is within this share of its last value, and stays there.
SETTLED = 1e-3


def settled(history: np.ndarray) -> int:
    """Return the step from which on the history is within `SETTLED` of its end."""
    away = np.abs(history - history[-1]) > SETTLED * abs(history[-1])
    return int(np.flatnonzero(away).max(initial=-1)) + 2


def run(n: int, d: int, shares: tuple[float, ...], seeds: int) -> list[dict[str, Any]]:
    """Return one row for each λ and start."""
    X, truth = synthetic(n, d)
    covariance = as_covariance(X)
    largest = StiefelProblem(covariance, R, 0.0).largest_alpha
    rows = []
    for share in shares:
        problem = StiefelProblem(covariance, R, share * largest)
        starts = [(start, 0) for start in STARTS] + [("random", seed) for seed in range(seeds)]
        for start, seed in starts:
            found = solve(problem, "sadmm", init=start, random_state=seed)
            rows.append({
                "share": share, "start": start, "seed": seed,
                **objective(X, found.loadings, share * largest),
                "error": recovery_error(found.loadings, truth), "steps": found.n_iter,
                "settled": settled(found.history),
                "history": [float(f"{value:.8g}") for value in found.history],
            })  # fmt: skip
    return rows


def markdown(record: dict[str, Any]) -> str:
    """Return a row for each λ and start; random starts in one."""
    n, d = record["size"]
    lines = [
        "# Figure 4b of the SADMM paper, run again", "",
        f"SADMM with kspan's defaults on the paper's synthetic data, {n} by {d}, r={R}. Objective "
        "(4) of the loadings returned, relative to the best of the same λ: 0% is the best. "
        f"`settled` is the step from which on the history stays within {SETTLED:.1%} of its end. "
        "λ is a share of the largest useful one.", "",
        "| λ | start | runs | above the best, median | worst | settled, median | error, median | "
        "error, worst |", "|---" * 8 + "|",
    ]  # fmt: skip
    for share in dict.fromkeys(row["share"] for row in record["rows"]):
        mine = [row for row in record["rows"] if row["share"] == share]
        best = min(row["(4)"] for row in mine)
        for start in (*STARTS, "random"):
            runs = [row for row in mine if row["start"] == start]
            away = [(row["(4)"] - best) / abs(best) for row in runs]
            errors = [row["error"] for row in runs]
            lines.append(
                f"| {share:g} | {start} | {len(runs)} | {np.median(away):.2%} | {max(away):.2%} | "
                f"{np.median([row['settled'] for row in runs]):g} | {np.median(errors):.4f} | "
                f"{max(errors):.4f} |"
            )
    return "\n".join([*lines, ""])


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the histories, one panel for each λ."""
    import matplotlib.pyplot as plt

    shares = list(dict.fromkeys(row["share"] for row in record["rows"]))
    figure, axes = plt.subplots(
        1, len(shares), figsize=(4.6 * len(shares), 4), squeeze=False, constrained_layout=True
    )
    colors = {"svd": "k", "varimax": "#009e73", "coordinate": "#0072b2", "random": "#d55e00"}
    for axis, share in zip(axes[0], shares, strict=True):
        for row in record["rows"]:
            if row["share"] == share:
                label = row["start"] if row["seed"] == 0 else None
                wide = 0.6 if row["start"] == "random" else 2
                steps = np.arange(1, len(row["history"]) + 1)
                axis.plot(steps, row["history"], c=colors[row["start"]], lw=wide, label=label)
        axis.set(title=f"λ={share:g}", xlabel="step", xscale="log")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("objective (4) of V")
    axes[0, 0].legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", nargs=2, type=int, default=SIZE)
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "starts")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        with threadpool_limits(1):
            rows = run(*options.size, tuple(options.shares), options.seeds)
        record = {"machine": machine(), "size": list(options.size), "rows": rows}
        json_file.write_text(json.dumps(record) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

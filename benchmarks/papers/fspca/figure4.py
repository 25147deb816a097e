"""Figure 4: the objective step by step on lymphoma, m=10, k=100, from one convex start.

Run: ``python -m benchmarks.papers.fspca.figure4``. Needs KSPAN_DATA, and matplotlib for the
picture. Writes figure4.json, figure4.md and figure4.png beside this file; ``--draw`` only draws.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers.fspca.figure2 import SHIFT, covariance_of
from kspan import RowSparseProblem, as_covariance, solve

HERE = Path(__file__).parent
M, K = 10, 100
METHODS = ("ipu", "soap", "srt")


def run(A: np.ndarray, m: int = M, k: int = K) -> dict[str, Any]:
    """Return each method's history, normalised by what plain PCA explains."""
    total = float(np.linalg.eigvalsh(A)[-m:].sum())
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), m, k)
    shift = SHIFT * float(np.trace(A)) / len(A)
    histories = {}
    for name in METHODS:
        solution = solve(problem, name, init="convex", shift=shift, max_iter=200)
        W = solution.loadings
        reached = float(np.trace(W.T @ A @ W))
        if not np.isclose(reached, solution.history.max(), rtol=1e-9):
            raise AssertionError(f"{name} says {solution.history.max()}, W explains {reached}")
        drops = np.diff(solution.history) < -1e-9 * solution.objective
        histories[name] = {
            "history": (solution.history / total).tolist(), "steps": solution.n_iter,
            "falls": int(drops.sum()), "status": solution.status.value,
        }  # fmt: skip
    go = solve(problem, "go", shift=shift)
    return {"go": go.objective / total, "histories": histories}


def markdown(record: dict[str, Any]) -> str:
    """Return a row for each method."""
    lines = [
        f"# Figure 4 of the FSPCA paper, run again (lymphoma, m={M}, k={K})", "",
        "All from the convex relaxation cut to k rows; explained variance by plain PCA's. "
        f"Go, which has no steps, is at {record['go']:.4f}.", "",
        "| method | start | best | last | steps | steps that fall | status |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, run in record["histories"].items():
        history = run["history"]
        lines.append(
            f"| {name} | {history[0]:.4f} | {max(history):.4f} | {history[-1]:.4f} | "
            f"{run['steps']} | {run['falls']} | {run['status']} |"
        )
    return "\n".join([*lines, ""])


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the histories."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4.4), constrained_layout=True)
    styles = {"ipu": ("k", "-", "o"), "soap": ("#d55e00", ":", "x"), "srt": ("#0072b2", "--", "v")}
    for name, (color, line, marker) in styles.items():
        history = record["histories"][name]["history"][:31]
        axis.plot(history, line, color=color, marker=marker, ms=4, label=name.upper())
    axis.axhline(record["go"], color="0.5", lw=1, label="Go (one step)")
    axis.set(xlabel="step", ylabel="explained variance, by plain PCA's",
             title=f"Lymphoma, m={M}, k={K}: only IPU never falls")  # fmt: skip
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figure4")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        record = {"machine": machine(), **run(covariance_of("lymphoma"))}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

"""Figure 4: the objective step by step on lymphoma, m=10, k=100, from the same starts.

The paper starts from the convex relaxation cut to k rows, and does not say with which penalty. So
there are two: the penalty that leaves k features, and a weaker one; and Go's solution.

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


# Of the largest off-diagonal entry: about what keeps all features, but few of them large.
WEAK = 0.2


def run(A: np.ndarray, m: int = M, k: int = K) -> dict[str, Any]:
    """Return each method's history from each start, by what plain PCA explains."""
    total = float(np.linalg.eigvalsh(A)[-m:].sum())
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), m, k)
    shift = SHIFT * float(np.trace(A)) / len(A)
    largest = float(np.abs(A - np.diag(np.diag(A))).max())
    starts = {
        "convex, k features": solve(problem, "fps"),
        "convex, weak penalty": solve(problem, "fps", penalty=WEAK * largest),
        "Go": solve(problem, "go", shift=shift),
    }
    return {
        start: {name: _history(problem, A, name, first.loadings, shift, total) for name in METHODS}
        for start, first in starts.items()
    }


def _history(
    problem: RowSparseProblem, A: np.ndarray, name: str, W: np.ndarray, shift: float, total: float
) -> dict[str, Any]:
    solution = solve(problem, name, init=W, shift=shift, max_iter=200)
    history = np.append(np.trace(W.T @ A @ W), solution.history)  # the start itself comes first
    best = solution.loadings
    reached = float(np.trace(best.T @ A @ best))
    if not np.isclose(reached, solution.history.max(), rtol=1e-9):
        raise AssertionError(f"{name} says {solution.history.max()}, W explains {reached}")
    falls = np.diff(history) < -1e-9 * history.max()
    return {
        "history": (history / total).tolist(), "steps": solution.n_iter + 1,
        "falls": int(falls.sum()), "status": solution.status.value,
    }  # fmt: skip


def markdown(record: dict[str, Any]) -> str:
    """Return a row for each start and method."""
    lines = [
        f"# Figure 4 of the FSPCA paper, run again (lymphoma, m={M}, k={K})", "",
        "Explained variance by plain PCA's, step by step from the same starts.", "",
        "| start | method | at the start | best | last | steps | steps that fall | status |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for start, runs in record["starts"].items():
        for name, run in runs.items():
            history = run["history"]
            lines.append(
                f"| {start} | {name} | {history[0]:.4f} | {max(history):.4f} | {history[-1]:.4f} "
                f"| {run['steps']} | {run['falls']} | {run['status']} |"
            )
    return "\n".join([*lines, ""])


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the histories, one panel for each start."""
    import matplotlib.pyplot as plt

    styles = {"ipu": ("k", "-", "o"), "soap": ("#d55e00", ":", "x"), "srt": ("#0072b2", "--", "v")}
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharey=True, constrained_layout=True)
    for axis, (start, runs) in zip(axes, record["starts"].items(), strict=True):
        for name, (color, line, marker) in styles.items():
            history = runs[name]["history"][:31]
            axis.plot(history, line, color=color, marker=marker, ms=4, label=name.upper())
        axis.set(xlabel="step", title=f"from {start}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("explained variance, by plain PCA's")
    axes[0].legend()
    figure.suptitle(f"Lymphoma, m={M}, k={K}: only IPU never falls")
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figure4")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        record = {"machine": machine(), "starts": run(covariance_of("lymphoma"))}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

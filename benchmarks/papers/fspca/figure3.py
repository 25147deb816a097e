"""Figure 3: time against k on a covariance of 5000 features (scheme D, m=10).

Run: ``python -m benchmarks.papers.fspca.figure3``. Writes figure3.json, figure3.md and
figure3.png beside this file; ``--draw`` only draws. Every method starts from the covariance
alone, so each pays for its own leading eigenvectors; rounds alternate between the methods. FPS is
not there: it needs an eigensolve of order 5000 in each of its steps.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from benchmarks.measure import alternate, machine, ratio
from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import make_scheme

HERE = Path(__file__).parent
D, M = 5000, 10
KS = (20, 50, 100, 200, 400)
METHODS = {
    "Go": ("go", {}),
    "IPU": ("ipu", {}),
    "SOAP": ("soap", {"max_iter": 20}),
    "SRT": ("srt", {"max_iter": 20}),
    "CSSP": ("cssp", {}),
    "TPower (G)": ("tpower", {}),
    "kspan auto": ("auto", {}),
}


def tasks(A: np.ndarray, k: int) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Return the methods as functions of nothing, and where they leave their answers."""
    answers: dict[str, Any] = {}

    def fit(name: str) -> None:
        solver, options = METHODS[name]
        # A fresh covariance: eigenvectors found for another method do not count.
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), M, k)
        answers[name] = solve(problem, solver, random_state=0, **options)

    work: dict[str, Callable[[], Any]] = {name: partial(fit, name) for name in METHODS}
    work["eigsh"] = partial(eigsh, A, M, v0=np.ones(len(A)))
    return work, answers


def run(d: int, ks: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """Return one row for every k and method."""
    A = make_scheme("D", d, random_state=0)
    rows = []
    for k in ks:
        work, answers = tasks(A, k)
        seconds = alternate(work, repeats)
        for name in METHODS:
            support, W = answers[name].support, answers[name].weights
            value = float(np.trace(W.T @ A[np.ix_(support, support)] @ W))
            rows.append({
                "k": k, "method": name, "seconds": statistics.median(seconds[name]),
                "by eigsh": ratio(seconds[name], seconds["eigsh"]),
                "explained variance": value, "steps": answers[name].n_iter,
            })  # fmt: skip
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return seconds, and times that of eigsh, by method and k."""
    ks = sorted({row["k"] for row in rows})
    table = {(row["method"], row["k"]): row for row in rows}
    lines = [
        f"# Figure 3 of the FSPCA paper, run again (d={D}, m={M}, scheme D)", "",
        "Seconds, and in brackets the ratio to scipy's `eigsh` for the same m in the same round.",
        "SOAP and SRT take at most 20 steps, as IPU does.", "",
        "| | " + " | ".join(f"k={k}" for k in ks) + " |", "|---" * (len(ks) + 1) + "|",
    ]  # fmt: skip
    for name in METHODS:
        cells = [f"{table[name, k]['seconds']:.2f} ({table[name, k]['by eigsh']:.1f})" for k in ks]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Explained variance:", "", "| | " + " | ".join(f"k={k}" for k in ks) + " |"]
    lines.append("|---" * (len(ks) + 1) + "|")
    for name in METHODS:
        cells = [f"{table[name, k]['explained variance']:.3f}" for k in ks]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds against k."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4.4), constrained_layout=True)
    for name, marker in zip(METHODS, "o^svxD*", strict=True):
        mine = [row for row in rows if row["method"] == name]
        axis.loglog(
            [row["k"] for row in mine], [row["seconds"] for row in mine], marker=marker, ms=4,
            color="k" if name == "kspan auto" else None, label=name,
        )  # fmt: skip
    axis.set(xlabel="features k", ylabel="seconds", title=f"d={D}, m={M}, scheme D")
    ks = sorted({row["k"] for row in rows})
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--d", type=int, default=D)
    parser.add_argument("--ks", nargs="+", type=int, default=KS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figure3")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        rows = run(options.d, tuple(options.ks), options.repeats)
        json_file.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    rows = json.loads(json_file.read_text())["rows"]
    options.out.with_suffix(".md").write_text(markdown(rows))
    draw(rows, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

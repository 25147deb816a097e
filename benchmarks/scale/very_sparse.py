"""100,000 × 1,000,000 sparse data with ten million entries: time, peak memory, passes.

Run: ``OPENBLAS_NUM_THREADS=1 python -m benchmarks.scale.very_sparse``. Each fit is a process of its
own, so that its peak memory is its own: Python, libraries and data (0.12 GB) included. Writes
very_sparse.json and very_sparse.md beside this file.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from benchmarks.scale.growth import planted_sparse

HERE = Path(__file__).parent
N, D, NNZ = 100_000, 1_000_000, 10_000_000
M, K = 5, 50
SOLVERS = ("auto", "ipu")
ROUNDS = 3
MOST_GIGABYTES = 4.0  # what was asked for


def fit(solver: str) -> dict[str, Any]:
    """Make the data, fit, and say what it took."""
    from kspan import FeatureSparsePCA

    # Half the features of a factor in each row: 8 entries, some of them twice.
    X = planted_sparse(N, D, (NNZ - 8 * N) / (N * D), np.random.default_rng(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, clock = time.process_time(), time.perf_counter()
    model = FeatureSparsePCA(M, K, solver=solver, random_state=0).fit(X)
    return {
        "solver": solver, "nnz": int(X.nnz),
        "seconds": time.process_time() - started, "wall": time.perf_counter() - clock,
        "passes": int(model.n_passes_), "steps": int(model.n_iter_),
        "variance": float(model.objective_), "before": before * 1024 / 1e9,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }  # fmt: skip


def run() -> list[dict[str, Any]]:
    """Return a row for each solver: medians of rounds in which they take turns."""
    found: dict[str, list[dict[str, Any]]] = {solver: [] for solver in SOLVERS}
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for _ in range(ROUNDS):
        for solver in SOLVERS:
            command = [sys.executable, "-m", "benchmarks.scale.very_sparse", "--task", solver]
            found[solver].append(json.loads(subprocess.check_output(command, text=True, env=env)))
    return [
        rows[0]
        | {
            "seconds": statistics.median(row["seconds"] for row in rows),
            "wall": statistics.median(row["wall"] for row in rows),
            "peak": max(row["peak"] for row in rows),
        }
        for rows in found.values()
    ]


def markdown(record: dict[str, Any]) -> str:
    """Return the table."""
    lines = [
        f"# {N:,} × {D:,}, sparse", "",
        f"{M} components, {K} features, one BLAS thread. CPU seconds, medians of {ROUNDS} "
        "processes (`wall`: by the clock, on a machine with other work); the peak is the largest, "
        "with Python, libraries, data and what making it took (`before`). "
        f"Asked for: under {MOST_GIGABYTES:g} GB.", "",
        "| solver | stored entries | seconds | wall | passes | steps | peak GB | before GB | "
        "variance |", "|---" * 9 + "|",
    ]  # fmt: skip
    for row in record["rows"]:
        lines.append(
            f"| {row['solver']} | {row['nnz']:,} | {row['seconds']:.1f} | {row['wall']:.1f} | "
            f"{row['passes']} | {row['steps']} | {row['peak']:.2f} | {row['before']:.2f} | "
            f"{row['variance']:.6g} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Run it and write the files, or one fit and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=SOLVERS, help="one fit, for a process of its own")
    parser.add_argument("--out", type=Path, default=HERE / "very_sparse")
    options = parser.parse_args()
    if options.task:
        sys.stdout.write(json.dumps(fit(options.task)))
        return
    record = {"machine": machine(), "rows": run()}
    options.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(markdown(record))


if __name__ == "__main__":
    main()

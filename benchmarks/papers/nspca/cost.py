"""Time and memory of the exact spannogram, and of the ε-net against a truncated SVD.

Run: ``python -m benchmarks.papers.nspca.cost``. Needs KSPAN_DATA. Writes cost.json and cost.md
beside this file; ``--draw`` only writes the table from the JSON, ``--cases`` and ``--repeats`` run
a part. Peak memory is that of a process of its own, which is this module with ``--peak``.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

from benchmarks.measure import alternate, machine, ratio
from benchmarks.papers.nspca.data import load
from benchmarks.papers.nspca.methods import EPSILON, RANK, Data
from benchmarks.papers.sadmm.data import factor_data
from kspan import NonnegativeProblem, as_covariance, solve
from kspan.datasets import load_dataset
from kspan.linalg.low_rank_enumeration import prepare

HERE = Path(__file__).parent
GIGABYTE = 1e9
MOST_MEMORY = 1.0  # gigabytes, as asked for
MOST_TIMES = 3.0  # of the net, by the truncated SVD, as asked for

# Name: data, rank, k, and the seconds asked for.
CASES: dict[str, tuple[str, int, int, float]] = {
    "LRS": ("lrs", 3, 20, 10.0),
    "CBCL, k=40": ("cbcl", 3, 40, 120.0),
    "CBCL, k=180": ("cbcl", 3, 180, 120.0),
    "5000 features": ("synthetic", 2, 50, 60.0),
}
SYNTHETIC = (100, 5000)
WIDE, WIDE_K = "prostate", 50


def matrix(name: str) -> np.ndarray:
    """Return the data of a case."""
    return factor_data(*SYNTHETIC) if name == "synthetic" else load(name)


def search(data: Data, rank: int, k: int, *, eliminate: bool) -> np.ndarray:
    """Run the exact spannogram; its eigenvectors included."""
    options = {"rank": rank, "eliminate": eliminate, "max_vertices": None}
    return solve(data.problem(k), "spannogram", **options).loadings[:, 0]


def n_vertices(data: Data, rank: int, k: int, *, eliminate: bool) -> int:
    """Return how many directions with ties are visited."""
    pairs = data.covariance.leading(rank)
    V = pairs.vectors * np.sqrt(pairs.values)
    return prepare(V, k, eliminate=eliminate).n_vertices


def one_case(data: Data, rank: int, k: int, *, eliminate: bool) -> dict[str, Any]:
    """Return seconds and size of one search, on what is compiled already."""
    started = time.perf_counter()
    x = search(data, rank, k, eliminate=eliminate)
    seconds = time.perf_counter() - started
    pairs = data.covariance.leading(rank)
    return {
        "seconds": seconds,
        "vertices": n_vertices(data, rank, k, eliminate=eliminate),
        "value": float(np.sum((x @ pairs.vectors) ** 2 * pairs.values)) / data.largest,
        "variance": data.variance(x),
    }


def peak(data: Data, rank: int, k: int, *, eliminate: bool) -> dict[str, float]:
    """Search once; return the peak of this process before and after, in gigabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    search(data, rank, k, eliminate=eliminate)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"before": before * 1024 / GIGABYTE, "peak": after * 1024 / GIGABYTE}


def peak_apart(case: str, *, eliminate: bool) -> dict[str, float]:
    """Return `peak` of a fresh process."""
    how = "eliminate" if eliminate else "all"
    command = [sys.executable, "-m", "benchmarks.papers.nspca.cost", "--peak", case, how]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def wide(X: np.ndarray, k: int, repeats: int) -> dict[str, Any]:
    """Time the net, and the eigenvectors that it begins with, from the data on."""

    def net() -> None:
        problem = NonnegativeProblem(as_covariance(X), 1, k)
        solve(problem, "net", rank=RANK, epsilon=EPSILON, random_state=0)

    tasks: dict[str, Callable[[], Any]] = {
        "net": net,
        "kspan's eigenvectors": lambda: as_covariance(X).leading(RANK),
        "TruncatedSVD": lambda: TruncatedSVD(RANK, random_state=0).fit(X),
    }
    seconds = alternate(tasks, repeats)
    return {
        "shape": list(X.shape), "k": k, "rounds": repeats,
        "fits": {
            name: {
                "seconds": statistics.median(seconds[name]),
                "by TruncatedSVD": ratio(seconds[name], seconds["TruncatedSVD"]),
            }
            for name in tasks
        },
    }  # fmt: skip


def run(names: list[str], repeats: int) -> dict[str, Any]:
    """Return {case: {way: row}} and the comparison of the net."""
    # Memory first: a new process inherits the peak of the one that starts it.
    ways = {"default": True, "every vertex": False}
    memory = {
        (name, way): peak_apart(name, eliminate=eliminate)
        for name in names
        for way, eliminate in ways.items()
    }
    # What is compiled at the first call is not timed.
    for rank in (2, 3):
        for eliminate in ways.values():
            search(Data(factor_data(30, 40)), rank, 4, eliminate=eliminate)
    cases: dict[str, Any] = {}
    for name in names:
        source, rank, k, most = CASES[name]
        data = Data(matrix(source))
        cases[name] = {"rank": rank, "k": k, "n_features": data.X.shape[1], "asked": most}
        for way, eliminate in ways.items():
            row = one_case(data, rank, k, eliminate=eliminate)
            cases[name][way] = {**row, "memory": memory[name, way]}
    X = load_dataset(WIDE).X.astype(np.float64)
    return {"cases": cases, "wide": wide(X, WIDE_K, repeats)}


def markdown(record: dict[str, Any]) -> str:
    """Return a row for each search, and the comparison of the net."""
    lines = [
        "# Time and memory of the spannogram and of the ε-net", "",
        "The exact spannogram finds the best nonnegative component of the covariance cut to a "
        "low rank. By default features are ruled out first; `every vertex` does without, as the "
        "paper does: then every set of `rank` features, or one less and zero, is visited. "
        "Where so few features are left that all their subsets are tried, there is no vertex. "
        "Seconds include the eigenvectors; one thread. `variance` is x'Ax by λ₁ of the whole "
        "covariance, which no search at a low rank sees. Peak memory is that of a process of its "
        "own, with Python, the libraries and the data (`before` the search).", "",
        "| data | features | rank | k | | vertices | variance | seconds | asked | peak GB | "
        "before GB |", "|---" * 11 + "|",
    ]  # fmt: skip
    for name, one in record["cases"].items():
        for way in ("default", "every vertex"):
            row, memory = one[way], one[way]["memory"]
            lines.append(
                f"| {name} | {one['n_features']} | {one['rank']} | {one['k']} | {way} | "
                f"{row['vertices']} | {row['variance']:.5f} | {row['seconds']:.2f} | "
                f"< {one['asked']:g} | {memory['peak']:.2f} | {memory['before']:.2f} |"
            )
    in_time = all(
        one[way]["seconds"] < one["asked"]
        for one in record["cases"].values()
        for way in ("default", "every vertex")
    )
    most = max(
        one[way]["memory"]["peak"]
        for one in record["cases"].values()
        for way in ("default", "every vertex")
    )
    part = record["wide"]
    lines += [
        "",
        f"- Time is {'as' if in_time else '**more than**'} asked for; the largest peak is "
        f"{most:.2f} GB, asked for less than {MOST_MEMORY:g}.", "",
        f"The ε-net, rank {RANK}, ε = {EPSILON:g}, k={part['k']}, on data of "
        f"{part['shape'][0]} by {part['shape'][1]} ({WIDE}), from the data on; medians of "
        f"{part['rounds']} rounds, `times` that of the ratios to scikit-learn's TruncatedSVD of "
        "the same rank in the same round. TruncatedSVD does not centre.", "",
        "| | seconds | times |", "|---|---|---|",
    ]  # fmt: skip
    for name, row in part["fits"].items():
        lines.append(f"| {name} | {row['seconds']:.3f} | {row['by TruncatedSVD']:.2f} |")
    times = part["fits"]["net"]["by TruncatedSVD"]
    lines += [
        "", f"- The net takes {times:.2f} times TruncatedSVD, asked for at most {MOST_TIMES:g}: "
        f"{'as asked' if times <= MOST_TIMES else '**more than asked**'}.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "HOW"), help="memory of one search")
    parser.add_argument("--draw", action="store_true", help="only write the table")
    parser.add_argument("--out", type=Path, default=HERE / "cost")
    options = parser.parse_args()
    os.environ["NUMBA_NUM_THREADS"] = "1"  # read when numba is imported, which is later
    if options.peak:
        case, how = options.peak
        source, rank, k, _ = CASES[case]
        with threadpool_limits(1):
            print(json.dumps(peak(Data(matrix(source)), rank, k, eliminate=how == "eliminate")))
        return
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        with threadpool_limits(1):
            record = {"machine": machine(), **run(options.cases, options.repeats)}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(markdown(json.loads(json_file.read_text())))


if __name__ == "__main__":
    main()

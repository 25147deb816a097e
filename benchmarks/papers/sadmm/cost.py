"""Time and memory of StiefelSparsePCA on the paper's largest shapes, against TruncatedSVD.

Run: ``python -m benchmarks.papers.sadmm.cost``. Needs KSPAN_DATA, and matplotlib for the picture.
Writes cost.json, cost.md and cost.png beside this file; ``--draw`` only draws from the JSON.
``--sets`` and ``--repeats`` run a part. Peak memory is that of a process of its own, which is this
module with ``--peak``.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

from benchmarks.measure import alternate, machine, ratio
from benchmarks.papers.sadmm.data import LARGE, large
from benchmarks.papers.sadmm.scores import measures, plain_pca
from kspan import StiefelSparsePCA

HERE = Path(__file__).parent
SETS = {"breast": 3, "tdt2": 5}  # and the number of components
FEATURES = 50  # in each component, for the fits that ask for a number
GIGABYTE = 1e9
MOST_MEMORY, MOST_TIME = 2.0, 10.0  # what was asked for: gigabytes, times TruncatedSVD


def estimators(r: int) -> dict[str, Callable[[], Any]]:
    """Return what is fitted; the first is the default, the last the peer."""
    return {
        "StiefelSparsePCA": lambda: StiefelSparsePCA(r, random_state=0),
        "StiefelSparsePCA, two-stage": lambda: StiefelSparsePCA(
            r, solver="two-stage", n_features_to_select=r * FEATURES, random_state=0
        ),
        f"StiefelSparsePCA, {FEATURES} each": lambda: StiefelSparsePCA(
            r, n_nonzero_coefs=FEATURES, random_state=0
        ),
        "TruncatedSVD": lambda: TruncatedSVD(r, random_state=0),
    }


def peak(X: Any, r: int, name: str) -> dict[str, float]:
    """Fit once; return the peak of this process before and after, in gigabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    estimators(r)[name]().fit(X)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"before": before * 1024 / GIGABYTE, "peak": after * 1024 / GIGABYTE}


def peak_apart(dataset: str, name: str) -> dict[str, float]:
    """Return `peak` of a fresh process."""
    command = [sys.executable, "-m", "benchmarks.papers.sadmm.cost", "--peak", dataset, name]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def one_set(X: Any, r: int, repeats: int, slow_repeats: int = 1) -> dict[str, Any]:
    """Return time, variance and size of each fit; the fit for a number of features has fewer."""
    fitted: dict[str, Any] = {}
    makers = estimators(r)

    def task(name: str) -> Callable[[], None]:
        def fit() -> None:
            fitted[name] = makers[name]().fit(X)

        return fit

    slow = next(name for name in makers if name.endswith("each"))
    quick = [name for name in makers if name != slow]
    rounds = [(quick, repeats), ([slow, "TruncatedSVD"], slow_repeats)]
    rows: dict[str, Any] = {}
    for names, times in rounds:
        if not times:
            continue
        seconds = alternate({name: task(name) for name in names}, times)
        for name in names:
            if name in rows:
                continue
            V = fitted[name].components_.T.astype(np.float64)
            found = measures(X, V)
            rows[name] = {
                "seconds": statistics.median(seconds[name]), "rounds": times,
                "by TruncatedSVD": ratio(seconds[name], seconds["TruncatedSVD"]),
                "span": found["span"], "in each": found["in each"],
                "steps": getattr(fitted[name], "n_iter_", None),
                "passes": getattr(fitted[name], "n_passes_", None),
            }  # fmt: skip
    return {"shape": list(X.shape), "r": r, "plain PCA": plain_pca(X, r), "fits": rows}


def run(names: list[str], repeats: int, slow_repeats: int) -> dict[str, Any]:
    """Return {data set: record}."""
    # Memory first: a new process inherits the peak of the one that starts it.
    memory = {
        (dataset, name): peak_apart(dataset, name)
        for dataset in names
        for name in estimators(SETS[dataset])
    }
    sets = {}
    for dataset in names:
        record = one_set(large(dataset), SETS[dataset], repeats, slow_repeats)
        for name, row in record["fits"].items():
            row["memory"] = memory[dataset, name]
        sets[dataset] = record
    return sets


def markdown(record: dict[str, Any]) -> str:
    """Return a row for each fit."""
    lines = [
        "# Time and memory on the paper's largest shapes", "",
        "; ".join(f"`{name}` is {LARGE[name]}" for name in record["sets"]) + ". `times` is "
        "the median of the ratios to scikit-learn's TruncatedSVD of the same rank in the same "
        "round, one thread. Peak memory is that of a process of its own, with Python, the "
        "libraries and the data (`before` the fit). `span` is what the span of the components "
        "explains, by plain PCA's; TruncatedSVD does not centre.", "",
        f"Asked for: the default fit at most {MOST_TIME:g} times, under {MOST_MEMORY:g} GB.", "",
        "| data | r | fit | seconds | times | rounds | steps | passes | peak GB | before GB | "
        "span | features in each |", "|---" * 12 + "|",
    ]  # fmt: skip
    for dataset, one in record["sets"].items():
        for name, row in one["fits"].items():
            each = [min(row["in each"]), max(row["in each"])]
            lines.append(
                f"| {dataset} | {one['r']} | {name} | {row['seconds']:.2f} | "
                f"{row['by TruncatedSVD']:.1f} | {row['rounds']} | {row['steps'] or ''} | "
                f"{row['passes'] or ''} | {row['memory']['peak']:.2f} | "
                f"{row['memory']['before']:.2f} | {row['span'] / one['plain PCA']:.2%} | "
                f"{each[0]} to {each[1]} |"
            )
    lines.append("")
    for dataset, one in record["sets"].items():
        row = one["fits"]["StiefelSparsePCA"]
        time_ok = row["by TruncatedSVD"] <= MOST_TIME
        memory_ok = row["memory"]["peak"] < MOST_MEMORY
        lines.append(
            f"- {dataset}: {row['by TruncatedSVD']:.1f} times TruncatedSVD, "
            f"{'as asked' if time_ok else 'more than asked'}; {row['memory']['peak']:.2f} GB, "
            f"{'as asked' if memory_ok else 'more than asked'}."
        )
    return "\n".join([*lines, ""])


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw seconds and peak memory."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), constrained_layout=True)
    labels, seconds, memory = [], [], []
    for dataset, one in record["sets"].items():
        for name, row in one["fits"].items():
            labels.append(f"{dataset}: {name}")
            seconds.append(row["seconds"])
            memory.append(row["memory"]["peak"])
    for axis, values, title in ((axes[0], seconds, "seconds"), (axes[1], memory, "peak GB")):
        axis.barh(labels, values, color="#0072b2")
        axis.invert_yaxis()
        axis.set_xlabel(title)
        axis.grid(alpha=0.3)
    axes[0].set_xscale("log")
    axes[1].set_yticklabels([])
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow-repeats", type=int, default=1)
    parser.add_argument("--peak", nargs=2, metavar=("SET", "FIT"), help="memory of one fit")
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "cost")
    options = parser.parse_args()
    if options.peak:
        dataset, name = options.peak
        with threadpool_limits(1):
            print(json.dumps(peak(large(dataset), SETS[dataset], name)))
        return
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        with threadpool_limits(1):
            sets = run(options.sets, options.repeats, options.slow_repeats)
        record = {"machine": machine(), "sets": sets}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

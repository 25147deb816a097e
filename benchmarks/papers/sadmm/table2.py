"""Table 2: cumulative variance of r=3 components of 50 features each, on five gene sets.

Run: ``python -m benchmarks.papers.sadmm.table2``. Needs KSPAN_DATA, and matplotlib for the
picture. Writes table2.json, table2.md and table2.png beside this file; ``--draw`` only draws from
the JSON. ``--sets`` and ``--methods`` run a part, and with ``--update`` what the JSON has of other
methods, and its bounds, stay.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import machine
from benchmarks.papers.sadmm.data import NORMALISED, REAL, real
from benchmarks.papers.sadmm.methods import DEFLATION, METHODS
from benchmarks.papers.sadmm.scores import measures, plain_pca, total
from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.problem import Patterns, StiefelProblem

HERE = Path(__file__).parent
R, K = 3, 50
# Features in each component so that there are about 50 in all: what the paper's numbers look like.
FEWER = 17
# {label: (data set, normalised or not, features in each component)}
SETS = {
    **{name: (name, False, K) for name in REAL},
    **{f"{name}, normalised": (name, True, K) for name in NORMALISED},
    **{f"{name}, normalised, {FEWER} each": (name, True, FEWER) for name in NORMALISED},
}
# The rows of the paper; its StSPCA-2S can be read in three ways.
IN_THE_PAPER = {
    name: name.split(",")[0]
    for name in (*DEFLATION, "StSPCA", "StSPCA-D", "StSPCA-2S, K=k", "StSPCA-2S, K=rk",
                 "StSPCA-2S, K=rk, k each")
}  # fmt: skip
TWO_STAGE = tuple(name for name in IN_THE_PAPER if name.startswith("StSPCA-2S"))
ONE_BY_ONE = (*DEFLATION, "StSPCA-D")
# Up to this share of the larger one, two variances count as equal.
TIE = 1e-6
# For each of the two proofs of a data set.
PROOF_SECONDS = 45.0
# Orthonormal to this much: the joint bound holds for them.
ORTHONORMAL = 1e-9


def bounds(X: np.ndarray, r: int = R, k: int = K, seconds: float = PROOF_SECONDS) -> dict[str, Any]:
    """Return what nothing can exceed, as sums of squares of scores.

    - "span": r components on rk features in all, shared or not;
    - "raw": r orthonormal components with k features each. Others may count variance twice.
    """
    covariance = as_covariance(X)
    d, times = covariance.n_features, X.shape[0] - 1
    shared = RowSparseProblem(covariance, r, min(r * k, d))
    joint = StiefelProblem(covariance, r, patterns=Patterns.of(d, r, k))
    found = {}
    for measure, problem in (("span", shared), ("raw", joint)):
        solution = solve(problem, random_state=0)
        certificate = certify(problem, solution, "tight", time_limit=seconds)
        verify(problem, certificate)
        found[measure] = certificate.upper * times
        found[f"{measure} gap"] = certificate.gap
    return found


def to_bound(row: dict[str, Any], limits: dict[str, Any], measure: str) -> float | None:
    """Return how far a method may be from the best, as a share of the bound; None if unknown."""
    if measure == "raw" and row["orthogonality error"] > ORTHONORMAL:
        return None
    if measure == "raw" and max(row["in each"]) > limits["k"]:
        return None
    # Of orthonormal loadings both measures are the same, and so both bounds hold.
    limit = limits["span"] if measure == "span" else min(limits["span"], limits["raw"])
    return float(1 - row[measure] / limit)


def one_set(
    X: np.ndarray, r: int = R, k: int = K, names: tuple[str, ...] = tuple(METHODS),
    time_limit: float | None = None, proof_seconds: float = PROOF_SECONDS,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the methods on one data set; what is known of others, and the bounds, stay."""
    record: dict[str, Any] = {
        "shape": list(X.shape), "k": k, "total": total(X), "plain PCA": plain_pca(X, r),
        "methods": {},
    }  # fmt: skip
    found = {} if known is None else dict(known["methods"])
    for name in names:
        started = time.perf_counter()
        answer = METHODS[name](X, r, k, time_limit)
        seconds = time.perf_counter() - started
        found[name] = {
            **measures(X, answer.loadings), "seconds": seconds, "status": answer.status
        }  # fmt: skip
    record["methods"] = {name: found[name] for name in METHODS if name in found}
    if known is None:
        record["bound"] = {"k": k, **bounds(X, r, k, proof_seconds)}
    else:
        record["bound"] = known["bound"]
    return record


def run(
    names: list[str], methods: tuple[str, ...], time_limit: float | None = None,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return {data set: record}."""
    sets = {}
    for label in names:
        name, normalised, k = SETS[label]
        X = real(name, normalised=normalised)
        old = None if known is None else known["sets"][label]
        sets[label] = one_set(X, k=k, names=methods, time_limit=time_limit, known=old)
        print(label, sets[label]["bound"], flush=True)
    return sets


def claims(record: dict[str, Any], measure: str = "span") -> dict[str, list[str]]:
    """Return what breaks "two-stage ≥ joint ≥ each deflation method", by how much of the joint.

    One entry for each reading of two-stage, and one for the deflation methods.
    """
    value = {name: row[measure] for name, row in record["methods"].items()}
    slack = TIE * max(value.values())

    def excess(name: str) -> str:
        return f"{name} {value[name] / value['StSPCA'] - 1:+.1%}"

    broken = {
        f"{name} ≥ StSPCA": [excess(name)] if value[name] < value["StSPCA"] - slack else []
        for name in TWO_STAGE
    }
    broken["StSPCA ≥ each deflation method"] = [
        excess(name) for name in ONE_BY_ONE if value["StSPCA"] < value[name] - slack
    ]
    return broken


def verdict(record: dict[str, Any], measure: str) -> str:
    """Return the claims that hold and the cells that break the others, in a line."""
    found = claims(record, measure)
    holds = [claim for claim, broken in found.items() if not broken]
    breaks = [cell for broken in found.values() for cell in broken]
    parts = []
    if holds:
        parts.append("holds: " + "; ".join(holds))
    if breaks:
        parts.append("broken by (relative to StSPCA): " + "; ".join(breaks))
    return ". ".join(parts) + "."


def _two_stage_match(record: dict[str, Any], paper: dict[str, Any]) -> list[str]:
    """Return our two-stage numbers with 50 features in all on the normalised sets, and theirs."""
    return [
        f"{name} {record['sets'][label]['methods']['StSPCA-2S, K=k']['raw']:.0f}, the paper "
        f"{paper['StSPCA-2S'][name]:.0f}"
        for label, (name, normalised, k) in SETS.items()
        if normalised and k == K and label in record["sets"]
    ]


def percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def markdown(record: dict[str, Any], paper: dict[str, Any]) -> str:
    """Return one table a data set, and a line for each claim."""
    lines = [
        "# Table 2 of the SADMM paper, run again", "",
        f"r={R} components of k={K} features each. `span` is ‖X qf(V)‖², what the span of the "
        "loadings explains; `adjusted` counts of each score only what it adds to those before it; "
        "`raw` is the sum of the variances, the paper's measure, in which overlapping components "
        "count twice. All three are in percent of plain PCA's with as many components, computed "
        "from data and loadings in float64. `features` is how many there are in all, "
        "`error` the largest |V'V - I|.", "",
        "The paper's two-stage row can be read in three ways: K=50 features in all, the same for "
        "every component; K=150 in all, every component on all of them; and K=150 in all, of "
        "which stage II gives 50 to each component. Only the last has 50 features in each "
        f"component, as many in all as the other methods may have. λ of stage I is {0.05:.0%} of "
        "the largest useful one, kspan's default; nothing is tuned.", "",
        "Our cuts of the data differ from the paper's: "
        + "; ".join(f"{name}: {how}" for name, (_, how) in REAL.items())
        + ". `normalised` is how LIBSVM publishes three of the sets, samples and then features "
        "to mean 0 and variance 1. So orderings are compared, not numbers; the last column has "
        "the paper's, in its own units.", "",
        "What the paper counts: on the normalised sets its two-stage numbers are near those of "
        "K=50 features in all (" + "; ".join(_two_stage_match(record, paper)) + "), and its other "
        f"numbers are far below what 50 features in each component explain; with {FEWER} in "
        "each, about 50 in all, they are of the same size, on colon and leukemia nearer to our "
        "adjusted variances than to our raw ones. So the paper seems to have 50 features in all. "
        "Hence the last three tables, in which K=rk is the paper's K.", "",
        "Below the bound: how far a method is from what is proved that nothing can exceed, so how "
        "far from the best at most. For the span that is three components on 3k features in all; "
        "for the raw variance three orthonormal components of k features each (components that "
        "are not orthonormal may count variance twice, and have no such bound). Each bound had "
        f"{PROOF_SECONDS:.0f} s. `orthonormal auto` is no method of the paper: it is kspan's own "
        "search.", "",
        "Seconds are of one run each, one thread, with other work on the machine "
        f"({record['seconds']:.0f} s in all).", "",
    ]  # fmt: skip
    for name, result in record["sets"].items():
        best = result["plain PCA"]
        lines += [
            f"## {name} ({result['shape'][0]} by {result['shape'][1]}, k={result['k']})", "",
            f"Plain PCA: {best:.4g}, {best / result['total']:.1%} of the total.", "",
            "| | span % | adjusted % | raw % | ‖XV‖² | below the bound, span | raw | features | "
            "error | seconds | the paper's |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for method, row in result["methods"].items():
            theirs = paper.get(IN_THE_PAPER.get(method, ""), {}).get(name.split(",")[0])
            shown = "" if theirs is None else f"{theirs:.4g}"
            if row["status"] == "time limit":
                method += " (out of time)"
            lines.append(
                f"| {method} | {row['span'] / best:.2%} | {row['adjusted'] / best:.2%} | "
                f"{row['raw'] / best:.2%} | {row['raw']:.4g} | "
                f"{percent(to_bound(row, result['bound'], 'span'))} | "
                f"{percent(to_bound(row, result['bound'], 'raw'))} | {row['features']} | "
                f"{row['orthogonality error']:.1e} | {row['seconds']:.1f} | {shown} |"
            )
        lines.append("")
        for measure in ("span", "adjusted", "raw"):
            lines.append(f"- {measure}: {verdict(result, measure)}")
        lines.append("")
    return "\n".join(lines)


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the variance of the span, one group a data set."""
    import matplotlib.pyplot as plt

    names = [name for name in METHODS if "start" not in name and "gradual" not in name]
    wide = min(4, len(record["sets"]))
    high = -(-len(record["sets"]) // wide)
    figure, axes = plt.subplots(
        high, wide, figsize=(2.8 * wide + 2, 4 * high), sharey=True, squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    for axis in axes.flat[len(record["sets"]) :]:
        axis.axis("off")
    for axis, (name, result) in zip(axes.flat, record["sets"].items(), strict=False):
        for y, method in enumerate(reversed(names)):
            if method in result["methods"]:
                color = "k" if method.startswith("row") else "#d55e00"
                color = color if not method.startswith(("G", "I", "T", "M")) else "#0072b2"
                axis.plot(result["methods"][method]["span"] / result["plain PCA"], y, "o", c=color)
        axis.set(title=name, xlabel="by plain PCA")
        axis.set_yticks(range(len(names)), list(reversed(names)))
        axis.grid(alpha=0.3)
    figure.suptitle(f"Variance of the span, r={R}")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--time-limit", type=float, help="seconds for each method")
    parser.add_argument("--update", action="store_true", help="keep what was not run")
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "table2")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        known = json.loads(json_file.read_text()) if options.update else None
        with threadpool_limits(1):
            sets = run(options.sets, tuple(options.methods), options.time_limit, known)
        if known is not None:
            sets = known["sets"] | sets
        seconds = sum(
            row["seconds"] for found in sets.values() for row in found["methods"].values()
        )
        record = {"machine": machine(), "seconds": seconds, "sets": sets}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    paper = json.loads((HERE / "paper.json").read_text())["table2"]
    options.out.with_suffix(".md").write_text(markdown(record, paper))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

"""The V-step: polar steps against the paper's conjugate gradients, by time to the same objective.

Run: ``python -m benchmarks.papers.sadmm.v_steps``. Needs KSPAN_DATA. Writes v_steps.json and
v_steps.md beside this file. Every variant runs the splitting loop from the same SVD start; what
counts is the time until its objective stays within 1% (and 0.1%) of the lowest that any variant
reaches. Rounds alternate between the variants.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers.sadmm.data import real, synthetic
from kspan import as_covariance
from kspan.covariance import Covariance
from kspan.problem import StiefelProblem
from kspan.progress import Monitor, Progress
from kspan.solvers.stiefel.joint import Joint
from kspan.solvers.stiefel.splitting import Settings, Split

HERE = Path(__file__).parent
VARIANTS = {
    "polar, 1 step": Settings(v_step="polar", v_iter=1),
    "polar, 5 steps": Settings(v_step="polar", v_iter=5),
    "cg, 2 steps": Settings(v_step="cg", v_iter=2),
    "cg, 5 steps": Settings(v_step="cg", v_iter=5),
    "cg, 30 steps": Settings(v_step="cg", v_iter=30),
}
SETS = {"synthetic": 2, "colon": 3, "leukemia": 3, "duke": 3}
SHARES = (0.03, 0.1)  # of the largest useful alpha


def one_run(
    covariance: Covariance, r: int, share: float, settings: Settings
) -> tuple[list[float], list[float]]:
    """Return the objective after every step of the loop, and the seconds until then."""
    largest = StiefelProblem(covariance, r, 0.0).largest_alpha
    problem = StiefelProblem(covariance, r, share * largest)
    seconds: list[float] = []
    started = time.perf_counter()

    def note(_: Progress) -> None:
        seconds.append(time.perf_counter() - started)

    solver = Joint(problem, settings, Monitor("v-step", note))
    state = solver.run(Split.at(covariance.leading(r).vectors[None]))
    return state.history, seconds


def time_until(history: list[float], seconds: list[float], target: float) -> float | None:
    """Return when the objective went below the target to stay; None if it never did."""
    above = np.flatnonzero(np.array(history) > target)
    after = int(above[-1]) + 1 if above.size else 0
    return seconds[after] if after < len(seconds) else None


def run(sets: dict[str, int], shares: tuple[float, ...], repeats: int) -> list[dict[str, Any]]:
    """Return one row for every data set, share and variant."""
    rows = []
    for name, r in sets.items():
        X = synthetic(1000, 1000)[0] if name == "synthetic" else real(name)
        covariance = as_covariance(X)
        covariance.leading(r)
        for share in shares:
            runs: dict[str, list[Any]] = {variant: [] for variant in VARIANTS}
            for _ in range(repeats):
                for variant, settings in VARIANTS.items():
                    runs[variant].append(one_run(covariance, r, share, settings))
            best = min(min(history) for made in runs.values() for history, _ in made)
            for variant, made in runs.items():
                row: dict[str, Any] = {"data": name, "share": share, "variant": variant}
                for label, slack in (("1%", 0.01), ("0.1%", 0.001)):
                    times = [time_until(*one, best + slack * abs(best)) for one in made]
                    reached = [t for t in times if t is not None]
                    row[f"ms to {label}"] = (
                        round(1000 * statistics.median(reached), 1) if reached else None
                    )
                row["end, over the best"] = min(made[0][0][-1] / abs(best) + 1, 9.0)
                rows.append(row)
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return one line for every data set and share."""
    lines = [
        "# V-steps: time to the same objective", "",
        "Milliseconds until the objective (4) stays within 1% / 0.1% of the lowest that any "
        "variant reaches from the SVD start; - where it ends in a worse local minimum.", "",
        "| data | alpha, of the largest | " + " | ".join(VARIANTS) + " |",
        "|---" * (len(VARIANTS) + 2) + "|",
    ]  # fmt: skip
    table = {(row["data"], row["share"], row["variant"]): row for row in rows}
    for name, share in dict.fromkeys((row["data"], row["share"]) for row in rows):
        cells = []
        for variant in VARIANTS:
            row = table[name, share, variant]
            cells.append(" / ".join("-" if row[key] is None else f"{row[key]:.0f}"
                                    for key in ("ms to 1%", "ms to 0.1%")))  # fmt: skip
        lines.append(f"| {name} | {share} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "v_steps")
    options = parser.parse_args()
    rows = run(SETS, SHARES, options.repeats)
    record = {"machine": machine(), "rows": rows}
    options.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(markdown(rows))


if __name__ == "__main__":
    main()

"""Standardised data: what is found, and what is proved of it, at any width.

Run: ``python -m benchmarks.certificates.standardised``, or with names of data sets for their rows
only. Needs KSPAN_DATA. Every row runs in a process of its own. ``best_known.json`` holds the
largest value that anything has found for each problem; it only ever rises.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.run import gap, timed, value_from_data
from benchmarks.measure import write
from kspan import RowSparseProblem, as_covariance, solve, verify
from kspan.datasets import load_dataset

HERE = Path(__file__).parent
BEST_KNOWN = HERE / "best_known.json"

WIDE = ("colon", "leukemia", "dlbcl", "prostate")
ROWS = [
    *(("lymphoma", m, k) for m in (1, 3) for k in (10, 30)),
    *((name, m, k) for name in WIDE for m in (1, 3) for k in (10, 50)),
    ("nus_wide", 3, 10),
]
TIGHT_SECONDS, EXACT_SECONDS = 60.0, 60.0


def load(name: str) -> Any:
    """Return the correlations of a data set: genes in logarithms, with a floor of 20 where raw."""
    data = load_dataset(name)
    if data.covariance is not None:
        A = np.asarray(data.covariance, dtype=np.float64)
        deviations = np.sqrt(np.diagonal(A))
        return as_covariance(A / deviations[:, None] / deviations, kind="covariance")
    X = data.X.astype(np.float64)
    if name in ("leukemia", "dlbcl", "prostate"):
        X = np.log(np.maximum(X, 20))
    if name == "colon":
        X = np.log(X)
    return as_covariance(X, scale=True)


def row(name: str, m: int, k: int) -> dict[str, Any]:
    problem = RowSparseProblem(load(name), m, k)
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    found = {"data": name, "d": problem.n_features, "m": m, "k": k, "value": solution.objective,
             "fit s": time.perf_counter() - started}  # fmt: skip
    best = known_best(name, m, k)
    for level, limit in (("fast", None), ("tight", TIGHT_SECONDS), ("exact", EXACT_SECONDS)):
        certificate, seconds = timed(problem, solution, level, time_limit=limit)
        best = max(best, value_from_data(problem, certificate.support))
        found |= {f"{level} gap": certificate.gap, f"{level} s": seconds}
    started = time.perf_counter()
    verify(problem, certificate)
    return found | {
        "verify s": time.perf_counter() - started,
        "exact status": certificate.status.value, "nodes": certificate.n_nodes,
        "proved by": certificate.method, "optimum or best": certificate.lower,
        "trivial": bool(k - certificate.lower < 1e-9), "best known": best,
        "below best known": gap(solution.objective, max(best, solution.objective)),
    }  # fmt: skip


def known_best(name: str, m: int, k: int) -> float:
    """Return the largest value so far."""
    values = json.loads(BEST_KNOWN.read_text()) if BEST_KNOWN.exists() else {}
    return float(values.get(f"{name} {m} {k}", 0.0))


def keep_best(rows: list[dict[str, Any]]) -> None:
    """Write what was found, where it is more than what was known."""
    values = json.loads(BEST_KNOWN.read_text()) if BEST_KNOWN.exists() else {}
    for found in rows:
        key = f"{found['data']} {found['m']} {found['k']}"
        values[key] = max(values.get(key, 0.0), found["best known"])
    BEST_KNOWN.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


def main(wanted: list[str]) -> None:
    old = HERE / "standardised.json"
    kept = json.loads(old.read_text())["rows"] if wanted and old.exists() else []
    made = {(r["data"], r["m"], r["k"]): r for r in kept}
    for case in ROWS:
        if wanted and case[0] not in wanted:
            continue
        code = (
            "import json; from benchmarks.certificates import standardised; "
            f"print(json.dumps(standardised.row{case!r}))"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        made[case] = json.loads(result.stdout.splitlines()[-1])
        print(made[case], flush=True)
        keep_best([made[case]])
    rows = [made[case] for case in ROWS if case in made]
    note = f"""
Correlations; leukemia, dlbcl and prostate are log(max(x, 20)), colon log(x), lymphoma the
correlation of its covariance. Gaps are shares of the upper bound. `value` is what `auto` finds
before any proof, `tight` has {TIGHT_SECONDS:.0f} s and `exact` {EXACT_SECONDS:.0f} s. A row is
trivial when its k best features are copies of each other: the value is then k. Every certificate
was checked by `verify` in the same run, and the value of its support recomputed from the data.
"""
    write(HERE, "standardised", "Certificates on standardised data", rows, note)


if __name__ == "__main__":
    main(sys.argv[1:])

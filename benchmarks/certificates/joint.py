"""Orthonormal components with features of their own: what `auto` finds, and what is proved of it.

Run: ``python -m benchmarks.certificates.joint``, or with names of data sets for these only. Needs
KSPAN_DATA. Every row runs in a process of its own with one BLAS thread, two rows at a time. Writes
joint.json and joint.md beside this file.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.run import gap, load
from benchmarks.measure import in_own_process, write
from kspan import certify, solve, verify
from kspan.problem import Patterns, StiefelProblem

HERE = Path(__file__).parent

Case = tuple[str, int, int, bool]  # data, r, k of each component, disjoint supports

LARGE = ("lymphoma", "nus_wide")
WIDE = ("colon", "leukemia")
CASES: list[Case] = [
    *(("pitprops", r, k, False) for r in range(2, 7) for k in range(2, 8)),
    *((name, r, k, False) for name in ("wine", "breast_cancer") for r in (2, 3) for k in (3, 5, 8)),
    *((name, r, k, False) for name in LARGE for r in (2, 3) for k in (5, 10, 20)),
    *((name, 3, k, False) for name in WIDE for k in (10, 20)),
    *(("pitprops", r, k, True) for r in (2, 3, 4) for k in (2, 3, 4) if r * k <= 13),
    *((name, r, k, True) for name in LARGE for r in (2, 3) for k in (5, 10)),
]
SECONDS = {"small": 60.0, "large": 150.0}


def value_of(problem: StiefelProblem, U: np.ndarray) -> float:
    """What orthonormal loadings explain, from the definition; they must be feasible."""
    assert np.abs(U.T @ U - np.eye(U.shape[1])).max() < 1e-10
    assert problem.patterns is not None
    assert problem.patterns.objection(U != 0) is None
    rows = np.flatnonzero(U.any(axis=1))
    A = problem.covariance.submatrix(rows)
    return float(np.trace(U[rows].T @ A @ U[rows]))


def row(name: str, r: int, k: int, disjoint: bool) -> dict[str, Any]:
    covariance = load(name)
    d = covariance.n_features
    problem = StiefelProblem(covariance, r, patterns=Patterns.of(d, r, k, disjoint=disjoint))
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    found = {"data": name, "d": d, "r": r, "k": k, "disjoint": disjoint,
             "value": value_of(problem, solution.loadings),
             "fit s": time.perf_counter() - started}  # fmt: skip
    limit = SECONDS["large" if name in (*LARGE, *WIDE) else "small"]
    for level in ("fast", "tight", "exact"):
        started = time.perf_counter()
        certificate = certify(problem, solution, level, time_limit=limit)
        found |= {f"{level} gap": certificate.gap, f"{level} s": time.perf_counter() - started}
    started = time.perf_counter()
    verify(problem, certificate)
    found["verify s"] = time.perf_counter() - started
    U = np.zeros((d, r))
    U[certificate.support] = certificate.weights
    best = value_of(problem, U)
    assert abs(best - certificate.lower) <= 1e-9 * best
    return found | {
        "exact status": certificate.status.value, "nodes": certificate.n_nodes,
        "proved by": certificate.method, "optimum or best": best,
        "below best": gap(found["value"], max(best, found["value"])),
    }  # fmt: skip


def case_of(found: dict[str, Any]) -> Case:
    return found["data"], found["r"], found["k"], found["disjoint"]


def main(wanted: list[str]) -> None:
    asked = [case for case in CASES if not wanted or case[0] in wanted]
    old = HERE / "joint.json"
    rows = json.loads(old.read_text())["rows"] if old.exists() else []
    made = {case_of(found): found for found in rows}
    with ThreadPoolExecutor(2) as pool:
        for case, found in zip(
            asked,
            pool.map(partial(in_own_process, "benchmarks.certificates.joint"), asked),
            strict=True,
        ):
            made[case] = found
            rows = [made[case] for case in CASES if case in made]
            write(HERE, "joint", "Certificates of orthonormal components", rows, NOTE)


NOTE = f"""
r orthonormal components with at most k features each, which they may share or (disjoint) not.
Pitprops, wine and breast_cancer are correlations, the others covariances: leukemia
log(max(x, 20)), colon log(x), lymphoma and nus_wide as they are given. Gaps are shares of the upper
bound. `value` is tr(U'AU) of what `auto` finds before any proof, recomputed from the loadings; each
level has {SECONDS["small"]:.0f} s for the small sets and {SECONDS["large"]:.0f} s for the others,
with one thread each and two rows at a time. `below best` is how far `auto` is below the best that
the proof found on its way. Every certificate was checked by `verify` in the same run.
"""

if __name__ == "__main__":
    main(sys.argv[1:])

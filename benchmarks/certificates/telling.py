"""Features from which all others can be told: what is proved of the best choice.

Run: ``python -m benchmarks.certificates.telling``, or with names of data sets for these only. Needs
KSPAN_DATA. Every row runs in a process of its own with one BLAS thread, one at a time. Writes
telling.json and telling.md beside this file.
"""

import json
import sys
import time
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.run import gap
from benchmarks.measure import in_own_process, write
from kspan import RepresentProblem, as_covariance, certify, solve, verify
from kspan.datasets import load_dataset

HERE = Path(__file__).parent
SECONDS = 60.0

Case = tuple[str, int, int, float, str]  # data, m, k, ridge, level

RIDGE = 1e-5
CASES: list[Case] = [
    *(("pitprops", k, k, RIDGE, "exact") for k in range(1, 6)),
    *(("wine, standardised", k, k, RIDGE, "exact") for k in range(1, 6)),
    *(("nus_wide", k, k, RIDGE, "exact") for k in (2, 3, 5)),
    ("wine, standardised", 2, 6, RIDGE, "exact"),
    ("breast_cancer, standardised", 3, 6, RIDGE, "exact"),
    *((name, m, k, RIDGE, "tight")
      for name in ("digits", "nus_wide", "colon", "duke", "leukemia", "tdt2")
      for m in (3, 10) for k in (20, 50, 200)
      if not (name == "digits" and k == 200)),
    *(("leukemia", 3, 20, ridge, "tight") for ridge in (0.01, 0.1)),
    *(("nus_wide", 3, 20, ridge, "tight") for ridge in (0.01, 0.1)),
]  # fmt: skip


def covariance_of(name: str) -> Any:
    """Return the covariance of a row."""
    plain, _, how = name.partition(", ")
    data = load_dataset(plain)
    if data.X is None:
        return as_covariance(data.covariance, kind="covariance")
    return as_covariance(data.X, scale=how == "standardised")


def value_of(problem: RepresentProblem, support: np.ndarray) -> float:
    """What a support tells, from the definition."""
    C = problem.covariance.columns(support)
    K = C[support] + np.diag(problem.ridge * np.diagonal(C[support]))
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    half = C @ (vectors[:, kept] / np.sqrt(values[kept]))
    told = np.linalg.svd(half, compute_uv=False) ** 2
    return float(told[: problem.n_components].sum())


def row(name: str, m: int, k: int, ridge: float, level: str) -> dict[str, Any]:
    covariance = covariance_of(name)
    problem = RepresentProblem(covariance, m, k, ridge=ridge)
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    fit_seconds = time.perf_counter() - started
    started = time.perf_counter()
    certificate = certify(problem, solution, level, time_limit=SECONDS)
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    verify(problem, certificate)
    verified, total = time.perf_counter() - started, covariance.trace()
    best = value_of(problem, certificate.support)
    assert abs(best - certificate.lower) <= 1e-6 * best, (best, certificate.lower)
    pca = float(covariance.leading(m).values.sum())
    found = solution.objective
    return {
        "data": name, "d": covariance.n_features, "m": m, "k": k, "ridge": ridge, "level": level,
        "told": best / total, "PCA": pca / total, "at most": certificate.upper / total,
        "gap": certificate.gap, "gap to PCA": gap(best, pca),
        "status": certificate.status.value, "proved by": certificate.method,
        "fit s": fit_seconds, "proof s": seconds, "verify s": verified,
        "tried": certificate.n_nodes,
        "supports": float(comb(covariance.n_features, k)) if k <= 6 else None,
        "below best": gap(found, max(best, found)),
    }  # fmt: skip


def case_of(found: dict[str, Any]) -> Case:
    return found["data"], found["m"], found["k"], found["ridge"], found["level"]


def main(wanted: list[str]) -> None:
    old = HERE / "telling.json"
    rows = json.loads(old.read_text())["rows"] if old.exists() else []
    made = {case_of(found): found for found in rows}
    for case in CASES:
        if not wanted or case[0] in wanted:
            made[case] = in_own_process("benchmarks.certificates.telling", case)
            rows = [made[case] for case in CASES if case in made]
            write(HERE, "telling", "Certificates of features that tell all others", rows, NOTE)


NOTE = f"""
Pitprops is the published correlations, the other data is as it is stored and centred, standardised
where that is said. `told` and `at most` are shares of the variance of all features, both with the
row's ridge: noise of each chosen feature, as a share of its variance. `PCA` is what m principal
components of everything tell. `tried` is the number of supports that a scan tried, or of nodes, of
all `supports` of k features (given up to k = 6). Each proof has {SECONDS:.0f} s, with one thread.
`below best` is how far `auto` is below the best that the proof found on its way. Every certificate
was checked by `verify` in the same run.
"""

if __name__ == "__main__":
    main(sys.argv[1:])

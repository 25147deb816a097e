"""Choices that keep rules: what `auto` finds, and what is proved of it.

Run: ``python -m benchmarks.certificates.rules``, or with names of data sets for these only. Needs
KSPAN_DATA. Every row runs in a process of its own with one BLAS thread, one at a time. Writes
rules.json and rules.md beside this file. Groups are ten features in a row (five where they are
chosen whole), costs are drawn once from 1 to 5 with a budget of twice k, conflicts are correlations
above a limit.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.run import gap, load
from benchmarks.measure import in_own_process, write
from kspan import Panel, RowSparseProblem, as_covariance, certify, solve, verify
from kspan.datasets import load_dataset

HERE = Path(__file__).parent
SECONDS = 60.0

Case = tuple[str, int, int, str]  # data, m, k, rule

RULES = ("none", "at most one of each group", "whole groups", "costs", "no copies")
CASES: list[Case] = [
    *(("breast_cancer", 2, 8, rule) for rule in RULES),
    *(("nus_wide", 3, 20, rule) for rule in RULES),
    *(("lymphoma", 2, 20, rule) for rule in RULES),
    ("colon", 3, 20, "at most one of each group"),
    ("colon", 3, 20, "no copies"),
    ("leukemia, standardised", 1, 10, "no copies"),
    ("leukemia, standardised", 1, 30, "no copies"),
]
LIMITS = {"leukemia, standardised": 0.95}


def covariance_of(name: str) -> Any:
    """Return the covariance of a row."""
    if name != "leukemia, standardised":
        return load(name)
    X = np.log(np.maximum(load_dataset("leukemia").X.astype(np.float64), 20))
    return as_covariance(X, scale=True)


def panel_of(name: str, d: int, k: int, rule: str) -> Panel:
    """Return the rules of a row."""
    if rule == "at most one of each group":
        return Panel(groups=[str(i // 10) for i in range(d)], max_per_group=1)
    if rule == "whole groups":
        return Panel(groups=[str(i // 5) for i in range(d)], group_rule="together")
    if rule == "costs":
        costs = np.random.default_rng(0).integers(1, 6, d).astype(float)
        return Panel(costs=costs.tolist(), budget=2.0 * k)
    return Panel(max_correlation=LIMITS.get(name, 0.8)) if rule == "no copies" else Panel()


def value_of(problem: RowSparseProblem, support: np.ndarray) -> float:
    """What a support explains, from the definition; it must be feasible."""
    assert problem.choice.objection(support) is None
    A = problem.covariance.submatrix(support)
    return float(np.linalg.eigvalsh(A)[-problem.n_components :].sum())


def row(name: str, m: int, k: int, rule: str) -> dict[str, Any]:
    covariance = covariance_of(name)
    d = covariance.n_features
    # Costs alone say how many features there are.
    size = None if rule == "costs" else k
    problem = panel_of(name, d, k, rule).problem(covariance, m, size)
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    found = {"data": name, "d": d, "m": m, "k": k, "rule": rule,
             "value": value_of(problem, solution.support), "features": int(solution.support.size),
             "fit s": time.perf_counter() - started}  # fmt: skip
    for level in ("fast", "tight", "exact"):
        started = time.perf_counter()
        certificate = certify(problem, solution, level, time_limit=SECONDS)
        found |= {f"{level} gap": certificate.gap, f"{level} s": time.perf_counter() - started}
    started = time.perf_counter()
    verify(problem, certificate)
    best = value_of(problem, certificate.support)
    assert abs(best - certificate.lower) <= 1e-9 * best
    return found | {
        "verify s": time.perf_counter() - started, "exact status": certificate.status.value,
        "nodes": certificate.n_nodes, "proved by": certificate.method,
        "below best": gap(found["value"], max(best, found["value"])),
    }  # fmt: skip


def case_of(found: dict[str, Any]) -> Case:
    return found["data"], found["m"], found["k"], found["rule"]


def main(wanted: list[str]) -> None:
    old = HERE / "rules.json"
    rows = json.loads(old.read_text())["rows"] if old.exists() else []
    made = {case_of(found): found for found in rows}
    for case in CASES:
        if not wanted or case[0] in wanted:
            made[case] = in_own_process("benchmarks.certificates.rules", case)
            rows = [made[case] for case in CASES if case in made]
            write(HERE, "rules", "Certificates of choices that keep rules", rows, NOTE)


NOTE = f"""
Breast_cancer is correlations, nus_wide and lymphoma are covariances as they are given, colon is
log(x), leukemia log(max(x, 20)) and standardised. Groups are ten features in a row, five where they
are chosen whole; costs are 1 to 5 with a budget of 2k and no limit on the number of features; copies
are above a correlation of 0.8, of leukemia 0.95. Each level has {SECONDS:.0f} s, with one thread.
`below best` is how far `auto` is below the best that the proof found on its way. Every certificate
was checked by `verify` in the same run.
"""

if __name__ == "__main__":
    main(sys.argv[1:])

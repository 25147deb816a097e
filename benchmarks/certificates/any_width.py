"""What is found, and what is proved of it, at any width: scaled or not, of samples or a covariance.

Run: ``python -m benchmarks.certificates.any_width``, or with names of tables, data sets or cases
("standardised colon 3 50") for these only. Needs KSPAN_DATA. Every row runs in a process of its own
with one BLAS thread, two rows at a time. ``best_known.json`` holds the largest value that anything
has found for each standardised problem; it only ever rises. ``gap_history.json`` holds how the gaps
fell.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.run import gap, timed, value_from_data
from benchmarks.measure import in_own_process, write
from kspan import RowSparseProblem, as_covariance, solve, verify
from kspan.datasets import load_dataset
from kspan.proofs import Certificate

HERE = Path(__file__).parent
BEST_KNOWN, HISTORY = HERE / "best_known.json", HERE / "gap_history.json"

Case = tuple[str, str, int, int]  # table, data, m, k

GENES = ("colon", "leukemia", "dlbcl", "prostate")
WIDE = ("leukemia", "colon", "duke", "prostate", "dlbcl")
CASES: list[Case] = [
    *(("standardised", "lymphoma", m, k) for m in (1, 3) for k in (10, 30)),
    *(("standardised", name, m, k) for name in GENES for m in (1, 3) for k in (10, 50)),
    ("standardised", "nus_wide", 3, 10),
    *(("unscaled", name, m, k) for name in WIDE for m in (1, 3) for k in (10, 50)),
    *(("words", "tdt2", m, k) for m in (1, 3) for k in (10, 30, 100)),
]
TITLES = {
    "standardised": "Certificates on standardised data",
    "unscaled": "Certificates for wide data that is not scaled",
    "words": "Certificates for a covariance of 2000 words",
}
N_WORDS = 2000
TIGHT_SECONDS = 60.0
EXACT_SECONDS = 300.0
HISTORY_POINTS = 60


def load(name: str, table: str = "standardised") -> Any:
    """Return the correlations of a data set, or covariances.

    Genes in logarithms, with a floor of 20 where they are raw; of words those that vary most, as a
    matrix.
    """
    data, scaled = load_dataset(name), table == "standardised"
    if table == "words":
        covariance = as_covariance(data.X)
        words = np.argsort(-covariance.diagonal(), kind="stable")[:N_WORDS]
        return as_covariance(covariance.submatrix(np.sort(words)), kind="covariance")
    if data.covariance is not None:
        A = np.asarray(data.covariance, dtype=np.float64)
        deviations = np.sqrt(np.diagonal(A)) if scaled else np.ones(len(A))
        return as_covariance(A / deviations[:, None] / deviations, kind="covariance")
    X = data.X.astype(np.float64)
    if name in ("leukemia", "dlbcl", "prostate"):
        X = np.log(np.maximum(X, 20))
    if name == "colon":
        X = np.log(X)
    return as_covariance(X, scale=scaled)


def row(table: str, name: str, m: int, k: int) -> dict[str, Any]:
    problem = RowSparseProblem(load(name, table), m, k)
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    found = {"data": name, "d": problem.n_features, "m": m, "k": k, "value": solution.objective,
             "fit s": time.perf_counter() - started}  # fmt: skip
    best = solution.objective
    histories = {}
    for level, limit in (
        ("fast", None), ("tight", TIGHT_SECONDS), ("exact", EXACT_SECONDS),
    ):  # fmt: skip
        certificate, seconds = timed(problem, solution, level, time_limit=limit)
        best = max(best, value_from_data(problem, certificate.support))
        found |= {f"{level} gap": certificate.gap, f"{level} s": seconds}
        histories[level] = thinned(certificate)
    started = time.perf_counter()
    verify(problem, certificate)
    return found | {
        "verify s": time.perf_counter() - started,
        "exact status": certificate.status.value, "nodes": certificate.n_nodes,
        "proved by": certificate.method, "optimum or best": certificate.lower,
        "below best": gap(solution.objective, best),
        "history": histories["exact"],
    }  # fmt: skip


def thinned(certificate: Certificate) -> list[list[float]]:
    """Return seconds and gaps of a proof, as many as a figure needs."""
    seconds, lower, upper = certificate.history.T
    gaps = 1 - lower / np.minimum.accumulate(upper)
    places = np.unique(np.linspace(0, len(gaps) - 1, HISTORY_POINTS).astype(int))
    return [[round(float(seconds[i]), 3), float(gaps[i])] for i in places]


def known_best(name: str, m: int, k: int) -> float:
    """Return the largest value that is known of a standardised problem."""
    return float(json.loads(BEST_KNOWN.read_text()).get(f"{name} {m} {k}", 0.0))


def keep_best(name: str, m: int, k: int, value: float) -> float:
    """Return the larger of a value and the one that is known, and write it down."""
    values = json.loads(BEST_KNOWN.read_text())
    best = max(known_best(name, m, k), value)
    values[f"{name} {m} {k}"] = best
    BEST_KNOWN.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")
    return best


def main(wanted: list[str]) -> None:
    asked = [
        case for case in CASES
        if not wanted or {case[0], case[1], " ".join(map(str, case))} & set(wanted)
    ]  # fmt: skip
    histories = json.loads(HISTORY.read_text()) if HISTORY.exists() else {}
    made: dict[Case, dict[str, Any]] = {}
    for table in TITLES:
        old = HERE / f"{table}.json"
        for found in json.loads(old.read_text())["rows"] if old.exists() else []:
            made[table, found["data"], found["m"], found["k"]] = found
    with ThreadPoolExecutor(2) as pool:
        for case, found in zip(
            asked,
            pool.map(partial(in_own_process, "benchmarks.certificates.any_width"), asked),
            strict=True,
        ):
            histories[" ".join(map(str, case))] = found.pop("history")
            if case[0] == "standardised":
                best = keep_best(*case[1:], max(found["value"], found["optimum or best"]))
                found["below best"] = gap(found["value"], best)
                found["trivial"] = bool(case[3] - best < 1e-9)
            made[case] = found
            tables(made)
            HISTORY.write_text(json.dumps(histories) + "\n")


def tables(made: dict[Case, dict[str, Any]]) -> None:
    """Write what there is so far."""
    for table, title in TITLES.items():
        rows = [made[case] for case in CASES if case[0] == table and case in made]
        if rows:
            write(HERE, table, title, rows, NOTE)


NOTE = f"""
Standardised rows are correlations, the others covariances. Leukemia, dlbcl and prostate are
log(max(x, 20)), colon log(x), duke as it is; lymphoma is given as a covariance, and tdt2 is the
covariance of the {N_WORDS} words of largest variance. Gaps are shares of the upper bound. `value`
is what `auto` finds before any proof; `tight` has {TIGHT_SECONDS:.0f} s and `exact`
{EXACT_SECONDS:.0f} s, with one thread each and two rows at a time. `below best` is how far `auto`
is below the best that anything found. A row is trivial when its k best features are copies of m of
them: the value is then k, and the largest variances prove it. Every certificate was checked by
`verify` in the same run, and the value of its support recomputed from the data.
"""

if __name__ == "__main__":
    main(sys.argv[1:])

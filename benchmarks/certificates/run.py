"""How tight, how fast: certificates on real problems, beside the bounds that were known.

Run: ``python -m benchmarks.certificates.run``. Needs KSPAN_DATA, and cvxpy with Clarabel for
the SDP column. Every row runs in a process of its own, so that its peak memory is its own.
``python -m benchmarks.certificates.run NAME ...`` runs the rows of the named data sets only.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import write
from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.datasets import load_dataset
from kspan.progress import Monitor
from kspan.proofs.check.witnesses import TraceWitness
from kspan.proofs.search.prover import ProofOptions, prove
from kspan.proofs.search.tree_state import Budgets

HERE = Path(__file__).parent

LYMPHOMA = [(m, k) for m in (2, 3) for k in (10, 20, 30)] + [(1, 10), (1, 30)]
DENSE = [
    *(("lymphoma", m, k) for m, k in LYMPHOMA),
    ("nus_wide", 3, 20),
    ("nus_wide", 10, 50),
    ("numerical_numbers", 1, 10),
]
WIDE = [(name, m, k) for m, k in ((3, 50), (1, 50)) for name in ("leukemia", "colon", "duke")]
SMALL = ["pitprops", "wine"]


def load(name: str) -> Any:
    """Return the covariance of a data set, prepared as the row's name says."""
    data = load_dataset(name)
    if name in ("wine", "breast_cancer"):
        return as_covariance(np.corrcoef(data.X, rowvar=False), kind="covariance")
    if data.covariance is not None:
        return as_covariance(data.covariance, kind="covariance")
    X = data.X.astype(np.float64)
    if name == "leukemia":
        X = np.log(np.maximum(X, 20))
    if name == "colon":
        X = np.log(X)
    return as_covariance(X)


def value_from_data(problem: RowSparseProblem, support: np.ndarray) -> float:
    """What the support explains, from the definition."""
    A = problem.covariance.submatrix(support)
    return float(np.linalg.eigvalsh(A)[-problem.n_components :].sum())


def gap(lower: float, upper: float) -> float:
    return (upper - lower) / upper


def theorem_5_1(problem: RowSparseProblem) -> float:
    """Σ top-k diag(A_m) + Σ_{i=m+1}^{2m} λ_i, with an exact spectrum."""
    m, k = problem.n_components, problem.n_features_to_select
    A = problem.covariance.submatrix(np.arange(problem.n_features))
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    diagonal = (vectors[:, :m] ** 2) @ values[:m]
    return float(np.sort(diagonal)[-k:].sum() + values[m : 2 * m].sum())


def base_row(problem: RowSparseProblem, name: str) -> tuple[dict[str, Any], Any]:
    m, k = problem.n_components, problem.n_features_to_select
    started = time.perf_counter()
    solution = solve(problem, random_state=0)
    seconds = time.perf_counter() - started
    trace = TraceWitness().evaluate(problem)
    row = {
        "data": name, "d": problem.n_features, "m": m, "k": k,
        "value": solution.objective, "fit s": seconds,
        "trace gap": gap(solution.objective, trace),
    }  # fmt: skip
    return row, solution


def timed(problem: RowSparseProblem, solution: Any, level: str, **limits: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    certificate = certify(problem, solution, level, **limits)
    seconds = time.perf_counter() - started
    verify(problem, certificate)
    recomputed = value_from_data(problem, certificate.support)
    assert abs(recomputed - certificate.lower) <= 1e-9 * recomputed
    return certificate, seconds


def dense_row(name: str, m: int, k: int) -> dict[str, Any]:
    problem = RowSparseProblem(load(name), m, k)
    row, solution = base_row(problem, name)
    row["Theorem 5.1 gap"] = gap(solution.objective, theorem_5_1(problem))
    fast, seconds = timed(problem, solution, "fast")
    row |= {"fast gap": fast.gap, "fast s": seconds}
    budgets = Budgets(strengthen_gap=np.inf, max_nodes=1)
    plain = prove(
        problem, problem.refit(solution.support), "tight", heuristic=None,
        monitor=Monitor("tight"), options=ProofOptions(budgets=budgets),
    )  # fmt: skip
    row["plain relaxation gap"] = plain.gap
    row["its eigensolves"] = plain.n_eigensolves
    tight, seconds = timed(problem, solution, "tight")
    row |= {"tight gap": tight.gap, "tight eigensolves": tight.n_eigensolves, "tight s": seconds}
    exact, seconds = timed(problem, solution, "exact", time_limit=300)
    row |= {
        "exact status": exact.status.value, "exact gap": exact.gap, "nodes": exact.n_nodes,
        "eigensolves": exact.n_eigensolves, "exact s": seconds, "optimum": exact.lower,
    }  # fmt: skip
    started = time.perf_counter()
    verify(problem, exact)
    row["verify s"] = time.perf_counter() - started
    return row


def wide_row(name: str, m: int, k: int) -> dict[str, Any]:
    problem = RowSparseProblem(load(name), m, k)
    row, solution = base_row(problem, name)
    fast, _ = timed(problem, solution, "fast")
    tight, seconds = timed(problem, solution, "tight", time_limit=25)
    started = time.perf_counter()
    verify(problem, tight)
    row |= {
        "fast gap": fast.gap, "tight gap": tight.gap, "method": tight.method,
        "eigensolves": tight.n_eigensolves, "tight s": seconds,
        "verify s": time.perf_counter() - started,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip
    return row


def sdp_bound(A: np.ndarray, m: int, k: int) -> float:
    """max ⟨A, P⟩, 0 ⪯ P ⪯ I, tr P = m, ‖P‖₁ ≤ mk: the relaxation in the literature."""
    import cvxpy as cp

    P = cp.Variable(A.shape, PSD=True)
    constraints = [
        np.eye(len(A)) - P >> 0,
        cp.trace(P) == m,
        cp.sum(cp.abs(P)) <= m * k,
    ]
    relaxed = cp.Problem(cp.Maximize(cp.trace(A @ P)), constraints)
    try:
        return float(relaxed.solve(solver="CLARABEL"))
    except cp.error.SolverError:  # it gives up on a few; SCS does not
        return float(relaxed.solve(solver="SCS"))


def small_row(name: str, m: int) -> dict[str, Any]:
    """All k of a small matrix: the worst figure of each column."""
    covariance = load(name)
    d = covariance.n_features
    worst = {
        "trace gap": 0.0, "Theorem 5.1 gap": 0.0, "SDP gap": 0.0, "fast gap": 0.0,
        "tight gap": 0.0, "exact gap": 0.0, "nodes": 0, "eigensolves": 0, "exact s": 0.0,
    }  # fmt: skip
    proved = 0
    for k in range(m, d + 1):
        problem = RowSparseProblem(covariance, m, k)
        row, solution = base_row(problem, name)
        exact, seconds = timed(problem, solution, "exact")
        found = {
            "trace gap": row["trace gap"],
            "Theorem 5.1 gap": gap(exact.lower, theorem_5_1(problem)),
            "SDP gap": gap(exact.lower, sdp_bound(covariance.A, m, k)),
            "fast gap": timed(problem, solution, "fast")[0].gap,
            "tight gap": timed(problem, solution, "tight")[0].gap,
            "exact gap": exact.gap, "nodes": exact.n_nodes,
            "eigensolves": exact.n_eigensolves, "exact s": seconds,
        }  # fmt: skip
        worst = {key: max(worst[key], found[key]) for key in worst}
        proved += exact.status.value == "optimal"
    return {"data": name, "d": d, "m": m, "k": f"{m} to {d}",
            "proved optimal": f"{proved} of {d - m + 1}", **worst}  # fmt: skip


def in_own_process(kind: str, *arguments: Any) -> dict[str, Any]:
    code = (
        "import json; from benchmarks.certificates import run; "
        f"print(json.dumps(run.{kind}{arguments!r}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    row: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    print(row, flush=True)
    return row


def main(wanted: list[str]) -> None:
    def asked(name: str) -> bool:
        return not wanted or name in wanted

    dense = [in_own_process("dense_row", *case) for case in DENSE if asked(case[0])]
    wide = [in_own_process("wide_row", *case) for case in WIDE if asked(case[0])]
    small = [
        in_own_process("small_row", name, m) for name in SMALL for m in (1, 2, 3) if asked(name)
    ]
    note = """
Gaps are shares of the upper bound. `value` is what `auto` finds before any proof, `optimum` what
the search proves. The plain relaxation has neither strengthening nor branching; `tight` adds the
strengthening at the root; `exact` branches, with a limit of 300 s. `eigensolves` counts
symmetric eigenproblems of all sizes. Every certificate was checked by `verify` in the same run,
and the value of its support recomputed from the data.
"""
    for rows, file, title in (
        (dense, "dense", "Certificates where the whole matrix is relaxed"),
        (wide, "wide", "Certificates for wide data, no square matrix of all features"),
        (small, "small", "Small matrices, all k: the worst figure of each column"),
    ):
        if rows:
            write(HERE, file, title, rows, note)


if __name__ == "__main__":
    main(sys.argv[1:])

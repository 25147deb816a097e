"""What is known before anything is fitted, and what Go finds of the optimum with a shift.

Run: ``python -m benchmarks.papers.fspca.a_priori``: half a minute on one core, needs KSPAN_DATA.
Writes a_priori.json and a_priori.md beside this file. ε is the share that Go and IPU may lose by
the FSPCA paper, ρ the share that a nonnegative spannogram finds by the paper of
benchmarks/papers/nspca. Optima are by trying all choices.
"""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import write
from benchmarks.papers.fspca.table2 import SCHEMES, D, K, M
from benchmarks.papers.nspca.data import SETS, load
from kspan import RowSparseProblem, as_covariance, certify, solve
from kspan.datasets import load_pitprops, make_scheme
from kspan.proofs import fspca_epsilon, nspca_rho

HERE = Path(__file__).parent
DRAWS, SPIKED_DRAWS = 100, 200
FOUND = 1 - 1e-9  # what counts as the optimum
RANK = 3
KS = {"cbcl": 180, "leukemia": 50, "lrs": 20}  # for which the paper prints a share

Case = tuple[np.ndarray, int, int]  # A, m, k


def scheme(name: str, seed: int) -> Case:
    """Return a draw of Table 2."""
    return make_scheme(name, D, random_state=[ord(name), seed]), M, K


def spiked(seed: int) -> Case:
    """Draw σI + C with C of rank m, and some features with more of it than others."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(4, 13)), int(rng.integers(1, 4))
    k = int(rng.integers(m, d + 1))
    F = rng.standard_normal((d, m)) * rng.uniform(0.3, 1.5, (d, 1))
    return F @ F.T + 10 ** rng.uniform(-2, 1.5) * np.eye(d), m, k


def row(data: str, cases: list[Case]) -> dict[str, Any]:
    """Return ε (a median), and how Go does on some covariances without a shift and with one."""
    epsilons, plain, with_shift, proofs = [], [], [], 0
    for A, m, k in cases:
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), m, k)
        optimum = solve(problem, "brute-force").objective
        noise_off = solve(problem, "go", shift="auto")
        epsilons.append(fspca_epsilon(problem.covariance, m, k))
        plain.append(solve(problem, "go").objective / optimum)
        with_shift.append(noise_off.objective / optimum)
        proofs += certify(problem, noise_off, "fast").status.value == "optimal"
    (m, k), *others = {(m, k) for _, m, k in cases}
    return {
        "data": data, "m": None if others else m, "k": None if others else k, "draws": len(cases),
        "ε": median(epsilons), "ρ": None,
        "Go": median(plain), "Go, shift": median(with_shift),
        "Go is optimal": sum(share >= FOUND for share in plain),
        "Go, shift is optimal": sum(share >= FOUND for share in with_shift),
        "proved by fast": proofs,
    }  # fmt: skip


def nonnegative_row(name: str, like: dict[str, Any]) -> dict[str, Any]:
    """Return ρ, with the columns of the other rows."""
    rho = nspca_rho(as_covariance(load(name)), KS[name], RANK)
    return dict.fromkeys(like) | {"data": name, "m": 1, "k": KS[name], "ρ": rho}


def rows() -> list[dict[str, Any]]:
    found = [row(f"scheme {s}", [scheme(s, seed) for seed in range(DRAWS)]) for s in SCHEMES]
    found.append(row("spiked", [spiked(seed) for seed in range(SPIKED_DRAWS)]))
    found.append(row("pitprops", [(load_pitprops().covariance, 3, 5)]))
    return [*found, *(nonnegative_row(name, found[0]) for name in SETS)]


NOTES = f"""
Schemes have d = {D}; spiked covariances are σI + C with C of rank m, 4 to 12 features and drawn m
and k. ε, and what Go explains of the optimum, are medians over the draws; "shift" is
`shift="auto"`, and level "fast" proves what that finds. ρ is that of rank {RANK}, on the data of
benchmarks/papers/nspca.
"""


def main() -> None:
    with threadpool_limits(1, "blas"):
        write(HERE, "a_priori", "Before anything is fitted", rows(), NOTES)


if __name__ == "__main__":
    main()

"""What EM finds depends on its random starts: the same question with many seeds.

Run: ``python -m benchmarks.papers.nspca.em_seeds``. Needs KSPAN_DATA. Writes em_seeds.json and
em_seeds.md beside this file.
"""

from pathlib import Path

import numpy as np

from benchmarks.measure import write
from benchmarks.papers.nspca.data import load
from benchmarks.papers.nspca.methods import Data
from kspan import solve

HERE = Path(__file__).parent
NAME, K = "cbcl", 40
STARTS = (1, 5, 20)
SEEDS = 50
NEAR = 1e-3

NOTE = f"""
x'Ax of EM's component on {NAME} with k={K}, by the largest eigenvalue of the covariance, for
{SEEDS} seeds of its random starts. `near the optimum`: how many are within 0.1% of `auto`, which
figures456 proves optimal. Five starts are the default of its authors' package.
"""


def main() -> None:
    data = Data(load(NAME))
    problem = data.problem(K)
    best = data.variance(solve(problem, "auto", random_state=0).loadings[:, 0])
    rows = []
    for starts in STARTS:
        values = np.array([
            data.variance(
                solve(problem, "em", n_restarts=starts, random_state=seed).loadings[:, 0]
            )
            for seed in range(SEEDS)
        ])  # fmt: skip
        rows.append({
            "starts": starts, "seeds": SEEDS, "worst": values.min(),
            "median": float(np.median(values)), "best": values.max(),
            "near the optimum": int(np.sum(values >= best * (1 - NEAR))), "auto": best,
        })  # fmt: skip
    write(HERE, "em_seeds", "EM from other random starts", rows, NOTE)


if __name__ == "__main__":
    main()

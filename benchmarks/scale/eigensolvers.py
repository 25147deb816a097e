"""Why `leading(m)` takes the route it takes: its candidates beside each other.

Run: ``python -m benchmarks.scale.eigensolvers``. Needs KSPAN_DATA for the text data.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

import kspan.covariance.data_covariance as data_covariance
from benchmarks.measure import alternate, write
from kspan import as_covariance
from kspan.datasets import load_dataset
from kspan.linalg.eigen import RESIDUAL_TOL, lanczos, lapack

HERE = Path(__file__).parent


def spectrum(kind: str, n: int, d: int) -> np.ndarray:
    """Data without a gap in its spectrum, or with a few factors that fade."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if kind == "factors":
        loadings = rng.standard_normal((15, d)) * (0.5 * 0.85 ** np.arange(15))[:, None]
        X += rng.standard_normal((n, 15)) @ loadings
    return X


def best(tasks: dict[str, Callable[[], Any]]) -> dict[str, float]:
    return {name: min(times) for name, times in alternate(tasks, 3).items()}


def matrix_rows() -> list[dict[str, Any]]:
    rows = []
    for d in (200, 300, 400, 500, 600, 1200):
        for kind in ("factors", "noise"):
            A = np.cov(spectrum(kind, 2 * d, d), rowvar=False)
            for m in (3, 10):
                seconds = best(
                    {
                        "LAPACK": lambda A=A, m=m: lapack(A, m),
                        "Lanczos": lambda A=A, m=m, d=d: lanczos(lambda W: A @ W, d, m),
                        "Lanczos, blocks of 4": lambda A=A, m=m, d=d: lanczos(
                            lambda W: A @ W, d, m, block=4
                        ),
                        "eigsh": lambda A=A, m=m, d=d: eigsh(A, m, v0=np.ones(d), tol=RESIDUAL_TOL),
                    }
                )
                rows.append({"input": f"{kind} covariance {d}", "m": m, "Gram": "", **seconds})
    return rows


def data_row(name: str, X: Any, m: int) -> dict[str, Any]:
    """Routes for data: the Gram matrix first, or products with X and X' all the way."""

    def leading(gram_limit: int) -> None:
        data_covariance.GRAM_LIMIT = gram_limit
        as_covariance(X).leading(m)
        data_covariance.GRAM_LIMIT = 2048

    def arpack() -> None:
        covariance = as_covariance(X)
        d = covariance.n_features
        operator = LinearOperator(
            (d, d), matvec=lambda w: covariance.matmat(w[:, None])[:, 0], dtype=np.float64
        )
        eigsh(operator, m, v0=np.ones(d), tol=RESIDUAL_TOL)

    dense = isinstance(X, np.ndarray)
    tasks: dict[str, Callable[[], Any]] = {"Lanczos": lambda: leading(0), "eigsh": arpack}
    if dense:
        tasks["Gram"] = lambda: leading(10_000)
    seconds = best(tasks)
    return {
        "input": name, "m": m, "Gram": seconds.get("Gram", ""), "LAPACK": "",
        "Lanczos": seconds["Lanczos"], "Lanczos, blocks of 4": "", "eigsh": seconds["eigsh"],
    }  # fmt: skip


def main() -> None:
    rows = matrix_rows()
    for n, d in ((500, 5000), (2000, 5000), (3000, 5000), (20_000, 1000)):
        for kind in ("factors", "noise"):
            rows.append(data_row(f"{kind} {n} x {d}", spectrum(kind, n, d), 3))
    rows.append(data_row("tdt2 9394 x 36771 sparse", load_dataset("tdt2").X, 3))
    write(HERE, "eigensolvers", "Routes to the leading eigenpairs, seconds", rows)
    print((HERE / "eigensolvers.md").read_text())


if __name__ == "__main__":
    main()

"""The methods of the paper's figures by name, and what the benchmark measures itself."""

import time
from typing import Any

import numpy as np

from kspan import NonnegativeProblem, as_covariance, solve
from kspan.covariance import Covariance
from kspan.proofs.search.closed_forms import net_witnesses
from kspan.proofs.search.tree_state import Budgets

RANK, EPSILON, RESTARTS = 3, 0.1, 20  # d and ε of the paper's Algorithm 3; starts of the others

# Name: solver and its options. NSPCA as in the paper's comparison: β is bisected for at most k
# features, and nothing is cut off.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "net": ("net", {"rank": RANK, "epsilon": EPSILON}),
    "EM": ("em", {"n_restarts": RESTARTS}),
    "NSPCA": ("nspca", {"n_restarts": RESTARTS, "cut": False}),
    "auto": ("auto", {}),
}


class Data:
    """A data set for the methods, and its variances from the definition, in float64."""

    def __init__(self, X: np.ndarray):
        self.X = np.asarray(X, dtype=np.float64)
        self.centred = self.X - self.X.mean(axis=0)
        self.covariance: Covariance = as_covariance(self.X)
        sizes = np.linalg.svd(self.centred, compute_uv=False)
        self.spectrum = sizes**2 / (len(self.X) - 1)
        self.largest = float(self.spectrum[0])

    def problem(self, k: int, n_components: int = 1) -> NonnegativeProblem:
        """Return the question asked."""
        return NonnegativeProblem(self.covariance, n_components, k)

    def variance(self, x: np.ndarray) -> float:
        """Return x'Ax by λ₁(A)."""
        scores = self.centred @ np.asarray(x, dtype=np.float64)
        return float(scores @ scores) / (len(self.X) - 1) / self.largest

    def run(self, name: str, k: int, n_components: int = 1) -> tuple[np.ndarray, float]:
        """Return what a method finds, after checking that it may, and the seconds it took."""
        solver, options = METHODS[name]
        started = time.perf_counter()
        found = solve(self.problem(k, n_components), solver, random_state=0, **options)
        seconds = time.perf_counter() - started
        W = found.loadings
        assert (W >= 0).all()
        assert (np.count_nonzero(W, axis=0) <= k).all()
        assert np.allclose(np.linalg.norm(W, axis=0), 1.0, rtol=0, atol=1e-12)
        return W, seconds

    def net_upper(self, k: int) -> float:
        """Return the paper's upper bound by λ₁(A)."""
        return net_upper(self.problem(k), self.largest)


def net_upper(problem: NonnegativeProblem, largest: float) -> float:
    """Return the paper's upper bound by λ₁(A) = `largest`; it holds with probability 1 - 1/n.

    It is ``‖V'x‖²/(1 - ε) + τ`` for the best x of the net, or λ₁(A) if that is smaller. The paper
    does not print its formula; `kspan.proofs.check.net_bound` has this one.
    """
    witness = net_witnesses(problem, RANK, EPSILON, Budgets())[0]
    return min(witness.evaluate(problem) / largest, 1.0)


def is_better(value: float, other: float, rtol: float = 1e-9) -> bool:
    """Return whether a value is above another by more than rounding."""
    return value > other * (1 + rtol)

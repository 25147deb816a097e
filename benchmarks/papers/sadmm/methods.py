"""The methods that the SADMM paper compares, each a function (X, r, k) -> loadings.

Every component has exactly k features, but for the rows that say otherwise. Each method starts
from the data alone, so each pays for its own means, variances and eigenvectors.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kspan import RowSparseProblem, as_covariance, solve
from kspan.covariance import UnitCovariance
from kspan.linalg.selection import top_k
from kspan.problem import ElementSparseProblem, Patterns, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers import GPowerL0Block, GPowerL1Block
from kspan.solvers.method import ElementSparseMethod
from kspan.solvers.one_by_one import Component, OneByOneMethod

# Stage I's λ, as a share of the largest useful one: what StiefelSparsePCA takes by default.
ALPHA_SHARE = 0.05


@dataclass(frozen=True)
class Answer:
    """Loadings (d, r) and how the method ended."""

    loadings: np.ndarray
    status: str


def stiefel(
    X: Any, r: int, k: int, time_limit: float | None = None, *, solver: str = "sadmm"
) -> Answer:
    """StSPCA and StSPCA-D, or kspan's `auto`: at most k features in each component."""
    covariance = as_covariance(X)
    problem = StiefelProblem(covariance, r, patterns=Patterns.of(covariance.n_features, r, k))
    found = solve(problem, solver, random_state=0, time_limit=time_limit)
    return Answer(found.loadings, found.status.value)


def two_stage(
    X: Any, r: int, k: int, time_limit: float | None = None, *, times_r: bool, each: bool = False,
    share: float = ALPHA_SHARE,
) -> Answer:  # fmt: skip
    """StSPCA-2S: K = k or K = rk features in all; with `each`, k of them in each component."""
    covariance = as_covariance(X)
    problem = StiefelProblem(covariance, r)
    if each:
        problem = replace(problem, patterns=Patterns.of(covariance.n_features, r, k))
    else:
        problem = replace(problem, alpha=share * problem.largest_alpha)
    found = solve(
        problem, "two-stage", first_share=share,
        n_features_to_select=min(k * r if times_r else k, covariance.n_features),
        random_state=0, time_limit=time_limit,
    )  # fmt: skip
    return Answer(found.loadings, found.status.value)


def tpower(
    X: Any, r: int, k: int, time_limit: float | None = None, *, init: str = "variance",
    gradual: bool = False,
) -> Answer:  # fmt: skip
    """TPower and deflation."""
    problem = ElementSparseProblem(as_covariance(X), r, k)
    found = solve(
        problem, "tpower", init=init, gradual=gradual, random_state=0, time_limit=time_limit
    )
    return Answer(found.loadings, found.status.value)


def element_sparse(
    X: Any, r: int, k: int, time_limit: float | None = None, *, solver: Any, **options: Any
) -> Answer:
    """GPower, GRQI and IPM from their authors' starts; a block from the principal components."""
    problem = ElementSparseProblem(as_covariance(X), r, k)
    found = solve(problem, solver, random_state=0, time_limit=time_limit, **options)
    return Answer(found.loadings, found.status.value)


@dataclass(frozen=True, eq=False)
class FromTheLeading(OneByOneMethod, ElementSparseMethod):
    """GPower's single units, each started at the leading eigenvector of what is left.

    The single unit takes no start, but a block of one unit does.

    Parameters
    ----------
    norm : {"l0", "l1"}
    """

    name = "gpower, svd"
    summary = "GPower from leading eigenvectors"

    norm: str = "l1"

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: np.ndarray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Run a block of one unit."""
        block = GPowerL0Block() if self.norm == "l0" else GPowerL1Block()
        single = ElementSparseProblem(left, 1, problem.n_nonzero_coefs)
        unit = block.run(single, monitor.inner(quiet=True), rng)
        return Component(unit.loadings[:, 0], [unit.objective], unit.n_iter, unit.status)


def row_sparse(X: Any, r: int, k: int, time_limit: float | None = None, *, times_r: bool) -> Answer:
    """kspan's row-sparse `auto`: K = k or K = rk features that all components share."""
    covariance = as_covariance(X)
    K = min(k * r if times_r else k, covariance.n_features)
    found = solve(RowSparseProblem(covariance, r, K), random_state=0, time_limit=time_limit)
    return Answer(found.loadings, found.status.value)


def manopt(
    X: Any, r: int, k: int, time_limit: float | None = None, *, init: str = "random"
) -> Answer:
    """Manopt's sparse PCA example through pymanopt: -½‖[|X'Y| - γ]₊‖² over St(n, r).

    Trust regions from a random point, as there. It has one γ, so that the components differ in
    their numbers of features: γ is bisected until there are about rk in all, each component is cut
    or filled up to the k largest of |X'Y|, and the pattern filled as in the example.
    """
    import time

    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    X = X / np.linalg.norm(X, axis=0).max()
    started = time.perf_counter()
    if init == "svd":
        Y = np.linalg.svd(X, full_matrices=False)[0][:, :r]
    else:
        Y = np.linalg.qr(np.random.default_rng(0).standard_normal((X.shape[0], r)))[0]
    low, high, best = 0.0, 1.0, (np.inf, Y)
    status = "completed"
    for _ in range(12):
        gamma = (low + high) / 2
        moved = _trust_regions(X, Y, gamma)
        count = int(np.count_nonzero(np.abs(X.T @ moved) > gamma))
        if count:
            best = min(best, (abs(count - r * k), moved), key=lambda pair: pair[0])
        low, high = (gamma, high) if count > r * k else (low, gamma)
        if best[0] == 0:
            break
        if time_limit is not None and time.perf_counter() - started > time_limit:
            status = "time limit"
            break
    return Answer(_fill(X, best[1], k), status)


def _trust_regions(X: np.ndarray, start: np.ndarray, gamma: float) -> np.ndarray:
    import pymanopt
    from pymanopt.optimizers import TrustRegions

    manifold = pymanopt.manifolds.Stiefel(*start.shape)

    @pymanopt.function.numpy(manifold)
    def cost(Y: np.ndarray) -> float:
        return -0.5 * float(np.sum(np.maximum(np.abs(X.T @ Y) - gamma, 0.0) ** 2))

    @pymanopt.function.numpy(manifold)
    def gradient(Y: np.ndarray) -> np.ndarray:
        P = X.T @ Y
        return -X @ (np.sign(P) * np.maximum(np.abs(P) - gamma, 0.0))

    @pymanopt.function.numpy(manifold)
    def hessian(Y: np.ndarray, U: np.ndarray) -> np.ndarray:
        return -X @ np.where(np.abs(X.T @ Y) > gamma, X.T @ U, 0.0)

    problem = pymanopt.Problem(
        manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian
    )
    # 1e-6 of the gradient's size at the start, so that the scale of the data does not matter.
    size = float(np.linalg.norm(gradient(start))) or 1.0
    solver = TrustRegions(verbosity=0, max_iterations=100, min_gradient_norm=1e-6 * size)
    with np.errstate(invalid="ignore"):  # it divides zero by zero where the gradient is zero
        return solver.run(problem, initial_point=start).point


def _fill(X: np.ndarray, Y: np.ndarray, k: int) -> np.ndarray:
    """Return unit loadings with k features each: P = polar(XZ), Z = X'P on the pattern."""
    products = X.T @ Y
    pattern = np.zeros(products.shape, dtype=bool)
    for j, column in enumerate(np.abs(products).T):
        pattern[top_k(column, k), j] = True
    value = 0.0
    for _ in range(1000):
        Z = np.where(pattern, products, 0.0)
        Z /= np.linalg.norm(Z, axis=0)
        left, values, right = np.linalg.svd(X @ Z, full_matrices=False)
        products = X.T @ (left @ right)
        before, value = value, float(values.sum())
        if value <= before * (1 + 1e-8):
            break
    return Z


Method = Callable[..., Answer]

OURS: dict[str, Method] = {
    "StSPCA": stiefel,
    "StSPCA-D": partial(stiefel, solver="deflation"),
    "StSPCA-2S, K=k": partial(two_stage, times_r=False),
    "StSPCA-2S, K=rk": partial(two_stage, times_r=True),
    "StSPCA-2S, K=rk, k each": partial(two_stage, times_r=True, each=True),
}
# One component after the other, from their authors' starts.
DEFLATION: dict[str, Method] = {
    "GPower-l0": partial(element_sparse, solver="gpower-l0"),
    "GPower-l1": partial(element_sparse, solver="gpower-l1"),
    "GRQI": partial(element_sparse, solver="grqi", refine=True),
    "IPM": partial(element_sparse, solver="ipm"),
    "TPower": tpower,
}
TOGETHER: dict[str, Method] = {
    "GPower-l0-B": partial(element_sparse, solver="gpower-l0-block"),
    "GPower-l1-B": partial(element_sparse, solver="gpower-l1-block"),
    "Manopt": manopt,
}
# The same methods from a better start than their authors'.
SVD_STARTS: dict[str, Method] = {
    "GPower-l0, svd start": partial(element_sparse, solver=FromTheLeading(norm="l0")),
    "GPower-l1, svd start": partial(element_sparse, solver=FromTheLeading(norm="l1")),
    "TPower, gradual": partial(tpower, gradual=True),
    "TPower, svd start": partial(tpower, init="low-rank"),
    "Manopt, svd start": partial(manopt, init="svd"),
}
ROW_SPARSE: dict[str, Method] = {
    "row-sparse auto, K=k": partial(row_sparse, times_r=False),
    "row-sparse auto, K=rk": partial(row_sparse, times_r=True),
}
# kspan's own search for the problem that StSPCA with counts is about.
AUTO: dict[str, Method] = {"orthonormal auto": partial(stiefel, solver="auto")}
METHODS: dict[str, Method] = {**DEFLATION, **SVD_STARTS, **TOGETHER, **OURS, **AUTO, **ROW_SPARSE}

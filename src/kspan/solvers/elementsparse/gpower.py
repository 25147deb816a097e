r"""GPower: the generalized power method for a penalised variance, one unit or a block of them.

With the columns :math:`a_i` of X (A = X'X), on the unit sphere of the sample space,

.. math:: \text{l1: } \max_x \sum_i [\,|a_i'x| - \gamma\,]_+^2, \qquad
          \text{l0: } \max_x \sum_i [\,(a_i'x)^2 - \gamma\,]_+

Both are convex, so x ← g/‖g‖ with the gradient g never decreases them. The loadings are the
thresholded products y = X'x: s = soft(y, γ), or y where y² > γ. As g = Xs up to a factor,

.. math:: y \leftarrow A s / \sqrt{s'As}

and neither x nor X is needed. For a block of m units with weights N = diag(μ), each unit has a
penalty of its own, what is thresholded is YN, and the polar factor takes the place of the
division: with S thresholded and T = SN,

.. math:: Y \leftarrow A T\,(T'AT)^{-1/2}

Steps: (1) start at the feature of largest variance, y = A e_i / √A_ii; a block at the scores of
the principal components. (2) Iterate until the objective grows by less than 1e-4 of itself. (3)
Bisect the relative penalty ρ in [0, 1), for k features: γ = ρ max‖a_i‖ (l1, times μ) or
ρ max‖a_i‖² (l0, times μ²). (4) Fill the pattern: one unit, the leading eigenvector
of A on its features; a block, the ascent for max Σ μ_j y_j'Xz_j (l1: P = polar(XZN), Z = X'PN on
the pattern, unit columns) or, for l0, the iteration itself with the pattern held fixed. Several
single units: deflation by projection, X ← X - Xzz'.

Cost: O(dk') a step for a covariance and k' features in use. Passes over the data: two a step.

Guarantee: the penalised objective never decreases. None for the problem with k features.

Reference: Journée, Nesterov, Richtárik, Sepulchre, Generalized Power Method for Sparse Principal
Component Analysis, JMLR 2010, Algorithms 1 to 5.

Differs from the paper in: the number of features is given and not the penalty. When no ρ tried
has exactly k, the one with the fewest beyond k is cut to the k largest entries; when all have
fewer, the features that correlate most with the scores are added. In a block each unit has a ρ
of its own, and all are bisected at once. A block starts at the principal components, which ended
higher in trials than the paper's start (``init="random"``). A single unit is filled with the exact
eigenvector and not by power iteration, also for l0, where this changes nothing but what cutting
and early stopping left undone.
"""

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray
from kspan.covariance.base import Covariance
from kspan.covariance.unit import UnitCovariance
from kspan.linalg.projections import soft_threshold
from kspan.linalg.selection import top_k
from kspan.linalg.stiefel import polar, qf
from kspan.problem import ElementSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solution import LoadingsSolution
from kspan.solvers.elementsparse.components import (
    Component,
    Search,
    Trial,
    bisect_penalty,
    by_deflation,
    fill_empty,
    joint_variance,
    refit_one,
    unit_columns,
    unit_monitor,
    unit_solution,
    worst,
)
from kspan.solvers.elementsparse.deflation import Deflation
from kspan.solvers.starts import Init, random_subspace

Pattern = NDArray[np.bool_]

NORMS = ("l0", "l1")

# Width of the interval of relative penalties at which k features are given up.
PENALTY_WIDTH = 1e-7

# A pattern is filled when the objective grows by less than this share.
FILL_TOL = 1e-6

# Scores of unit length with a Gram eigenvalue below this are linearly dependent; a score with
# less than this share of the variance that its loadings could have is zero.
RANK_TOL = 1e-12
TINY = np.finfo(float).tiny


def gpower(
    problem: ElementSparseProblem,
    *,
    norm: str = "l1",
    penalty: float | None = None,
    deflation: str = "projection",
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m sparse components by the single-unit method and deflation.

    Parameters
    ----------
    problem : ElementSparseProblem
    norm : {"l0", "l1"}
        The penalty.
    penalty : float, optional
        ρ in [0, 1). By default the one that gives k features; with a ρ of your own, the number
        of features is what comes out.
    deflation : {"projection", "schur", "hotelling", "orthogonalized", "generalized"}
    tol : float
        Stop when the objective grows by less than this share of itself.
    max_iter : int
        Steps for each penalty.
    callback, time_limit : see `kspan.progress`
    """
    _check(norm, penalty, tol, max_iter)

    def find(covariance: Covariance, start: FloatArray | None, monitor: Monitor) -> Component:
        ascent = _Ascent(covariance, np.ones(1), norm, tol, max_iter, monitor)
        if start is None:
            start = np.zeros(covariance.n_features)
            start[np.argmax(covariance.diagonal())] = 1.0
        search = ascent.search(start[:, None], problem.n_nonzero_coefs, penalty)
        pattern = ascent.pattern(search.trial, problem.n_nonzero_coefs, penalty)[:, 0]
        x, variance = refit_one(covariance, np.flatnonzero(pattern))
        return Component(x, [*search.history, variance], search.n_iter, search.status)

    return by_deflation(
        problem, find, name=f"gpower-{norm}", deflation=deflation, callback=callback,
        time_limit=time_limit,
    )  # fmt: skip


def gpower_block(
    problem: ElementSparseProblem,
    *,
    norm: str = "l1",
    penalty: float | None = None,
    weights: FloatArray | None = None,
    init: Init = "low-rank",
    rng: np.random.Generator,
    tol: float = 1e-4,
    max_iter: int = 1000,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> LoadingsSolution:
    """Find m sparse components at once by the block method.

    Parameters
    ----------
    problem : ElementSparseProblem
    norm, penalty, tol, max_iter : see `gpower`
        One ρ for all units.
    weights : (m,) positive array, optional
        μ. By default 1, 1/2, …, 1/m: different weights put the components in order.
    init : {"low-rank", "variance", "random"} or (d, m) array
        The principal components; features, each of the largest variance that those before it
        leave; the feature of largest variance and random scores, as in the paper; or loadings to
        start from.
    rng : numpy.random.Generator
        Used by the random start only.
    callback, time_limit : see `kspan.progress`
    """
    _check(norm, penalty, tol, max_iter)
    name = f"gpower-{norm}-block"
    m, k = problem.n_components, problem.n_nonzero_coefs
    mu = 1.0 / np.arange(1, m + 1) if weights is None else np.asarray(weights, dtype=np.float64)
    if mu.shape != (m,) or not (np.isfinite(mu).all() and (mu > 0).all()):
        raise ValueError(f"weights must be n_components={m} positive numbers, got {weights!r}.")
    covariance = UnitCovariance(problem.covariance)
    monitor = unit_monitor(name, covariance.unit, callback, time_limit)
    ascent = _Ascent(covariance, mu, norm, tol, max_iter, monitor)
    loadings = np.zeros((problem.n_features, m))
    history: list[float] = []
    n_iter, status = 0, Status.COMPLETED
    try:
        search = ascent.search(_start(covariance, m, init, rng), k, penalty)
        history, n_iter, status = search.history, search.n_iter, search.status
        loadings = search.trial.cut(k if penalty is None else problem.n_features)
        filled = ascent.fill(search.trial, ascent.pattern(search.trial, k, penalty))
        loadings, n_iter = filled.loadings, n_iter + filled.n_iter
        if not filled.converged:
            status = worst([status, monitor.stopped or Status.MAX_ITER])
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    loadings = fill_empty(loadings, covariance.diagonal())
    return unit_solution(
        loadings, covariance, solver=name, status=status,
        history=[*history, joint_variance(covariance, loadings)], n_iter=n_iter,
    )  # fmt: skip


def threshold(Y: FloatArray, gamma: FloatArray, norm: str) -> FloatArray:
    """Return what the penalties γ leave of each column of weighted products."""
    if norm == "l1":
        return soft_threshold(Y, gamma)
    return np.where(gamma < Y * Y, Y, 0.0)


def penalised(Y: FloatArray, gamma: FloatArray, norm: str) -> float:
    """Return the objective, a function of the weighted products YN alone."""
    if norm == "l1":
        return float(np.sum(np.maximum(np.abs(Y) - gamma, 0.0) ** 2))
    return float(np.sum(np.maximum(Y * Y - gamma, 0.0)))


def polar_products(covariance: Covariance, T: FloatArray, *, start: bool = False) -> FloatArray:
    """Return ``X'P`` with P the polar factor of XT, from A = X'X alone.

    At the start P is the Q of its QR decomposition, so that the first column is that of T.
    Where XT is of lower rank, P has the rank of XT.
    """
    used = np.flatnonzero(T.any(axis=1))
    if used.size == 0:
        return np.zeros_like(T)
    product = covariance.matmat(T[used], used)
    gram = T[used].T @ product[used]
    # XT = U R with U = XT C orthonormal or zero, columns of any length: scaled to one first.
    squares = np.diagonal(gram)
    rounding = RANK_TOL * float(covariance.diagonal().max()) * np.sum(T * T, axis=0)
    inverse = np.where(squares > rounding, 1.0 / np.sqrt(np.maximum(squares, TINY)), 0.0)
    lengths = np.sqrt(np.where(squares > rounding, squares, 0.0))
    values, vectors = np.linalg.eigh((gram + gram.T) / 2 * np.outer(inverse, inverse))
    kept = values > RANK_TOL * max(float(values[-1]), 0.0)
    root = np.sqrt(np.where(kept, values, 0.0))
    R = root[:, None] * vectors.T * lengths
    C = vectors * np.divide(1.0, root, where=kept, out=np.zeros_like(root)) * inverse[:, None]
    Q = qf(R)[0] if start else polar(R)
    return product @ (C @ Q)


class _Ascent:
    """The iteration for a covariance, at any penalties."""

    def __init__(
        self, covariance: Covariance, weights: FloatArray, norm: str, tol: float, max_iter: int,
        monitor: Monitor,
    ):  # fmt: skip
        self.covariance, self.weights, self.norm = covariance, weights, norm
        self.tol, self.max_iter, self.monitor = tol, max_iter, monitor
        variances = covariance.diagonal()
        self.constant = variances <= 0
        self.largest = float(variances.max(initial=0.0))

    def products(self, T: FloatArray, *, start: bool = False) -> FloatArray:
        """Return the next Y; features without variance take no part, rounding or not."""
        Y = polar_products(self.covariance, T, start=start)
        Y[self.constant] = 0.0
        return Y

    def gamma(self, rho: FloatArray) -> FloatArray:
        """Return the penalties that relative ones stand for."""
        if self.norm == "l1":
            return rho * self.weights * np.sqrt(self.largest)
        return rho * self.weights**2 * self.largest

    def run(self, Y: FloatArray, rho: FloatArray) -> Trial:
        """Iterate from the products Y of a start."""
        gamma, mu = self.gamma(rho), self.weights
        value = penalised(Y * mu, gamma, self.norm)
        n_iter, converged = 0, value <= 0
        while not converged and n_iter < self.max_iter and not self.monitor.out_of_time():
            n_iter += 1
            moved = self.products(threshold(Y * mu, gamma, self.norm) * mu)
            before, value = value, penalised(moved * mu, gamma, self.norm)
            if value > before:
                Y = moved
            converged = value <= before or (n_iter > 1 and value - before <= self.tol * before)
        return Trial(Y, threshold(Y * mu, gamma, self.norm), n_iter, converged)

    def search(self, start: FloatArray, k: int, penalty: float | None) -> Search:
        """Return the trial with k features in each unit, or that of the penalty given."""
        m = self.weights.size
        Y = self.products(start, start=True)
        if penalty is None:
            return bisect_penalty(
                lambda rho: self.run(Y, rho), self.covariance, k, m,
                at_least=True, width=PENALTY_WIDTH, monitor=self.monitor,
            )  # fmt: skip
        trial = self.run(Y, np.full(m, penalty))
        value = joint_variance(self.covariance, unit_columns(trial.loadings))
        status = Status.CONVERGED if trial.converged else Status.MAX_ITER
        if self.monitor.report(value):
            status = self.monitor.stopped or status
        return Search(trial, [value], trial.n_iter, status)

    def pattern(self, trial: Trial, k: int, penalty: float | None) -> Pattern:
        """Return which entries are to be filled: k in each column, or those of the trial."""
        if penalty is not None:
            return trial.loadings != 0
        keys = np.abs(trial.scores)
        keys[self.constant] = -1.0
        pattern = np.zeros(keys.shape, dtype=bool)
        for j, column in enumerate(keys.T):
            pattern[top_k(column, k), j] = True
        return pattern

    def fill(self, trial: Trial, pattern: Pattern) -> Trial:
        """Return unit loadings on a pattern, without a penalty."""
        mu, Y = self.weights, trial.scores
        value, n_iter, converged = 0.0, 0, False
        Z = self._on_pattern(Y, pattern)
        while not converged and n_iter < self.max_iter and not self.monitor.out_of_time():
            n_iter += 1
            Y = self.products(Z * mu)
            before, value = value, float(np.sum(Y * Z * mu))
            Z = self._on_pattern(Y, pattern)
            converged = value <= before * (1 + FILL_TOL)
        return Trial(Y, unit_columns(Z), n_iter, converged)

    def _on_pattern(self, Y: FloatArray, pattern: Pattern) -> FloatArray:
        Z = np.where(pattern, Y * self.weights, 0.0)
        return unit_columns(Z) if self.norm == "l1" else Z


def _start(covariance: Covariance, m: int, init: Init, rng: np.random.Generator) -> FloatArray:
    """Return loadings whose scores a block starts from."""
    d = covariance.n_features
    if not isinstance(init, str):
        W = np.asarray(init, dtype=np.float64)
        if W.shape != (d, m) or not np.isfinite(W).all():
            raise ValueError(f"init must be a finite array of shape {(d, m)}, got {init!r}.")
        return W
    if init == "low-rank":
        return covariance.leading(m).vectors
    if init not in ("variance", "random"):
        raise ValueError(
            f"init must be 'low-rank', 'variance', 'random' or an array, got {init!r}."
        )
    W = random_subspace(d, m, rng) if init == "random" else np.zeros((d, m))
    left = Deflation(covariance, "schur")
    for j in range(m if init == "variance" else 1):
        W[:, j] = 0.0
        W[np.argmax(left.current.diagonal()), j] = 1.0
        left.remove(W[:, j])
    return W


def _check(norm: str, penalty: float | None, tol: float, max_iter: int) -> None:
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {list(NORMS)}, got {norm!r}.")
    if penalty is not None and not 0 <= penalty < 1:
        raise ValueError(f"penalty must be at least 0 and below 1, got {penalty!r}.")
    if not tol >= 0:
        raise ValueError(f"tol must not be negative, got {tol!r}.")
    require_count("max_iter", max_iter, 1)

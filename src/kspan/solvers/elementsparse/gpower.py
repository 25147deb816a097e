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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kspan.arrays import FloatArray, Mask
from kspan.covariance import Covariance, UnitCovariance
from kspan.linalg.projections import soft_threshold
from kspan.linalg.selection import top_k
from kspan.linalg.stiefel import polar, qf
from kspan.problem import ElementSparseProblem, LoadingsSolution
from kspan.progress import Monitor, Status, worst
from kspan.solvers.loadings import (
    fill_empty,
    joint_variance,
    largest_variance,
    refit_one,
    unit_columns,
    unit_solution,
)
from kspan.solvers.method import ElementSparseMethod, checked, counted, require_not_negative
from kspan.solvers.one_by_one import Component, Deflation, OneByOneMethod
from kspan.solvers.penalty_search import KeptTrial, Trial, bisect_penalty
from kspan.solvers.starts import Init, random_subspace

# Width of the interval of relative penalties at which k features are given up.
RHO_WIDTH = 1e-7

# A pattern is filled when the objective grows by less than this share.
FILL_TOL = 1e-6

# Scores of unit length with a Gram eigenvalue below this are linearly dependent; a score with
# less than this share of the variance that its loadings could have is zero.
GRAM_RANK_TOL = 1e-12
TINY = np.finfo(float).tiny


def require_share(name: str, value: float) -> None:
    """Raise `ValueError` unless a relative penalty is below one."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}.")


@dataclass(frozen=True, eq=False)
class _SingleUnit(OneByOneMethod, ElementSparseMethod):
    """One unit at a time, and deflation."""

    norm: ClassVar[str]

    penalty: float | None = checked(None, require_share)
    tol: float = checked(1e-4, require_not_negative)
    max_iter: int = counted(1000, least=1)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Look for the penalty, then take the best vector on the features."""
        ascent = _PenalisedAscent(left, np.ones(1), self, monitor)
        begin = largest_variance(left) if start is None else start[:, None]
        search = ascent.search(begin, problem.n_nonzero_coefs)
        pattern = ascent.pattern(search.trial, problem.n_nonzero_coefs)[:, 0]
        x, variance = refit_one(left, np.flatnonzero(pattern))
        return Component(x, [*search.history, variance], search.n_iter, search.status)


@dataclass(frozen=True, eq=False)
class GPowerL0(_SingleUnit):
    """Sparse components by the single-unit method with an l0 penalty, and deflation.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    penalty : float, optional
        ρ in [0, 1). By default the one that gives k features; with a ρ of your own, the number
        of features is what comes out.
    tol : float
        Stop when the objective grows by less than this share of itself.
    max_iter : int
        Steps for each penalty.
    """

    name = "gpower-l0"
    summary = "power steps with an l0 threshold, bisected for k, one component at a time"
    guarantee = "the penalised objective never falls"
    reference = "Journée et al., JMLR 2010"
    norm = "l0"


@dataclass(frozen=True, eq=False)
class GPowerL1(_SingleUnit):
    """Sparse components by the single-unit method with an l1 penalty, and deflation.

    Parameters
    ----------
    deflation, penalty, tol, max_iter : see `GPowerL0`
    """

    name = "gpower-l1"
    summary = "power steps with an l1 threshold, bisected for k, one component at a time"
    guarantee = "the penalised objective never falls"
    reference = "Journée et al., JMLR 2010"
    norm = "l1"


@dataclass(frozen=True, eq=False)
class _Block(ElementSparseMethod):
    """All units at once."""

    norm: ClassVar[str]
    starts = ("low-rank", "variance", "random")

    penalty: float | None = checked(None, require_share)
    weights: FloatArray | None = None
    init: Init = "low-rank"
    tol: float = checked(1e-4, require_not_negative)
    max_iter: int = counted(1000, least=1)

    def run(
        self, problem: ElementSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Look for the penalties, then fill the pattern."""
        m, k = problem.n_components, problem.n_nonzero_coefs
        covariance = UnitCovariance(problem.covariance)
        inner = monitor.inner(unit=covariance.unit)
        ascent = _PenalisedAscent(covariance, self._mu(m), self, inner)
        loadings = np.zeros((problem.n_features, m))
        history: list[float] = []
        n_iter, status = 0, Status.COMPLETED
        try:
            search = ascent.search(_start(covariance, m, self.init, rng), k)
            history, n_iter, status = search.history, search.n_iter, search.status
            loadings = search.trial.cut(k if self.penalty is None else problem.n_features)
            filled = ascent.fill(search.trial, ascent.pattern(search.trial, k))
            loadings, n_iter = filled.loadings, n_iter + filled.n_iter
            if not filled.converged:
                status = worst([status, inner.stopped or Status.MAX_ITER])
        except KeyboardInterrupt:
            status = monitor.stopped = Status.INTERRUPTED
        loadings = fill_empty(loadings, covariance.diagonal())
        return unit_solution(
            loadings, covariance, solver=self.name, status=status,
            history=[*history, joint_variance(covariance, loadings)], n_iter=n_iter,
        )  # fmt: skip

    def _mu(self, m: int) -> FloatArray:
        """Return the weights of m units."""
        if self.weights is None:
            return 1.0 / np.arange(1, m + 1)
        mu = np.asarray(self.weights, dtype=np.float64)
        if mu.shape != (m,) or not (np.isfinite(mu).all() and (mu > 0).all()):
            raise ValueError(
                f"weights must be n_components={m} positive numbers, got {self.weights!r}."
            )
        return mu


@dataclass(frozen=True, eq=False)
class GPowerL0Block(_Block):
    """Sparse components at once by the block method with an l0 penalty.

    Parameters
    ----------
    penalty, tol, max_iter : see `GPowerL0`
        One ρ for all units.
    weights : (m,) positive array, optional
        μ. By default 1, 1/2, …, 1/m: different weights put the components in order.
    init : {"low-rank", "variance", "random"} or (d, m) array
        The principal components; features, each of the largest variance that those before it
        leave; the feature of largest variance and random scores, as in the paper; or loadings to
        start from.
    """

    name = "gpower-l0-block"
    summary = "power steps with an l0 threshold, bisected for k, all components at once"
    guarantee = "the penalised objective never falls"
    reference = "Journée et al., JMLR 2010"
    norm = "l0"


@dataclass(frozen=True, eq=False)
class GPowerL1Block(_Block):
    """Sparse components at once by the block method with an l1 penalty.

    Parameters
    ----------
    penalty, weights, init, tol, max_iter : see `GPowerL0Block`
    """

    name = "gpower-l1-block"
    summary = "power steps with an l1 threshold, bisected for k, all components at once"
    guarantee = "the penalised objective never falls"
    reference = "Journée et al., JMLR 2010"
    norm = "l1"


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
    rounding = GRAM_RANK_TOL * float(covariance.diagonal().max()) * np.sum(T * T, axis=0)
    inverse = np.where(squares > rounding, 1.0 / np.sqrt(np.maximum(squares, TINY)), 0.0)
    lengths = np.sqrt(np.where(squares > rounding, squares, 0.0))
    values, vectors = np.linalg.eigh((gram + gram.T) / 2 * np.outer(inverse, inverse))
    kept = values > GRAM_RANK_TOL * max(float(values[-1]), 0.0)
    root = np.sqrt(np.where(kept, values, 0.0))
    R = root[:, None] * vectors.T * lengths
    C = vectors * np.divide(1.0, root, where=kept, out=np.zeros_like(root)) * inverse[:, None]
    Q = qf(R)[0] if start else polar(R)
    return product @ (C @ Q)


class _PenalisedAscent:
    """The iteration for a covariance, at any penalties."""

    def __init__(
        self, covariance: Covariance, weights: FloatArray, options: _SingleUnit | _Block,
        monitor: Monitor,
    ):  # fmt: skip
        self.covariance, self.weights, self.monitor = covariance, weights, monitor
        self.norm, self.penalty = options.norm, options.penalty
        self.tol, self.max_iter = options.tol, options.max_iter
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

    def search(self, start: FloatArray, k: int) -> KeptTrial:
        """Return the trial with k features in each unit, or that of the penalty given."""
        m = self.weights.size
        Y = self.products(start, start=True)
        if self.penalty is None:
            return bisect_penalty(
                lambda rho: self.run(Y, rho), self.covariance, k, m,
                at_least=True, width=RHO_WIDTH, monitor=self.monitor,
            )  # fmt: skip
        trial = self.run(Y, np.full(m, self.penalty))
        value = joint_variance(self.covariance, unit_columns(trial.loadings))
        status = Status.CONVERGED if trial.converged else Status.MAX_ITER
        if self.monitor.report(value):
            status = self.monitor.stopped or status
        return KeptTrial(trial, [value], trial.n_iter, status)

    def pattern(self, trial: Trial, k: int) -> Mask:
        """Return which entries are to be filled: k in each column, or those of the trial."""
        if self.penalty is not None:
            return np.asarray(trial.loadings != 0)
        keys = np.abs(trial.scores)
        keys[self.constant] = -1.0
        pattern = np.zeros(keys.shape, dtype=bool)
        for j, column in enumerate(keys.T):
            pattern[top_k(column, k), j] = True
        return pattern

    def fill(self, trial: Trial, pattern: Mask) -> Trial:
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

    def _on_pattern(self, Y: FloatArray, pattern: Mask) -> FloatArray:
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
    W = random_subspace(d, m, rng) if init == "random" else np.zeros((d, m))
    left = Deflation(covariance, "schur")
    for j in range(m if init == "variance" else 1):
        W[:, j] = 0.0
        W[np.argmax(left.current.diagonal()), j] = 1.0
        left.remove(W[:, j])
    return W

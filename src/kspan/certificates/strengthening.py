r"""Tightening the relaxation with ``(sum_j |P_ij|)^2 <= k P_ii z_i``.

The dual variables are H and beta of `kspan.certificates.bounds`.  With ``|H_ij| <= eta_i``,
``H_ij = eta_i s_ij``, s symmetric in [-1, 1], and ``beta_i = eta_i q_i`` the relaxation has matrix
and offset

    C = A - sym(H) + Diag(beta),    c_i = k eta_i / (4 q_i).

Its optimal value phi (with the barrier at a fixed nu, so that it is smooth) is minimised over
(s, log eta, log q) by L-BFGS-B.  By the envelope theorem the derivatives need only P and z:

    d phi / d s_ij = -(eta_i + eta_j) P_ij          (i < j)
    d phi / d eta_i = q_i P_ii + k z_i / 4 q_i - sum_j s_ij P_ij
    d phi / d q_i = eta_i (P_ii - k z_i / 4 q_i^2)

Whatever comes out is a valid strengthening; how far the minimisation went decides only how
good it is.  It is done once and used for a whole subtree.  Only features with a share in z take
part: for the others P is almost zero.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from kspan.arrays import FloatArray, Index, Mask
from kspan.certificates.bounds import strengthened
from kspan.certificates.relaxation import Relaxation

Stages = tuple[tuple[float, int], ...]
_STAGES: Stages = (
    (0.05, 30),
    (0.01, 40),
    (0.003, 40),
)  # (duality gap of nu relative to the bound, iterations)
_LOG_UNIT = 3.0  # logarithms move on another scale than s


@dataclass(frozen=True)
class Strengthened:
    """H and beta on the features that take part (positions in A), and what it cost."""

    features: Index
    H: FloatArray
    beta: FloatArray
    n_eigensolves: int


class _Objective:
    """phi and its gradient; every evaluation starts from the best point so far."""

    def __init__(self, A: FloatArray, k: int, relax: Relaxation):
        self.A, self.k, self.relax, self.d = A, k, relax, len(A)
        self.pairs = np.triu_indices(self.d, 1)
        self.n_pairs = len(self.pairs[0])
        self.best_x: FloatArray | None = None
        self.best_upper = np.inf
        self.restart()

    def restart(self) -> None:
        self.point, self.lowest = self.relax.snapshot(), np.inf

    def unpack(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        s = np.zeros((self.d, self.d))
        s[self.pairs] = x[: self.n_pairs]
        s += s.T
        s.flat[:: self.d + 1] = 1.0
        logs = np.exp(_LOG_UNIT * x[self.n_pairs :])
        return s, logs[: self.d], logs[self.d :]

    def pack(self, s: FloatArray, eta: FloatArray, q: FloatArray) -> FloatArray:
        return np.concatenate([s[self.pairs], np.log(eta) / _LOG_UNIT, np.log(q) / _LOG_UNIT])

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        s, eta, q = self.unpack(x)
        k, relax = self.k, self.relax
        C, offset, _ = strengthened(self.A, k, eta[:, None] * s, eta * q)
        relax.replace(C, offset, self.point)
        if not relax.centre():  # too far a step: let the line search come back
            return 1e6, np.zeros_like(x)
        value, P, z = relax.barrier_value(), relax.projector(), relax.z
        if value < self.lowest:
            self.lowest, self.point = value, relax.snapshot()
        if relax.upper < self.best_upper:
            self.best_upper, self.best_x = relax.upper, x.copy()
        diagonal = np.diagonal(P)
        by_s = -(eta[:, None] + eta)[self.pairs] * P[self.pairs]
        by_eta = _LOG_UNIT * eta * (q * diagonal + k * z / (4 * q) - (s * P).sum(axis=1))
        by_q = _LOG_UNIT * q * eta * (diagonal - k * z / (4 * q * q))
        return value, np.concatenate([by_s, by_eta, by_q])


def _bounds(objective: _Objective) -> list[tuple[float, float]]:
    d = objective.d
    return [(-1.0, 1.0)] * objective.n_pairs + [(-12.0, 3.0)] * d + [(-4.0, 4.0)] * d


def strengthen(
    A: FloatArray,
    m: int,
    k: int,
    forced: Mask,
    relax: Relaxation,
    lower: float,
    *,
    max_features: int = 150,
    stages: Stages = _STAGES,
) -> Strengthened | None:
    """Improve on ``relax``, the solved relaxation of A; None when nothing was gained."""
    take = forced | (relax.z > 1e-3)
    if take.sum() > max_features:
        take = forced | (relax.z >= np.sort(relax.z)[-max_features])
    T = np.flatnonzero(take)
    n = len(T)
    if n <= k or int(forced.sum()) >= k:
        return None
    sub_A = A[np.ix_(T, T)]
    sub = Relaxation(sub_A, m, k, forced[T], start=relax.snapshot().restrict(T))
    begin = max(sub.upper, lower)
    objective = _Objective(sub_A, k, sub)
    sub.set_precision(stages[0][0] * begin)
    if not sub.centre():
        return None
    P = sub.projector()
    s = 0.7 * np.sign(P)
    eta = np.full(n, 0.3 * max(begin - lower, 1e-3 * begin) / k)
    q = 0.5 * np.sqrt(k * sub.z / np.diagonal(P))
    box = _bounds(objective)
    low, high = np.array(box).T
    x = np.clip(objective.pack(s, eta, q), low, high)
    for precision, n_iter in stages:
        sub.set_precision(precision * begin)
        objective.restart()
        result = minimize(
            objective,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=box,
            options={
                "maxiter": n_iter,
                "maxfun": 3 * n_iter,
                "maxcor": 20,
                "ftol": 1e-10,
                "gtol": 1e-12,
            },
        )
        x = result.x
    if objective.best_x is None or objective.best_upper >= begin - 0.05 * max(begin - lower, 0.0):
        return None
    s, eta, q = objective.unpack(objective.best_x)
    return Strengthened(T, eta[:, None] * s, eta * q, sub.n_eigensolves)

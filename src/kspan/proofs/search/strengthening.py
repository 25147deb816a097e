r"""Tightening the relaxation with ``(sum_j |P_ij|)^2 <= k P_ii z_i``.

The dual variables are H and beta of `kspan.proofs.check.bounds`.  With ``|H_ij| <= eta_i``,
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

from kspan.arrays import FloatArray, Index
from kspan.problem import Choice
from kspan.progress import Monitor
from kspan.proofs.check.bounds import Strengthening, strengthened
from kspan.proofs.search.relaxation import Relaxation

_STAGES = (
    (0.05, 30),
    (0.01, 40),
    (0.003, 40),
)  # (duality gap of nu relative to the bound, iterations)
_MOST_FEATURES = 150  # that take part
_LOG_UNIT = 3.0  # logarithms move on another scale than s


@dataclass(frozen=True)
class Strengthened:
    """H and beta on the features that take part (positions in A), and what it cost."""

    features: Index
    H: FloatArray
    beta: FloatArray
    n_eigensolves: int


class _OutOfTime(Exception):
    """Ends the minimisation; the best point so far is kept."""


class _Objective:
    """phi and its gradient; every evaluation starts from the best point so far."""

    def __init__(self, A: FloatArray, choice: Choice, relax: Relaxation):
        self.A, self.choice, self.relax, self.d = A, choice, relax, len(A)
        self.pairs = np.triu_indices(self.d, 1)
        self.n_pairs = len(self.pairs[0])
        self.box = [(-1.0, 1.0)] * self.n_pairs + [(-12.0, 3.0)] * self.d + [(-4.0, 4.0)] * self.d
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
        k, relax = self.choice.size, self.relax
        if relax.monitor.out_of_time():
            raise _OutOfTime
        extra = Strengthening(np.arange(self.d), eta[:, None] * s, eta * q)
        C, offset, _ = strengthened(self.A, extra, self.choice)
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

    def start(self, gap: float) -> FloatArray:
        """Return a point to start from, at the relaxed solution."""
        P, z, k = self.relax.projector(), self.relax.z, self.choice.size
        eta = np.full(self.d, 0.3 * gap / k)
        q = 0.5 * np.sqrt(k * z / np.diagonal(P))
        low, high = np.array(self.box).T
        return np.clip(self.pack(0.7 * np.sign(P), eta, q), low, high)

    def minimise(self, x: FloatArray, n_iter: int) -> FloatArray:
        """Return where some steps of L-BFGS-B lead."""
        self.restart()
        found = minimize(
            self, x, jac=True, method="L-BFGS-B", bounds=self.box,
            options={
                "maxiter": n_iter, "maxfun": 3 * n_iter, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-12,
            },
        )  # fmt: skip
        return np.asarray(found.x)


def strengthen(
    A: FloatArray, choice: Choice, relax: Relaxation, lower: float, monitor: Monitor
) -> Strengthened | None:
    """Improve on ``relax``, the solved relaxation of A; None when nothing was gained.

    When the monitor says stop, the best point so far counts.
    """
    take = choice.forced | (relax.z > 1e-3)
    if take.sum() > _MOST_FEATURES:
        take = choice.forced | (relax.z >= np.sort(relax.z)[-_MOST_FEATURES])
    T = np.flatnonzero(take)
    inside = choice.on(T)
    if not inside.has_options:
        return None
    sub_A, start = A[np.ix_(T, T)], relax.snapshot().restrict(T)
    sub = Relaxation(sub_A, relax.m, inside, start=start, monitor=monitor)
    begin = max(sub.upper, lower)
    objective = _Objective(sub_A, inside, sub)
    sub.set_precision(_STAGES[0][0] * begin)
    if not sub.centre():
        return None
    x = objective.start(max(begin - lower, 1e-3 * begin))
    try:
        for precision, n_iter in _STAGES:
            sub.set_precision(precision * begin)
            x = objective.minimise(x, n_iter)
    except _OutOfTime:
        pass
    if objective.best_x is None or objective.best_upper >= begin - 0.05 * max(begin - lower, 0.0):
        return None
    s, eta, q = objective.unpack(objective.best_x)
    return Strengthened(T, eta[:, None] * s, eta * q, sub.n_eigensolves)

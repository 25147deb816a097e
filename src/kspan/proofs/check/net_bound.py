r"""The bound of the spannogram's paper: a low-rank part by a net of directions, and a tail.

For any V with columns in R^n write A = VV' + R. For x ≥ 0 with at most k features, x'Ax is at most

.. math:: \max_x \|V'x\|^2 + \max_x x'Rx \le \frac{\max_c \|V'x_c\|^2}{1 - ε} + τ,

where c goes through a net of directions that loses at most ε (`kspan.linalg.directions`), x_c is
the rank-one answer to Vc, and τ the smallest of λ_max(R), the sum of the k largest diagonal entries
of R, and the largest sum of k sizes in a row of R. The net is random from three dimensions on, and
so is the bound: it holds with probability 1 - δ, the `confidence` of the certificate. The draws
are those of a seed, so that `verify` draws them again. That probability is about an honest draw:
somebody who tries many seeds can find one whose net misses. All other bounds need no such trust.

Reference: Asteris, Papailiopoulos, Dimakis, ICML 2014, Theorem 2 and Section 7. They do not print
the formula of their bound; this is one for the same idea, with a sharper count of directions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.directions import MAX_DIRECTIONS, net_directions, net_epsilon
from kspan.linalg.rounding import UNIT
from kspan.linalg.selection import largest_positive
from kspan.proofs.check.claims import Problem, Witness, need
from kspan.proofs.check.known import KnownFactor, KnownMatrix, Uncertainty, checked_scale

BLOCK = 1 << 21  # entries of Vc at a time
MAX_RANK = 20  # a net of more dimensions is too coarse for anything


@dataclass(frozen=True)
class NetBound:
    """The bound in units of the witness's scale, the value of the best direction, ε and τ."""

    value: float
    best: float
    epsilon: float
    tail: float


@dataclass(frozen=True)
class NetWitness(Witness):
    """A net of directions in the span of the columns of V, drawn from a seed.

    δ is the chance that one of the `n_random` random nets that were tried loses more than it
    promises. With `on_data` the tail is computed from few samples; no matrix is formed.
    """

    label: ClassVar[str] = "net"

    scale: float
    V: FloatArray
    n_directions: int
    seed: int
    delta: float
    n_random: int
    on_data: bool = False

    @property
    def confidence(self) -> float:
        """The probability with which all nets that were tried keep what they promise."""
        return 1.0 - self.n_random * self.delta

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return net_bound(problem, self).value * self.scale


def net_bound(
    problem: Problem, witness: NetWitness, out_of_time: Callable[[], bool] | None = None
) -> NetBound:
    """Compute the bound from the data and the witness; nothing else is believed.

    Raises `TimeoutError` when told that time is up before all directions were tried.
    """
    need(problem.nonnegative, "witness: nets are for nonnegative problems")
    checked_scale(problem, witness.scale)
    V, k = witness.V, problem.choice.size
    n, rank = V.shape
    fits = n == problem.n_features and rank <= MAX_RANK
    if V.dtype != np.float64 or not fits or not np.isfinite(V).all():
        raise FloatingPointError("the factor of the net does not fit the problem")
    random = rank > 2
    if not (0 < witness.delta < 1 and witness.confidence > 0 and witness.n_random >= random):
        raise FloatingPointError("the net has no chance to be right")
    if not 1 <= witness.n_directions * max(rank, 3) <= 3 * MAX_DIRECTIONS:  # 240 MB
        raise FloatingPointError("the net has no directions, or too many")
    epsilon = net_epsilon(witness.n_directions, rank, witness.delta)
    if not epsilon < 1:
        raise FloatingPointError("the net is too coarse for a bound")
    C = net_directions(rank, witness.n_directions, np.random.default_rng(witness.seed))
    best = best_direction(V, C, k, out_of_time)
    tail = _tail(problem, witness)
    rounding = 1 + 16 * (n + rank + 8) * UNIT
    return NetBound((best / (1 - epsilon) + tail) * rounding, best, epsilon, tail)


def best_direction(
    V: FloatArray, C: FloatArray, k: int, out_of_time: Callable[[], bool] | None = None
) -> float:
    """Return the largest ``‖V'x‖²`` over the rank-one answers to all directions, both signs."""
    best, step = 0.0, max(BLOCK // len(V), 1)
    for first in range(0, len(C), step):
        if out_of_time is not None and out_of_time():
            raise TimeoutError("no time for the whole net")
        scores = (C[first : first + step] @ V.T).T
        for a in (largest_positive(scores, k).T, largest_positive(-scores, k).T):
            squares = np.einsum("ij,ij->i", a, a)
            values = np.einsum("ij,ij->i", a @ V, a @ V)
            ratios = np.divide(values, squares, where=squares > 0, out=np.zeros_like(values))
            best = max(best, float(ratios.max(initial=0.0)))
    return best


def _tail(problem: Problem, witness: NetWitness) -> float:
    """Return τ in units of the scale, rounded upwards."""
    V, scale, k = witness.V, witness.scale, problem.choice.size
    n = len(V)
    known = Uncertainty.of(problem, scale)
    variances = problem.covariance.diagonal() / scale
    mass = float(variances.sum() + (V * V).sum())
    if witness.on_data:
        values: FloatArray = _tail_of_data(KnownFactor.of(problem, scale=scale), V)
        by_rows = np.inf
    else:
        R = KnownMatrix.of(problem, np.arange(n), scale).A - V @ V.T
        values, rows = np.asarray(np.linalg.eigvalsh(R), dtype=np.float64), np.abs(R)
        if k < n:
            rows = np.partition(rows, n - k, axis=1)[:, n - k :]
        by_rows = float(rows.sum(axis=1).max())
    error = 16 * (n + V.shape[1] + 8) * UNIT * mass + float(known.psd_slack.max())
    # The trace bounds a form that is positive semidefinite; what is missing goes to every feature.
    lift = max(-float(values.min()), 0.0) + error
    diagonal = np.maximum(variances - np.einsum("ij,ij->i", V, V) + lift, 0.0)
    by_trace = float(np.sort(diagonal)[-k:].sum())
    tail = max(min(float(values.max()) + error, by_trace, by_rows + k * error), 0.0)
    return tail + known.total(1, problem.choice)


def _tail_of_data(known: KnownFactor, V: FloatArray) -> FloatArray:
    """Return the eigenvalues of X'X - VV': with [X' V] = QR those of RJR', and zeros."""
    stacked = np.hstack([known.X.T, V])
    factor: FloatArray = np.linalg.qr(stacked, mode="r")  # type: ignore[assignment]
    signs = np.concatenate([np.ones(len(known.X)), -np.ones(V.shape[1])])
    return np.append(np.linalg.eigvalsh((factor * signs) @ factor.T), 0.0).astype(np.float64)

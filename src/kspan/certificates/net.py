r"""The bound of the spannogram's paper: a low-rank part by a net of directions, and a tail.

For any V with columns in R^n write A = VV' + R. For x ≥ 0 with at most k features, x'Ax is at most

.. math:: \max_x \|V'x\|^2 + \max_x x'Rx \le \frac{\max_c \|V'x_c\|^2}{1 - ε} + τ,

where c goes through a net of directions that loses at most ε (`kspan.linalg.net`), x_c is the
rank-one answer to Vc, and τ the smallest of λ_max(R), the sum of the k largest diagonal entries
of R, and the largest sum of k sizes in a row of R. The net is random from three dimensions on, and
so is the bound: it holds with probability 1 - δ, the `confidence` of the certificate. The draws
are those of a seed, so that `verify` draws them again. That probability is about an honest draw:
somebody who tries many seeds can find one whose net misses. All other bounds need no such trust.

Reference: Asteris, Papailiopoulos, Dimakis, ICML 2014, Theorem 2 and Section 7. They do not print
the formula of their bound; this is one for the same idea, with a sharper count of directions.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.certificates.bounds import UNIT
from kspan.certificates.matrices import DENSE_LIMIT
from kspan.certificates.witness import NetWitness
from kspan.linalg.net import MAX_DIRECTIONS, direction_count, net_directions, net_epsilon
from kspan.problem import NonnegativeProblem

# Ranks of which the best is taken, their directions, and the chance of all random ones together.
RANKS = (1, 2, 3, 4, 5)
N_DIRECTIONS = {1: 1, 2: 400}
N_DRAWS = 4000
SEED = 0

# Up to this many features A is formed for its tail.
FORM_LIMIT = 4 * DENSE_LIMIT

BLOCK = 1 << 21  # entries of Vc at a time


@dataclass(frozen=True)
class NetBound:
    """The bound in units of the witness's scale, the value of the best direction, ε and τ."""

    value: float
    best: float
    epsilon: float
    tail: float


def net_witnesses(
    problem: NonnegativeProblem, scale: float, rank: int | None, epsilon: float | None
) -> list[NetWitness]:
    """Return the nets to try: of one rank, with the sharp count for an ε, or of several."""
    n = problem.n_features
    ranks = [r for r in RANKS if r <= n] if rank is None else [min(rank, n)]
    n_random = sum(r > 2 for r in ranks)
    delta = 1 / max(n, 2) / max(n_random, 1)
    pairs = problem.covariance.leading(ranks[-1])
    V = pairs.vectors * np.sqrt(np.maximum(pairs.values, 0.0) / scale)
    found = []
    for r in ranks:
        count = (
            N_DIRECTIONS.get(r, N_DRAWS) if epsilon is None else direction_count(epsilon, r, delta)
        )
        found.append(NetWitness(scale, V[:, :r].copy(), count, SEED, delta, n_random))
    return found


def confidence(witness: NetWitness) -> float:
    """Return the probability with which all nets that were tried keep what they promise."""
    return 1.0 - witness.n_random * witness.delta


def net_bound(problem: NonnegativeProblem, witness: NetWitness) -> NetBound:
    """Compute the bound from the data and the witness; nothing else is believed."""
    V, k = witness.V, problem.n_nonzero_coefs
    n, rank = V.shape
    if V.dtype != np.float64 or n != problem.n_features or not np.isfinite(V).all():
        raise FloatingPointError("the factor of the net does not fit the problem")
    random = rank > 2
    if not (0 < witness.delta < 1 and confidence(witness) > 0 and witness.n_random >= random):
        raise FloatingPointError("the net has no chance to be right")
    if not 1 <= witness.n_directions <= MAX_DIRECTIONS:
        raise FloatingPointError("the net has no directions, or too many")
    epsilon = net_epsilon(witness.n_directions, rank, witness.delta)
    if not epsilon < 1:
        raise FloatingPointError("the net is too coarse for a bound")
    C = net_directions(rank, witness.n_directions, np.random.default_rng(witness.seed))
    best = best_direction(V, C, k)
    tail = _tail(problem, V, witness.scale, k)
    rounding = 1 + 16 * (n + rank + 8) * UNIT
    return NetBound((best / (1 - epsilon) + tail) * rounding, best, epsilon, tail)


def best_direction(V: FloatArray, C: FloatArray, k: int) -> float:
    """Return the largest ``‖V'x‖²`` over the rank-one answers to all directions, both signs."""
    n, best = len(V), 0.0
    step = max(BLOCK // n, 1)
    for first in range(0, len(C), step):
        scores = C[first : first + step] @ V.T
        for a in (np.maximum(scores, 0.0), np.maximum(-scores, 0.0)):
            if k < n:
                threshold = np.partition(a, n - k, axis=1)[:, n - k, None]
                surplus = (a >= threshold).sum(axis=1) > k
                a[a < threshold] = 0.0
                for i in np.flatnonzero(surplus & (threshold[:, 0] > 0)):  # ties: any of them
                    tied = np.flatnonzero(a[i] == threshold[i])
                    a[i, tied[k - np.count_nonzero(a[i] > threshold[i]) :]] = 0.0
            squares = np.einsum("ij,ij->i", a, a)
            values = np.einsum("ij,ij->i", a @ V, a @ V)
            ratios = np.divide(values, squares, where=squares > 0, out=np.zeros_like(values))
            best = max(best, float(ratios.max(initial=0.0)))
    return best


def _tail(problem: NonnegativeProblem, V: FloatArray, scale: float, k: int) -> float:
    """Return τ in units of scale, rounded upwards."""
    n, n_samples = len(V), problem.covariance.n_samples or 0
    variances = problem.covariance.diagonal() / scale
    mass = float(variances.sum() + (V * V).sum())
    if n <= FORM_LIMIT:
        A = problem.covariance.submatrix(np.arange(n)) / scale
        R = 0.5 * (A + A.T) - V @ V.T
        values = np.linalg.eigvalsh(R)
        rows = np.abs(R)
        if k < n:
            rows = np.partition(rows, n - k, axis=1)[:, n - k :]
        by_rows = float(rows.sum(axis=1).max())
    else:
        X = problem.covariance.sample_factor()
        if X is None:
            raise FloatingPointError("too many features and samples for the tail of the net")
        # With [X' V] = QR the eigenvalues of X'X - VV' are those of RJR', and zeros.
        factor: FloatArray = np.linalg.qr(  # type: ignore[assignment]
            np.hstack([X.T / np.sqrt(scale), V]), mode="r"
        )
        signs = np.concatenate([np.ones(len(X)), -np.ones(V.shape[1])])
        values = np.append(np.linalg.eigvalsh((factor * signs) @ factor.T), 0.0)
        by_rows = np.inf
    error = 16 * (n + n_samples + V.shape[1] + 8) * UNIT * mass
    # The trace bounds a form that is positive semidefinite; what is missing goes to every feature.
    lift = max(-float(values.min()), 0.0) + error
    diagonal = np.maximum(variances - np.einsum("ij,ij->i", V, V) + lift, 0.0)
    by_trace = float(np.sort(diagonal)[-k:].sum())
    return max(min(float(values.max()) + error, by_trace, by_rows + k * error), 0.0)

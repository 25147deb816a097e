r"""The ε-net method: nonnegative sparse components from directions in a leading eigenspace.

With the d leading eigenpairs of A, :math:`V = U_d Λ_d^{1/2}` and :math:`A_d = VV'`,

.. math:: x'A_dx = \|V'x\|^2 = \max_{\|c\|=1} (c'V'x)^2,

and for a fixed direction c the best x is the rank-one answer to a = Vc: the k largest positive
entries of a, or of -a. So a net of directions is enough:

Steps: (1) compute V. (2) Draw M directions c. (3) For each, and its negative, make the rank-one
answer x. (4) Return the x with the largest :math:`\|V'x\|^2`.

How many directions: with :math:`c_* = V'x_*/\|V'x_*\|` for the best x on A_d, a direction gives
:math:`\|V'x\|^2 \ge (c'c_*)^2\, \mathrm{OPT}_d`; `kspan.linalg.directions` has the count and why.

Cost: O(Md·n) for n features after the d leading eigenpairs, without sorting. Passes over the
data: those of the eigenpairs.

Guarantee: on A_d at least 1 - ε of the optimum, with probability 1 - δ for each component (d ≤ 2:
for certain); on A, 1 - ε times the factor ρ_d of the paper's equation (4).

Reference: Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML
2014, Algorithm 3 and Theorem 2.

Differs from the paper in: the number of directions is the sharp count above,
:math:`O(ε^{-(d-1)/2} \ln n)`, where the paper has :math:`O(ε^{-d} \ln n)`; for d = 2 they are not
drawn. Directions are compared in single precision, the best of them again in double. With
``ascent=True`` the best few are starts of an ascent on A itself, with swaps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance import UnitCovariance
from kspan.linalg.directions import WORK_BYTES, direction_count, net_directions, net_epsilon
from kspan.linalg.selection import largest_positive, top_k
from kspan.problem import LoadingsSolution, NonnegativeProblem
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import largest_variance, unit_columns
from kspan.solvers.method import counted
from kspan.solvers.nonnegative.ascent import ascend
from kspan.solvers.one_by_one import Component, NonnegativeOneByOneMethod, Prove
from kspan.solvers.starts import low_rank_factor

Floats = NDArray[np.float32]

# How many candidates the ascent starts from.
N_NET_STARTS = 30

# The first look at a direction is at this many times k features.
FIRST_LOOK = 8

# Of n_best candidates wanted, this many times as many are looked at at a time, and in the end.
POOL, MAX_POOL = 4, 64


@dataclass(frozen=True, eq=False)
class NetMethod(NonnegativeOneByOneMethod):
    """A method that begins with a net of directions in a leading eigenspace."""

    rank: int = counted(3, least=1)
    epsilon: float = 0.1

    def run(
        self, problem: NonnegativeProblem, monitor: Monitor, rng: np.random.Generator,
        prove: Prove | None = None,
    ) -> LoadingsSolution:  # fmt: skip
        """Find the components, after a look at the size of the net."""
        self._count(problem.n_features, min(self.rank, problem.n_features))  # raises if too large
        return super().run(problem, monitor, rng, prove)

    def net(self, left: UnitCovariance, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return V, and the directions in the rows; rank 2 and below need no draws."""
        V = low_rank_factor(left, min(self.rank, left.n_features))
        count = self._count(left.n_features, V.shape[1])
        return V, net_directions(V.shape[1], count, rng)

    def _count(self, n_features: int, rank: int) -> int:
        """Return the number of directions; `ValueError` if that is too large."""
        return direction_count(self.epsilon, rank, self.chance_of_loss(n_features))

    def chance_of_loss(self, n_features: int) -> float:
        """Return δ: the probability with which more than ε may be lost."""
        return 1.0 / max(n_features, 2)


@dataclass(frozen=True, eq=False)
class Net(NetMethod):
    """Nonnegative sparse components from a net of directions.

    Parameters
    ----------
    deflation : {"remove", "projection", "orthogonalized"}
        "remove" takes the features of a component out before the next one, as in the paper.
    rank : int
        d, the number of eigenpairs used; at most 3 or 4, as the net grows with it.
    epsilon : float
        The share of the optimum on A_d that may be lost, above 0 and at most 1.
    delta : float, optional
        The probability with which more may be lost. By default 1/n for n features.
    ascent : bool
        Go on from the best candidates to local maxima of x'Ax, and take the best.
    """

    name = "net"
    summary = "a net of directions in the leading dimensions of A"
    guarantee = "1 - ε of the optimum of a low-rank approximation, with a stated probability"
    reference = "Asteris et al., ICML 2014"

    delta: float | None = None
    ascent: bool = False

    def find(
        self, left: UnitCovariance, problem: NonnegativeProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Scan the net for one component."""
        k = problem.n_nonzero_coefs
        V, C = self.net(left, rng)
        best = scan_net(V, [k], C, n_best=N_NET_STARTS if self.ascent else 1, monitor=monitor)[0]
        x = best.vectors if best.values.size else largest_variance(left)
        if self.ascent and not monitor.stopped:
            top = ascend(left, x, k, swaps=True, monitor=monitor)
            status = Status.CONVERGED if top.converged else monitor.stopped or Status.MAX_ITER
            return Component(top.best, top.history, len(C) + top.n_iter, status)
        x = x[:, 0]
        value = float(x @ left.matmat(x[:, None])[:, 0])
        monitor.report(value)
        return Component(x, [value], len(C), monitor.stopped or Status.COMPLETED)

    def chance_of_loss(self, n_features: int) -> float:
        """Return δ."""
        return super().chance_of_loss(n_features) if self.delta is None else self.delta


def achieved_by_net(problem: NonnegativeProblem, rank: int, epsilon: float) -> float:
    """Return the ε that the net for a wanted one achieves: a whole number of directions is more."""
    n = problem.n_features
    rank, delta = min(rank, n), 1.0 / max(n, 2)
    return net_epsilon(direction_count(epsilon, rank, delta), rank, delta)


# --- the scan


@dataclass(frozen=True)
class Candidates:
    """The best vectors that a scan found for one k, with different supports.

    Attributes
    ----------
    n_nonzero_coefs : k
    values : (b,) ``‖V'x‖²``, descending
    vectors : (n, b) nonnegative unit columns with at most k features
    """

    n_nonzero_coefs: int
    values: FloatArray
    vectors: FloatArray


def scan_net(
    V: FloatArray,
    ks: Sequence[int],
    directions: FloatArray,
    *,
    n_best: int = 1,
    monitor: Monitor | None = None,
) -> list[Candidates]:
    """Make the rank-one answers to all directions and their negatives, and keep the best.

    Features are ordered by the length of their rows of V. The k-th largest entry of Vc among the
    first few of them is a threshold for all, and a row shorter than that cannot reach it: mostly
    a short prefix settles a direction, and where it does not, a longer one is taken.

    Parameters
    ----------
    V : (n, d) array
    ks : numbers of features, for each of which the best are kept
    directions : (M, d) unit rows
    n_best : how many to keep, at most
    monitor : asked whether to stop after every block

    Returns
    -------
    list of `Candidates`, one for each k in the order given
    """
    counts = np.unique(np.asarray(ks, dtype=np.intp))
    C = np.vstack([directions, -directions])
    length = float(np.sqrt(np.einsum("ij,ij->i", V, V).max(initial=0.0)))
    if length == 0:
        return [Candidates(int(k), np.empty(0), np.empty((len(V), 0))) for k in ks]
    scores = _DirectionScan(V / length, np.minimum(counts, len(V))).scores(C, monitor)
    return [
        _best(V / length, int(k), C, scores[:, np.searchsorted(counts, k)], n_best, length**2)
        for k in ks
    ]


class _DirectionScan:
    """Scores ``‖V'x‖²`` of the rank-one answers x, in single precision and memory used again.

    Parameters
    ----------
    V : (n, d) array with rows of length up to one
    ks : numbers of features, ascending
    """

    def __init__(self, V: FloatArray, ks: Index):
        self.ks = ks
        lengths = np.sqrt(np.einsum("ij,ij->i", V, V))
        order = np.argsort(-lengths, kind="stable")
        self.lengths = np.append(lengths[order], 0.0)
        self.V = V[order].astype(np.float32)
        self.Vt = np.ascontiguousarray(self.V.T)
        room = max(WORK_BYTES // self.V.itemsize, len(V))
        # Fresh memory for every block would cost more than the arithmetic in it.
        self._products, self._kept = np.empty((2, room), dtype=np.float32)
        self._mask = np.empty(room, dtype=bool)

    def scores(self, C: FloatArray, monitor: Monitor | None) -> Floats:
        """Return the scores of all directions for every k; zero where it had to stop before."""
        directions = C.astype(np.float32)
        scores = np.zeros((len(C), self.ks.size), dtype=np.float32)
        waiting, size = np.arange(len(C)), self._prefix(FIRST_LOOK * int(self.ks[-1]))
        while waiting.size:
            step = self._mask.size // size
            unsettled = []
            for first in range(0, waiting.size, step):
                rows = waiting[first : first + step]
                settled = self._block(directions, rows, size, scores)
                unsettled.append(rows[~settled])
                if monitor is not None and monitor.out_of_time():
                    return scores
            waiting, size = np.concatenate(unsettled), self._prefix(4 * size)
        return scores

    def _prefix(self, size: int) -> int:
        """Return a number of features to look at: all of them, when it is most of them."""
        return size if 2 * size <= len(self.V) else len(self.V)

    def _block(self, C: Floats, rows: Index, size: int, scores: Floats) -> Mask:
        """Score some directions on the first features, and say for which that was enough."""
        c = C[rows]
        shape, room = (rows.size, size), rows.size * size
        a = np.matmul(c, self.Vt[:, :size], out=self._products[:room].reshape(shape))
        t = self._thresholds(a)
        settled: Mask = t[:, -1] >= self.lengths[size]
        if not settled.all():
            rows, c, a, t = rows[settled], c[settled], a[settled], t[settled]
        kept, mask = self._kept[: a.size].reshape(a.shape), self._mask[: a.size].reshape(a.shape)
        for j, k in enumerate(self.ks):
            np.greater_equal(a, t[:, j, None], out=mask)
            np.multiply(a, mask, out=kept)  # zeros may be among them
            tied = (np.count_nonzero(mask, axis=1) > k) & (t[:, j] > 0)
            if tied.any():
                kept[tied] = largest_positive(a[tied].T, k).T
            # x = s/‖s‖ for the entries s that are kept, and s's = s'a = (V's)'c.
            S = kept @ self.V[:size]
            squares, variances = np.einsum("ij,ij->i", S, c), np.einsum("ij,ij->i", S, S)
            scores[rows, j] = np.divide(
                variances, squares, where=squares > 0, out=np.zeros_like(squares)
            )
        return settled

    def _thresholds(self, a: Floats) -> Floats:
        """Return the k-th largest entry of every row, or zero, for every k."""
        t = np.zeros((len(a), self.ks.size), dtype=np.float32)
        top: Floats = self._kept[: a.size].reshape(a.shape)
        np.copyto(top, a)
        for j in reversed(range(self.ks.size)):
            beyond = top.shape[1] - int(self.ks[j])
            if beyond > 0:
                top.partition(beyond, axis=1)
                top = top[:, beyond:]
                t[:, j] = top[:, 0]
        return np.maximum(t, 0.0, out=t)


def _best(
    V: FloatArray, k: int, C: FloatArray, scores: Floats, n_best: int, unit: float
) -> Candidates:
    """Make the answers with the best scores again, in double precision, best first.

    Directions near each other have the same support, so more and more of them are looked at
    until there are enough supports.
    """
    ranked = top_k(scores, MAX_POOL * n_best)
    ranked = ranked[np.argsort(-scores[ranked], kind="stable")]
    chosen: dict[bytes, tuple[float, FloatArray]] = {}  # of every support the best
    for first in range(0, ranked.size, POOL * n_best):
        pool = ranked[first : first + POOL * n_best]
        # Transposed twice, so that columns lie together in memory.
        X = unit_columns(largest_positive((C[pool[scores[pool] > 0]] @ V.T).T, k))
        values = np.sum((V.T @ X) ** 2, axis=0)
        for i in np.argsort(-values, kind="stable"):
            chosen.setdefault((X[:, i] > 0).tobytes(), (float(values[i]), X[:, i]))
        if len(chosen) >= n_best:
            break
    best = sorted(chosen.values(), key=lambda pair: -pair[0])[:n_best]
    values = np.array([value for value, _ in best]) * unit
    return Candidates(k, values, np.array([x for _, x in best]).reshape(-1, len(V)).T)

r"""Matching: sparse components without a common feature, all at once.

.. math:: \max \sum_j x_j'Ax_j \quad \|x_j\| = 1,\; \|x_j\|_0 \le k,\; \text{disjoint supports}

With the r leading eigenpairs of A, :math:`V = U_r Λ_r^{1/2}` and :math:`A_r = VV'`,
:math:`x'A_rx = \max_{\|c\|=1} (c'V'x)^2`. For fixed directions :math:`c_1, …, c_m` and W = VC, the
best :math:`x_j` on a support :math:`I_j` is proportional to :math:`W_{I_j,j}`, so that what is left
is to choose disjoint sets

.. math:: \max_{I_1, …, I_m} \sum_j \sum_{i \in I_j} W_{ij}^2, \qquad |I_j| = k,

an assignment of features to m times k places.

Steps: (1) draw M sets of m directions; the axes of V are one more. (2) Solve the assignment for
each. (3) Take the sets with the largest :math:`\sum_j \|V'x_j\|^2`. (4) Ascent on A itself, by the
same argument with a square root of A in place of V: :math:`w_j = Ax_j / \sqrt{x_j'Ax_j}`, assign
again, and so on. When supports stand still, x_j becomes the leading eigenvector on its own.

How many: a set of directions is good to within ε when each of them is, with probability
:math:`p^m`, p as in `kspan.linalg.directions`. So :math:`M = \lceil \ln δ / \ln(1 - p^m)
\rceil` sets are with probability 1 - δ.

Cost: O(Mrmd), and :math:`O(m^4k^3)` for an assignment in the worst case. Most sets need none: the
sum of the k largest :math:`W_{ij}^2` of each column is a bound that the best so far often
exceeds. Passes over the data: those of the eigenpairs, and two a step of the ascent.

Guarantee: on A_r at least 1 - ε of the optimum, with probability 1 - δ. The ascent is monotone.

Reference: Asteris, Papailiopoulos, Kyrillidis, Dimakis, Sparse PCA via Bipartite Matchings, NIPS
2015.

Differs from the paper in: directions are drawn and not on a grid, and by default their number is
given and not ε, which for several components asks for very many. The ascent is not in the
paper.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, UnitCovariance
from kspan.linalg.directions import MAX_DIRECTIONS, WORK_BYTES, sample_count
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import top_k
from kspan.problem import ElementSparseProblem, LoadingsSolution
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import fill_empty, refit_one, unit_columns, unit_solution
from kspan.solvers.method import ElementSparseMethod, counted
from kspan.solvers.starts import low_rank_factor

# How many sets of supports the ascent starts from.
N_ASCENTS = 5


@dataclass(frozen=True, eq=False)
class Matching(ElementSparseMethod):
    """Sparse components that share no feature, by bipartite matchings.

    The problem must have at most n_features / n_components features in a component.

    Parameters
    ----------
    rank : int
        r, the number of eigenpairs used.
    epsilon : float, optional
        The share of the optimum on A_r that may be lost; decides on the number of draws.
    delta : float, optional
        The probability with which more may be lost. By default 1/d for d features.
    n_samples : int
        Number of sets of directions drawn when there is no epsilon.
    ascent : bool
        Go on from the best sets to a local maximum on A itself.
    max_iter : int
        Steps of each ascent.
    """

    name = "matching"
    summary = (
        "all components at once, no two of which share a feature: features are assigned to "
        "components"
    )
    guarantee = "1 - ε of the optimum of a low-rank approximation, with a stated probability"
    reference = "Asteris et al., NIPS 2015"

    rank: int = counted(3, least=1)
    epsilon: float | None = None
    delta: float | None = None
    n_samples: int = counted(300, least=1)
    ascent: bool = True
    max_iter: int = counted(100, least=0)

    def run(
        self, problem: ElementSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Scan sets of directions, then ascend from the best."""
        d, m, k = problem.n_features, problem.n_components, problem.n_nonzero_coefs
        if m * k > d:
            raise ValueError(
                f"n_components={m} times n_nonzero_coefs={k} is more than n_features={d}: "
                "components that share no feature do not fit."
            )
        rank, n_samples = min(self.rank, d), self.n_samples
        if self.epsilon is not None:
            delta = 1.0 / max(d, 2) if self.delta is None else self.delta
            n_samples = set_count(self.epsilon, rank, m, delta)
        covariance = UnitCovariance(problem.covariance)
        inner = monitor.inner(unit=covariance.unit)
        matcher = _Matcher(covariance, m, k, inner)
        status = Status.COMPLETED
        with inner.interruptible():
            V = low_rank_factor(covariance, rank)
            starts = matcher.scan(V, _directions(n_samples, V.shape[1], m, rng))
            if self.ascent:
                arrived = [matcher.ascend(X, self.max_iter) for X in starts]
                status = Status.CONVERGED if all(arrived) else Status.MAX_ITER
        loadings = fill_empty(matcher.best, covariance.diagonal())
        return unit_solution(
            loadings, covariance, solver=self.name, status=inner.stopped or status,
            history=matcher.history, n_iter=matcher.n_iter,
        )  # fmt: skip


def set_count(epsilon: float, rank: int, n_components: int, delta: float) -> int:
    """Return how many sets of m draws come within ε of the best with probability 1 - δ.

    Examples
    --------
    >>> [set_count(0.1, 3, m, 1 / 1000) for m in (1, 2, 3)]
    [132, 2620, 51114]
    """
    one = sample_count(epsilon, rank, delta)
    if n_components == 1 or rank == 1 or epsilon == 1:
        return one
    chance = float(betainc((rank - 1) / 2, 0.5, epsilon)) ** n_components
    wanted = np.log(delta) / np.log1p(-chance) if chance > 0 else np.inf
    if wanted > MAX_DIRECTIONS:
        raise ValueError(
            f"epsilon={epsilon!r} at rank={rank} needs {wanted:.3g} sets of {n_components} "
            f"directions, more than {MAX_DIRECTIONS}: raise epsilon, lower rank or give n_samples."
        )
    return max(1, int(np.ceil(wanted)))


def match(squares: FloatArray, k: int) -> Index:
    """Return disjoint sets of k rows, one for each column, with the largest sum of entries.

    Parameters
    ----------
    squares : (d, m) nonnegative array, d ≥ mk

    Returns
    -------
    (m, k) sorted rows

    Examples
    --------
    >>> import numpy as np
    >>> match(np.array([[9.0, 8.0], [5.0, 1.0], [0.0, 1.0], [4.0, 0.0]]), 1).ravel()
    array([1, 0])
    """
    m = squares.shape[1]
    wanted = np.stack([top_k(column, k) for column in squares.T])
    if np.unique(wanted).size == m * k:
        return wanted  # each column has what is best for it
    # Only rows among the mk largest of some column matter. If a best answer gives column j a row
    # that is not among the mk largest of j, then one of these is free, as at most mk - 1 are
    # taken; it is no smaller, and takes its place. So, one by one, for all such rows.
    rows = np.unique(np.concatenate([top_k(column, m * k) for column in squares.T]))
    places, slots = linear_sum_assignment(np.repeat(squares[rows], k, axis=1), maximize=True)
    owner = slots // k
    return np.stack([np.sort(rows[places[owner == j]]) for j in range(m)])


class _Matcher:
    """The best disjoint components so far, and the two ways to better ones."""

    def __init__(self, covariance: Covariance, m: int, k: int, monitor: Monitor):
        self.covariance, self.m, self.k, self.monitor = covariance, m, k, monitor
        self.best: FloatArray = np.zeros((covariance.n_features, m))
        self.value = 0.0
        self.history: list[float] = []
        self.n_iter = 0

    def scan(self, V: FloatArray, C: FloatArray) -> list[FloatArray]:
        """Match the most promising sets of directions, and return the best few answers."""
        bounds = self._bounds(V, C)
        found: list[tuple[float, FloatArray]] = []
        best = 0.0
        for s in np.argsort(-bounds, kind="stable"):
            # What follows cannot be better, on A_r. The ascent wants more than one start.
            if bounds[s] <= best and len(found) >= N_ASCENTS:
                break
            X = self._answer(V @ C[s])
            value = float(np.sum((V.T @ X) ** 2))
            found.append((value, X))
            if value > best:
                best = value
                self._keep(X, np.sum(X * self.covariance.matmat(X), axis=0))
            if self._report():
                break
        found.sort(key=lambda pair: -pair[0])
        return [X for _, X in found[:N_ASCENTS]]

    def _bounds(self, V: FloatArray, C: FloatArray) -> FloatArray:
        """Return the sums of the k largest squares of each column, common features or not.

        Zero for sets that time does not allow to look at.
        """
        n, r, m = C.shape
        d, k = len(V), self.k
        columns, Vt = C.transpose(0, 2, 1).reshape(n * m, r), np.ascontiguousarray(V.T)
        sums = np.zeros(n * m)
        step = max(1, WORK_BYTES // (8 * d))
        for first in range(0, n * m, step):
            if first and self.monitor.out_of_time():
                break
            part = slice(first, first + step)
            squares = (columns[part] @ Vt) ** 2
            if k < d:
                squares.partition(d - k, axis=1)
            sums[part] = squares[:, d - k :].sum(axis=1)
        total: FloatArray = sums.reshape(n, m).sum(axis=1)
        return total

    def _answer(self, W: FloatArray) -> FloatArray:
        """Return the best disjoint unit vectors for the products W."""
        self.n_iter += 1
        X = np.zeros_like(W)
        for j, rows in enumerate(match(W * W, self.k)):
            X[rows, j] = W[rows, j]
        return fill_empty(unit_columns(X), self.covariance.diagonal())

    def ascend(self, X: FloatArray, max_iter: int) -> bool:
        """Go up to a local maximum on A; says whether it was reached."""
        on_top = -1.0  # the value when all columns were last the best on their supports
        for _ in range(max_iter):
            AX = self.covariance.matmat(X)
            variances = np.sum(X * AX, axis=0)
            self._keep(X, variances)
            if self._report():
                return False
            Y = self._answer(AX / np.sqrt(np.where(variances > 0, variances, np.inf)))
            if not np.array_equal(Y != 0, X != 0):
                X = Y
                continue
            tops = [refit_one(self.covariance, np.flatnonzero(x)) for x in Y.T]
            X, variances = np.column_stack([x for x, _ in tops]), np.array([v for _, v in tops])
            self._keep(X, variances)
            if variances.sum() <= on_top * (1 + IMPROVEMENT):
                self._report()
                return True
            on_top = float(variances.sum())
        return False

    def _keep(self, X: FloatArray, variances: FloatArray) -> None:
        """Remember X if it is the best on A so far."""
        if variances.sum() > self.value:
            self.value = float(variances.sum())
            self.best = X[:, np.argsort(-variances, kind="stable")]

    def _report(self) -> bool:
        self.history.append(self.value)
        return self.monitor.report(self.value)


def _directions(n_samples: int, rank: int, m: int, rng: np.random.Generator) -> FloatArray:
    """Return sets of m unit columns: the axes in turn, then draws."""
    C = rng.standard_normal((n_samples + 1, rank, m))
    C[0] = np.eye(rank)[:, np.arange(m) % rank]
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    return C

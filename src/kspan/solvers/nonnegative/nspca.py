r"""NSPCA: nonnegative sparse components all at once, by coordinate descent.

.. math:: \max_{U \ge 0} \tfrac12 \mathrm{tr}(U'AU) - \tfrac{α}{4} \|I - U'U\|_F^2
          - β \sum_{ij} u_{ij}

The second term keeps the components near orthonormal, the third makes them sparse. Orthogonal
nonnegative vectors share no features, so a large α keeps them apart.

Steps: (1) start at random. (2) Raster scan: replace one entry u after the other by the best one.
In u the objective is, up to a constant, :math:`-(α u^4/4 + c_2 u^2/2 + c_1 u)` with

.. math:: c_2 = α\Big(\sum_{l \ne j} u_{il}^2 + \sum_{t \ne i} u_{tj}^2 - 1\Big) - a_{ii}, \qquad
          c_1 = β + α \sum_{l \ne j} u_{il} \sum_{t \ne i} u_{tl} u_{tj}
                - \sum_{t \ne i} a_{ti} u_{tj}

so the best u ≥ 0 is zero or the largest root of :math:`α u^3 + c_2 u + c_1`. (3) Scan until the
objective hardly grows. (4) Bisect β for at most k features in each component. At every β tried,
keep the k largest entries of each component, at length one; the answer is the best of these, and
the best from `n_restarts` starts.

Cost: O(dm²) a scan, and O(d) for each entry that changes; for data with n samples and more
features, O(n) for each entry. Passes over the data: one, to form A or to copy wide data.

Guarantee: the penalised objective never decreases. None for the problem with k features.

Reference: Zass, Shashua, Nonnegative Sparse PCA, NIPS 2006.

Differs from the paper in: the number of features is given and not β. One β seldom gives k features
to several components: most of them are empty, or nearly, when the last one comes down to k. So a
β with more features may win, cut to k; with ``cut=False`` only those with at most k count, as in
the comparison of Asteris, Papailiopoulos, Dimakis (ICML 2014) for one component. Each β starts
where the largest one below it, with more than k features, ended. α and β are in units of the
largest eigenvalue. Random columns are scaled to length one. The paper stops when a scan gains
less than 0.001 percent; so does this.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import Covariance, UnitCovariance
from kspan.problem import LoadingsSolution, NonnegativeProblem
from kspan.progress import Monitor, Status, worst
from kspan.solvers.loadings import fill_empty, joint_variance, unit_columns, unit_solution
from kspan.solvers.method import NonnegativeMethod, checked, counted, require_not_negative
from kspan.solvers.penalty_search import Trial

# Up to this many features A is formed; wide data never needs it.
COVARIANCE_LIMIT = 4096

# Width of the interval of β, relative to its end, at which k features are given up.
BETA_WIDTH = 1e-4

# Newton's method on a convex function ends earlier than this.
MAX_NEWTON = 100


@dataclass(frozen=True, eq=False)
class NSPCA(NonnegativeMethod):
    """Nonnegative sparse components at once by coordinate descent.

    Parameters
    ----------
    alpha : float
        Weight of orthonormality, positive, in units of the largest eigenvalue.
    beta : float, optional
        Weight of sparsity, in the same units. By default it is bisected for at most k features
        in each component.
    cut : bool
        Let a β with more than k features in a component win, when that is best after only the k
        largest entries are kept. A β of your own is cut in any case.
    n_restarts : int
        Number of random starts.
    max_iter : int
        Scans from a start, for each β.
    tol : float
        Stop when a scan gains less than this share of the objective.
    """

    name = "nspca"
    summary = "coordinate ascent on all components at once, penalty bisected for k"
    guarantee = "the penalised objective never falls"
    reference = "Zass, Shashua, NIPS 2006"

    alpha: float = 3.0
    beta: float | None = None
    cut: bool = True
    n_restarts: int = counted(5, least=1)
    max_iter: int = counted(500, least=1)
    tol: float = checked(1e-5, require_not_negative)

    def check_options(self) -> None:
        """Weights are in range."""
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha must be a positive number, got {self.alpha!r}.")
        if self.beta is not None and not (np.isfinite(self.beta) and self.beta >= 0):
            raise ValueError(f"beta must be a finite number, 0 or more, got {self.beta!r}.")

    def run(
        self, problem: NonnegativeProblem, monitor: Monitor, rng: np.random.Generator
    ) -> LoadingsSolution:
        """Descend from all starts; the best one counts."""
        d, m, k = problem.n_features, problem.n_components, problem.n_nonzero_coefs
        covariance = UnitCovariance(problem.covariance)
        inner = monitor.inner(unit=covariance.unit)
        best = _BetasTried()
        history: list[float] = []
        n_iter = 0
        with inner.interruptible():
            descent = _Descent(covariance, self, inner)
            for _ in range(self.n_restarts):
                tried = descent.tried(descent.start(rng.random((d, m))), k)
                history += tried.history
                n_iter += tried.n_iter
                if tried.loadings is not None and tried.value > best.value:
                    best = tried
                if inner.stopped:
                    break
        found = np.zeros((d, m)) if best.loadings is None else best.loadings
        loadings = fill_empty(found, covariance.diagonal())
        history = [*history, joint_variance(covariance, loadings)]
        return unit_solution(
            loadings, covariance, solver=self.name,
            status=worst([best.status, inner.stopped or Status.CONVERGED]),
            history=np.maximum.accumulate(history).tolist(), n_iter=n_iter,
        )  # fmt: skip


class _BetasTried:
    """The best loadings of the β tried from one start, and how they were found."""

    def __init__(self) -> None:
        self.loadings: FloatArray | None = None
        self.value = -1.0
        self.history: list[float] = []
        self.n_iter = 0
        self.status = Status.COMPLETED

    def add(
        self, trial: Trial, k: int, usable: bool, covariance: Covariance, monitor: Monitor
    ) -> bool:
        """Take a trial into account, and return whether to stop."""
        self.n_iter += trial.n_iter
        loadings = trial.cut(k)
        value = joint_variance(covariance, loadings)
        if usable and value > self.value:
            self.loadings, self.value = loadings, value
            self.status = Status.CONVERGED if trial.converged else Status.MAX_ITER
        self.history.append(max(self.value, 0.0))
        return monitor.report(self.history[-1])


class _Descent:
    """The raster scans for a covariance, at any β."""

    def __init__(self, covariance: UnitCovariance, options: NSPCA, monitor: Monitor):
        self.covariance, self.options, self.monitor = covariance, options, monitor
        self.largest = float(covariance.leading(1).values[0])
        self.alpha = options.alpha * self.largest
        self.variances = covariance.diagonal()
        self.rows, self.factored = _rows(covariance)

    def start(self, U: FloatArray) -> FloatArray:
        """Return columns of length one without constant features."""
        return unit_columns(np.where(self.variances[:, None] > 0, U, 0.0))

    def tried(self, start: FloatArray, k: int) -> _BetasTried:
        """Return what the β of the user gives, or the best of many."""
        if self.options.beta is None:
            return self._bisect(start, k)
        tried, beta = _BetasTried(), self.options.beta * self.largest
        tried.add(self.run(start, beta), k, True, self.covariance, self.monitor)
        return tried

    def _bisect(self, start: FloatArray, k: int) -> _BetasTried:
        """Bisect β for at most k features in every column."""
        # For u = sx, ‖x‖ = 1, no s gives more than u = 0 when β is at least this: 1'x ≥ 1 and
        # x'Ax ≤ λ₁.
        both = self.largest + self.alpha
        low, high = 0.0, both / 3 * np.sqrt(2 * both / (3 * self.alpha))
        beta, search = 0.0, _BetasTried()
        try:
            while True:
                trial = self.run(start, beta)
                most = int(trial.n_features.max())
                usable = self.options.cut or most <= k
                stop = search.add(trial, k, usable, self.covariance, self.monitor)
                if most > k:
                    low, start = beta, trial.loadings
                else:
                    high = beta
                if stop or most == k or high - low <= BETA_WIDTH * high:
                    return search
                beta = (low + high) / 2
        except KeyboardInterrupt:
            search.status = self.monitor.stopped = Status.INTERRUPTED
            return search

    def run(self, start: FloatArray, beta: float) -> Trial:
        """Scan until the objective hardly grows."""
        U = start.copy()
        scan = _compiled_scan()
        n_iter, converged = 0, False
        while not converged and n_iter < self.options.max_iter and not self.monitor.out_of_time():
            n_iter += 1
            # Made anew for every scan, so that rounding does not pile up.
            products = np.ascontiguousarray((self.rows.T @ U).T)
            gram = U.T @ U
            size = self._size(U, products, gram)
            gain = scan(
                self.rows, self.factored, self.variances, U, products, gram, self.alpha, beta
            )
            converged = gain <= self.options.tol * size
        return Trial(U, U, n_iter, converged)

    def _size(self, U: FloatArray, products: FloatArray, gram: FloatArray) -> float:
        """Return the sum of the sizes of the two first terms of the objective."""
        variance = np.sum(products**2) if self.factored else np.sum(products.T * U)
        off = np.eye(len(gram)) - gram
        return float(variance / 2 + self.alpha / 4 * max(np.sum(off * off), len(gram)))


def _rows(covariance: UnitCovariance) -> tuple[FloatArray, bool]:
    """Return F and True, with ``A = FF'`` and few columns, for wide data; else A and False."""
    X = covariance.sample_factor()
    if X is not None:
        return np.ascontiguousarray(X.T), True
    d = covariance.n_features
    if d > COVARIANCE_LIMIT:
        raise ValueError(
            f"nspca forms a covariance matrix, for which n_features={d} is too many: at most "
            f"{COVARIANCE_LIMIT}, unless the data is dense and has fewer samples than features."
        )
    return np.ascontiguousarray(covariance.submatrix(np.arange(d))), False


def raster_scan(
    rows: FloatArray, factored: bool, variances: FloatArray, U: FloatArray,
    products: FloatArray, gram: FloatArray, alpha: float, beta: float,
) -> float:  # fmt: skip
    """Replace every entry of U by the best one, in place, and return the gain.

    Parameters
    ----------
    rows : (d, d) A or, when `factored`, (d, n) F with ``A = FF'``
    variances : (d,) diagonal of A
    U : (d, m)
    products : (m, d) ``U'A`` or (m, n) ``U'F``, kept up to date
    gram : (m, m) ``U'U``, kept up to date
    alpha, beta : α, β
    """
    d, m = U.shape
    gain = 0.0
    for i in range(d):
        a = variances[i]
        if a <= 0:
            continue
        for j in range(m):
            old = U[i, j]
            # With u_ij set to zero: what else is in its row, and its overlap with the others.
            others, overlap = 0.0, 0.0
            for other in range(m):
                if other != j:
                    u = U[i, other]
                    others += u * u
                    overlap += u * (gram[other, j] - u * old)
            product = np.dot(rows[i], products[j]) if factored else products[j, i]
            c2 = alpha * (others + gram[j, j] - old * old - 1) - a
            c1 = beta + alpha * overlap - (product - a * old)
            new = best_entry(c2 / alpha, c1 / alpha)
            step = new - old
            if step == 0:
                continue
            gain += alpha * (old**4 - new**4) / 4 + c2 * (old**2 - new**2) / 2 - c1 * step
            for other in range(m):
                if other != j:
                    gram[other, j] += U[i, other] * step
                    gram[j, other] = gram[other, j]
            gram[j, j] += new * new - old * old
            U[i, j] = new
            products[j] += step * rows[i]
    return gain


def best_entry(p: float, q: float) -> float:
    """Return the u ≥ 0 with the smallest u⁴/4 + pu²/2 + qu.

    It is zero or the largest root of the derivative u³ + pu + q, which is convex for u > 0: Newton
    from the right of the root comes down to it.

    Examples
    --------
    >>> best_entry(-1.0, 0.0), best_entry(1.0, 1.0)
    (1.0, 0.0)
    """
    if q >= 0 and p >= 0:
        return 0.0
    if q >= 0:
        if q > 2 * (-p / 3) ** 1.5:
            return 0.0  # the derivative has no root
        u = (-p) ** 0.5
    elif p > 0:
        u = min((-q) ** (1 / 3), -q / p)
    else:
        u = (-p) ** 0.5 + (-q) ** (1 / 3)
    for _ in range(MAX_NEWTON):
        slope = 3 * u * u + p
        if slope <= 0:
            break
        moved = u - (u * u * u + p * u + q) / slope
        if not moved < u:
            break
        u = moved
    # At a root the function is u(pu + 3q)/4, and at zero it is zero.
    return u if p * u + 3 * q < 0 else 0.0


@cache
def _compiled_scan() -> Callable[..., float]:
    """Compile the scan; only then is the compiler imported."""
    from numba.extending import register_jitable

    from kspan.linalg.machine import compiled

    register_jitable(best_entry)
    return compiled(raster_scan)

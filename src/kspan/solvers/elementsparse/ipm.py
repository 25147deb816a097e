r"""IPM: the nonlinear inverse power method for a ratio of norms.

.. math:: \min_f R(f) = \frac{(1-\gamma) \|f\|_2 + \gamma \|f\|_1}{\|Xf\|_2}

It is the inverse of the standard deviation at γ = 0, and forces a single feature at γ = 1. With f
scaled so that ‖Xf‖ = 1 and λ = R(f), a step minimises the numerator less the linear part of λ‖Xf‖,
which soft thresholding does:

.. math:: g = \mathrm{soft}(\lambda A f, \gamma), \qquad f \leftarrow g / \sqrt{g'Ag}

Only A = X'X is needed.

Steps: (1) start at the feature of largest variance; (2) iterate until λ falls by no more than
1e-5 of itself; (3) bisect γ in [0, 1] for k features; (4) take the leading eigenvector of A on
them. Several components: the score t = Xf/‖Xf‖ is taken out of the data, X ← X - tt'X, which is
Schur deflation of A.

Cost: O(dk') a step for a covariance and k' features in use. Passes over the data: two a step.

Guarantee: λ never increases. None for the problem with k features.

Reference: Hein, Bühler, An Inverse Power Method for Nonlinear Eigenproblems with Applications in
1-Spectral Clustering and Sparse PCA, NIPS 2010, section 5.

Differs from the paper in: when no γ tried has exactly k features, those of the one with the most
below k are taken, and the feature that correlates most with the score is added, and the vector
fitted again, until there are k; the authors' program then starts the bisection once more from
there. There are no random restarts. The eigenvector on the features is exact.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance import Covariance, UnitCovariance
from kspan.linalg.projections import soft_threshold
from kspan.linalg.selection import top_k
from kspan.problem import ElementSparseProblem
from kspan.progress import Monitor
from kspan.solvers.loadings import largest_variance, refit_one, unit_columns
from kspan.solvers.method import ElementSparseMethod, checked, counted, require_not_negative
from kspan.solvers.one_by_one import Component, OneByOneMethod
from kspan.solvers.penalty_search import Trial, bisect_penalty

# Width of the interval of γ at which k features are given up.
GAMMA_WIDTH = 1e-6

# Features that are missing are added in at most this many rounds.
N_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class IPM(OneByOneMethod, ElementSparseMethod):
    """Sparse components by the inverse power method and deflation.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    tol : float
        Stop when λ falls by no more than this share of itself.
    max_iter : int
        Steps for each γ.
    """

    name = "ipm"
    summary = "inverse power method for a ratio of norms, bisected for k"
    guarantee = "the ratio never rises"
    reference = "Hein, Bühler, NIPS 2010"

    deflation: str = "schur"
    tol: float = checked(1e-5, require_not_negative)
    max_iter: int = counted(100, least=1)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Bisect γ, then take the best vector on the features."""
        k = problem.n_nonzero_coefs
        first = _scaled(left, largest_variance(left)[:, 0] if start is None else start)
        constant = left.diagonal() <= 0
        search = bisect_penalty(
            lambda gamma: self._descend(left, first, float(gamma[0]), constant, monitor),
            left, k, 1, at_least=False, width=GAMMA_WIDTH, monitor=monitor,
        )  # fmt: skip
        x, variance = fill_up(left, np.flatnonzero(search.trial.cut(k)), k, monitor)
        return Component(x, [*search.history, variance], search.n_iter, search.status)

    def _descend(
        self, covariance: Covariance, first: tuple[FloatArray, FloatArray], gamma: float,
        constant: Mask, monitor: Monitor,
    ) -> Trial:  # fmt: skip
        """Iterate at one γ from a vector f with f'Af = 1 and its product Af."""
        f, product = first
        n_iter, converged = 0, False
        while not converged and n_iter < self.max_iter and not monitor.out_of_time():
            n_iter += 1
            value = ratio(f, gamma)
            moved, next_product = ipm_step(covariance, f, product, gamma, constant)
            after = ratio(moved, gamma)
            # f stays where no entry passes the threshold, and where rounding lets λ rise.
            converged = not moved.any() or not after < value * (1 - self.tol)
            if moved.any() and after < value:
                f, product = moved, next_product
        return Trial(f[:, None], unit_columns(f[:, None]), n_iter, converged)


def ratio(f: FloatArray, gamma: float) -> float:
    """Return the numerator of R, which is λ when ‖Xf‖ = 1."""
    return float((1 - gamma) * np.linalg.norm(f) + gamma * np.abs(f).sum())


def fill_up(
    covariance: Covariance, support: Index, k: int, monitor: Monitor
) -> tuple[FloatArray, float]:
    """Add features to a support until there are k; return the best vector there, its variance.

    Those come first whose covariance with the score of the vector so far is the largest, and
    constant ones last. They come one at a time or, if there are many, in `N_ROUNDS` rounds; all
    at once when time is up.
    """
    constant = covariance.diagonal() <= 0
    portion = -(-(k - support.size) // N_ROUNDS)
    x, variance = refit_one(covariance, support)
    while support.size < k:
        keys = np.abs(covariance.matmat(x[support, None], support)[:, 0])
        keys[constant] = -1.0
        keys[support] = np.inf
        portion = k if monitor.out_of_time() else portion
        support = top_k(keys, min(support.size + portion, k))
        x, variance = refit_one(covariance, support)
    return x, variance


def ipm_step(
    covariance: Covariance, f: FloatArray, product: FloatArray, gamma: float,
    constant: Mask | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return the next f with f'Af = 1 and its product Af, or zeros if nothing is left of it."""
    scores = ratio(f, gamma) * product
    if constant is not None:
        scores[constant] = 0.0
    g = soft_threshold(scores, gamma)
    return _scaled(covariance, g)


def _scaled(covariance: Covariance, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return f = g/√(g'Ag) and Af; zeros if g'Ag is not positive."""
    used = np.flatnonzero(g)
    if used.size == 0:
        return np.zeros_like(g), np.zeros_like(g)
    product = covariance.matmat(g[used, None], used)[:, 0]
    variance = float(g[used] @ product[used])
    if variance <= 0:
        return np.zeros_like(g), np.zeros_like(g)
    return g / np.sqrt(variance), product / np.sqrt(variance)

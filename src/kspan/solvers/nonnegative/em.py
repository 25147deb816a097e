r"""EM: expectation-maximisation in a probabilistic model of one nonnegative sparse component.

In the limit of no noise the two steps for data X and loadings w are, with A = X'X,

.. math:: z = Xw, \qquad w^* = \frac{X'z}{z'z} = \frac{Aw}{w'Aw},

and the constraints on w change the second: with at most k features and no negative loading

.. math:: w \leftarrow [\,w^* - θ\,]_+, \quad θ = \text{the (k+1)-th largest of } [w^*]_+,

then w ← w/‖w‖. Neither X nor z is needed.

Steps: (1) start at w = |g|, g normal, of unit length. (2) Iterate until w'Aw changes by less than
`tol` of itself. (3) Renormalise: iterate on the features found, without a limit on their number,
as the threshold has shrunk the loadings. (4) Return the best of `n_restarts` starts.

Cost: O(dk) a step and start for a covariance. Passes over the data: two a step for all starts.

Guarantee: none for the problem with k features.

Reference: Sigg, Buhmann, Expectation-Maximization for Sparse and Non-Negative PCA, ICML 2008; the
defaults are those of the authors' package nsprcomp. Five starts can miss by far (CBCL faces, k=40:
0.295 of the leading eigenvalue instead of 0.520, which twenty find); raise `n_restarts`.

Differs from the paper in: the M-step with k features is written as the soft threshold that the
paper's descent along the axes ends in. Loadings that the threshold makes zero, all of them being
equal, keep the largest. Renormalisation starts from the loadings found and is done for every
start, not only for the best. The starts share their products with A. The deflation is by default
that of the comparison in Asteris, Papailiopoulos, Dimakis (ICML 2014), which takes the features
of a component out.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Mask
from kspan.covariance import Covariance, UnitCovariance
from kspan.problem import NonnegativeProblem
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import largest_variance, unit_columns
from kspan.solvers.method import checked, counted, require_not_negative
from kspan.solvers.one_by_one import Component, NonnegativeOneByOneMethod


@dataclass(frozen=True, eq=False)
class EM(NonnegativeOneByOneMethod):
    """Nonnegative sparse components by EM from random starts.

    Parameters
    ----------
    deflation : {"remove", "projection", "orthogonalized"}
    n_restarts : int
        Number of starts for each component.
    max_iter : int
        Steps from each start, and again to renormalise.
    tol : float
        Stop when the variance changes by less than this share of itself.
    renormalise : bool
        Iterate again on the features found, without the threshold.
    """

    name = "em"
    summary = "expectation and maximisation with a threshold, best of several random starts"
    reference = "Sigg, Buhmann, ICML 2008"

    n_restarts: int = counted(5, least=1)
    max_iter: int = counted(100, least=1)
    tol: float = checked(1e-3, require_not_negative)
    renormalise: bool = True

    def find(
        self, left: UnitCovariance, problem: NonnegativeProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Iterate from all starts; the best one counts."""
        k = problem.n_nonzero_coefs
        runs = _Runs(left, self.max_iter, self.tol, monitor)
        varied = left.diagonal() > 0
        W = np.abs(rng.standard_normal((varied.size, self.n_restarts))) * varied[:, None]
        W, settled = runs.iterate(unit_columns(W), k)
        if self.renormalise and k < np.count_nonzero(varied) and not monitor.stopped:
            W, settled = runs.iterate(W, None)
        values = np.sum(W * left.matmat(W), axis=0)
        best = int(np.argmax(values))
        status = Status.CONVERGED if settled[best] else monitor.stopped or Status.MAX_ITER
        history = [*runs.history, float(values[best])]
        return Component(W[:, best], history, runs.n_iter, status)


class _Runs:
    """The iteration from several starts, in the columns of W."""

    def __init__(self, covariance: Covariance, max_iter: int, tol: float, monitor: Monitor):
        self.covariance, self.max_iter, self.tol = covariance, max_iter, tol
        self.monitor = monitor
        self.history: list[float] = []
        self.n_iter = 0

    def iterate(self, W: FloatArray, k: int | None) -> tuple[FloatArray, Mask]:
        """Iterate with at most k features or, for None, on the features that W has."""
        W = W.copy()
        allowed = W > 0
        before = np.zeros(W.shape[1])
        settled = np.zeros(W.shape[1], dtype=bool)
        for n_iter in range(self.max_iter):
            try:
                active = np.flatnonzero(~settled)
                used = np.flatnonzero(W[:, active].any(axis=1))
                AW = self.covariance.matmat(W[used][:, active], used)
                variances = np.sum(W[:, active] * AW, axis=0)
                # The very first point is a random one, with more than k features.
                if (k is None or n_iter) and self._report(float(variances.max())):
                    break
                change = np.abs(variances - before[active])
                settled[active] = (change < self.tol * variances) & (n_iter > 0)
                before[active] = variances
                moving = ~settled[active]
                if not moving.any():
                    break
                active, AW = active[moving], np.where(allowed[:, active], AW, 0.0)[:, moving]
                self.n_iter += 1
                W[:, active] = m_step(AW, k, self.covariance)
            except KeyboardInterrupt:
                if k is not None and n_iter == 0:
                    raise
                self.monitor.stopped = Status.INTERRUPTED
                break
        return W, settled

    def _report(self, variance: float) -> bool:
        """Tell of the best variance so far, and return whether to stop."""
        self.history.append(max([variance, *self.history[-1:]]))
        return self.monitor.report(self.history[-1])


def m_step(AW: FloatArray, k: int | None, covariance: Covariance) -> FloatArray:
    """Return unit loadings from the products Aw: positive part, soft threshold, length one.

    The factor 1/w'Aw of the paper makes no difference, as the length is one afterwards.
    """
    positive = np.maximum(AW, 0.0)
    positive[:, ~positive.any(axis=0)] = largest_variance(covariance)
    d = len(positive)
    if k is None or k >= d:
        return unit_columns(positive)
    W = np.maximum(positive - np.partition(positive, d - k - 1, axis=0)[d - k - 1], 0.0)
    empty = np.flatnonzero(~W.any(axis=0))
    W[positive[:, empty].argmax(axis=0), empty] = 1.0
    return unit_columns(W)

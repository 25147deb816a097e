r"""GRQI: generalized Rayleigh quotient iteration, a Newton step on k features, then a power step.

.. math:: x_I \leftarrow (A_{II} - \mu I)^{-1} x_I, \quad x \leftarrow T_k(A x),
          \qquad I = \mathrm{supp}(x),\; \mu = x'Ax

with x made a unit vector after each. T_k keeps the k entries of largest size. The first part
converges fast to an eigenvector of A_II, the second one leads to a better support. The inverse
gets singular on the way to the eigenvector, so that the step is taken from Newton's system

    [μI - A_II  x_I] [δ]     [(μI - A_II) x_I]
    [x_I'         0] [ν] = - [       0       ],    x_I ← x_I + δ

which gives the same direction and has no such trouble.

Steps: (1) start at the longest column of A, cut to k entries; (2) Newton step; (3) in the first
`n_power_steps` steps, x ← Ax; (4) cut to k entries; until x no longer moves. Several components:
deflation.

Cost: O(k³ + dk) a step for a covariance, and O(d²) for the start. Passes over the data: four a
step.

Guarantee: none on the variance, which may fall. It converges cubically once the support is fixed.

Reference: Kuleshov, Fast Algorithms for Sparse Principal Component Analysis Based on Rayleigh
Quotient Iteration, ICML 2013, Algorithm 1.

Differs from the paper in: it returns its best iterate and not the last one. μ is the Rayleigh
quotient of the cut vector, as in the paper, where the author's program has that of the vector
before the power step. Deflation is by projection, where the program takes out a share of
Hotelling's term (``deflation="hotelling"`` takes out all of it). Beyond `COLUMN_LIMIT` features
it starts at the column of the largest variance. As there, the answer need not be the best vector
on its support; ``refine=True`` takes that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, UnitCovariance
from kspan.problem import Candidate, ElementSparseProblem, RowSparseProblem
from kspan.progress import Monitor
from kspan.solvers.loadings import refit_one
from kspan.solvers.loop import iterate
from kspan.solvers.method import ElementSparseMethod, counted
from kspan.solvers.one_by_one import Component, OneByOneMethod

# Up to this many features all columns of A are computed, to start at the longest.
COLUMN_LIMIT = 2000
COLUMN_BLOCK = 256

# A Newton step longer than this comes from a multiple eigenvalue: the shortest one is taken.
LONGEST_STEP = 1e6


@dataclass(frozen=True, eq=False)
class GRQI(OneByOneMethod, ElementSparseMethod):
    """Sparse components by Rayleigh quotient iteration and deflation.

    Parameters
    ----------
    deflation : str
        See `kspan.solvers.one_by_one`.
    n_power_steps : int, optional
        J of the paper: the number of steps that multiply by A. By default all of them.
    refine : bool
        Take the leading eigenvector of A on the features found, which explains the most variance
        there.
    max_iter : int
        Steps for each component.
    """

    name = "grqi"
    summary = (
        "Rayleigh quotient iteration with truncation: Newton steps on k features, then power steps"
    )
    guarantee = "converges cubically once the features are settled"
    reference = "Kuleshov, ICML 2013"

    n_power_steps: int | None = counted(None, least=0)
    refine: bool = False
    max_iter: int = counted(150, least=0)

    def find(
        self, left: UnitCovariance, problem: ElementSparseProblem, start: FloatArray | None,
        monitor: Monitor, rng: np.random.Generator,
    ) -> Component:  # fmt: skip
        """Iterate to one sparse vector."""
        single = RowSparseProblem(left, 1, problem.n_nonzero_coefs)
        limit = self.max_iter if self.n_power_steps is None else self.n_power_steps
        places = count(1)

        def step(batch: Sequence[Candidate]) -> list[Candidate]:
            power = next(places) <= limit
            return [_step(single, candidate, power=power) for candidate in batch]

        first = _cut(single, _longest_column(left) if start is None else start)
        run = iterate([first], step, max_iter=self.max_iter, monitor=monitor, monotone=False)
        x, history = run.best.loadings(problem.n_features)[:, 0], run.history
        if self.refine:
            x, variance = refit_one(left, run.best.support)
            history = [*history, variance]
        return Component(x, history, run.n_iter, run.status)


def newton_step(M: FloatArray, x: FloatArray) -> FloatArray:
    """Return the unit vector of a Rayleigh quotient iteration on M from the unit vector x."""
    k = x.size
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = (x @ M @ x) * np.eye(k) - M
    system[:k, k] = system[k, :k] = x
    residual = system[:k, :k] @ x
    if np.linalg.norm(residual) <= 4 * k * np.finfo(float).eps * np.abs(M).max():
        return x  # an eigenvector; if not the only one, the system would be singular
    target = -np.append(residual, 0.0)
    try:
        step = np.linalg.solve(system, target)[:k]
    except np.linalg.LinAlgError:
        step = np.full(k, np.inf)
    if not np.linalg.norm(step) <= LONGEST_STEP:
        step = np.linalg.lstsq(system, target, rcond=None)[0][:k]
    moved: FloatArray = x + step
    return moved / np.linalg.norm(moved)


def _step(problem: RowSparseProblem, candidate: Candidate, *, power: bool) -> Candidate:
    """Move a k-sparse vector one step."""
    support = candidate.support
    inside = newton_step(problem.covariance.submatrix(support), candidate.weights[:, 0])
    if power:
        return _cut(problem, problem.covariance.matmat(inside[:, None], support)[:, 0])
    return problem.on_span(support, inside[:, None])


def _cut(problem: RowSparseProblem, y: FloatArray) -> Candidate:
    """Return the unit vector of the k largest entries."""
    support: Index = problem.select(np.abs(y))
    return problem.on_span(support, y[support, None])


def _longest_column(covariance: Covariance) -> FloatArray:
    """Return the column of A of largest norm, without forming A."""
    d = covariance.n_features
    if d > COLUMN_LIMIT:
        longest = int(np.argmax(covariance.diagonal()))
    else:
        blocks = np.split(np.arange(d), range(COLUMN_BLOCK, d, COLUMN_BLOCK))
        norms = [np.linalg.norm(covariance.columns(block), axis=0) for block in blocks]
        longest = int(np.argmax(np.concatenate(norms)))
    return covariance.columns(np.array([longest]))[:, 0]

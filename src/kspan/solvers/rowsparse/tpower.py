r"""TPower (G): the support of one sparse leading vector, taken for all components.

.. math:: x_{t+1} = \frac{T_k(A x_t)}{\|T_k(A x_t)\|}, \qquad W_I = \mathrm{eig}_m(A_{II}),
          \; I = \mathrm{supp}(x)

T_k keeps the k entries of largest size. The first part is SRT's step for one component.

Cost: O(dk) a step for a covariance, and O(k³) at the end. Passes over the data: two a step, and one
over the k new columns of each start.

Guarantee: x'Ax never decreases. None for more than one component: the features of the first one
need not serve the others.

Reference: Yuan, Zhang, Truncated Power Method for Sparse Eigenvalue Problems, JMLR 2013; as a
method for several components, Tian et al., NeurIPS 2020, section 6.2, "TPower (G)".

Differs from the paper in: it stops when the vector no longer moves, not when x'Ax gains less than
1e-6. The history is that of x'Ax, and ends with the objective of all components.
"""

from dataclasses import dataclass, replace

import numpy as np

from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.progress import Monitor
from kspan.solvers.loop import Run
from kspan.solvers.method import counted
from kspan.solvers.rowsparse.row_scores import (
    RestartedMethod,
    from_subspaces,
    run_rule,
    starting_points,
)
from kspan.solvers.rowsparse.srt import LENGTH
from kspan.solvers.starts import Init

# Cardinalities of the gradual start, in multiples of k.
GRADUAL = (8, 4, 2)


@dataclass(frozen=True, eq=False)
class TPower(RestartedMethod):
    """One sparse vector by the truncated power method; all components fitted on its support.

    Reports tell the variance of the one vector.

    Parameters
    ----------
    init : {"variance", "low-rank", "convex", "random"} or (d, 1) array
        Where the vector starts; by default at the feature with the largest variance.
    n_restarts : int
        Random starts, of which the best vector is taken.
    gradual : bool
        Come down to k features from 8k, 4k and 2k.
    max_iter : int
        Steps at each number of features.
    """

    name = "tpower"
    summary = "the k features of one sparse leading vector, by truncated power steps"
    guarantee = "the variance of the first component never falls"
    reference = "Yuan, Zhang, JMLR 2013"
    own_start = "variance"

    gradual: bool = False
    max_iter: int = counted(200, least=0)

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Find the vector, then fit."""
        run = leading_vector(
            problem.changed(n_components=1), init=self.start, rng=rng, n_restarts=self.n_restarts,
            gradual=self.gradual, max_iter=self.max_iter, monitor=monitor,
        )  # fmt: skip
        final = problem.refit(run.best.support)
        several = problem.n_components > 1
        return Solution.from_candidate(
            final, n_features=problem.n_features, solver=self.name, status=run.status,
            history=[*run.history, final.objective] if several else run.history,
            n_iter=run.n_iter,
        )  # fmt: skip


def leading_vector(
    problem: RowSparseProblem, *, init: Init, rng: np.random.Generator, n_restarts: int = 1,
    gradual: bool = False, max_iter: int = 200, monitor: Monitor,
) -> Run:  # fmt: skip
    """Run the truncated power method on a problem with one component."""
    k, most = problem.choice.size, problem.choice.features.size
    sizes = [min(multiple * k, most) for multiple in GRADUAL] if gradual else []
    first: list[Candidate] | None = None
    history: list[float] = []
    n_iter = 0
    for size in [*sizes, k]:
        stage = problem.at(size)
        if first is None:
            first = starting_points(
                stage, LENGTH, init, rng=rng, n_restarts=n_restarts, monitor=monitor
            )
        else:
            vectors = [candidate.loadings(problem.n_features) for candidate in first]
            first = from_subspaces(stage, LENGTH, vectors, monitor)
        run = run_rule(stage, LENGTH, first, max_iter=max_iter, monitor=monitor)
        history += run.history
        n_iter += run.n_iter
        first = run.best_of_each
    return replace(run, history=history, n_iter=n_iter)

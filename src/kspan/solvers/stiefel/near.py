"""Loadings near relaxed ones: what proofs of orthonormal components ask for better answers."""

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.selection import placed, top_k
from kspan.problem import Choice, StiefelProblem
from kspan.progress import Monitor
from kspan.solvers.rowsparse.moves import polish

# Features that take part.
MOST_FEATURES = 300


class LoadingsNear:
    """From a guess of loadings to a feasible point near it: fitted, climbed, with single moves."""

    shared = staticmethod(polish)  # the same for features that all components share

    def __call__(
        self, problem: StiefelProblem, guess: FloatArray, choice: Choice, monitor: Monitor
    ) -> FloatArray:
        """Return orthonormal loadings on a feasible pattern."""
        from kspan.solvers.stiefel.pattern_search import PatternSearch  # compiled when it is used

        assert problem.patterns is not None
        d, size = problem.n_features, max(MOST_FEATURES, problem.patterns.size)
        rows = np.sort(top_k(np.abs(guess).max(axis=1), min(d, size)))
        S = problem.covariance.submatrix(rows)
        search = PatternSearch(
            S / (float(np.trace(S)) or 1.0), problem.patterns.on(rows.size), monitor
        )
        near = guess[rows]
        point = search.improve(search.climb(search.fit(near * near, near)), double=False)
        return placed(point.U, rows, d)

"""Eigenpairs at one end of the spectrum of a matrix that changes little from call to call.

An iteration that projects on a cone needs a few dozen eigenvectors of a slightly different matrix
in every step. Those of the last step span nearly the right space: a block Krylov space of a few
products with the matrix, begun there, holds the new ones. LAPACK, which knows nothing of the last
step, reduces the whole matrix first: of 2000 features that takes ten times as long.
"""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kspan.linalg.eigen import eigenpairs_between

Array = NDArray[Any]  # of any floating type

# From this order on, and up to this share of all pairs, tracking is faster than LAPACK.
SMALLEST_ORDER, LARGEST_SHARE = 300, 0.08

# More vectors than were asked for, from which the next call starts.
SPARE = 4

# Blocks that are multiplied, at most, and the residual, in units of the largest eigenvalue, with
# which the pairs that matter are good enough. It is what a projection is off by.
MOST_BLOCKS, RESIDUAL = 5, 1e-4


class EigenTracker:
    """Finds eigenpairs at one end of the spectrum, each time from those of the last call.

    Parameters
    ----------
    largest : which end
    rank : how many pairs matter, as far as is known; whoever uses them says so after each call
    tracks : whether to; else every call is LAPACK's
    """

    def __init__(self, *, largest: bool, rank: int, tracks: bool = True):
        self.largest, self.rank, self.tracks = largest, rank, tracks
        self._basis: Array | None = None

    def negligible(self, values: Array) -> float:
        """Return the size up to which eigenvalues do not matter: what tracked ones are off by."""
        if not self.tracks or self._basis is None or len(self._basis) < SMALLEST_ORDER:
            return 0.0
        return RESIDUAL * float(np.abs(values).max(initial=0.0))

    @property
    def count(self) -> int:
        """How many pairs to ask for, with room to grow: too few cost a second solve."""
        return self.rank * 11 // 10 + 6

    def pairs(self, M: Array, count: int) -> tuple[Array, Array]:
        """Return so many eigenpairs of a symmetric matrix, ascending; more where that is faster.

        Those that matter are as good as is said above. The others are rough, and one that none of
        the last vectors has a part in may be missed.
        """
        n = len(M)
        if 3 * count >= n:
            # Divide and conquer; numpy's call of the same routine takes twice as long.
            self._basis = None
            values, vectors = scipy.linalg.eigh(M, driver="evd", check_finite=False)
            return values, vectors
        if self.tracks and n >= SMALLEST_ORDER and count + SPARE <= LARGEST_SHARE * n:
            found = self._tracked(M, count)
            if found is not None:
                return found
            count += SPARE
        places = (n - count, n - 1) if self.largest else (0, count - 1)
        values, self._basis = eigenpairs_between(M, *places)
        return values, self._basis

    def _tracked(self, M: Array, count: int) -> tuple[Array, Array] | None:
        """Return the pairs from a Krylov space around the last ones; None if they are not in it."""
        basis = self._basis
        if basis is None or len(basis) != len(M) or basis.shape[1] < count:
            return None
        width = min(basis.shape[1], count + SPARE)
        blocks, H = [basis[:, self._outermost(width)]], np.zeros((0, 0), dtype=M.dtype)
        for number in range(1, MOST_BLOCKS + 1):
            image = M @ blocks[-1]
            Q = np.hstack(blocks)
            overlap = Q.T @ image
            H = np.pad(H, (0, width))
            H[:, -width:], H[-width:] = overlap, overlap.T
            rest = image - Q @ overlap
            rest -= Q @ (Q.T @ rest)  # orthogonal to rounding
            following, R = scipy.linalg.qr(rest, mode="economic", check_finite=False)
            if number > 1:
                values, coordinates = scipy.linalg.eigh(H, driver="evd", check_finite=False)
                # MQ = QH + (following) R E', which gives the residuals.
                last = coordinates[-width:, self._outermost(min(self.rank, count))]
                residuals = np.linalg.norm(R @ last, axis=0)
                if residuals.max(initial=0.0) <= RESIDUAL * float(np.abs(values[[0, -1]]).max()):
                    self._basis = Q @ coordinates[:, self._outermost(width)]
                    wanted = self._outermost(count)
                    return values[wanted], self._basis[:, wanted]
            blocks.append(following)
        return None

    def _outermost(self, count: int) -> slice:
        """Return the places of so many pairs at the end that matters."""
        return slice(-count, None) if self.largest and count else slice(0, count)

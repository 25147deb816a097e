"""Anderson acceleration of a fixed-point iteration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Relative Tikhonov term of the small least-squares problem.
RIDGE = 1e-8

# The memory is emptied when the residual exceeds this multiple of the smallest so far.
GROWTH = 2.0

# The least-squares problem is solved on about so many coordinates: of millions it would take as
# long to read them all as everything else, and its few unknowns do not need them.
SAMPLE = 1_000_000


class Anderson:
    """Propose the next point of a fixed-point iteration from a point and its image.

    For a map g with residual f = g(v) - v the next point is ``g(v_n) - Σ c_j Δg_j`` with c
    minimising ``‖f_n - Σ c_j Δf_j‖`` over the last steps. When the residual has grown, the memory
    is emptied and the iteration goes back to the best point. Cost: a product with an array of
    memory × size numbers. All arrays are made once: new ones of this size cost more than what is
    done with them. A proposed point is one of them, and lasts until the next call.
    """

    def __init__(self, memory: int, size: int, dtype: Any) -> None:
        self.memory, self._stride = memory, max(size // SAMPLE, 1) | 1
        sampled = len(range(0, size, self._stride))
        self._f, self._next = np.empty((2, size), dtype=dtype)
        self._last_f = np.empty(sampled, dtype=dtype)
        self._df = np.zeros((memory, sampled), dtype=dtype)
        self._dg = np.zeros((memory, size), dtype=dtype)
        self._images = np.empty((3, size), dtype=dtype)  # the last, the best and the present one
        self._gram = np.zeros((memory, memory))
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._count = 0
        self._smallest = np.inf
        self._best = self._last = -1  # places of images; none

    def propose(
        self, point: NDArray[np.floating], image: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return the next point."""
        np.subtract(image.ravel(), point.ravel(), out=self._f)
        size = float(np.linalg.norm(self._f))
        if not np.isfinite(size):
            self.clear()
            return image
        if size > GROWTH * self._smallest and self._best >= 0:
            # Back to where it was best: from a point that is far off it may never return.
            self._next[:] = self._images[self._best]
            self.clear()
            return self._next.reshape(image.shape)
        place = next(i for i in range(3) if i not in (self._best, self._last))
        g, f = self._images[place], self._f[:: self._stride]
        g[:] = image.ravel()
        if size <= self._smallest:
            self._smallest, self._best = size, place
        if self._last >= 0:
            slot = self._count % self.memory
            np.subtract(f, self._last_f, out=self._df[slot])
            np.subtract(g, self._images[self._last], out=self._dg[slot])
            self._count += 1
            n = min(self._count, self.memory)
            self._gram[slot, :n] = self._gram[:n, slot] = self._df[:n] @ self._df[slot]
        self._last = place
        self._last_f[:] = f
        return self._combined(g, f).reshape(image.shape)

    def _combined(self, g: NDArray[np.floating], f: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the combination of images with the smallest residual."""
        n = min(self._count, self.memory)
        self._next[:] = g
        if n < 2:
            return self._next
        gram = self._gram[:n, :n] + RIDGE * np.trace(self._gram[:n, :n]) * np.eye(n)
        try:
            weights = np.linalg.solve(gram, np.asarray(self._df[:n] @ f, dtype=np.float64))
        except np.linalg.LinAlgError:
            return self._next
        if np.isfinite(weights).all() and np.abs(weights).sum() <= 1e4:
            np.dot(weights.astype(g.dtype), self._dg[:n], out=self._next)
            np.subtract(g, self._next, out=self._next)
        return self._next

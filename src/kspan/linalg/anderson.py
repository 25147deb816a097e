"""Anderson acceleration of a fixed-point iteration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Relative Tikhonov term of the small least-squares problem.
RIDGE = 1e-8

# The memory is emptied when the residual exceeds this multiple of the smallest so far.
GROWTH = 2.0


class Anderson:
    """Propose the next point of a fixed-point iteration from a point and its image.

    For a map g with residual f = g(v) - v the next point is ``g(v_n) - Σ c_j Δg_j`` with c
    minimising ``‖f_n - Σ c_j Δf_j‖`` over the last steps. When the residual has grown, the memory
    is emptied and the iteration goes back to the best point. Cost: two products with an array of
    memory × size numbers.
    """

    def __init__(self, memory: int, size: int, dtype: Any) -> None:
        self.memory = memory
        self._df = np.zeros((memory, size), dtype=dtype)
        self._dg = np.zeros((memory, size), dtype=dtype)
        self._gram = np.zeros((memory, memory))
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._count = 0
        self._smallest = np.inf
        self._safe: NDArray[np.floating] | None = None
        self._last: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None

    def propose(
        self, point: NDArray[np.floating], image: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return the next point."""
        f, g = (image - point).ravel(), image.ravel()
        size = float(np.linalg.norm(f))
        if not np.isfinite(size):
            self.clear()
            return image
        if size > GROWTH * self._smallest and self._safe is not None:
            # Back to where it was best: from a point that is far off it may never return.
            safe = self._safe
            self.clear()
            return safe
        if size <= self._smallest:
            self._smallest, self._safe = size, image
        if self._last is not None:
            slot = self._count % self.memory
            np.subtract(f, self._last[0], out=self._df[slot])
            np.subtract(g, self._last[1], out=self._dg[slot])
            self._count += 1
            n = min(self._count, self.memory)
            self._gram[slot, :n] = self._gram[:n, slot] = self._df[:n] @ self._df[slot]
        self._last = (f, g)
        n = min(self._count, self.memory)
        if n < 2:
            return image
        gram = self._gram[:n, :n] + RIDGE * np.trace(self._gram[:n, :n]) * np.eye(n)
        try:
            weights = np.linalg.solve(gram, np.asarray(self._df[:n] @ f, dtype=np.float64))
        except np.linalg.LinAlgError:
            return image
        if not np.isfinite(weights).all() or np.abs(weights).sum() > 1e4:
            return image
        return (g - weights.astype(g.dtype) @ self._dg[:n]).reshape(image.shape)

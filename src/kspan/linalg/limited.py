"""The nearest point of a box under linear limits: the choice of a relaxation that keeps rules."""

import numpy as np

from kspan.arrays import FloatArray, Index

N_STEPS = 40  # of accelerated ascent in the multipliers, from those of the last call


class LimitedBox:
    """``0 <= z <= 1`` for units of features with ``rows @ z <= most``; remembers its multipliers.

    Parameters
    ----------
    unit_of : the unit of each feature
    rows, most : limits on the units, none negative
    """

    def __init__(self, unit_of: Index, rows: FloatArray, most: FloatArray):
        self.unit_of, self.rows, self.most = unit_of, rows, most
        self.sizes = np.bincount(unit_of, minlength=rows.shape[1]).astype(float)
        scaled = rows / np.sqrt(self.sizes)
        # The largest eigenvalue of a nonnegative matrix is at most its largest row sum.
        self.curvature = float((scaled @ (scaled.T @ np.ones(len(rows)))).max(initial=0.0)) or 1.0
        self.multipliers = np.zeros(len(rows))

    def nearest(self, aim: FloatArray) -> FloatArray:
        """Return the nearest point, nearly, for an aim of each feature."""
        mean = np.bincount(self.unit_of, aim, minlength=self.sizes.size) / self.sizes
        before = ahead = self.multipliers
        momentum = 1.0
        for _ in range(N_STEPS):
            z = np.clip(mean - (ahead @ self.rows) / self.sizes, 0.0, 1.0)
            excess = self.rows @ z - self.most
            new = np.maximum(ahead + excess / self.curvature, 0.0)
            following = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            ahead = new + (momentum - 1) / following * (new - before)
            if float((new - before) @ (new - ahead)) > 0:  # it turned: begin anew
                following, ahead = 1.0, new
            before, momentum = new, following
        self.multipliers = before
        z = np.clip(mean - (before @ self.rows) / self.sizes, 0.0, 1.0)
        return z[self.unit_of]

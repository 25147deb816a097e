"""Units in which nothing over- or underflows, and the size of a rounding error."""

import numpy as np

# The unit roundoff of float64.
UNIT = 2.0**-53

# An improvement of a value by less than this share of it is rounding.
IMPROVEMENT = 1e-10


def unit_scale(size: float) -> float:
    """Return a power of four with size / scale in [1, 4): dividing by it and its root is exact."""
    if not (size > 0 and np.isfinite(size)):
        return 1.0
    exponent = int(np.frexp(size)[1]) - 1
    return float(np.ldexp(1.0, exponent - exponent % 2))

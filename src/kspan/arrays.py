"""Names for the kinds of arrays that signatures speak of."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

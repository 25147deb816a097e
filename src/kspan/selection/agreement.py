r"""How much several selections of k features agree.

Two summaries. The mean Jaccard index of all pairs of supports is easy to read, but grows with k by
chance alone. The measure of Nogueira, Sechidis and Brown is corrected for that: with M resamples,
p_f the share of them that chose feature f, and k of d features chosen each time,

.. math:: Φ = 1 - \frac{\frac1d \sum_f s_f^2}{\frac kd (1 - \frac kd)}, \qquad
          s_f^2 = \frac{M}{M-1} p_f (1 - p_f)

It is 1 when all supports agree, 0 on average for random ones. They call below 0.4 poor and above
0.75 excellent.

Reference: Nogueira, Sechidis, Brown, On the Stability of Feature Selection Algorithms, JMLR
18(174), 2018.
"""

from collections.abc import Sequence

import numpy as np

from kspan.arrays import FloatArray, Index


def nogueira(frequencies: FloatArray, k: int, n_resamples: int) -> float:
    """Return Nogueira's measure of M supports of k features, from how often each was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> nogueira(np.array([1.0, 1.0, 0.0, 0.0]), 2, 10)
    1.0
    >>> round(nogueira(np.array([0.5, 0.5, 0.5, 0.5]), 2, 2), 6)
    -1.0
    """
    d = frequencies.size
    if k == d:
        return 1.0
    spread = n_resamples / (n_resamples - 1) * float((frequencies * (1 - frequencies)).mean())
    return 1.0 - spread / (k / d * (1 - k / d))


def mean_jaccard(supports: Sequence[Index], n_features: int) -> float:
    """Return the mean Jaccard index over all pairs of supports of equal size.

    Examples
    --------
    >>> import numpy as np
    >>> round(mean_jaccard([np.array([0, 1]), np.array([1, 2])], 4), 6)
    0.333333
    """
    chosen = np.zeros((len(supports), n_features))
    for row, support in zip(chosen, supports, strict=True):
        row[support] = 1.0
    shared = chosen @ chosen.T
    sizes = chosen.sum(axis=1)
    index = shared / (sizes[:, None] + sizes - shared)
    return float(index[np.triu_indices(len(supports), 1)].mean())

"""What to know about data before anybody believes a fit to it: calm, and from what is at hand.

Mixed units are seen from the variances. Counts are seen from the moments and some rows that are in
memory; the data is not read again.
"""

from typing import Any

import numpy as np

from kspan.arrays import FloatArray
from kspan.cards import counted
from kspan.covariance import Covariance

# Units are mixed when spreads differ by more than this factor, and few columns (at most a tenth of
# all, and no more than so many) hold nearly all variance. Genes of one table differ by as much, but
# thousands of them share the variance.
SPREAD, FEW, NEARLY_ALL = 1e3, 50, 0.99

# Counts: the largest is above this; variances of most columns with large means are so many times
# those; and the largest mean is so many times the usual one. Pixels have no such skew.
LARGE_COUNT, DISPERSION, SKEW = 50, 5.0, 50.0
SOME_ROWS = 64


def notes_about(covariance: Covariance) -> list[str]:
    """Return sentences about data that should perhaps be prepared before; mostly none."""
    if covariance.kind != "data" or covariance.n_features < 3 or covariance.mean is None:
        return []
    scale = 1.0 if covariance.scale is None else covariance.scale
    variances = covariance.diagonal() * scale**2
    if _are_counts(covariance, variances):
        return [
            "The data looks like raw counts: a few columns with large numbers decide what has most "
            "variance. Dividing each sample by its total and taking log(1 + x) is usual before."
        ]
    return [] if covariance.standardised else _mixed_units(variances)


def _mixed_units(variances: FloatArray) -> list[str]:
    descending = np.sort(variances[variances > 0])[::-1]
    if descending.size < 3:
        return []
    spread = float(np.sqrt(descending[0] / descending[-1]))
    held = np.cumsum(descending) / descending.sum()
    few = int(np.searchsorted(held, NEARLY_ALL)) + 1
    if spread <= SPREAD or few > min(max(1, variances.size // 10), FEW):
        return []
    hold = "holds" if few == 1 else "hold"
    return [
        f"{counted(few, 'column')} of {variances.size:,} {hold} nearly all variance, and standard "
        f"deviations differ by a factor of {spread:,.0f}. If columns have different units, "
        "scale=True (--scale) lets them count alike."
    ]


def _are_counts(covariance: Covariance, variances: FloatArray) -> bool:
    mean = covariance.mean
    assert mean is not None
    if (mean < 0).any() or not (mean > 0).any():
        return False
    large = mean >= mean.mean()
    if float(np.median(variances[large] / mean[large])) <= DISPERSION:
        return False
    if float(mean.max()) <= SKEW * float(np.median(mean[mean > 0])):
        return False
    X: Any = getattr(covariance, "X", None)
    if not covariance.has_samples or not hasattr(X, "dtype") or covariance.reads_are_costly:
        return False
    try:
        rows = X[:SOME_ROWS]
    except TypeError:  # rows of a file
        return False
    values = np.asarray(rows.data if hasattr(rows, "tocsr") else rows)
    if not values.size or values.min() < 0 or values.max() <= LARGE_COUNT:
        return False
    return bool((values == np.floor(values)).all())

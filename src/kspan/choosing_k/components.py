"""How many components: a number, or as many as a share of all variance takes."""

import numpy as np

from kspan.covariance import Covariance

# Leading eigenvalues are asked for in batches that double, up to this many where not all are
# cheap: that many features or samples, where one decomposition has all.
FIRST, MOST = 16, 512
ALL_AT_ONCE = 2048

# A share counts as reached when only rounding is missing.
ROUNDING = 1e-12


def components_for(covariance: Covariance, n_components: int | float) -> int:
    """Return the number itself, or the fewest principal components with a share of the variance.

    As in scikit-learn's PCA, the share is one of the total variance of all features.

    Parameters
    ----------
    covariance : of the data
    n_components : a number of components, or a share between 0 and 1

    Raises
    ------
    ValueError
        If that would take more components than a fit can be expected to compute.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import as_covariance
    >>> A = as_covariance(np.diag([5.0, 3.0, 2.0]), kind="covariance")
    >>> components_for(A, 0.5), components_for(A, 0.7), components_for(A, 2)
    (1, 2, 2)
    """
    if not is_share(n_components):
        return n_components  # type: ignore[return-value]  # the problem refuses what is none
    share, total = float(n_components), covariance.trace()
    rank = min(covariance.n_features, covariance.n_samples or covariance.n_features)
    most = rank if rank <= ALL_AT_ONCE and not covariance.reads_are_costly else min(rank, MOST)
    size = min(FIRST, most)
    while True:
        explained = np.cumsum(covariance.leading(size).values)
        reached = np.flatnonzero(explained >= share * total * (1 - ROUNDING))
        if reached.size:
            return int(reached[0]) + 1
        if size == most:
            break
        size = min(2 * size, most)
    if most == rank:  # a share next to 1, of which rounding took more
        return most
    raise ValueError(
        f"n_components={share:g}: the first {most} principal components have "
        f"{explained[-1] / total:.1%} of the variance, and more are out of reach for data of this "
        "size. Give a number of components, or a smaller share."
    )


def is_share(n_components: int | float) -> bool:
    """Say whether a number of components is given as a share of the variance."""
    return isinstance(n_components, float | np.floating)

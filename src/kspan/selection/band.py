"""The upper edge of the path: for every k the least of all bounds that hold there.

- the k largest variances (trace bound), always;
- the sum of the m leading eigenvalues, where the spectrum can be computed to the last one: up to
  `DENSE_LIMIT` features, or fewer samples than features in memory. Lanczos' values are no proof;
- every certificate: at its own k, at all fewer features, and by its full-size witnesses
  (`Certificate.upper_at`) at all k;
- what holds with more features holds with fewer, so the band never falls as k grows.
"""

from collections.abc import Sequence

import numpy as np

from kspan.arrays import FloatArray
from kspan.certificates import Certificate, CertificateError
from kspan.certificates.bounds import dual_bound, low_rank_dual_bound, trace_bound, unit_scale
from kspan.certificates.matrices import DENSE_LIMIT, dense_matrix
from kspan.problem import RowSparseProblem

# How many k are proved at their own k, and how many more get a witness of their own in one of
# those certificates. A witness costs some 15 eigensolves of order d.
N_CERTIFIED, N_WITNESSES = 3, 9

# With more features than this both are done at one k only: seconds each.
MANY_FEATURES = 300


def upper_band(
    problem: RowSparseProblem, ks: Sequence[int], certificates: Sequence[Certificate]
) -> FloatArray:
    """Return what no selection of k features can exceed, for every k.

    Parameters
    ----------
    problem : with any of the k
    ks : the numbers of features, ascending
    certificates : of problems that differ in k only
    """
    variances = problem.covariance.diagonal()[problem.allowed]
    forced = np.zeros(problem.n_features, dtype=bool)
    forced[problem.include] = True
    forced = forced[problem.allowed]
    n_samples = problem.covariance.n_samples or 0
    upper = np.array([trace_bound(variances, forced, k, n_samples).value for k in ks])
    upper = np.minimum(upper, _eigenvalue_bound(problem))
    for certificate in certificates:
        for place, k in enumerate(ks):
            # Without a full-size witness a certificate says nothing about more features.
            if certificate.path or k <= certificate.n_features_to_select:
                upper[place] = min(upper[place], certificate.upper_at(k))
    rising: FloatArray = np.minimum.accumulate(upper[::-1])[::-1]
    return rising


def _eigenvalue_bound(problem: RowSparseProblem) -> float:
    """The sum of the m leading eigenvalues, rounded upwards; infinite where it is not known."""
    features = np.flatnonzero(problem.allowed)
    covariance, m = problem.covariance, problem.n_components
    forced = np.zeros(features.size, dtype=bool)
    nothing = np.zeros((features.size, 0))
    if features.size <= DENSE_LIMIT:
        A, scale = dense_matrix(problem, features)
        n_samples = covariance.n_samples or 0
        return scale * dual_bound(A, nothing, m, m, forced, n_samples=n_samples).ky_fan
    X = covariance.sample_factor()
    if X is None:
        return np.inf
    scale = unit_scale(float(covariance.diagonal().max()))
    X = X[:, features] / np.sqrt(scale)
    return scale * low_rank_dual_bound(X, nothing, m, m, forced).ky_fan


def checked(objective: FloatArray, upper: FloatArray, n_features: int) -> FloatArray:
    """Return the band, never below the curve. A gap that is not rounding is a bug, and raises."""
    # Eigenvalues of order d are off by a modest multiple of d times the unit roundoff.
    rounding = 16 * (n_features + 8) * np.finfo(float).eps
    wrong = np.flatnonzero(upper < objective * (1 - rounding))
    if wrong.size:
        place = int(wrong[0])
        raise CertificateError(
            f"The bound {upper[place]!r} is below the objective {objective[place]!r} that was "
            "reached: this is a bug of kspan, please report it."
        )
    return np.maximum(upper, objective)


def where_to_certify(ks: Sequence[int], n_allowed: int) -> tuple[list[int], list[int]]:
    """Return at which k to prove, and for which more k to keep witnesses.

    Both evenly spaced on a logarithmic scale: the curve bends where k is small. Without full-size
    witnesses a proof reaches down only, so the largest k is among those of large problems.

    Examples
    --------
    >>> where_to_certify(range(2, 31), 30)
    ([4, 8, 15], [2, 3, 4, 6, 8, 11, 15, 21, 30])
    """
    first, last = ks[0], ks[-1]
    if n_allowed > DENSE_LIMIT:
        return _spread(ks, np.geomspace(first, last, N_CERTIFIED + 1)[1:]), []
    count = N_CERTIFIED if n_allowed <= MANY_FEATURES else 1
    proved = _spread(ks, np.geomspace(first, last, count + 2)[1:-1])
    more = N_WITNESSES if n_allowed <= MANY_FEATURES else N_CERTIFIED
    return proved, _spread(ks, np.geomspace(first, last, more))


def _spread(ks: Sequence[int], wanted: FloatArray) -> list[int]:
    """The numbers of the path nearest to those wanted, each once."""
    array = np.asarray(ks)
    return sorted({int(array[np.abs(array - k).argmin()]) for k in wanted})

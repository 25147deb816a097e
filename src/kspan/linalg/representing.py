r"""Combinations of some features that tell the most about all of them.

K is the covariance of the chosen features with the variance of their noise on its diagonal, and
:math:`H = (A^2)_{SS}`, the squared covariances of each two of them with all features, summed up.
The m combinations W with :math:`W'KW = I` and the largest :math:`\mathrm{tr}(W'HW)` are the leading
eigenvectors of the pencil (H, K).
"""

import numpy as np
import scipy.linalg

from kspan.arrays import FloatArray
from kspan.linalg.eigen import lapack

# What a feature adds to those before it is rounding, below this share of its variance.
DEPENDENT = 1e-10


def whitened(K: FloatArray, dependent: float = DEPENDENT) -> FloatArray:
    """Return T with ``T'KT = I``, as many columns as K has independent features.

    Features that depend on others, those that do not vary among them, have zero rows.

    Examples
    --------
    >>> import numpy as np
    >>> whitened(np.array([[4.0, 4.0], [4.0, 4.0]]))
    array([[0.5],
           [0. ]])
    """
    diagonal = np.diagonal(K)
    inverse = np.zeros(len(K))
    varies = diagonal > 0
    inverse[varies] = 1.0 / np.sqrt(diagonal[varies])
    scaled = inverse[:, None] * K * inverse
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(scaled, tol=dependent, lower=1)
    first = order[:rank] - 1
    lower = np.tril(factor[:rank, :rank])
    T = np.zeros((len(K), rank))
    T[first] = scipy.linalg.solve_triangular(lower, np.eye(rank), lower=True).T
    return inverse[:, None] * T


def best_scores(K: FloatArray, H: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """Return the m leading eigenvectors of the pencil (H, K), and their eigenvalues, descending.

    Where K has fewer independent features, the last ones are zero.

    Examples
    --------
    >>> import numpy as np
    >>> best_scores(np.diag([4.0, 1.0]), np.diag([8.0, 3.0]), 1)[1]
    array([3.])
    """
    T = whitened(K)
    inner = T.T @ H @ T
    found = min(m, T.shape[1])
    weights, values = np.zeros((len(K), m)), np.zeros(m)
    if found:
        pairs = lapack((inner + inner.T) / 2, found)
        weights[:, :found] = T @ pairs.vectors
        values[:found] = np.maximum(pairs.values, 0.0)
    return weights, values


def uncorrelated(gram: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the matrix that turns scores into uncorrelated ones with the same span, best first.

    Parameters
    ----------
    gram : (m, m), the covariance of the scores
    squares : (m, m), their squared covariances with all features, ``(AW)'(AW)``

    Returns
    -------
    turn : (m, m), scaled so that each score has the variance that it explains of all features
    variances : (m,) what each explains, descending
    """
    turned, values = best_scores(gram, squares, len(gram))
    return turned * np.sqrt(values), values

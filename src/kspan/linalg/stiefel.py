"""The Stiefel manifold: d×r matrices with orthonormal columns."""

import numpy as np

from kspan.arrays import FloatArray
from kspan.linalg.rounding import UNIT


def symmetric(M: FloatArray) -> FloatArray:
    """Return the symmetric part of a square matrix."""
    return (M + M.T) / 2


def to_tangent(V: FloatArray, Z: FloatArray) -> FloatArray:
    """Project Z on the tangent space at V: ``Z - V sym(V'Z)``.

    Of a Euclidean gradient this is the Riemannian one; of a tangent vector from another point it
    is the vector transport.
    """
    return Z - V @ symmetric(V.T @ Z)


def qf(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Q and R of the thin QR decomposition in which R has a positive diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> Q, R = qf(np.array([[-2.0], [0.0]]))
    >>> Q.ravel().tolist(), R.tolist()
    ([-1.0, 0.0], [[2.0]])
    """
    Q, R = np.linalg.qr(M)
    signs = np.where(np.diagonal(R) < 0, -1.0, 1.0)
    return Q * signs, R * signs[:, None]


def retraction_slope(
    Q: FloatArray, R: FloatArray, direction: FloatArray, gradient: FloatArray
) -> float:
    """Return the derivative of f along ``t ↦ qf(V + t·direction)``.

    Parameters
    ----------
    Q, R : of ``V + t·direction`` at the point in question
    direction : (d, r) tangent vector at V
    gradient : (d, r) Euclidean gradient of f at Q

    Notes
    -----
    Differentiating V + tζ = QR and using that Q'dQ is skew and dR R⁻¹ upper triangular:
    with B = ζR⁻¹ and M = Q'B, ``dQ = Q(L - L') + B - QM``, L the strict lower part of M.
    """
    B = np.linalg.solve(R.T, direction.T).T
    M = Q.T @ B
    L = np.tril(M, -1)
    moved = B + Q @ (L - L.T - M)
    return float(np.sum(gradient * moved))


def polar(M: FloatArray) -> FloatArray:
    """Return the point of the manifold nearest to M, the factor PQ' of its SVD ``PΣQ'``.

    From the r×r matrix M'M when that is well conditioned, else from the SVD. A stack is taken at
    once, but for those that need the SVD.

    Examples
    --------
    >>> import numpy as np
    >>> polar(np.array([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]]))
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if M.ndim == 2:
        return np.asarray(polar(M[None])[0])
    size = np.abs(M).max(axis=(1, 2), initial=0.0, keepdims=True)
    M = M / np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(M.transpose(0, 2, 1) @ M)
    fine = values[:, 0] > 1e-8 * values[:, -1]
    scaled = vectors / np.sqrt(np.where(fine[:, None], values, 1.0))[:, None, :]
    nearest: FloatArray = M @ (scaled @ vectors.transpose(0, 2, 1))
    # One Newton step takes the error from the condition number squared to rounding.
    gram = nearest.transpose(0, 2, 1) @ nearest
    nearest = nearest @ (1.5 * np.eye(gram.shape[1]) - 0.5 * gram)
    for i in np.flatnonzero(~fine):
        left, _, right = np.linalg.svd(M[i], full_matrices=False)
        nearest[i] = left @ right
    return nearest


def distance_to_orthonormal(W: FloatArray) -> float:
    r"""Return how far it is at most to orthonormal columns with the zeros of W; inf if unknown.

    In the norm of Frobenius. Small products of columns do not say it: those of columns that share
    few features may be small without any such columns near.

    *Proof.* Let F collect the entries of W'W - I of all pairs of columns that share a feature,
    L be the derivative of F with respect to the entries of W that are not zero, σ its smallest
    singular value, and ρ = ‖F‖. U = W + H has orthonormal columns when F + LH + Q(H) = 0, where
    Q(H) are the entries of H'H and ‖Q(H)‖ ≤ ‖H‖². With τ = 2ρ/σ and 4ρ ≤ σ² the map
    :math:`H \mapsto -L^+(F + Q(H))` takes the ball of radius τ into itself, as
    (ρ + τ²)/σ ≤ τ; by Brouwer it has a fixed point, which is such an H. ∎

    Examples
    --------
    >>> import numpy as np
    >>> distance_to_orthonormal(np.array([[1.0, 1e-20], [0.0, 1.0]])) < 1e-12
    True
    >>> distance_to_orthonormal(np.array([[1.0, 0.0], [1e-9, 1e-9], [0.0, 1.0]]))
    inf
    """
    k, m = W.shape
    used = (W != 0).astype(float)
    first, second = np.nonzero(np.triu(used.T @ used))
    n = first.size
    rows = np.full((m, m), n)
    rows[first, second] = rows[second, first] = np.arange(n)
    gram = np.zeros((n + 1, n + 1))  # LL'; the last row is of pairs that share nothing
    for t in range(m):
        part = W * used[:, [t]]
        part[:, t] *= 2  # of the square of its length
        gram[np.ix_(rows[t], rows[t])] += part.T @ part
    gram = gram[:n, :n]
    missing = (W.T @ W - np.eye(m))[first, second]
    rho = float(np.linalg.norm(missing)) + m * (k + 8) * UNIT
    rounding = 8 * (k + n + 8) * UNIT * float(np.trace(gram))
    square = float(np.linalg.eigvalsh(gram)[0]) - rounding
    return float(2 * rho / np.sqrt(square)) if 4 * rho <= square else np.inf

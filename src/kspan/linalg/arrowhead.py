"""The smallest eigenvalue of many small arrowhead matrices at once."""

import numpy as np

from kspan.arrays import FloatArray


def smallest_arrowhead_eigenvalue(
    poles: FloatArray, coupling: FloatArray, corner: FloatArray, n_steps: int = 3
) -> FloatArray:
    r"""Bound the smallest eigenvalue of ``[[diag(γ), c], [c', a]]`` from above, closely.

    The eigenvalue is the root of :math:`g(μ) = a - μ - Σ_l c_l^2 / (γ_l - μ)` left of all
    poles. g is concave and falling there, so Newton's steps from the right stay on the right:
    every iterate is an upper bound, and three of them are close to the root. The start is the
    smallest eigenvalue over the 2×2 matrices of one pole and the corner, which interlacing
    puts on the right of the root (and which is the root itself when there is one pole).

    Parameters
    ----------
    poles : (..., m) values γ
    coupling : (..., m) values c
    corner : (...) values a

    Returns
    -------
    (...) upper bounds on the smallest eigenvalue
    """
    squares = coupling * coupling
    half_gap = (poles - corner[..., None]) / 2
    # λ_min of the 2×2 block: the smaller end minus what the coupling pushes it down by.
    push = squares / (np.abs(half_gap) + np.sqrt(half_gap * half_gap + squares) + _TINY)
    mu = (np.minimum(poles, corner[..., None]) - push).min(axis=-1)
    if poles.shape[-1] == 1:
        return mu
    for _ in range(n_steps):
        distance = poles - mu[..., None]
        # A pole at distance zero has no coupling (or none above rounding): it takes no part.
        ratio = np.divide(coupling, distance, out=np.zeros_like(distance), where=distance > 0)
        value = corner - mu - np.einsum("...l,...l->...", ratio, coupling)
        slope = -1.0 - np.einsum("...l,...l->...", ratio, ratio)
        # Right of the root the value is negative; where it is not, rounding has taken over.
        mu = mu - np.minimum(value, 0.0) / slope
    return mu


_TINY = float(np.finfo(float).tiny)

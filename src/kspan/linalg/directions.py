r"""Nets of directions on the sphere: how many, which, and how close they come.

For the best direction c_* and a direction c, :math:`1 - (c'c_*)^2` is what is lost. For c uniform
on the sphere in d dimensions it has a Beta((d-1)/2, 1/2) distribution, so that one draw loses at
most ε with probability :math:`p = I_ε((d-1)/2, 1/2)`, and

.. math:: M = \lceil \ln δ / \ln(1 - p) \rceil

draws do with probability 1 - δ. For d = 2, M equal angles on [0, π) leave no c_* further away
than π/2M: ε = sin²(π/2M), for certain. For d = 1 there is one direction.
"""

import numpy as np
from scipy.special import betainc, betaincinv

from kspan.arrays import FloatArray

# More directions than this are a mistake in epsilon or rank, and would fill the memory.
MAX_DIRECTIONS = 10_000_000

# Directions are scored in blocks of about this many bytes.
WORK_BYTES = 1 << 22


def sample_count(epsilon: float, rank: int, delta: float) -> int:
    """Return how many draws come within ε of the best direction with probability 1 - δ.

    Parameters
    ----------
    epsilon : above 0, at most 1
    rank : dimension d of the directions
    delta : above 0, below 1

    Examples
    --------
    >>> [sample_count(0.1, rank, 1 / 1000) for rank in (1, 2, 3, 4)]
    [1, 31, 132, 496]
    """
    _check(epsilon, rank, delta)
    if rank == 1 or epsilon == 1:
        return 1
    missed = np.log1p(-betainc((rank - 1) / 2, 0.5, epsilon))
    wanted = np.log(delta) / missed if missed < 0 else np.inf
    if wanted > MAX_DIRECTIONS:
        raise ValueError(
            f"epsilon={epsilon!r} at rank={rank} needs {wanted:.3g} directions, more than "
            f"{MAX_DIRECTIONS}: raise epsilon or lower rank."
        )
    return max(1, int(np.ceil(wanted)))


def achieved_epsilon(n_samples: int, rank: int, delta: float) -> float:
    """Return the ε that as many draws certify: the inverse of `sample_count`.

    Examples
    --------
    >>> round(achieved_epsilon(132, 3, 1 / 1000), 4)
    0.0994
    """
    _check(1.0, rank, delta)
    if n_samples < 1:
        raise ValueError(f"n_samples must be a whole number, 1 or more, got {n_samples!r}.")
    if rank == 1:
        return 0.0
    found = -np.expm1(np.log(delta) / n_samples)
    return float(betaincinv((rank - 1) / 2, 0.5, found))


def direction_count(epsilon: float, rank: int, delta: float) -> int:
    """Return the size of the net for an ε: `sample_count`, but fewer equal angles at rank 2.

    Examples
    --------
    >>> [direction_count(0.1, rank, 1 / 1000) for rank in (1, 2, 3)]
    [1, 5, 132]
    """
    if rank != 2:
        return sample_count(epsilon, rank, delta)
    _check(epsilon, rank, delta)
    wanted = np.pi / (2 * np.arcsin(np.sqrt(epsilon)))
    if wanted > MAX_DIRECTIONS:
        raise ValueError(
            f"epsilon={epsilon!r} needs {wanted:.3g} directions, more than {MAX_DIRECTIONS}."
        )
    return max(1, int(np.ceil(wanted * (1 - 1e-12))))  # sin²(π/2M) is to give M back


def net_epsilon(n_directions: int, rank: int, delta: float) -> float:
    """Return the ε that a net of this size certifies; with certainty up to rank 2.

    Examples
    --------
    >>> round(net_epsilon(5, 2, 0.5), 4)
    0.0955
    """
    if rank != 2:
        return achieved_epsilon(n_directions, rank, delta)
    if n_directions < 1:
        raise ValueError(f"n_directions must be a whole number, 1 or more, got {n_directions!r}.")
    return float(np.sin(np.pi / (2 * n_directions)) ** 2)


def net_directions(rank: int, n_directions: int, rng: np.random.Generator) -> FloatArray:
    """Return unit directions in the rows: one, equal angles on [0, π), or uniform draws."""
    _check(1.0, rank, 0.5)
    if n_directions < 1:
        raise ValueError(f"n_directions must be a whole number, 1 or more, got {n_directions!r}.")
    if rank == 1:
        return np.ones((1, 1))
    if rank == 2:
        angles = np.pi * np.arange(n_directions) / n_directions
        return np.column_stack([np.cos(angles), np.sin(angles)])
    C = rng.standard_normal((n_directions, rank))
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    return C


def _check(epsilon: float, rank: int, delta: float) -> None:
    if rank < 1:
        raise ValueError(f"rank must be a whole number, 1 or more, got {rank!r}.")
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon must be above 0 and at most 1, got {epsilon!r}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, got {delta!r}.")

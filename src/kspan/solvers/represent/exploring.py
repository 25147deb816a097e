r"""What features would add to a choice, and what those in it are worth: closed forms.

For chosen features S with :math:`K_{SS} + noise = LL'`, the covariances of all features with the
whitened ones are :math:`F = A_{:S}L^{-T}`, and what is left of A is :math:`A' = A - FF'`. One more
feature j brings the direction :math:`A'_j/\sqrt{a'_{jj} + noise_j}`, so that

- of all features it explains :math:`\|A'_j\|^2 / (a'_{jj} + noise_j)` more: that is what counts
  when there are as many components as features (m = k);
- of m fixed directions P of feature space (d×m, orthonormal) it explains
  :math:`\|N'_j\|^2 / (a'_{jj} + noise_j)` more, with :math:`N = AP` and :math:`N' = N - FF'P`.
  The objective is the largest over P, so with P from a choice of features this is what another one
  has *at least*: a step that gains in it gains in the objective.

Without feature i of S, :math:`A'` is :math:`A' + v_iv_i'` with :math:`v_i = A_{:S}w_i`, where
:math:`w_i` is column i of :math:`(K_{SS} + noise)^{-1}` over the root of its diagonal entry. All
pairs (i out, j in) follow from products of (n×k) and (k×k) matrices.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.representing import DEPENDENT, best_scores, whitened
from kspan.linalg.selection import top_k
from kspan.problem import Candidate
from kspan.solvers.represent.pool import Pool


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be told: m directions of feature space by their N = AP, or everything (None)."""

    N: FloatArray | None = None

    @classmethod
    def at(cls, pool: Pool, point: Candidate, m: int) -> "Target":
        """Return the directions that the best combinations of a choice tell best."""
        if point.support.size <= m:
            return cls(None)
        told = point.variances > 1e-14 * point.variances[0]
        weights = point.weights[:, told] / np.sqrt(point.variances[told])
        return cls(pool.squared(point.support, weights))


def fitted(pool: Pool, places: Index, m: int) -> Candidate:
    """Return the best combinations of some features, in the pool's numbers and units."""
    weights, values = best_scores(*pool.blocks(places), min(m, places.size))
    return Candidate(places, weights, values)


class Growing:
    """A choice that features are added to one by one, by rank-one updates.

    Parameters
    ----------
    pool : Pool
    target : Target
    most : how many features there will be
    """

    def __init__(self, pool: Pool, target: Target, most: int):
        n = pool.variances.size
        self.pool = pool
        self.places: list[int] = []
        self.left = pool.variances.copy()  # the diagonal of A'
        self.F = np.zeros((n, most))
        self.AF = np.zeros((n, most if target.N is None else 0))
        self.N = None if target.N is None else target.N.copy()
        self.told = pool.squares.copy()  # ‖A'_j‖², where everything is the target
        self.inner = np.zeros((most, most))  # F'F over all features

    def gains(self) -> FloatArray:
        """Return what each feature would add; zero for what depends on those that are there."""
        pool = self.pool
        top = self.told if self.N is None else np.einsum("ij,ij->i", self.N, self.N)
        bottom = self.left + pool.noise
        gains = np.zeros(top.size)
        # With no noise, what is left of a feature may be rounding.
        usable = (self.left > DEPENDENT * pool.variances) | (pool.noise > self.left)
        usable &= bottom > DEPENDENT * pool.variances
        np.divide(np.maximum(top, 0.0), bottom, out=gains, where=usable & (pool.variances > 0))
        return gains

    def add(self, place: int) -> None:
        """Add a feature."""
        s, pool = len(self.places), self.pool
        self.places.append(place)
        pivot = self.left[place] + pool.noise[place]
        if not pivot > DEPENDENT * pool.variances[place]:
            return  # it says nothing new; its column stays zero
        column, one = np.array([place]), np.ones((1, 1))
        f, root = self.F[place, :s].copy(), np.sqrt(pivot)
        w = (pool.covariances(column, one)[:, 0] - self.F[:, :s] @ f) / root
        if self.N is None:
            aw = (pool.squared(column, one)[:, 0] - self.AF[:, :s] @ f) / root
            # F'w and w'w over all features, in the pool or not.
            fw = (self.AF[place, :s] - self.inner[:s, :s] @ f) / root
            self.AF[:, s] = aw
            ww = max(self.told[place], 0.0) / pivot
            self.told -= 2 * w * (aw - self.F[:, :s] @ fw) - ww * w * w
            self.inner[s, :s], self.inner[:s, s], self.inner[s, s] = fw, fw, ww
        else:
            self.N -= np.outer(w, self.N[place] / root)
        self.F[:, s] = w
        self.left = np.maximum(self.left - w * w, 0.0)


@dataclass(frozen=True, eq=False)
class Exchanges:
    """What features out and in would change.

    Attributes
    ----------
    gains : (n,) what each feature of the pool would add to the choice
    losses : (k,) what each chosen feature is worth
    ins : (p,) those that are worth coming in
    swaps : (p, k) what a feature in for another one out would gain
    """

    gains: FloatArray
    losses: FloatArray
    ins: Index
    swaps: FloatArray


def exchanges(pool: Pool, places: Index, target: Target, coming: Mask, most: int) -> Exchanges:
    """Look at all features that could come in, and at those that could go.

    Parameters
    ----------
    pool, places : the chosen features of a pool
    target : what is to be told
    coming : (n,) which features may come in
    most : how many of those that add most are paired with all that could go
    """
    inside, H = pool.blocks(places)
    T = whitened(inside)  # K^-1 = TT', on features that do not depend on others
    F = pool.covariances(places, T)
    left = np.maximum(pool.variances - np.einsum("ij,ij->i", F, F), 0.0)
    bottom = left + pool.noise
    usable = (bottom > DEPENDENT * pool.variances) & (pool.variances > 0)
    # What a chosen feature is worth: its column of the inverse, as a direction.
    weight = np.sqrt(np.maximum(np.einsum("ij,ij->i", T, T), 1e-300))
    out = T @ (T.T / weight)  # columns w_i
    out[:, ~T.any(axis=1)] = 0.0
    if target.N is None:
        AF = pool.squared(places, T)
        top = pool.squares - 2 * np.einsum("ij,ij->i", AF, F)
        top += np.einsum("ij,ij->i", F @ (T.T @ H @ T), F)
        losses = np.einsum("ij,ij->j", out, H @ out)
    else:
        N = target.N - F @ (T.T @ target.N[places])
        top = np.einsum("ij,ij->i", N, N)
        turn = out.T @ target.N[places]  # τ_i, one row for each chosen feature
        losses = np.einsum("ij,ij->i", turn, turn)
    top = np.maximum(top, 0.0)
    gains = np.zeros(top.size)
    np.divide(top, bottom, out=gains, where=usable)
    keys = np.where(coming & usable, gains, -1.0)
    ins = top_k(keys, min(most, int((keys >= 0).sum())))
    if target.N is None:
        # A'v_i, with F'v_i over all features.
        cross = pool.squared(places, out, ins) - F[ins] @ (T.T @ (H @ out))
    else:
        cross = N[ins] @ turn.T
    v = pool.covariances(places, out, ins)
    numerators = top[ins, None] + 2 * v * cross + v * v * losses
    swaps = numerators / (bottom[ins, None] + v * v) - losses
    return Exchanges(gains, losses, ins, swaps)

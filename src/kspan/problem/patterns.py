r"""`Patterns`: which features each of several components may use. The feasible set of counts.

A pattern is a mask :math:`M \in \{0, 1\}^{d \times r}`; component t may use feature i if
:math:`M_{it} = 1`. A pattern is feasible when

.. math:: 1 \le \sum_i M_{it} \le k_t, \qquad \sum_{it} M_{it} \le K, \qquad
          \sum_t M_{it} \le 1 \text{ if supports are to be disjoint}.

Counts are "at most": orthonormal components exist whenever there are as many features as
components.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import linear_sum_assignment

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.selection import top_k
from kspan.problem.choice import as_count

# Features times places from which an assignment takes longer than its kernel.
FAST_FROM = 10_000


@dataclass(frozen=True, eq=False)
class Patterns:
    """All patterns with at most so many features in each component, and in all.

    Parameters
    ----------
    n_features : int
        d.
    limits : (r,) array of int
        The most features that each component may use.
    total : int
        The most that all use together, each counted as often as it is used.
    disjoint : bool
        Whether a feature may be used by one component only.

    Examples
    --------
    >>> import numpy as np
    >>> patterns = Patterns.of(4, 2, 2, disjoint=True)
    >>> patterns.select(np.array([[3.0, 3.0], [2.0, 0.5], [1.0, 2.0], [0.1, 0.2]])).astype(int)
    array([[1, 0],
           [1, 0],
           [0, 1],
           [0, 1]])
    """

    n_features: int
    limits: Index
    total: int
    disjoint: bool = False

    @classmethod
    def of(
        cls, n_features: int, n_components: int, n_nonzero_coefs: int | Sequence[int] | None = None,
        n_nonzero_total: int | None = None, *, disjoint: bool = False,
    ) -> "Patterns":  # fmt: skip
        """Make one from what users say; `ValueError` if there is no such pattern.

        Parameters
        ----------
        n_features, n_components : d and r
        n_nonzero_coefs : int or sequence of int, optional
            k_t: one for all components, or one for each.
        n_nonzero_total : int, optional
            K.
        disjoint : see above
        """
        d, r = n_features, n_components
        if n_nonzero_coefs is None and n_nonzero_total is None:
            raise ValueError("Give n_nonzero_coefs, n_nonzero_total, or both.")
        if r > d:
            raise ValueError(
                f"n_components={r} orthonormal components need as many features; there are {d}."
            )
        limits = _limits(n_nonzero_coefs, d, r)
        total = int(limits.sum())
        if n_nonzero_total is not None:
            asked = as_count("n_nonzero_total", n_nonzero_total)
            if not r <= asked <= d * r:
                raise ValueError(
                    f"n_nonzero_total={asked} must be between n_components={r} and {d * r}, "
                    f"which is n_components={r} times n_features={d}."
                )
            total = min(total, asked)
        if disjoint:
            total = min(total, d)
        # Each of the others uses a feature at least.
        return cls(d, np.minimum(limits, total - r + 1), total, bool(disjoint))

    @property
    def n_components(self) -> int:
        """The number r of components."""
        return self.limits.size

    @property
    def size(self) -> int:
        """The most different features that are used."""
        return min(self.total, self.n_features)

    @property
    def features(self) -> Index:
        """The features that may be used: all."""
        return np.arange(self.n_features)

    @property
    def include(self) -> Index:
        """The features that must be used: none."""
        return np.empty(0, dtype=np.intp)

    @property
    def exclude(self) -> Index:
        """The features that must not be used: none."""
        return np.empty(0, dtype=np.intp)

    @property
    def counts_each(self) -> bool:
        """Whether the limits of single components are all there is: the total follows from them."""
        return self.total == int(self.limits.sum())

    def on(self, n_features: int) -> "Patterns":
        """Return the patterns of fewer features, with the same counts as far as they allow."""
        return Patterns.of(
            n_features, self.n_components, np.minimum(self.limits, n_features).tolist(),
            min(self.total, n_features * self.n_components), disjoint=self.disjoint,
        )  # fmt: skip

    def same_as(self, other: object) -> bool:
        """Say whether both have the same patterns, by what they are made of."""
        names = [part.name for part in fields(self)]
        return isinstance(other, Patterns) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    def objection(self, mask: Mask) -> str | None:
        """Say why a pattern is not feasible; None if it is."""
        if mask.shape != (self.n_features, self.n_components):
            return "has a wrong shape"
        counts = mask.sum(axis=0)
        if not counts.all():
            return "has a component without features"
        over = np.flatnonzero(counts > self.limits)
        if over.size:
            t = int(over[0])
            return f"has {counts[t]} features in component {t}, more than {self.limits[t]}"
        if counts.sum() > self.total:
            return f"has {counts.sum()} features in all, more than {self.total}"
        if self.disjoint and (mask.sum(axis=1) > 1).any():
            return "has a feature in two components, but supports are to be disjoint"
        return None

    def select(self, scores: FloatArray) -> Mask:
        """Return the pattern with the largest sum of scores (d, r); every component gets one.

        With a total: the best feature of each component, then the best of all others. Disjoint
        supports are an assignment of features to places.
        """
        d, r = scores.shape
        mask = np.zeros((d, r), dtype=bool)
        if self.disjoint:
            # Cheap features first: nobody needs more than the best `total` of a component.
            useful = np.unique(np.concatenate([top_k(scores[:, t], self.size) for t in range(r)]))
            places = np.repeat(np.arange(r), self.limits)
            if (owner := _shared_out(scores[useful], self.limits)) is not None:
                mask[useful[owner >= 0], owner[owner >= 0]] = True
                return _best_of(mask, scores, self.total) if mask.sum() > self.total else mask
            worth = scores[useful][:, places]
            rows, columns = linear_sum_assignment(-worth)
            if np.unique(places[columns]).size < r:  # the first place of each must be taken
                first = np.r_[True, np.diff(places) > 0]
                worth = worth + first * (np.ptp(worth) + 1.0) * places.size
                rows, columns = linear_sum_assignment(-worth)
            mask[useful[rows], places[columns]] = True
        else:
            for t in range(r):
                mask[top_k(scores[:, t], int(self.limits[t])), t] = True
        if mask.sum() > self.total:
            mask = _best_of(mask, scores, self.total)
        return mask


def _shared_out(scores: FloatArray, limits: Index) -> Index | None:
    """Return the component of each feature by the fast way, -1 for none.

    None if the problem is too small for it, if there are too few features, or if some of those that
    are taken are worth nothing: then they are as good as others, which is left to the slow way.
    """
    if scores.size * int(limits.sum()) < FAST_FROM or limits.sum() > len(scores):
        return None
    from kspan.linalg.assignment import share_out  # compiled when it is used

    owner = share_out(scores, limits)
    taken = np.flatnonzero(owner >= 0)
    return owner if (scores[taken, owner[taken]] > 0).all() else None


def _best_of(mask: Mask, scores: FloatArray, total: int) -> Mask:
    """Keep the best entries of a pattern, and the best of each component."""
    inside = np.where(mask, scores, -np.inf)
    kept = np.zeros_like(mask)
    kept[np.argmax(inside, axis=0), np.arange(mask.shape[1])] = True
    rest = np.where(kept, -np.inf, inside).ravel()
    kept.ravel()[top_k(rest, total - int(kept.sum()))] = True
    return kept & mask


def _limits(given: int | Sequence[int] | None, d: int, r: int) -> Index:
    """Return one limit for each component."""
    if given is None:
        return np.full(r, d)
    if np.ndim(given) == 0:
        counts = [as_count("n_nonzero_coefs", given)] * r
    else:
        counts = [as_count("n_nonzero_coefs", value) for value in given]  # type: ignore[union-attr]
    if len(counts) != r:
        raise ValueError(
            f"n_nonzero_coefs has {len(counts)} numbers for n_components={r} components; give one "
            "number, or one for each."
        )
    if not 1 <= min(counts) <= max(counts) <= d:
        raise ValueError(f"n_nonzero_coefs must be between 1 and n_features={d}, got {given!r}.")
    return np.array(counts, dtype=np.intp)

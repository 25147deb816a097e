r"""What single features may be exchanged for in a pattern, best guess first.

With :math:`λ_t = u_t'Su_t`, what column t is worth without its feature i, and with feature j put in
beside the rest, is known exactly if all other entries keep their proportions: a Rayleigh quotient,
and the larger eigenvalue of a 2×2 matrix. These guesses only sort the moves: what a move is worth
shows when the loadings are fitted to the new pattern (`kspan.linalg.pattern_kernels`).

A move takes out up to two entries (feature, column) of a pattern and puts in up to two:

- a feature for another, in one column;
- a feature more, where there is room;
- a feature out of one column, and one into another, where only the total counts;
- of disjoint supports: a feature of another column, which gets mine or a free one;
- two for two in one column, and one for one in two columns. Two columns that share one feature
  only cannot both use it, so that single exchanges cannot lead from supports that share nothing
  to supports that share more, nor back.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.selection import top_k
from kspan.problem import Patterns

# A column in which one feature has all the weight has nothing left without it.
WHOLE = 1 - 1e-12

# Of the best guesses of each kind, so many are paired.
N_PAIRED = 24


@dataclass(frozen=True)
class Moves:
    """Moves (p, 8) and the guess at what each gains; see `first_better`."""

    entries: Index
    gains: FloatArray

    def best(self, most: int) -> Index:
        """Return the moves of the largest guesses, in that order."""
        return np.ascontiguousarray(self.entries[_best_rows(self.gains, most)])


def joined(parts: list[Moves]) -> Moves:
    """Return all moves of all parts."""
    if not parts:
        return Moves(np.empty((0, 8), dtype=np.int64), np.empty(0))
    return Moves(
        np.concatenate([part.entries for part in parts]),
        np.concatenate([part.gains for part in parts]),
    )


def _moves(gains: FloatArray, *columns: Index | int) -> Moves:
    """Return moves from eight columns, given as arrays or numbers."""
    entries = np.empty((gains.size, 8), dtype=np.int64)
    for place, column in enumerate(columns):
        entries[:, place] = column
    return Moves(entries, gains)


def _higher(first: FloatArray, second: FloatArray, between: FloatArray) -> FloatArray:
    """Return the larger eigenvalue of [[first, between], [between, second]]."""
    half = (first - second) / 2
    return np.asarray((first + second) / 2 + np.hypot(half, between))


class Guesses:
    """What entries of a pattern are worth, in or out.

    Parameters
    ----------
    S : (n, n)
    U : (n, r) orthonormal, zero outside the mask
    mask : (n, r)
    patterns : which are feasible
    """

    def __init__(self, S: FloatArray, U: FloatArray, mask: Mask, patterns: Patterns):
        self.S, self.U, self.mask, self.patterns = S, U, mask, patterns
        self.SU = S @ U
        gram = U.T @ self.SU
        self.values = np.diagonal(gram).copy()
        # What pulls a column, without the pull that the other columns forbid.
        self.pull = self.SU - U @ (gram - np.diag(self.values))
        self.own = np.diagonal(S)
        self.counts = mask.sum(axis=0)
        self.used = np.asarray(mask.any(axis=1))
        self.full = int(self.counts.sum()) >= patterns.total
        self.swaps = [self._swaps(t) for t in range(U.shape[1])]

    def _swaps(self, t: int) -> tuple[Index, FloatArray]:
        """Return the features of a column, and what each gains in exchange for any other."""
        rows = np.flatnonzero(self.mask[:, t])
        u = self.U[rows, t][:, None]
        left = 1.0 - u * u
        empty = left[:, 0] <= 1.0 - WHOLE
        left[empty] = 1.0
        rest = (
            self.values[t] - 2 * u * self.SU[rows, t][:, None] + u * u * self.own[rows, None]
        ) / left
        pull = (self.pull[:, t] - self.S[rows] * u) / np.sqrt(left)
        rest[empty], pull[empty] = 0.0, 0.0
        gains = _higher(rest, self.own[None, :], pull) - self.values[t]
        return rows, gains

    @cached_property
    def losses(self) -> FloatArray:
        """(n, r) what taking an entry out costs; -inf outside, and where a column needs it."""
        u, left = self.U, 1.0 - self.U**2
        empty = left <= 1.0 - WHOLE
        rest = (self.values - 2 * u * self.SU + u * u * self.own[:, None]) / np.where(
            empty, 1, left
        )
        loss = np.where(empty, 0.0, rest) - self.values
        return np.where(self.mask & (self.counts > 1), loss, -np.inf)

    @cached_property
    def gains(self) -> FloatArray:
        """(n, r) what putting an entry in gains; -inf where it is in."""
        gain = _higher(self.values, self.own[:, None], self.pull) - self.values
        return np.where(self.mask, -np.inf, gain)

    def single(self) -> Moves:
        """Return all moves of one feature."""
        parts: list[Moves] = []
        disjoint = self.patterns.disjoint
        for t, (rows, gains) in enumerate(self.swaps):
            free = ~self.used if disjoint else ~self.mask[:, t]
            others = np.flatnonzero(free)
            i, j = np.meshgrid(rows, others, indexing="ij")
            part = gains[:, others].ravel()
            parts.append(_moves(part, i.ravel(), t, -1, -1, j.ravel(), t, -1, -1))
            if self._has_room(t) and not self.full:
                parts.append(_moves(self.gains[others, t], -1, -1, -1, -1, others, t, -1, -1))
        return joined(parts)

    def _has_room(self, t: int) -> bool:
        return bool(self.counts[t] < self.patterns.limits[t])

    def between(self, most: int) -> Moves:
        """Return moves of two columns: one feature from one to another, or exchanges."""
        parts = [self._transfers(most)]
        if self.patterns.disjoint:
            parts += [
                self._chains(t, s)
                for t in range(len(self.values)) for s in range(len(self.values)) if s != t
            ]  # fmt: skip
        return joined(parts)

    def _transfers(self, most: int) -> Moves:
        """One feature out of a column, one into another that has room."""
        room = self.counts < self.patterns.limits
        gains = np.where(room, self.gains, -np.inf)
        losses = self.losses
        out, into = _best_entries(losses, most), _best_entries(gains, most)
        a, b = (x.ravel() for x in np.meshgrid(np.arange(len(out)), np.arange(len(into))))
        (i, t), (j, s) = out[a].T, into[b].T
        keep = t != s
        if self.patterns.disjoint:
            keep &= ~self.used[j] | (i == j)
        i, t, j, s = i[keep], t[keep], j[keep], s[keep]
        return _moves(losses[i, t] + gains[j, s], i, t, -1, -1, j, s, -1, -1)

    def _chains(self, t: int, s: int) -> Moves:
        """Column t takes a feature j of s in exchange for i; s gets i, or a free feature."""
        (mine, gains), (theirs, other) = self.swaps[t], self.swaps[s]
        free = np.flatnonzero(~self.used)
        best = free[np.argmax(other[:, free], axis=1)] if free.size else None
        i, j = (x.ravel() for x in np.meshgrid(mine, theirs, indexing="ij"))
        first = gains[:, theirs].ravel()
        place = np.tile(np.arange(theirs.size), mine.size)
        parts = [_moves(first + other[place, i], i, t, j, s, j, t, i, s)]
        if best is not None:
            new = best[place]
            parts.append(_moves(first + other[place, new], i, t, j, s, j, t, new, s))
        return joined(parts)

    def double(self) -> Moves:
        """Return exchanges of two features at a time."""
        parts = [self._pairs(t) for t in range(self.values.size)]
        best = self.single()
        order = _best_rows(best.gains, 4 * N_PAIRED)
        order = order[best.entries[order, 0] >= 0]
        top, gains = best.entries[order], best.gains[order]
        a, b = np.triu_indices(order.size, 1)
        keep = top[a, 1] != top[b, 1]
        if self.patterns.disjoint:
            keep &= top[a, 4] != top[b, 4]
        a, b = a[keep], b[keep]
        parts.append(_moves(gains[a] + gains[b], *top[a, :2].T, *top[b, :2].T,
                            *top[a, 4:6].T, *top[b, 4:6].T))  # fmt: skip
        return joined(parts)

    def _pairs(self, t: int) -> Moves:
        """Two features of a column for two others; or two more, where there is room."""
        gains, losses = self.gains[:, t], self.losses[:, t]
        if self.patterns.disjoint:
            gains = np.where(self.used, -np.inf, gains)
        out, into = _best_rows(losses, N_PAIRED), _best_rows(gains, N_PAIRED)
        a, b = np.triu_indices(out.size, 1)
        c, e = np.triu_indices(into.size, 1)
        p, q = (x.ravel() for x in np.meshgrid(np.arange(a.size), np.arange(c.size)))
        i, i2, j, j2 = out[a[p]], out[b[p]], into[c[q]], into[e[q]]
        guess = losses[i] + losses[i2] + gains[j] + gains[j2]
        moves = _moves(guess, i, t, i2, t, j, t, j2, t)
        size = int(self.counts.sum())
        if self.counts[t] + 2 > self.patterns.limits[t] or size + 2 > self.patterns.total:
            return moves
        more = _moves(gains[into[c]] + gains[into[e]], -1, -1, -1, -1, into[c], t, into[e], t)
        return joined([moves, more])


def _best_rows(scores: FloatArray, most: int) -> Index:
    """Return the places of the largest finite scores, in that order."""
    some = top_k(scores, most)
    order = some[np.argsort(-scores[some], kind="stable")]
    return np.asarray(order[np.isfinite(scores[order])])


def _best_entries(scores: FloatArray, most: int) -> Index:
    """Return (feature, column) of the largest finite scores, in that order."""
    return np.column_stack(np.unravel_index(_best_rows(scores.ravel(), most), scores.shape))

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


def _moves(gains: FloatArray, most: int, *columns: Index | int) -> Moves:
    """Return the moves of the largest gains from eight columns, given as arrays or numbers.

    There are many thousand moves, of which some hundred are tried: only these are written down.
    """
    best = top_k(gains, most)
    entries = np.empty((best.size, 8), dtype=np.int64)
    for place, column in enumerate(columns):
        entries[:, place] = column[best] if isinstance(column, np.ndarray) else column
    return Moves(entries, gains[best])


def _higher(first: FloatArray, second: FloatArray, between: FloatArray) -> FloatArray:
    """Return the larger eigenvalue of [[first, between], [between, second]]."""
    half = (first - second) / 2
    # Half the time of `hypot`; the entries are near one, so that no square is too large.
    return np.asarray((first + second) / 2 + np.sqrt(half * half + between * between))


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

    def single(self, most: int) -> Moves:
        """Return the best moves of one feature of each column."""
        parts: list[Moves] = []
        disjoint = self.patterns.disjoint
        for t, (rows, gains) in enumerate(self.swaps):
            free = ~self.used if disjoint else ~self.mask[:, t]
            others = np.flatnonzero(free)
            part = gains[:, others].ravel()
            best = top_k(part, most)
            i, j = rows[best // max(others.size, 1)], others[best % max(others.size, 1)]
            parts.append(_moves(part[best], most, i, t, -1, -1, j, t, -1, -1))
            if self._has_room(t) and not self.full:
                more = self.gains[others, t]
                parts.append(_moves(more, most, -1, -1, -1, -1, others, t, -1, -1))
        return joined(parts)

    def _has_room(self, t: int) -> bool:
        return bool(self.counts[t] < self.patterns.limits[t])

    def between(self, most: int) -> Moves:
        """Return moves of two columns: one feature from one to another, or exchanges."""
        parts = [self._transfers(most)]
        if self.patterns.disjoint:
            parts += [
                self._chains(t, s, most)
                for t in range(len(self.values)) for s in range(len(self.values)) if s != t
            ]  # fmt: skip
        return joined(parts)

    def _transfers(self, most: int) -> Moves:
        """One feature out of a column, one into another that has room."""
        room = self.counts < self.patterns.limits
        if not room.any():
            return joined([])
        gains = np.where(room, self.gains, -np.inf)
        losses = self.losses
        out, into = _best_entries(losses, most), _best_entries(gains, most)
        a, b = (x.ravel() for x in np.meshgrid(np.arange(len(out)), np.arange(len(into))))
        (i, t), (j, s) = out[a].T, into[b].T
        keep = t != s
        if self.patterns.disjoint:
            keep &= ~self.used[j] | (i == j)
        i, t, j, s = i[keep], t[keep], j[keep], s[keep]
        return _moves(losses[i, t] + gains[j, s], most, i, t, -1, -1, j, s, -1, -1)

    def _chains(self, t: int, s: int, most: int) -> Moves:
        """Column t takes a feature j of s in exchange for i; s gets i, or a free feature."""
        (mine, gains), (theirs, other) = self.swaps[t], self.swaps[s]
        free = np.flatnonzero(~self.used)
        best = free[np.argmax(other[:, free], axis=1)] if free.size else None
        i, j = (x.ravel() for x in np.meshgrid(mine, theirs, indexing="ij"))
        first = gains[:, theirs].ravel()
        place = np.tile(np.arange(theirs.size), mine.size)
        parts = [_moves(first + other[place, i], most, i, t, j, s, j, t, i, s)]
        if best is not None:
            new = best[place]
            parts.append(_moves(first + other[place, new], most, i, t, j, s, j, t, new, s))
        return joined(parts)

    def double(self, most: int) -> Moves:
        """Return the best exchanges of two features at a time."""
        parts = [self._pairs(t, most) for t in range(self.values.size)]
        best = self.single(4 * N_PAIRED)
        order = _best_rows(best.gains, 4 * N_PAIRED)
        order = order[best.entries[order, 0] >= 0]
        top, gains = best.entries[order], best.gains[order]
        a, b = np.triu_indices(order.size, 1)
        keep = top[a, 1] != top[b, 1]
        if self.patterns.disjoint:
            keep &= top[a, 4] != top[b, 4]
        a, b = a[keep], b[keep]
        parts.append(_moves(gains[a] + gains[b], most, *top[a, :2].T, *top[b, :2].T,
                            *top[a, 4:6].T, *top[b, 4:6].T))  # fmt: skip
        return joined(parts)

    def _pairs(self, t: int, most: int) -> Moves:
        """Two features of a column for two others; or two more, where there is room."""
        gains, losses = self.gains[:, t], self.losses[:, t]
        if self.patterns.disjoint:
            gains = np.where(self.used, -np.inf, gains)
        out, into = _best_rows(losses, N_PAIRED), _best_rows(gains, N_PAIRED)
        a, b = np.triu_indices(out.size, 1)
        c, e = np.triu_indices(into.size, 1)
        taken, put = losses[out[a]] + losses[out[b]], gains[into[c]] + gains[into[e]]
        guess = (taken[:, None] + put).ravel()
        best = top_k(guess, most)
        p, q = best // max(c.size, 1), best % max(c.size, 1)
        i, i2, j, j2 = out[a[p]], out[b[p]], into[c[q]], into[e[q]]
        moves = _moves(guess[best], most, i, t, i2, t, j, t, j2, t)
        size = int(self.counts.sum())
        if self.counts[t] + 2 > self.patterns.limits[t] or size + 2 > self.patterns.total:
            return moves
        more = _moves(put, most, -1, -1, -1, -1, into[c], t, into[e], t)
        return joined([moves, more])


def _best_rows(scores: FloatArray, most: int) -> Index:
    """Return the places of the largest finite scores, in that order."""
    some = top_k(scores, most)
    order = some[np.argsort(-scores[some], kind="stable")]
    return np.asarray(order[np.isfinite(scores[order])])


def _best_entries(scores: FloatArray, most: int) -> Index:
    """Return (feature, column) of the largest finite scores, in that order."""
    return np.column_stack(np.unravel_index(_best_rows(scores.ravel(), most), scores.shape))

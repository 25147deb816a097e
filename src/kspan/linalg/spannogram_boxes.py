r"""What a net of directions can rule out, before a spannogram is enumerated.

With :math:`f(c)` the sum of the squares of the k largest positive entries of Vc,

.. math:: \max \{\|V'x\|^2 : x \ge 0,\, \|x\| = 1,\, \|x\|_0 \le k\} = \max_{\|c\| = 1} f(c)

and an optimal x has its support among the k largest positive entries of V c*, with
:math:`c^* = V'x/\|V'x\|`. The sphere is covered by boxes: the faces of a cube, cut into smaller and
smaller cubes. Let a box have all its directions within an angle θ of its centre b.

*Bound.* If c* is in the box, :math:`f(c^*) \le f(b)/\cos^2 θ`. Indeed :math:`\sqrt{f(b)}`, the
largest value of :math:`b'V'y` over all feasible y, is at least
:math:`b'V'x = b'c^*\,\|V'x\| \ge \cos θ \sqrt{f(c^*)}`. Boxes where this is below a value that is
known to be reached do not contain c*. The others are cut further.

*Rows.* In a box :math:`v_i'c` is between :math:`\|v_i\|\cos(α_i ± θ)`, with :math:`α_i` the angle
from b to :math:`v_i` (and the cosine ±1 when the box may contain :math:`±v_i`). If k other rows are
above the largest value of a row, or that is not positive, the row is not in the support of any c of
the box. If its smallest value is positive and fewer than k other rows can be that high, it is in
the support of every c. Rows that are out in all boxes that are left can be left out, and rows that
are in can be fixed: the support of an optimal x is the fixed rows and the k - (number of fixed)
largest positive entries of :math:`V_S c^*`, S being the other rows. So it is enough to enumerate
the spannogram of S.

For the signed problem, where sizes are compared, the same test over all boxes finds rows that are
in no support of the spannogram at all; no value has to be known for that.

Near an optimum with a gap after its eigenvalue the number of boxes that are left does not depend on
their size, so a few dozen boxes of each size are the rule.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.selection import largest_positive

# Room for rounding: in values, relative to them; in entries of Vc, relative to the longest row.
SLACK = 1e-12

# When sin²θ is below this, the best value known is the optimum up to this share of it.
CLOSED = 1e-11

# From so many rows on it is worth ruling rows out; below, all subsets are soon tried.
FEW_ROWS = 8

# What a row of a box costs compared with a vertex, and the most rows of boxes of one size.
COST_OF_ROW = 0.1
MAX_ROWS_OF_BOXES = 100_000_000

# Entries of V c computed at a time.
ENTRIES_A_BLOCK = 1_000_000

# Directions to climb from, for boxes of one size, and steps of a climb.
N_CLIMBS = 4
MAX_STEPS = 200


@dataclass(frozen=True)
class Boxes:
    """Cubes of one size on the faces of the cube [-1, 1]^d.

    Attributes
    ----------
    centres : (b, d)
    axes : (b,) the coordinate in which the face is
    half : half the length of an edge
    """

    centres: FloatArray
    axes: Index
    half: float

    @classmethod
    def first(cls, d: int, *, both_sides: bool = True) -> "Boxes":
        """Cover the sphere, or only half of it: a direction or its opposite."""
        corners = _corners(d - 1, 0.5)
        sides = (1.0, -1.0) if both_sides else (1.0,)
        faces = [np.insert(corners, a, side, axis=1) for a in range(d) for side in sides]
        axes = np.repeat(np.arange(d), len(sides) * len(corners))
        return cls(np.vstack(faces), axes, 0.5)

    def __len__(self) -> int:
        return len(self.centres)

    def keep(self, which: Mask) -> "Boxes":
        """Return some of the boxes."""
        return Boxes(self.centres[which], self.axes[which], self.half)

    def split(self) -> "Boxes":
        """Cut every box into 2^(d - 1) of half the size."""
        d = self.centres.shape[1]
        half = self.half / 2
        moves = _corners(d - 1, half)
        parts = []
        for a in range(d):
            own = self.centres[self.axes == a]
            parts.append((own[:, None, :] + np.insert(moves, a, 0.0, axis=1)).reshape(-1, d))
        axes = np.repeat(np.arange(d), [len(part) for part in parts])
        return Boxes(np.vstack(parts), axes, half)

    def directions(self) -> FloatArray:
        """Return the unit vectors towards the centres, (b, d)."""
        return self.centres / np.linalg.norm(self.centres, axis=1, keepdims=True)

    def sines(self) -> FloatArray:
        """Return sin θ, θ < 90° being at least the angle from the centre to any point.

        A point at a distance r from a centre of length l is seen at an angle with sine ≤ r/l.
        """
        d = self.centres.shape[1]
        return self.half * np.sqrt(d - 1) / np.linalg.norm(self.centres, axis=1)


def _corners(d: int, half: float) -> FloatArray:
    """Return the corners of a cube in d dimensions."""
    return np.array(list(product((-half, half), repeat=d))).reshape(2**d, d)


@dataclass(frozen=True)
class Remainder:
    """What is left to enumerate.

    Attributes
    ----------
    fixed : (n,) rows that are in the support of every optimal x that beats `value`
    free : (n,) rows that may or may not be in it
    value, direction : the best f(c) met, and c
    closed : whether that is known to be the optimum, so that nothing is left
    """

    fixed: Mask
    free: Mask
    value: float
    direction: FloatArray
    closed: bool


def starts(d: int) -> FloatArray:
    """Return some directions in all parts of the sphere, to climb from."""
    axes = np.vstack([np.eye(d), -np.eye(d)])
    return np.vstack([axes, Boxes.first(d).directions()]) if d <= 4 else axes


def ascend(V: FloatArray, directions: FloatArray, k: int) -> tuple[float, FloatArray]:
    """Climb from each direction, c ← V'x/‖V'x‖ with the best x for c; return the best f(c) and c.

    f never falls: the new c is the best one for x.
    """
    D, values = directions, np.zeros(len(directions))
    for _ in range(MAX_STEPS):
        X = largest_positive((D @ V.T).T, k).T  # twice, so that columns lie together in memory
        before, values = values, np.einsum("ij,ij->i", X, X)
        if np.all(values <= before * (1 + SLACK)):
            break
        moved = X @ V
        sizes = np.linalg.norm(moved, axis=1, keepdims=True)
        D = np.where(sizes > 0, moved / np.where(sizes > 0, sizes, 1.0), D)
    best = int(np.argmax(values))
    return float(values[best]), D[best]


def rule_out(
    V: FloatArray, k: int, stop: Callable[[float], bool] = lambda value: False
) -> Remainder:
    """Rule out and fix rows for the nonnegative problem.

    It goes on as long as another size of boxes costs less than enumerating what is left.

    Parameters
    ----------
    V : (n, d) rows, the longest of length near one
    k : number of rows in a support, at most
    stop : told the best value after every size of boxes; returns whether to stop there
    """
    n, d = V.shape
    value, direction = ascend(V, starts(d), k)
    if n * d * 2**d > MAX_ROWS_OF_BOXES:  # even the largest boxes are too many
        return Remainder(np.zeros(n, dtype=bool), np.ones(n, dtype=bool), value, direction, False)
    boxes = Boxes.first(d)
    while True:
        directions, squares = boxes.directions(), 1.0 - boxes.sines() ** 2  # cos²θ
        values = np.concatenate([_values(S, k) for _, S in _blocks(V, directions)])
        better, where = ascend(V, directions[np.argsort(-values)[:N_CLIMBS]], k)
        if better > value:
            value, direction = better, where
        boxes = boxes.keep(values >= squares * value * (1 - SLACK))
        closed = bool(np.all(boxes.sines() ** 2 <= CLOSED))  # with no box left, too
        fixed, free = _certain_rows(V, k, boxes)
        n_free = int(free.sum())
        cost = len(boxes) * 2 ** (d - 1) * n
        if (
            closed
            or n_free <= FEW_ROWS
            or COST_OF_ROW * cost > comb(n_free + 1, d)
            or cost > MAX_ROWS_OF_BOXES
            or stop(value)
        ):
            return Remainder(fixed, free, value, direction, closed)
        boxes = boxes.split()


def selectable(V: FloatArray, k: int, stop: Callable[[], bool] = lambda: False) -> Mask:
    """Return rows that include, for every c, those with the k largest sizes of v'c.

    Rows that are among the k largest at the centre of a box have to be kept. A box is cut further
    when other rows might be; rows about which this ends undecided are kept too.

    Parameters
    ----------
    V : (n, d) rows, the longest of length near one
    k : less than n
    stop : asked often; returns whether to give up, and then all rows are kept
    """
    n, d = V.shape
    if n * d * 2 ** (d - 1) > MAX_ROWS_OF_BOXES:
        return np.ones(n, dtype=bool)
    boxes = Boxes.first(d, both_sides=False)
    needed = np.zeros(n, dtype=bool)
    while True:
        possible = np.empty((len(boxes), n), dtype=bool)
        sines = boxes.sines()
        for block, scores in _blocks(V, boxes.directions()):
            if stop():
                return np.ones(n, dtype=bool)
            sizes = np.abs(scores)
            best = np.argpartition(sizes, n - k, axis=1)[:, n - k :]
            needed[best.ravel()] = True
            low, high = _ranges(V, scores, sines[block])
            largest = np.maximum(np.abs(low), np.abs(high))
            smallest = np.maximum(np.maximum(low, -high), 0.0)
            enough = np.partition(smallest, n - k, axis=1)[:, [n - k]]
            possible[block] = largest >= enough - SLACK
        undecided = possible.any(axis=0) & ~needed
        open_boxes: Mask = np.any(possible[:, undecided], axis=1)
        boxes = boxes.keep(open_boxes)
        cost = len(boxes) * 2 ** (d - 1) * n
        too_many = COST_OF_ROW * cost > comb(n, d) or cost > MAX_ROWS_OF_BOXES
        if len(boxes) == 0 or boxes.half < 1e-6 or too_many:
            return needed | undecided
        boxes = boxes.split()


def _values(scores: FloatArray, k: int) -> FloatArray:
    """Return f of each row: the sum of the squares of its k largest positive entries."""
    n = scores.shape[1]
    largest = np.maximum(np.partition(scores, n - k, axis=1)[:, n - k :], 0.0)
    return np.einsum("ij,ij->i", largest, largest)


def _certain_rows(V: FloatArray, k: int, boxes: Boxes) -> tuple[Mask, Mask]:
    """Return the rows that are in the support of all directions, and those of some only."""
    n = V.shape[0]
    always, ever = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    sines = boxes.sines()
    for block, scores in _blocks(V, boxes.directions()):
        low, high = _ranges(V, scores, sines[block])
        enough = np.maximum(np.partition(low, n - k, axis=1)[:, [n - k]], 0.0)
        ever |= (high >= enough - SLACK).any(axis=0)
        rival = np.zeros((len(scores), 1))
        if k < n:
            rival = np.maximum(np.partition(high, n - k - 1, axis=1)[:, [n - k - 1]], 0.0)
        always &= (low > rival + SLACK).all(axis=0)
    return always & ever, ever & ~always


def _ranges(V: FloatArray, scores: FloatArray, sines: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest v'c of every row v in every box, from its v'b."""
    lengths = np.linalg.norm(V, axis=1)
    sine = sines[:, None]
    cosine = np.sqrt(1.0 - sine * sine)
    # Rounding must not make v too parallel to b.
    across = np.sqrt(np.maximum(lengths**2 - scores**2, 0.0) + 1e-15 * lengths**2) * sine
    middle = scores * cosine
    high = np.where(scores >= lengths * cosine, lengths, middle + across)
    low = np.where(scores <= -lengths * cosine, -lengths, middle - across)
    return low, high


def _blocks(V: FloatArray, directions: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield Vc for some directions at a time, (block, n)."""
    size = max(1, ENTRIES_A_BLOCK // len(V))
    for start in range(0, len(directions), size):
        block = slice(start, start + size)
        yield block, directions[block] @ V.T

r"""Ascent on A itself: from nonnegative sparse vectors up to local maxima of x'Ax.

Three parts, none of which ever lowers x'Ax:

1. Truncated power steps, for all starts at once,

   .. math:: x \leftarrow \frac{T_k^+(Ax)}{\|T_k^+(Ax)\|}

   where :math:`T_k^+` keeps the k largest positive entries. Why x'Ax does not fall: it is convex,
   as A is positive semidefinite, so with g = Ax

   .. math:: y'Ay \ge x'Ax + 2g'(y - x) = 2g'y - x'Ax,

   and the step is the y that maximises g'y over all feasible vectors, x among them: g'y ≥ g'x =
   x'Ax. If g has no positive entry, then x'Ax = g'x ≤ 0: there is no variance along x, and
   the feature of largest variance is better.

2. When a step leaves the support S of x as it was, go straight to the top of S. If the leading
   eigenvector u of :math:`A_{SS}` has one sign it is the best that S can do. If not, take a few
   power steps on S and, if they clear no entry, move from x towards u on the sphere until one is
   zero; leave these features out, and look again. On the circle through x and u the variance is a
   sinusoid with its top at u, so it grows all the way. Then back to 1, which may exchange
   features, until nothing changes. At the end x > 0 is the leading eigenvector of A on its
   support, as it is at every optimum.

3. Optionally, pair swaps: a feature i out, another one j in. The best nonnegative combination of x
   without i and of :math:`e_j` has the larger eigenvalue of a 2×2 matrix, or its larger
   diagonal entry when the two are negatively correlated, and that costs O(1). The most promising
   pairs are tried in full, and the first that helps is taken.

Cost: O(dk) a step and start for a covariance, O(k³) for the top of a support. Passes over the
data: two a step for all starts together, three a look at the swaps.

Guarantee: monotone. Not from a paper; step 1 is the truncated power method of Yuan and Zhang (JMLR
2013) with a nonnegative truncation.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index, Mask
from kspan.covariance import Covariance, MaskedCovariance
from kspan.linalg.nonnegative import towards
from kspan.linalg.rounding import IMPROVEMENT
from kspan.linalg.selection import largest_positive, top_k
from kspan.problem import Choice, NonnegativeProblem, require_count
from kspan.progress import Monitor, Status
from kspan.solvers.loadings import largest_variance, unit_columns
from kspan.solvers.rowsparse.swaps import MAX_IN, MAX_OUT

# Entries of Ax up to this share of the largest are rounding, and not a reason to use a feature.
ROUNDING_SHARE = 1e-13

# An entry of an eigenvector may be this far below zero, and is then zero.
NEGATIVE_TOL = 1e-8

# How many of the pairs of features that go out and come in are tried in full.
N_PAIRS = 16

# Power steps on a support before its eigenvector is asked for again.
INNER_STEPS = 50


@dataclass(frozen=True)
class Ascent:
    """Where an ascent ended.

    Attributes
    ----------
    vectors : (d, s) nonnegative unit columns with at most k features, one for each start
    values : (s,) their variances
    history : the best variance after each step
    n_iter : number of steps
    converged : whether nothing changed in the last step
    """

    vectors: FloatArray
    values: FloatArray
    history: list[float]
    n_iter: int
    converged: bool

    @property
    def best(self) -> FloatArray:
        """The vector with the largest variance."""
        best: FloatArray = self.vectors[:, int(np.argmax(self.values))]
        return best


def ascend(
    covariance: Covariance,
    starts: FloatArray,
    k: int,
    *,
    swaps: bool = False,
    max_iter: int = 500,
    max_sweeps: int = 100,
    monitor: Monitor | None = None,
) -> Ascent:
    """Go from every column of starts up to a local maximum.

    Parameters
    ----------
    covariance : Covariance
        Positive semidefinite.
    starts : (d, s) nonnegative columns
        Cut to the k largest entries and to unit length first. A zero column starts at the
        feature of largest variance.
    k : int
    swaps : bool
        Exchange features as long as that helps, from every local maximum.
    max_iter : steps from one start to a local maximum, at most
    max_sweeps : how often swaps are looked for from one local maximum, at most
    monitor : told after every step, asked whether to stop
    """
    require_count("k", k, 1)
    require_count("max_iter", max_iter, 0)
    ascent = _Climb(covariance, k, max_iter, Monitor("ascent") if monitor is None else monitor)
    X = ascent.feasible(starts)
    converged = False
    try:
        converged = ascent.run(X)
        if swaps and converged:
            converged = ascent.swap(X, max_sweeps)
    except KeyboardInterrupt:
        ascent.monitor.stopped, converged = Status.INTERRUPTED, False
    values = np.sum(X * ascent.products(X), axis=0)
    return Ascent(X, values, ascent.history, ascent.n_iter, converged)


def climb(
    problem: NonnegativeProblem, scores: FloatArray, choice: Choice, monitor: Monitor
) -> Index:
    """Turn a relaxed selection into a support: from the k best scores up to a local maximum.

    Parameters
    ----------
    problem : NonnegativeProblem
    scores : (d,)
    choice : what is left of the problem's, when a search has cut it down
    monitor : asked whether to stop
    """
    covariance = MaskedCovariance(problem.covariance, choice.allowed)
    starts = np.where(choice.allowed, np.sqrt(np.maximum(scores, 0.0)), 0.0)[:, None]
    quiet = monitor.inner(quiet=True)
    return np.flatnonzero(ascend(covariance, starts, choice.size, monitor=quiet).best)


class _Climb:
    """The ascent for a covariance and a k. Vectors are changed in place: always feasible."""

    def __init__(self, covariance: Covariance, k: int, max_iter: int, monitor: Monitor):
        self.covariance, self.k, self.max_iter, self.monitor = covariance, k, max_iter, monitor
        self.variances = covariance.diagonal()
        self.history: list[float] = []
        self.n_iter = 0
        self._tops: dict[bytes, tuple[FloatArray, float]] = {}

    def feasible(self, Y: FloatArray) -> FloatArray:
        """Return unit columns with the k largest positive entries, or a single feature."""
        varied = np.where(self.variances[:, None] > 0, Y, 0.0)
        Y = largest_positive(varied, self.k)
        largest = Y.max(axis=0)
        Y = np.divide(
            Y, largest, where=largest > 0, out=np.zeros_like(Y)
        )  # keeps its length finite
        Y[Y <= ROUNDING_SHARE] = 0.0
        Y[:, ~Y.any(axis=0)] = largest_variance(self.covariance)
        return unit_columns(Y)

    def products(self, X: FloatArray) -> FloatArray:
        """Return A X; only rows of X in use are multiplied."""
        used = np.flatnonzero(X.any(axis=1))
        return self.covariance.matmat(X[used], used)

    def run(self, X: FloatArray) -> bool:
        """Take every column to a local maximum; says whether all arrived."""
        way = _Way(X.shape[1])
        for n_iter in range(self.max_iter + 1):
            AX = self.products(X[:, way.active])
            best = float(np.sum(X[:, way.active] * AX, axis=0).max())
            if self._report(best) or n_iter == self.max_iter:
                break
            self.n_iter += 1
            still = []
            for j, y in zip(way.active, self.feasible(AX).T, strict=True):
                if self.monitor.out_of_time() or self._move(X, j, y, way):
                    still.append(j)
            way.active = still
            if not still:
                break
        way.join(X)
        return not way.active

    def _move(self, X: FloatArray, j: int, y: FloatArray, way: "_Way") -> bool:
        """Move one column to y, or to the top of its support; says whether it goes on."""
        if not np.array_equal(y > 0, X[:, j] > 0):
            X[:, j], way.on_top[j] = y, False
            return True
        if way.on_top[j]:
            return False
        X[:, j], top = self.top(y)
        # Features that are copies of each other may be exchanged for ever.
        if top <= way.last_top[j] * (1 + IMPROVEMENT):
            return False
        way.on_top[j], way.last_top[j] = True, top
        return way.is_first(X[:, j] > 0, j)

    def _report(self, value: float) -> bool:
        """Tell of the best value so far, and return whether to stop."""
        self.history.append(max([value, *self.history[-1:]]))
        return self.monitor.report(self.history[-1])

    def top(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Return the best vector on the support of x, or a local maximum there, and its value."""
        support = np.flatnonzero(x)
        x = x[support]
        while True:
            key = support.tobytes()
            if key in self._tops:
                return self._tops[key]
            part = self.covariance.restrict(support)
            pairs = part.leading(1)
            u = pairs.vectors[:, 0]
            u = u if u @ x >= 0 else -u
            if u.min() >= -NEGATIVE_TOL:
                full = np.zeros_like(self.variances)
                full[support] = np.where(u > ROUNDING_SHARE, u, 0.0)
                full /= np.linalg.norm(full)
                self._tops[key] = full, float(pairs.values[0])
                return self._tops[key]
            # A few cheap steps often clear several features at once; the arc clears at least one.
            x = _inner_steps(part, x)
            if x.all():
                x = towards(x, u)
            support, x = support[x > 0], x[x > 0]

    def swap(self, X: FloatArray, max_sweeps: int) -> bool:
        """Exchange features in every column while that helps; says whether no swap is left."""
        done: dict[bytes, int] = {}
        complete = True
        for j in range(X.shape[1]):
            twin = done.setdefault((X[:, j] > 0).tobytes(), j)
            if twin != j:
                X[:, j] = X[:, twin]
                continue
            for _ in range(max_sweeps):
                if self.monitor.out_of_time():
                    return False
                better = self._swapped(X[:, j])
                if better is None:
                    break
                X[:, j] = better
                if not self.run(X[:, j : j + 1]):
                    return False
            else:
                complete = False
        return complete

    def _swapped(self, x: FloatArray) -> FloatArray | None:
        """Return a better vector with one feature exchanged, or None if none was found."""
        g = self.products(x[:, None])[:, 0]
        value = float(x @ g)
        outside = np.flatnonzero((x == 0) & (self.variances > 0))
        gains = _combined(value, g[outside], self.variances[outside])
        ins = outside[top_k(gains, MAX_IN)]
        support = np.flatnonzero(x)
        weights = x[support]
        # What is left of x without i, of unit length: its value, and its products with A.
        left = np.sqrt(np.maximum(1.0 - weights**2, 0.0))
        rest = value - 2 * weights * g[support] + weights**2 * self.variances[support]
        rest = np.divide(rest, left**2, where=left > NEGATIVE_TOL, out=np.zeros_like(rest))
        outs = top_k(rest, MAX_OUT)
        if not ins.size:
            return None
        support, weights, left, rest = support[outs], weights[outs], left[outs], rest[outs]
        cross = self.covariance.columns(support)[ins].T
        # Without its only feature nothing is left of x.
        inverse = np.divide(1.0, left, where=left > NEGATIVE_TOL, out=np.zeros_like(left))
        coupling = (g[ins] - weights[:, None] * cross) * inverse[:, None]
        scores = _combined(rest[:, None], coupling, self.variances[ins])
        best = top_k(scores.ravel(), N_PAIRS)
        ranked = best[np.argsort(-scores.ravel()[best], kind="stable")]
        for i, j in zip(*np.unravel_index(ranked, scores.shape), strict=True):
            trial = x.copy()
            trial[support[i]] = 0.0
            trial[ins[j]] = max(weights[i], NEGATIVE_TOL)
            found, top = self.top(trial / np.linalg.norm(trial))
            if top > value * (1 + IMPROVEMENT):
                return found
        return None


class _Way:
    """How far the columns have got.

    Attributes
    ----------
    active : those that are still on their way
    on_top, last_top : is it at the top of its support, and what was the last top it came to
    """

    def __init__(self, n: int):
        self.active = list(range(n))
        self.on_top = np.zeros(n, dtype=bool)
        self.last_top = np.zeros(n)
        self._first: dict[bytes, int] = {}  # who came to the top of a support first,
        self._follows: dict[int, int] = {}  # and who came later, and goes the same way from there

    def is_first(self, inside: Mask, j: int) -> bool:
        """Say whether nobody was at the top of this support before; else j follows that one."""
        other = self._first.setdefault(inside.tobytes(), j)
        if other != j:
            self._follows[j] = other
        return other == j

    def join(self, X: FloatArray) -> None:
        """Take those who followed to where the others went."""
        for j, end in self._follows.items():
            while end in self._follows:  # tops only get higher, so nobody follows in circles
                end = self._follows[end]
            X[:, j] = X[:, end]


def _combined(one: FloatArray | float, coupling: FloatArray, other: FloatArray) -> FloatArray:
    """Return the largest variance of nonnegative combinations of two orthonormal vectors."""
    middle, half = (one + other) / 2, (one - other) / 2
    return middle + np.hypot(half, np.maximum(coupling, 0.0))


def _inner_steps(part: Covariance, x: FloatArray) -> FloatArray:
    """Take nonnegative power steps on a support, until an entry is zero."""
    for _ in range(INNER_STEPS):
        y = np.maximum(part.matmat(x[:, None])[:, 0], 0.0)
        largest = float(y.max())
        if largest == 0:
            break
        y /= largest
        x = y / np.linalg.norm(y)
        if not x.all():
            break
    return x

r"""The optimum of orthonormal components with supports of their own, by enumeration.

Not convex even for given supports, so that both sides are computed: what is reached, and what is
proved to be out of reach. Supports that share nothing are settled by eigenvalues. Two that share
one feature only cannot both use it: either one goes without. Of two that share more, u is on a line
h within the shared features and v orthogonal to it there, so that with C the shared features

.. math:: \max_{h ∈ C, \|h\| = 1}
    λ_{max}(A \text{ on } S \setminus C, h) + λ_{max}(A \text{ on } T \setminus C, h^⊥)

is the answer. When h turns by an angle φ each eigenvalue changes by at most φ times the spread of
those of A on its support (the derivative of v'Av is 2v'(A - cI)Jv, Jv orthogonal to v and no
longer than one), so that a search over cells of directions has bounds. Three that share more are
left between what alternating reaches and Ky Fan's sum.

`Enumeration` is in doubles, with bounds on both sides. `JointTruth` is what the fuzzer asks: in
extended precision, exact but for supports that share two features and more. There it has what some
loadings reach, to the last digit, and the smaller one of Ky Fan's sum and of the sum of the largest
eigenvalues, between which the optimum is.
"""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from benchmarks.soundness.oracle import TIED, Truth, exact

# Cells of directions are divided until they cannot hold more than this share above the best.
PRECISION, MOST_CELLS = 1e-5, 20_000

# Random starts and steps of the search for loadings: on patterns that might be the best, then on
# the best of these.
MOST_SETTLED, N_STARTS, N_STEPS = 400, 3, 30
N_BEST, N_MORE_STARTS, N_MORE_STEPS = 6, 8, 400

# Entries that are taken for zero before loadings are made orthonormal.
NOTHING = 1e-10

Supports = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Limits:
    """What is asked: at most so many features in each component, and in all of them together."""

    n_features: int
    limits: tuple[int, ...]
    total: int
    disjoint: bool = False

    def allow(self, mask: Any) -> bool:
        """Say whether a pattern (d, r) is feasible."""
        sizes = mask.sum(axis=0)
        if mask.shape != (self.n_features, len(self.limits)) or not sizes.all():
            return False
        if (sizes > self.limits).any() or sizes.sum() > self.total:
            return False
        return not (self.disjoint and (mask.sum(axis=1) > 1).any())


class Enumeration:
    """All that is asked of one matrix; its entries are of order one."""

    def __init__(self, A):
        self.A = A
        self._sums = {}
        self._pairs = {}

    def sums(self, S):
        """Return the sums of the largest eigenvalues on a support, of one, two, ..."""
        if S not in self._sums:
            self._sums[S] = np.cumsum(np.linalg.eigvalsh(self.A[np.ix_(S, S)])[::-1])
        return self._sums[S]

    def leading(self, S):
        """Return the largest eigenvalue on a support; none is no component."""
        return self.sums(S)[0] if S else -np.inf

    def quick(self, supports):
        """Return an upper bound without a search."""
        together = tuple(sorted(set().union(*supports)))
        if len(together) < len(supports):
            return -np.inf
        return min(sum(map(self.leading, supports)), self.sums(together)[len(supports) - 1])

    def settle(self, supports):
        """Return what is reached on supports, and what is not exceeded there."""
        if self.quick(supports) == -np.inf:
            return -np.inf, -np.inf
        for a, b in combinations(range(len(supports)), 2):
            shared = set(supports[a]) & set(supports[b])
            if len(shared) == 1:
                found = []
                for t in (a, b):
                    rest = tuple(i for i in supports[t] if i not in shared)
                    found.append(self.settle((*supports[:t], rest, *supports[t + 1 :])))
                return tuple(map(max, zip(*found, strict=True)))
        reached = above = 0.0
        for group in _groups(supports):
            low, high = self.settle_group(tuple(sorted(group)))
            reached, above = reached + low, above + high
        return reached, above

    def settle_group(self, supports):
        """The same for supports that share two features and more."""
        if len(supports) == 1:
            return (self.leading(supports[0]),) * 2
        high = self.quick(supports)
        if len(set(supports)) == 1:  # a common space, of which the best part is taken
            return high, high
        if len(supports) == 2:
            if supports not in self._pairs:
                self._pairs[supports] = self.search(*supports)
            return self._pairs[supports]
        return self.alternate(supports), high

    def search(self, S, T):
        """Return what directions of the shared features reach, and what they do not exceed."""
        C = sorted(set(S) & set(T))
        n, cells = len(C), []
        spread = sum(np.ptp(np.linalg.eigvalsh(self.A[np.ix_(R, R)])) for R in (S, T))
        for face in range(n):  # of a cube around the sphere; -h is as good as h
            cells += [np.insert(np.zeros(n - 1), face, 1.0)]
        cells, width, best, gone = np.array(cells), 1.0, -np.inf, -np.inf
        while True:
            values = self.values(S, T, C, cells)
            best = max(best, float(values.max()))
            bounds = values + spread * width * np.sqrt(n - 1)
            left = bounds > best + PRECISION
            gone = max(gone, float(bounds[~left].max(initial=-np.inf)))
            if not left.any() or left.sum() * 2 ** (n - 1) > MOST_CELLS:
                above = max(best, gone, float(bounds[left].max(initial=-np.inf)))
                return best, min(above, self.quick((S, T)))
            width /= 2
            cells = np.concatenate([_divided(cell, width) for cell in cells[left]])

    def values(self, S, T, C, directions):
        """Return what u on a direction of C and v orthogonal to it there reach."""
        A, h = self.A, directions / np.linalg.norm(directions, axis=1)[:, None]
        own = [i for i in S if i not in C]
        size = len(own) + 1
        first = np.empty((len(h), size, size))
        first[:, :-1, :-1] = A[np.ix_(own, own)]
        first[:, :-1, -1] = first[:, -1, :-1] = h @ A[np.ix_(C, own)]
        first[:, -1, -1] = np.einsum("ci,ij,cj->c", h, A[np.ix_(C, C)], h)
        line = np.zeros((len(h), len(T)))
        line[:, [T.index(i) for i in C]] = h
        away = np.eye(len(T)) - line[:, :, None] * line[:, None, :]
        second = away @ A[np.ix_(T, T)] @ away  # h itself has the value zero, and A is PSD
        return np.linalg.eigvalsh(first)[:, -1] + np.linalg.eigvalsh(second)[:, -1]

    def alternate(self, supports):
        """Return what one component after the other reaches, each orthogonal to the others."""
        rng, best = np.random.default_rng(0), -np.inf
        for _ in range(6):
            U = [np.zeros(len(self.A)) for _ in supports]
            for step in range(8 * len(supports)):
                t = step % len(supports)
                others = np.array([u for s, u in enumerate(U) if s != t and u.any()])
                basis = np.eye(len(self.A))[:, supports[t]]
                if others.size:
                    _, sizes, rows = np.linalg.svd(others @ basis)
                    basis = basis @ rows[(sizes > 1e-9).sum() :].T
                if not basis.shape[1]:
                    break
                B = basis.T @ self.A @ basis
                mix = np.linalg.eigh(B)[1][:, -1] if step >= len(supports) else None
                x = basis @ (rng.standard_normal(basis.shape[1]) if mix is None else mix)
                U[t] = x / np.linalg.norm(x)
            else:
                best = max(best, sum(float(u @ self.A @ u) for u in U))
        return best


class JointTruth(Enumeration):
    """Between which numbers the optimum is, in extended precision.

    Attributes
    ----------
    reached, above : what some loadings reach, and no loadings exceed
        The same number but for rounding where all supports that come into question share at most
        one feature, or all. Elsewhere `reached` is from a search: true, but maybe short of the
        optimum. In 47 such problems the loadings that kspan has proved were better by more than
        1e-13 four times, by 4e-5 at most.
    """

    def __init__(self, truth: Truth, limits: Limits):
        # The search for loadings is in doubles, the judgement of what it finds is not.
        super().__init__((truth.A / np.diagonal(truth.A).max()).astype(np.float64))
        self.truth, self.limits = truth, limits
        bounds = {supports: self.quick(supports) for supports in all_patterns(limits)}
        self.found: dict[Supports, tuple[Any, Any]] = {}
        self.reached, unsettled = -np.longdouble(np.inf), []
        for n_before, supports in enumerate(sorted(bounds, key=lambda one: (-bounds[one], one))):
            low, high = -np.inf, bounds[supports]
            if n_before < MOST_SETTLED and high >= self.reached * (1 - TIED):
                low, high = self.settle(supports)
                unsettled += [supports] if low < high else []
            self.found[supports] = low, high
            self.reached = max(self.reached, low)
        self.above = max(high for _, high in self.found.values())
        self.look_at(unsettled, N_STARTS, N_STEPS)
        best = sorted(unsettled, key=lambda one: -self.found[one][0])[:N_BEST]
        self.look_at(best, N_MORE_STARTS, N_MORE_STEPS)

    def look_at(self, patterns: list[Supports], n_starts: int, n_steps: int) -> None:
        """Find loadings on patterns that are not settled."""
        # Those that cannot be better need no search.
        patterns = [one for one in patterns if self.found[one][1] > self.reached]
        if not patterns:
            return
        shape = (len(self.A), len(self.limits.limits))
        masks = np.zeros((len(patterns), *shape), dtype=bool)
        for mask, supports in zip(masks, patterns, strict=True):
            for t, S in enumerate(supports):
                mask[list(S), t] = True
        masks = np.repeat(masks, n_starts, axis=0)
        begin = np.random.default_rng(0).standard_normal(masks.shape)
        tops = ascended(self.A, masks, begin, n_steps)
        for place, supports in enumerate(patterns):
            own = tops[place * n_starts : (place + 1) * n_starts]
            rough = np.einsum("bit,ij,bjt->b", own, self.A, own)
            for U in own[np.argsort(-rough)[:2]]:
                low, high = self.found[supports]
                low = max(low, self.value(U, supports))
                self.found[supports] = low, high
                self.reached = max(self.reached, low)

    def sums(self, S):
        """See `Enumeration.sums`."""
        if S not in self._sums:
            supports, values, _ = self.truth.table(len(S))
            for support, own in zip(supports.tolist(), values.cumsum(axis=1), strict=True):
                self._sums[tuple(support)] = own
        return self._sums[S]

    def settle_group(self, supports):
        """See `Enumeration.settle_group`; what others reach is left to `look_at`."""
        if len(set(supports)) == 1:
            return super().settle_group(supports)
        return -np.longdouble(np.inf), self.quick(supports)

    def value(self, U, supports):
        """Return what loadings near given ones reach that are orthonormal to the last digit."""
        done: list[Any] = []
        for u, S in zip(exact(np.where(np.abs(U) > NOTHING, U, 0)).T, supports, strict=True):
            S = list(S)
            others: list[Any] = []
            for other in done:  # an orthonormal basis of what u must be orthogonal to
                part = other[S]
                for q in [*others, *others]:
                    part = part - q * (q @ part)
                length = np.sqrt(part @ part)
                if length > NOTHING:
                    others.append(part / length)
                elif length > TIED:
                    return -np.longdouble(np.inf)  # too little to divide by
            x = u[S]
            for q in [*others, *others]:
                x = x - q * (q @ x)
            if not x @ x > 0.25:
                return -np.longdouble(np.inf)
            whole = np.zeros_like(u)
            whole[S] = x / np.sqrt(x @ x)
            done.append(whole)
        return sum(x @ self.truth.A @ x for x in done)

    # --- what certificates claim

    def optimal(self) -> list[Supports]:
        """Return patterns that are optimal for sure: no other one exceeds what they reach."""
        first, second = sorted([-np.inf, *(high for _, high in self.found.values())])[:-3:-1]
        return [
            supports
            for supports, (low, high) in self.found.items()
            if low >= (second if high == first else first) * (1 - TIED)
        ]

    def above_on(self, mask: Any) -> Any:
        """Return what is not exceeded on one pattern (d, r)."""
        return self.settle(tuple(tuple(np.flatnonzero(own).tolist()) for own in mask.T))[1]


def ascended(A, masks, U, n_steps):
    """Return orthonormal loadings with given zeros that explain much, from any start; a stack.

    Steps along the gradient in the tangent space, and back to the feasible set by Gauss and Newton.
    """
    size = np.linalg.eigvalsh(A)[-1]
    U = _orthonormal(masks * U / np.sqrt(len(A)), masks, 12)
    value = np.einsum("bit,ij,bjt->b", U, A, U)
    length = np.full(len(U), 1 / size)
    for _ in range(n_steps):
        gradient = masks * (A @ U)
        slope = _normal_part(U, masks, lambda L, g=gradient: np.einsum("bcit,bit->bc", L, g))
        new = _orthonormal(U + length[:, None, None] * (gradient - slope), masks, 4)
        found = np.einsum("bit,ij,bjt->b", new, A, new)
        off = np.abs(new.swapaxes(1, 2) @ new - np.eye(U.shape[2])).max(axis=(1, 2))
        better = (found >= value) & (off < 1e-9)
        # A start that is not feasible yet takes whatever is.
        begun = np.abs(U.swapaxes(1, 2) @ U - np.eye(U.shape[2])).max(axis=(1, 2)) < 1e-9
        better |= ~begun
        U = np.where(better[:, None, None], new, U)
        value = np.where(better, found, value)
        length = np.where(better, 1.5 * length, 0.3 * length)
    return U


def _orthonormal(U, masks, n_steps):
    """Return loadings nearby that are orthonormal, or closer to it."""
    r = U.shape[2]
    first, second = np.triu_indices(r)
    for _ in range(n_steps):
        off = (U.swapaxes(1, 2) @ U - np.eye(r))[:, first, second]
        U = U - _normal_part(U, masks, lambda L, off=off: off)
    return U


def _normal_part(U, masks, wanted):
    """Return the shortest change that changes the products of columns by `wanted`."""
    r = U.shape[2]
    first, second = np.triu_indices(r)
    L = np.zeros((len(U), first.size, *U.shape[1:]))
    for c, (s, t) in enumerate(zip(first, second, strict=True)):
        L[:, c, :, s] += masks[:, :, s] * U[:, :, t]
        L[:, c, :, t] += masks[:, :, t] * U[:, :, s]
    gram = np.einsum("bcit,beit->bce", L, L) + 1e-13 * np.eye(first.size)
    return np.einsum("bcit,bc->bit", L, np.linalg.solve(gram, wanted(L)[:, :, None])[:, :, 0])


def _divided(cell, width):
    """Return the parts of a cell of a face of the cube."""
    face = int(np.argmax(cell == 1.0)) if (cell == 1.0).any() else 0
    steps = product((-width, width), repeat=cell.size - 1)
    return np.array([cell + np.insert(step, face, 0.0) for step in steps])


def _groups(supports):
    """Return the supports in groups that share nothing with each other."""
    groups = []
    for S in supports:
        touched = [group for group in groups if any(set(S) & set(R) for R in group)]
        groups = [group for group in groups if group not in touched]
        groups.append([S, *(R for group in touched for R in group)])
    return groups


def interval(A, patterns):
    """Return two numbers with the optimum between them, in units of the largest variance of A.

    `patterns` are `Limits`, or anything that has the same attributes.
    """
    A = A / np.diag(A).max()
    if patterns.disjoint:
        best = _disjoint(A, patterns)
        return best, best
    whole = Enumeration(A)
    found = {supports: whole.quick(supports) for supports in all_patterns(patterns)}
    reached = above = -np.inf
    for supports in sorted(found, key=lambda key: -found[key]):
        if found[supports] <= reached:
            break
        low, high = whole.settle(supports)
        reached, above = max(reached, low), max(above, high)
    return reached, max(reached, above)


def all_patterns(patterns) -> set[Supports]:
    """Return all patterns that no other one contains, whatever the order of the components."""
    limits = [int(limit) for limit in patterns.limits]
    most = min(patterns.total, sum(limits))
    most = min(most, patterns.n_features) if patterns.disjoint else most
    found: set[Supports] = set()
    for sizes in product(*(range(1, limit + 1) for limit in limits)):
        if sum(sizes) == most:
            each = [combinations(range(patterns.n_features), size) for size in sizes]
            for supports in product(*each):
                if not patterns.disjoint or len(set().union(*supports)) == most:
                    found.add(tuple(sorted(supports)))
    return found


def _disjoint(A, patterns):
    """Return the best sum of eigenvalues on disjoint supports, component after component."""
    d = len(A)
    subsets = {
        sum(1 << i for i in S): float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
        for size in range(1, int(max(patterns.limits)) + 1)
        for S in combinations(range(d), size)
    }
    best = {0: 0.0}
    for limit in patterns.limits:
        longer = {}
        for used, value in best.items():
            for S, more in subsets.items():
                if not used & S and S.bit_count() <= limit:
                    longer[used | S] = max(longer.get(used | S, 0.0), value + more)
        best = longer
    return max(value for used, value in best.items() if used.bit_count() <= patterns.total)

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
"""

from itertools import combinations, product

import numpy as np

from kspan.problem import Patterns

# Cells of directions are divided until they cannot hold more than this share above the best.
PRECISION, MOST_CELLS = 1e-5, 20_000


class Enumeration:
    """All that is asked of one matrix; its entries are of order one."""

    def __init__(self, A):
        self.A = A
        self._leading = {}
        self._pairs = {}

    def leading(self, S):
        """Return the largest eigenvalue on a support; none is no component."""
        if S not in self._leading:
            ends = np.linalg.eigvalsh(self.A[np.ix_(S, S)]) if S else np.array([-np.inf])
            self._leading[S] = float(ends[-1])
        return self._leading[S]

    def quick(self, supports):
        """Return an upper bound without a search."""
        together = sorted(set().union(*supports))
        values = np.linalg.eigvalsh(self.A[np.ix_(together, together)])[-len(supports) :]
        whole = values.sum() if len(together) >= len(supports) else -np.inf
        return min(sum(map(self.leading, supports)), float(whole))

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


def interval(A, patterns: Patterns):
    """Return two numbers with the optimum between them, in units of the largest variance of A."""
    A = A / np.diag(A).max()
    if patterns.disjoint:
        best = _disjoint(A, patterns)
        return best, best
    whole = Enumeration(A)
    found = {supports: whole.quick(supports) for supports in _patterns(patterns)}
    reached = above = -np.inf
    for supports in sorted(found, key=lambda key: -found[key]):
        if found[supports] <= reached:
            break
        low, high = whole.settle(supports)
        reached, above = max(reached, low), max(above, high)
    return reached, max(reached, above)


def _patterns(patterns):
    """Return all patterns that no other one contains, whatever the order of the components."""
    limits = [int(limit) for limit in patterns.limits]
    most = min(patterns.total, sum(limits))
    found = set()
    for sizes in product(*(range(1, limit + 1) for limit in limits)):
        if sum(sizes) == most:
            each = [combinations(range(patterns.n_features), size) for size in sizes]
            found |= {tuple(sorted(supports)) for supports in product(*each)}
    return found


def _disjoint(A, patterns):
    """Return the best sum of eigenvalues on disjoint supports, component after component."""
    d = len(A)
    subsets = {
        sum(1 << i for i in S): float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
        for size in range(1, int(patterns.limits.max()) + 1)
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

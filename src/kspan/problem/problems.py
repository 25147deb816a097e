"""What is asked: which covariance, how many components, how many features."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.linalg.eigen import leading_stack
from kspan.linalg.nonnegative import best_on_support
from kspan.linalg.rounding import IMPROVEMENT, UNIT
from kspan.linalg.stiefel import distance_to_orthonormal
from kspan.problem.choice import Choice, is_count
from kspan.problem.patterns import Patterns
from kspan.problem.shared_features import SharedFeatures
from kspan.problem.solution import Candidate, LoadingsSolution, Outlook, Solution

# Up to this many features, the eigenproblems of many supports are solved in one call: there the
# overhead of a call is more than the work in it.
STACK_LIMIT = 32

# W'W may differ from the identity by this much.
LENGTH_SLACK = 1e-9

# Entries of loadings up to one of these sizes may be what rounding left of a zero.
HARDLY_THERE = (0.0, 1e-14, 1e-11)


def explained_at_least(
    covariance: Covariance, support: Index, weights: FloatArray, m: int
) -> float:
    r"""Return tr(W'A_SSW), rounded downwards; `ValueError` unless W is (k, m) and orthonormal.

    If W'W is at most (1 + δ)I, then WW'/(1 + δ) is between 0 and I, has rank m, and no such matrix
    explains more than m leading eigenvectors do. Computing w'Aw is off by (3k+8)u times |w|'|A||w|,
    and that is at most tr A_SS for a unit vector, as :math:`|a_{ij}| \le \sqrt{a_{ii}a_{jj}}` (if A
    lacks positive semidefiniteness, of A with its slack on the diagonal); of A itself
    `Covariance.entry_errors` says how well it is known.
    """
    W, k = weights, support.size
    if not (isinstance(W, np.ndarray) and W.dtype == np.float64 and W.shape == (k, m)):
        raise ValueError("weights: do not fit the support")
    distance = float(np.linalg.norm(W.T @ W - np.eye(m))) if np.isfinite(W).all() else np.inf
    if not distance <= LENGTH_SLACK:
        raise ValueError("weights: are not orthonormal")
    trace = largest_trace(covariance, support)
    if covariance.is_wide and k > (covariance.n_samples or 0):
        X = covariance.sample_factor(support)
        assert X is not None
        value = float(np.sum((X @ W) ** 2))
    else:
        value = float(np.einsum("ij,ij->", W, covariance.submatrix(support) @ W))
    value /= 1 + distance + 4 * k * m * UNIT
    rounding = m * (3 * k + 16) * UNIT * trace
    errors = np.sqrt(m) * float(covariance.entry_errors()[support].sum())
    # Entries of features that look constant are of the size of their errors, and rounded too.
    return max(float(value - rounding - (1 + (8 * m * k + 64) * UNIT) * errors), 0.0)


def largest_trace(covariance: Covariance, support: Index) -> float:
    """Return what no eigenvalue of A on a support exceeds in size: its trace, and its slack."""
    return float((covariance.diagonal() + covariance.psd_slack())[support].sum())


@dataclass(frozen=True, init=False, eq=False)
class RowSparseProblem(SharedFeatures):
    r"""Find k features whose m principal components explain the most variance.

    .. math:: \max_{W \in R^{d \times m}} \mathrm{tr}(W'AW)
              \quad W'W = I,\; \text{at most } k \text{ nonzero rows}

    Parameters
    ----------
    covariance : Covariance
        A, from `as_covariance`.
    n_components : int
        m.
    n_features_to_select : int or Choice
        k, with m ≤ k ≤ d; or all rules about the features at once, and then without the next two.
    include, exclude : sequences of int
        Features that must, and must not, be chosen.

    Attributes
    ----------
    choice : Choice
        Which features may be chosen together.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import RowSparseProblem, as_covariance
    >>> A = as_covariance(np.diag([3.0, 1.0, 2.0]), kind="covariance")
    >>> problem = RowSparseProblem(A, n_components=1, n_features_to_select=2)
    >>> problem.select(np.array([0.1, 0.3, 0.2]))
    array([1, 2])
    """

    kind: ClassVar[str] = "row-sparse"

    def inside(self, features: Index) -> "RowSparseProblem":
        """Return the problem on some features alone, numbered anew."""
        covariance = self.covariance.restrict(features)
        return self.changed(covariance=covariance, choice=self.choice.on(features))

    def best_from(self, x: FloatArray) -> Candidate:
        """Return a (d,) unit vector with at most k entries as a point, or a better one near it.

        Of problems with one component. The features that it does not use are those that a step of
        the power method would add.
        """
        used = np.flatnonzero(x)
        if used.size > self.choice.size:
            raise ValueError(
                f"A component has {used.size} features, and {self.choice.size} are allowed."
            )
        scores = np.abs(self.covariance.matmat(x[used, None], used)[:, 0])
        scores /= scores.max() or 1.0
        scores[used] += 2.0
        support = self.select(scores)
        if not np.isin(used, support).all():  # constant ones come last in `select`
            support = self.choice.select(scores)
        refitted, given = self.refit(support), x[support]
        value = float(given @ self.covariance.submatrix(support) @ given)
        if refitted.objective > value * (1 + IMPROVEMENT):
            return refitted
        return Candidate(support, given[:, None], np.array([max(value, 0.0)]))

    def explained_at_least(self, support: Index, weights: FloatArray) -> float:
        """See `SharedFeatures.explained_at_least`."""
        return explained_at_least(self.covariance, support, weights, self.n_components)

    def refit(self, support: Index) -> Candidate:
        """Return the best point on a support: the m leading eigenvectors of ``A_SS``."""
        pairs = self.covariance.leading(self.n_components, support)
        return Candidate(support, pairs.vectors, self._variances(pairs.values))

    def _variances(self, eigenvalues: FloatArray) -> FloatArray:
        """Return what eigenvectors explain: nothing below zero, unless A is known to."""
        if self.covariance.indefiniteness:
            return eigenvalues
        return np.maximum(eigenvalues, 0.0)

    def refit_all(self, supports: Sequence[Index]) -> list[Candidate]:
        """Return `refit` of every support; many small eigenproblems are solved in one call."""
        if len(supports) == 1 or self.n_features_to_select > STACK_LIMIT:
            return [self.refit(support) for support in supports]
        if len({support.size for support in supports}) > 1:
            return _by_size(supports, self.refit_all)
        stack = self.covariance.submatrices(np.stack(supports))
        values, vectors = leading_stack(stack, self.n_components)
        values = self._variances(values)
        return [Candidate(*parts) for parts in zip(supports, vectors, values, strict=True)]

    def on_span(self, support: Index, basis: FloatArray) -> Candidate:
        """Return the point with the span of a (k, m) basis on a support, in principal axes."""
        return self.on_spans([support], [basis])[0]

    def on_spans(self, supports: Sequence[Index], bases: Sequence[FloatArray]) -> list[Candidate]:
        """Return `on_span` of every pair."""
        if len({support.size for support in supports}) > 1:
            return [self.on_span(*pair) for pair in zip(supports, bases, strict=True)]
        Q = np.linalg.qr(_unit_scale(np.stack(bases)))[0]
        stack = self.covariance.submatrices(np.stack(supports))
        inside = Q.swapaxes(1, 2) @ stack @ Q
        values, rotations = leading_stack((inside + inside.swapaxes(1, 2)) / 2, self.n_components)
        weights, values = Q @ rotations, self._variances(values)
        return [Candidate(*parts) for parts in zip(supports, weights, values, strict=True)]


# Bounds a problem, from the best point that is known: how a search learns that it is done.
Look = Callable[[RowSparseProblem, Candidate], Outlook]


def _by_size(
    supports: Sequence[Index], work: Callable[[Sequence[Index]], list[Candidate]]
) -> list[Candidate]:
    """Do the work on supports of the same size at a time; what comes of it is in their order."""
    found: dict[int, Candidate] = {}
    for size in sorted({support.size for support in supports}):
        places = [place for place, support in enumerate(supports) if support.size == size]
        found |= zip(places, work([supports[place] for place in places]), strict=True)
    return [found[place] for place in range(len(supports))]


@dataclass(frozen=True)
class _OwnFeatures:
    """What problems have in which every component has features of its own."""

    covariance: Covariance
    n_components: int

    def __post_init__(self) -> None:
        self._require_features("n_components")

    @property
    def n_features(self) -> int:
        """The number d of features to choose from."""
        return self.covariance.n_features

    def _require_features(self, name: str) -> None:
        """Raise `ValueError` unless a number is between 1 and d; make it an int."""
        value = getattr(self, name)
        if not is_count(value) or not 1 <= value <= self.n_features:
            raise ValueError(
                f"{name} must be an integer between 1 and n_features={self.n_features}, got "
                f"{value!r}."
            )
        object.__setattr__(self, name, int(value))


@dataclass(frozen=True)
class ElementSparseProblem(_OwnFeatures):
    """Find m sparse components, each with k features of its own.

    Parameters
    ----------
    covariance : Covariance
    n_components : int
        m.
    n_nonzero_coefs : int
        k, the number of features in each component.
    """

    n_nonzero_coefs: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_features("n_nonzero_coefs")

    def alone(self, left: Covariance) -> Any:
        """Return the problem of one component in what is left of A, which proofs are about."""
        return RowSparseProblem(left, 1, self.n_nonzero_coefs)

    def single(self) -> Any:
        """Return `alone` of A itself; `ValueError` if there are more components."""
        if self.n_components != 1:
            raise ValueError(
                "A certificate is about one component: `kspan.solving.component_problems` makes "
                "one problem for each."
            )
        return self.alone(self.covariance)

    def point_of(self, solution: Solution | LoadingsSolution) -> Candidate:
        """Return the vector of a solution with one component, or a better one on its features."""
        single, x = self.single(), solution.loadings
        if x.shape != (self.n_features, 1):
            raise ValueError("The solution belongs to a problem with other features or components.")
        found: Candidate = single.best_from(x[:, 0])
        return found


@dataclass(frozen=True)
class NonnegativeProblem(ElementSparseProblem):
    r"""Find components with at most k features each and no negative loading.

    .. math:: \max_x x'Ax \quad \|x\|_2 = 1,\; x \ge 0,\; \|x\|_0 \le k

    is one component; the next one solves the same problem for what a deflation has left of A.

    Parameters
    ----------
    covariance : Covariance
        A, from `as_covariance`.
    n_components : int
        m.
    n_nonzero_coefs : int
        k, the largest number of features in a component.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import NonnegativeProblem, as_covariance, solve
    >>> A = np.array([[2.0, 1.0, -1.0], [1.0, 2.0, 0.0], [-1.0, 0.0, 2.0]])
    >>> problem = NonnegativeProblem(as_covariance(A, kind="covariance"), 1, 2)
    >>> solve(problem, random_state=0).loadings[:, 0].round(3)
    array([0.707, 0.707, 0.   ])
    """

    kind: ClassVar[str] = "nonnegative"
    nonnegative: ClassVar[bool] = True

    @cached_property
    def choice(self) -> Choice:
        """At most k of the features that vary."""
        varies = self.covariance.diagonal() > 0
        return Choice(self.n_nonzero_coefs, np.zeros_like(varies), varies, at_most=True)

    def alone(self, left: Covariance) -> "NonnegativeProblem":
        """Return the problem of one component in what is left of A."""
        return NonnegativeProblem(left, 1, self.n_nonzero_coefs)

    def best_from(self, x: FloatArray) -> Candidate:
        """Return a (d,) vector as a point, or a better one on its support."""
        support = np.flatnonzero(x)
        if not (x >= 0).all() or not 1 <= support.size <= self.n_nonzero_coefs:
            raise ValueError("The solution has negative loadings, or more than n_nonzero_coefs.")
        given, refitted = self.on_vector(support, x[support]), self.refit(support)
        return refitted if refitted.objective > given.objective * (1 + IMPROVEMENT) else given

    def claimed_value(self, support: Index, weights: FloatArray) -> float:
        """Return x'Ax at least, for a nonnegative unit vector x on a support.

        `ValueError` for others.
        """
        if self.n_components != 1:
            raise ValueError("problem: a certificate is about one nonnegative component")
        if not 1 <= support.size <= self.n_nonzero_coefs:
            raise ValueError("support: has a wrong size")
        value = explained_at_least(self.covariance, support, weights, 1)
        if not (weights >= 0).all():
            raise ValueError("weights: are not all nonnegative")
        return value

    def refit(self, support: Index) -> Candidate:
        """Return a local maximum on a support, the best there when the signs agree."""
        support = np.sort(support)
        A = self.covariance.submatrix(support)
        size = float(np.abs(A).max()) or 1.0
        return self.on_vector(support, best_on_support(A / size)[0])

    def on_vector(self, support: Index, x: FloatArray) -> Candidate:
        """Return the point with the entries x, nonnegative and not all zero, on a support."""
        used = x > 0
        support, x = support[used], x[used] / np.linalg.norm(x[used])
        value = float(x @ self.covariance.submatrix(support) @ x)
        return Candidate(support, x[:, None], np.array([max(value, 0.0)]))


def _unit_scale(bases: FloatArray) -> FloatArray:
    """Divide each of a stack of bases by its largest entry, so that QR stays in range."""
    size = np.abs(bases).max(axis=(1, 2), keepdims=True)
    return np.divide(bases, size, where=size > 0, out=np.zeros_like(bases))


@dataclass(frozen=True)
class StiefelProblem(_OwnFeatures):
    r"""Find m sparse components that stay orthonormal: sparse by a penalty, or by counts.

    .. math:: \min_{V'V = I} -\tfrac12 \mathrm{tr}(V'AV) + α\,Ω(V)
              \qquad\text{or}\qquad
              \max_{V'V = I} \mathrm{tr}(V'AV), \quad \|v_t\|_0 \le k_t

    Parameters
    ----------
    covariance : Covariance
    n_components : int
        m.
    alpha : float
        Weight of the penalty, in the units of a variance.
    penalty : {"l1", "l21"}
        Ω: the sum of all sizes, or of the lengths of the rows, which leaves whole features out.
    patterns : Patterns, optional
        How many features each component may use, and all of them; then there is no penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import as_covariance
    >>> from kspan.problem import Patterns, StiefelProblem
    >>> A = as_covariance(np.diag([3.0, 1.0, 2.0]), kind="covariance")
    >>> problem = StiefelProblem(A, 2, patterns=Patterns.of(3, 2, n_nonzero_coefs=1))
    >>> problem.patterns.limits
    array([1, 1])
    """

    kind: ClassVar[str] = "orthogonal"
    nonnegative: ClassVar[bool] = False

    alpha: float = 0.0
    penalty: str = "l1"
    patterns: Patterns | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patterns is not None:
            shape = self.patterns.n_features, self.patterns.n_components
            if shape != (self.n_features, self.n_components):
                raise ValueError("The patterns are for other numbers of features and components.")
            if self.alpha:
                raise ValueError("Give a penalty (alpha) or patterns, not both.")
            return
        if self.penalty not in ("l1", "l21"):
            raise ValueError(f"penalty must be 'l1' or 'l21', got {self.penalty!r}.")
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be a finite number, 0 or more, got {self.alpha!r}.")
        largest = self.largest_alpha
        if self.alpha > largest * (1 + 1e-9):
            raise ValueError(
                f"alpha={self.alpha:.6g} is too large: every component would be a single feature. "
                f"The largest useful alpha is {largest:.6g}."
            )

    @cached_property
    def choice(self) -> Choice:
        """The features that all components together may use: at most so many of all."""
        d = self.n_features
        size = d if self.patterns is None else self.patterns.size
        return Choice(size, np.zeros(d, dtype=bool), np.ones(d, dtype=bool), at_most=True)

    def point_of(self, solution: Solution | LoadingsSolution) -> Candidate:
        """Return the loadings of a solution as a point, after checking that they fit."""
        if self.patterns is None:
            raise ValueError(
                "Proofs are about counts (n_nonzero_coefs, n_nonzero_total), not about a penalty."
            )
        U = solution.loadings
        if U.shape != (self.n_features, self.n_components):
            raise ValueError("The solution belongs to a problem with other features or components.")
        if (wrong := self.patterns.objection(U != 0)) is not None:
            raise ValueError(f"The solution is not one of this problem: it {wrong}.")
        support = np.flatnonzero(U.any(axis=1))
        weights = U[support]
        image = self.covariance.matmat(weights, support)[support]
        return Candidate(support, weights, np.maximum(np.sum(weights * image, axis=0), 0.0))

    def claimed_value(self, support: Index, weights: FloatArray) -> float:
        """Return what loadings on a support explain at least; `ValueError` if not feasible.

        That is, what orthonormal ones near them with the same zeros do: U = W + H explains
        2⟨AW, H⟩ + ⟨AH, H⟩ more, and the norm of A on the support is at most its trace. Entries
        that are hardly there may stand in the way of such a U, and are then taken for zero.
        """
        if self.patterns is None:
            raise ValueError("problem: a certificate is about counts")
        m, best = self.n_components, 0.0
        explained_at_least(self.covariance, support, weights, m)  # if they are orthonormal at all
        mask = np.zeros((self.n_features, m), dtype=bool)
        mask[support] = weights != 0
        if (wrong := self.patterns.objection(mask)) is not None:
            raise ValueError(f"weights: {wrong}")
        trace = largest_trace(self.covariance, support)
        for least in HARDLY_THERE:
            W = np.where(np.abs(weights) > least, weights, 0.0)
            distance = distance_to_orthonormal(W)
            if distance <= 0.5:
                with suppress(ValueError):  # many of them may be something after all
                    value = explained_at_least(self.covariance, support, W, m)
                    best = max(best, value - 4 * distance * trace)
        return best

    @property
    def largest_alpha(self) -> float:
        r"""From here on a component is a single feature.

        With c² the largest variance and σ² the largest eigenvalue it is c(σ + c)/2. For one
        component: with :math:`t = \|v\|_1 \ge 1`, :math:`v'Av \le \min(c^2t^2, σ^2)`, so the
        objective is at least :math:`αt - \min(c^2t^2, σ^2)/2`, which for such α is smallest at
        t = 1: at the feature with the largest variance. For more components it is what we see,
        not what we can prove; with "l21" rows are up to √m times as long.
        """
        largest = float(self.covariance.diagonal().max())
        leading = float(self.covariance.leading(1).values[0])
        value = 0.5 * np.sqrt(largest) * (np.sqrt(leading) + np.sqrt(largest))
        return float(value * (np.sqrt(self.n_components) if self.penalty == "l21" else 1.0))


def default_nonzero_coefs(n_features: int) -> int:
    """Return how many features a component of its own has unless told: a fifth, at least one."""
    return max(1, n_features // 5)

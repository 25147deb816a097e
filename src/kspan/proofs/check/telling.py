r"""Upper bounds on what k features can tell about all of them, computed rigorously.

With :math:`A = R'R`, x_i the columns of R, :math:`G = RR'`, e_i the variance of the noise of
feature i, and S the chosen features, m scores explain
:math:`f(S) = \sum_{i\le m} λ_i(Y_S^{1/2} G Y_S^{1/2})` with
:math:`Y_S = R_S(R_S'R_S + Diag(e_S))^{-1}R_S'`, a matrix between 0 and I.

**Principal components.** So :math:`f(S) \le \sum_{i\le m} λ_i(A)`, whatever is chosen.

**Relaxation.** For every B = bb' (r×q), by Ky Fan's inequality,
:math:`f(S) \le \sum_{i\le m} λ_i(G - B)_+ + \mathrm{tr}(b'Y_Sb)`: the best m directions Z of
:math:`Y_S^{1/2}(\cdot)Y_S^{1/2}` give :math:`Y_S^{1/2}ZZ'Y_S^{1/2} \preceq Y_S`, which is between 0
and I with a trace of at most m. And :math:`b'Y_Sb` is the maximum over c with rows in S of
:math:`2c'R'b - c'(A + Diag(e))c`. Let D = δ Diag(A) with δ at most the smallest eigenvalue of the
correlations, so that A - D is positive semidefinite; for any t

.. math:: c'(A - D)c \ge 2c'(A - D)t - t'(A - D)t ,

and what is left to maximise falls apart into features. With :math:`v = R'b - (A - D)t`

.. math:: f(S) \le \sum_{i\le m} λ_i(G - bb')_+ + \mathrm{tr}(t'(A-D)t)
          + \sum_{i\in S} \frac{\|v_i\|^2}{δ a_{ii} + e_i} .

It holds for any b and t: like the bounds of components it is a Ky Fan sum and scores of features.

**Scan.** With m = k, what is explained adds up: f(S) = f(F) + what the others explain of what F has
left. So all supports can be tried feature by feature, the last two in closed form, and left
aside where the leading eigenvalues of what is left (:math:`\sum_{i\le r} λ_i \le
r^{3/4}(\sum λ_i^4)^{1/4}`, and the last is the squared norm of its square) cannot make up for what
is missing.

**What A is known for.** Let r_i be as in `Covariance.entry_errors`, for what R'R is off by too.
With :math:`κ = ρ + δ`, every w on k features has
:math:`w'(A_{SS} + noise)w \ge κ \sum a_{ii}w_i^2`. With
:math:`τ = \sum_{i \in S} (r_i/a_{ii}) / κ` the best scores W of the true matrix have
:math:`W'(\cdot)W \preceq (1 + τ)I` in the known one, and :math:`\|AW\|_F` differs by at most
:math:`\sqrt{mτ\sum_j r_j}`: so :math:`\sqrt{f_{true}} \le \sqrt{(1+τ)f} + \sqrt{mτ\sum r}`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.linalg

from kspan.arrays import FloatArray, Index, Mask
from kspan.linalg.rounding import UNIT
from kspan.problem import Choice, RepresentProblem
from kspan.proofs.check.bounds import (
    Bound,
    ky_fan_without,
    leading_without,
    refuses_overflow,
    require_range,
    top_eigenvalue_sum,
)
from kspan.proofs.check.claims import CertificateError, Part, Problem, Witness, need
from kspan.proofs.check.known import (
    LARGEST_FACTOR,
    LARGEST_MATRIX,
    checked_scale,
    data_error,
    data_scale,
)
from kspan.proofs.check.screening import cut_levels
from kspan.proofs.check.tree import MAX_ENUMERATED, Place, Record, TreeWalk, settled_by_root

# No honest scan looks at more supports: some minutes.
MAX_SCANNED = 2e11

# Features whose covariances a scan keeps, a few times over.
MAX_IN_MATRIX = 2500

# Variances of features that may be chosen, in units of the scale: the squares of smaller ones are
# lost.
SMALLEST_VARIANCE = 1e-140

# Of a value that is claimed, as room.
ROOM = 2e-8

# Features up to which a scan takes the spectrum of what each choice leaves.
MOST_SPECTRA = 100

# Of two features one is a copy, when this share of their variances is left.
NOTHING = 1e-13


class TellingWitness(Witness):
    """A witness of what features tell; all others are about what components explain."""


def about_telling(problem: Problem) -> RepresentProblem:
    """Return the problem, if it is of the kind that these bounds are about."""
    if not isinstance(problem, RepresentProblem):
        raise CertificateError("witness: is about features that tell others")
    if problem.covariance.indefiniteness or problem.covariance.unseen().any():
        raise CertificateError(
            "witness: nothing is proved of a covariance that is mended, or known in part"
        )
    return problem


@dataclass(frozen=True, eq=False)
class KnownWhole:
    """R with ``A = R'R`` on all features, in units of the root of `scale`.

    Parameters
    ----------
    R : (r, d) array
    scale : a power of four
    variances, noise : (d,) arrays
        The diagonal of A, and what is added to it for features that are chosen.
    errors : (d,) array
        How far R'R may be from the true matrix, see `Covariance.entry_errors`.
    delta : float
        A share of its diagonal that can be taken from A, on the features that may be chosen.
    ridge : float
    allowed : (d,) mask
    """

    R: FloatArray
    scale: float
    variances: FloatArray
    noise: FloatArray
    errors: FloatArray
    delta: float
    ridge: float
    allowed: Mask

    @classmethod
    def of(
        cls, problem: RepresentProblem, scale: float | None = None, *, with_delta: bool = True
    ) -> "KnownWhole":
        """Take it from a problem: from few samples, or from a matrix of up to 5000 features.

        Without its delta if nobody needs it: that takes a spectrum.
        """
        problem = about_telling(problem)
        covariance = problem.covariance
        n, d = covariance.n_samples or 0, covariance.n_features
        if not covariance.is_wide and n < d and n * d <= LARGEST_FACTOR:
            covariance = covariance.densified()  # wide all the same, but kept in another way
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        variances = np.maximum(covariance.diagonal(), 0.0) / scale
        errors = covariance.entry_errors() / scale
        allowed = problem.choice.allowed
        # However small a feature is, it may tell a large one; numbers may not be lost for that.
        if (allowed & (covariance.diagonal() > 0) & (variances < SMALLEST_VARIANCE)).any():
            raise FloatingPointError("features that may be chosen are too small beside others")
        delta = 0.0
        if covariance.is_wide:
            X = covariance.sample_factor()
            assert X is not None
            R = X / np.sqrt(scale)
        else:
            A = _matrix(problem, scale)
            R, off = _factor(A)
            errors = errors + off * variances
            places = np.flatnonzero(allowed & (variances > 0))
            # What R'R is off by is at most so much in norm, in units of the variances.
            if with_delta:
                delta = max(_smallest_correlation(A, places) - places.size * off, 0.0)
        # What looks smaller than it is by its error has less noise than it seems.
        noise = problem.ridge * np.maximum(variances - 2 * errors, 0.0) * (1 - 4 * UNIT)
        return cls(R, scale, variances, noise, errors, delta, problem.ridge, allowed)

    @cached_property
    def gram(self) -> FloatArray:
        """RR'."""
        G: FloatArray = self.R @ self.R.T
        return (G + G.T) / 2

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue of A, as it is computed."""
        return float(np.linalg.eigvalsh(self.gram)[-1])

    @cached_property
    def own_shares(self) -> FloatArray:
        """What each feature explains by itself, without noise: at most its h_ii / a_ii."""
        shares, varies = np.zeros(self.variances.size), self.variances > 0
        products = np.einsum("ij,ij->j", self.R, self.gram @ self.R)
        shares[varies] = products[varies] / self.variances[varies]
        return shares

    @property
    def gram_error(self) -> float:
        """What an eigenvalue of `gram` is off by, for rounding of its entries."""
        return (self.R.shape[1] + 4) * UNIT * float(self.variances.sum()) * 2

    @property
    def kappa(self) -> float:
        """No features have a smaller eigenvalue, in units of their variances."""
        shares = self.errors[self.varies] / self.variances[self.varies]
        return (self.ridge + max(self.delta - float(shares.sum()), 0.0)) * (1 - 1e-9)

    @property
    def varies(self) -> Mask:
        """Which of the features that may be chosen vary."""
        found: Mask = self.allowed & (self.variances > 0)
        return found

    def slack(self, m: int, choice: Choice, rounding: float = 0.0) -> "Slack":
        """Return how far a bound for R'R may be from one for the true matrix.

        Parameters
        ----------
        m, choice : components; what may be chosen, of all features
        rounding : of a computation with K, as a share of the variances
        """
        if not self.kappa > 0:
            raise FloatingPointError("features may depend on each other: a ridge is needed")
        shares, varies = np.zeros(self.variances.size), self.variances > 0
        shares[varies] = self.errors[varies] / self.variances[varies] + rounding
        tau = max(choice.best_sum(shares), 0.0) / self.kappa
        return Slack(tau, float(np.sqrt(m * tau * self.errors.sum())))


@dataclass(frozen=True)
class Slack:
    """τ, and what is added to the root of a value: see above."""

    tau: float
    more: float

    def above(self, value: float) -> float:
        """Return a bound for the true matrix from one for R'R.

        Where the one falls by something, the other falls by as much at least.
        """
        root = np.sqrt(max(value, 0.0) * (1 + self.tau)) + self.more
        return float(root * root * (1 + 8 * UNIT))


def _matrix(problem: RepresentProblem, scale: float) -> FloatArray:
    """Return A on all features."""
    d = problem.n_features
    need(d <= LARGEST_MATRIX, f"witness: needs a matrix of {d} features")
    A = problem.covariance.submatrix(np.arange(d)) / scale
    return 0.5 * (A + A.T)


def _factor(A: FloatArray) -> tuple[FloatArray, float]:
    """Return R with R'R = A, but for a share of the variances that is returned too."""
    d, variances = len(A), np.diagonal(A)
    varies = np.flatnonzero(variances > 0)
    deviations = np.sqrt(variances[varies])
    scaled = A[np.ix_(varies, varies)] / deviations / deviations[:, None]
    shift = 0.0
    while True:
        try:
            lower = scipy.linalg.cholesky(
                scaled + shift * np.eye(varies.size), lower=True, check_finite=True
            )
            break
        except np.linalg.LinAlgError:
            shift = max(4 * d * UNIT, 4 * shift)
            if shift > 1e-9:
                raise FloatingPointError("the covariance is not positive semidefinite") from None
    off = np.abs(lower @ lower.T - scaled).max(initial=0.0) + (d + 8) * UNIT * 4
    R = np.zeros((varies.size, d))
    R[:, varies] = lower.T * deviations
    return R, float(off) + 16 * UNIT


def _smallest_correlation(A: FloatArray, places: Index) -> float:
    """Return what the smallest eigenvalue of the correlations of some features is at least."""
    if not places.size:
        return 0.0
    deviations = np.sqrt(np.diagonal(A)[places])
    C = A[np.ix_(places, places)] / deviations / deviations[:, None]
    smallest = float(np.linalg.eigvalsh(C)[0])
    return max(smallest - 8 * (len(C) + 4) * UNIT * len(C), 0.0)


# --- principal components


@dataclass(frozen=True)
class SpectrumWitness(TellingWitness):
    """What m principal components explain; needs nothing. Without a spectrum, all variance."""

    label: ClassVar[str] = "principal components"

    whole: bool = False  # all variance, where there are too many features

    @property
    def any_size(self) -> bool:
        """See `Witness.any_size`."""
        return True

    @property
    def is_free(self) -> bool:
        """See `Witness.is_free`."""
        return True

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        problem = about_telling(problem)
        covariance, m, d = problem.covariance, problem.n_components, problem.n_features
        scale = data_scale(problem)
        if covariance.psd_slack().any():
            return self._of_given(problem, scale)
        errors = covariance.entry_errors() / scale
        total = float((np.maximum(covariance.diagonal(), 0.0) / scale + errors).sum())
        total *= 1 + (d + 8) * UNIT
        if self.whole:
            return total * scale
        if covariance.is_wide:
            X = covariance.sample_factor()
            assert X is not None
            X = X / np.sqrt(scale)
            G = X @ X.T
            value = top_eigenvalue_sum((G + G.T) / 2, min(m, len(G)))
            value += m * 2 * (d + 4) * UNIT * total
        else:
            value = top_eigenvalue_sum(_matrix(problem, scale), m)
        # The error's norm is at most the sum of r, and m eigenvalues move by that.
        value += m * float(errors.sum()) * (1 + (d + 8) * UNIT)
        return min(value, total) * scale

    def _of_given(self, problem: RepresentProblem, scale: float) -> float:
        """Bound what a given matrix has, which may lack positive semidefiniteness by rounding.

        Features that nearly depend on each other make much of that: there no m scores of the matrix
        tell more than its principal components only up to what A is known for.
        """
        try:
            known = KnownWhole.of(problem, scale, with_delta=problem.ridge == 0)
        except FloatingPointError as error:
            raise CertificateError(
                f"witness: nothing is proved of a covariance like this ({error})"
            ) from None
        m, choice = problem.n_components, problem.choice
        if not known.kappa > 0:
            raise CertificateError(
                "witness: nothing is proved of a covariance whose features depend on each other, "
                "without a ridge"
            )
        d = problem.n_features
        value = float(known.variances.sum() + known.errors.sum()) * (1 + (d + 8) * UNIT)
        if not self.whole:
            rank = min(m, len(known.gram))
            spectral = top_eigenvalue_sum(known.gram, rank) + m * known.gram_error
            value = min(value, spectral)
        return known.slack(m, choice).above(value) * scale


# Rows and columns of a matrix of all samples: 1.2 GB.
MOST_SAMPLES = 12_000


@dataclass(frozen=True)
class SampleSpectrumWitness(TellingWitness):
    r"""What m principal components explain, of many features and many samples.

    If :math:`G \preceq σI + Q(Θ - σ)_+Q'`, then the m largest eigenvalues of G are no more than mσ
    and :math:`\sum (θ_i - σ)_+ \|q_i\|^2`. That it is so is shown by Cholesky's method, which
    succeeds only if the difference is positive semidefinite but for (n + 2)u times its trace.
    """

    label: ClassVar[str] = "principal components"

    scale: float
    vectors: FloatArray
    values: FloatArray
    shift: float

    @property
    def any_size(self) -> bool:
        """See `Witness.any_size`."""
        return True

    @property
    def is_free(self) -> bool:
        """See `Witness.is_free`."""
        return True

    @refuses_overflow
    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        problem = about_telling(problem)
        scale, m = checked_scale(problem, self.scale), problem.n_components
        covariance, n = problem.covariance, problem.covariance.n_samples or 0
        need(0 < n <= MOST_SAMPLES, "witness: there are too many samples")
        Q, theta, shift = self.vectors, self.values, self.shift
        need(Q.ndim == 2 and Q.shape == (n, theta.size), "witness: does not fit the samples")
        require_range(Q, theta)
        need(0 < shift < 1e100, "witness: has no shift")
        found = covariance.sample_gram()
        if found is None:
            raise CertificateError("witness: the samples are not in memory")
        G, off = found[0], found[1] / scale
        G /= -scale
        above = np.maximum(theta - shift, 0.0)
        F = Q * np.sqrt(above)
        G += F @ F.T
        G[np.diag_indices(n)] += shift
        size = float(np.abs(np.diagonal(G)).sum()) + float(np.linalg.norm(F) ** 2)
        try:
            scipy.linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise CertificateError("witness: is not above the samples' products") from None
        lacking = off + (n + theta.size + 16) * UNIT * size
        lengths = np.einsum("ij,ij->j", Q, Q) * (1 + n * UNIT)
        # The eigenvalues of FF' are those of F'F, and their sum is its trace.
        value = m * (shift + lacking) + float(above @ lengths) * (1 + 8 * theta.size * UNIT)
        return (value + m * float(covariance.entry_errors().sum() / scale)) * scale


# --- relaxation


@dataclass(frozen=True)
class TellingPart(Part):
    """b (r×q) and t (d×q) of the relaxed bound."""

    b: FloatArray
    t: FloatArray


@refuses_overflow
def relaxed_bound(known: KnownWhole, part: TellingPart, m: int) -> tuple[float, FloatArray]:
    """Return what does not depend on the choice, and the scores of all features, rounded upwards.

    Rounding: x_i'b, and x_i'(Rt) with |Rt| ≤ Σ_l √a_l |t_l|, are off by (r + d + 8)u times the
    product of the lengths; sums of squares by their number times u.
    """
    R, a = known.R, known.variances
    r, d = R.shape
    b, t = part.b, np.where(known.allowed[:, None], part.t, 0.0)
    if b.ndim != 2 or len(b) != r or t.shape != (d, b.shape[1]):
        raise FloatingPointError("the witness does not fit the data")
    require_range(b, t)
    deviations = np.sqrt(a)
    ky_fan = _most_without(known.gram, b, m) + m * known.gram_error
    image = R @ t
    lengths = deviations @ np.abs(t)  # of the columns of Rt, at most
    rounding = (r + d + 8) * UNIT
    square = float(np.sum((np.linalg.norm(image, axis=0) + rounding * lengths) ** 2))
    less = float(np.sum((known.delta * a)[:, None] * t**2))
    fixed = ky_fan + square * (1 + rounding) - less * (1 - rounding)
    v = R.T @ (b - image) + (known.delta * a)[:, None] * t
    off = 2 * rounding * deviations[:, None] * (
        np.linalg.norm(b, axis=0) + 2 * lengths
    ) + rounding * (known.delta * a)[:, None] * np.abs(t)
    bottom = (known.delta * a + known.noise) * (1 - 4 * UNIT)
    top = np.sum((np.abs(v) + off) ** 2, axis=1) * (1 + rounding)
    scores = np.zeros(d)
    usable = bottom > 0
    if (top[known.allowed & ~usable & (a > 0)] > 0).any():
        raise FloatingPointError("features may depend on each other: a ridge is needed")
    scores[usable] = top[usable] / bottom[usable]
    return fixed, scores


def _most_without(G: FloatArray, b: FloatArray, m: int) -> float:
    """Upper bound on ⟨G - bb', Y⟩ for Y between 0 and I with a trace of m *at most*.

    Directions below zero do not count: with zeros beside the matrix there are m that are not.
    """
    r = len(G)
    value, least = leading_without(G, b, min(m, r))
    if least >= 0:
        return value
    return ky_fan_without(np.pad(G, (0, m)), np.pad(b, ((0, m), (0, 0))), m)


@dataclass(frozen=True)
class RelaxedWitness(TellingWitness):
    """One relaxed bound."""

    label: ClassVar[str] = "relaxation"

    scale: float
    part: TellingPart

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return self._bound(about_telling(problem)).value * self.scale

    def levels(self, problem: Problem) -> FloatArray:
        """See `Witness.levels`."""
        problem = about_telling(problem)
        with_it, _ = cut_levels(self._bound(problem), problem.choice)
        return np.where(problem.choice.allowed, with_it * self.scale, -np.inf)

    def _bound(self, problem: RepresentProblem) -> Bound:
        known = KnownWhole.of(problem, self.scale)
        m, choice = problem.n_components, problem.choice
        return bound_of(relaxed_bound(known, self.part, m), known.slack(m, choice), choice)


def bound_of(relaxed: tuple[float, FloatArray], slack: Slack, choice: Choice) -> Bound:
    """Return the bound of a choice, for the true matrix."""
    fixed, scores = relaxed
    found = Bound.of(fixed, scores, choice)
    return Bound(slack.above(found.value), scores, found.ky_fan)


# --- trees


@dataclass(frozen=True)
class TellingTreeWitness(TellingWitness):
    """A search tree: every support is cut off, or in a leaf, by a record that says why."""

    scale: float
    records: list[Record]
    witnesses: list[TellingPart]

    @property
    def method(self) -> str:
        """A tree of one node that is not enumerated is a relaxation."""
        searched = any(record.kind in ("branched", "enumerated") for record in self.records)
        return "branch and bound" if searched else "relaxation"

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        return _TellingWalk(about_telling(problem), self).upper() * self.scale

    def settled(self, lower: float) -> tuple[Index, Index]:
        """Return what the root's cuts settle; they bound all supports of the problem."""
        return settled_by_root(self.records, lower / self.scale)


class _TellingWalk(TreeWalk):
    """Goes through a tree from its root; all numbers in units of the witness's scale."""

    tree: TellingTreeWitness

    def __init__(self, problem: RepresentProblem, tree: TellingTreeWitness):
        self.problem, self.tree, self.m = problem, tree, problem.n_components
        self.known = KnownWhole.of(problem, tree.scale)
        self.slack = self.known.slack(self.m, problem.choice)
        # Nothing is read from what nodes claim, so there may be room.
        total = float(self.known.variances.sum())
        self.noise = telling_error(problem)[1] / tree.scale + 1e-6 * total
        self.parts: dict[int, tuple[float, FloatArray]] = {}

    def bound(self, index: int, place: Place, what: str) -> Bound:
        """Return the bound of a node by one of the witnesses."""
        need(0 <= index < len(self.tree.witnesses), f"{what}: there is no witness {index}")
        if index not in self.parts:
            self.parts[index] = relaxed_bound(self.known, self.tree.witnesses[index], self.m)
        fixed, scores = self.parts[index]
        return bound_of((fixed, scores[place.features]), self.slack, place.choice)

    def enumerate(self, place: Place, what: str) -> float:
        """Try all supports of a node."""
        n_supports = place.choice.n_supports
        need(n_supports <= MAX_ENUMERATED, f"{what}: too many supports to enumerate")
        best, _ = enumerated(self.known, place.features, place.choice, self.m)
        return above_computed(self.known, best, self.m, self.problem.choice)


@refuses_overflow
def enumerated(known: KnownWhole, features: Index, choice: Choice, m: int) -> tuple[float, Index]:
    """Return the largest value of all supports, as it is computed, and its features.

    Parameters
    ----------
    known : KnownWhole
    features, choice : a node
    m : components
    """
    best, winner = -np.inf, features[:0]
    varies = known.variances[features] > 0
    inverse = np.zeros(features.size)
    inverse[varies] = 1 / np.sqrt(known.variances[features[varies]])
    X = known.R[:, features] * inverse
    K, H = X.T @ X, X.T @ (known.gram @ X)
    K[np.diag_indices_from(K)] += known.noise[features] * inverse**2
    K[np.diag_indices_from(K)] += ~varies  # a feature that is constant explains nothing
    for places in choice.supports():
        square = places[:, :, None], places[:, None, :]
        L = np.linalg.cholesky(K[square])
        half = np.linalg.solve(L, H[square])
        inner = np.linalg.solve(L, half.swapaxes(1, 2))
        values = np.linalg.eigvalsh((inner + inner.swapaxes(1, 2)) / 2)[:, -m:].sum(axis=1)
        top = int(np.argmax(values))
        if values[top] > best:
            best, winner = float(values[top]), features[places[top]]
    return best, winner


def above_computed(known: KnownWhole, value: float, m: int, choice: Choice) -> float:
    """Return a bound from the largest value of some supports, as eliminations compute it.

    What Cholesky's method and sums over r and d numbers make of K and H are their entries changed
    by no more than 16(r + d + k)u times the roots of their diagonals. For K that is as if it were
    known less well. For H it is at most that share of Σ h_ii/a_ii over κ.
    """
    r, d = known.R.shape
    share = 16 * (r + d + choice.size + 16) * UNIT
    slack = known.slack(m, choice, rounding=share)
    moved = share * max(choice.best_sum(known.own_shares), 0.0) / known.kappa
    return slack.above(max(value, 0.0) + moved)


# --- scan


@dataclass(frozen=True)
class ScanWitness(TellingWitness):
    """A value that no support exceeds, as a search through all that could shows: for m = k."""

    label: ClassVar[str] = "search of all that could be better"

    scale: float
    value: float

    def evaluate(self, problem: Problem) -> float:
        """See `Witness.evaluate`."""
        problem = about_telling(problem)
        known = KnownWhole.of(problem, self.scale)
        need(np.isfinite(self.value) and self.value >= 0, "witness: asks for no value")
        found = scanned(known, problem, self.value)
        return self.upper(known, problem, found.value)

    def upper(self, known: KnownWhole, problem: RepresentProblem, found: float) -> float:
        """Return the bound, from the best value that a search met."""
        most = max(self.value, found)
        m, choice = problem.n_components, problem.choice
        return above_computed(known, most, m, choice) * self.scale


@dataclass(frozen=True)
class Scanned:
    """The best support that a scan met, its value as computed, and how many were tried."""

    value: float
    support: Index
    n_tried: int


def is_scannable(problem: RepresentProblem) -> bool:
    """Whether what features tell adds up, and not too many of them are to be tried."""
    choice, k = problem.choice, problem.choice.size
    plain = not choice.has_rules and not choice.at_most and problem.n_features <= MAX_IN_MATRIX
    return plain and problem.n_components == k and choice.n_supports <= MAX_SCANNED


@refuses_overflow
def scanned(
    known: KnownWhole, problem: RepresentProblem, value: float,
    stop: Callable[[], bool] | None = None,
) -> Scanned:  # fmt: skip
    """Try every support that could have more than a value; `TimeoutError` when told to stop.

    Parameters
    ----------
    known : KnownWhole
    problem : for which `is_scannable` holds
    value : in units of the scale
    stop : asked between features
    """
    from kspan.linalg.subset_scan import add_feature  # compiled when it is used

    need(is_scannable(problem), "witness: there is too much to try")
    choice = problem.choice
    known.slack(1, choice)  # features may not depend on each other
    K = known.R.T @ known.R
    K, H = (K + K.T) / 2, K @ K
    H = (H + H.T) / 2
    noise = np.where(known.variances > 0, known.noise, 1.0)
    explained = 0.0
    for place in choice.include:
        left, squares = np.empty_like(K), np.empty_like(H)
        explained += add_feature(K, H, noise, int(place), left, squares)[0]
        K, H = left, squares
    trying = _Trying(noise, value, 1e-9 * float(known.variances.sum()), stop)
    trying.go(K, H, choice.free, choice.n_open, choice.include, explained)
    return Scanned(trying.best, np.sort(trying.winner), trying.n_tried)


class _Trying:
    """Tries supports, one feature after the other, and leaves aside what cannot reach a value.

    Parameters
    ----------
    noise : (d,) of all features
    value : what a support has to explain
    margin : more than rounding can take from a sum of eigenvalues
    stop : asked between features
    """

    def __init__(
        self, noise: FloatArray, value: float, margin: float, stop: Callable[[], bool] | None
    ):
        self.noise, self.value, self.margin, self.stop = noise, value, margin, stop
        self.best, self.n_tried = 0.0, 0
        self.winner: Index = np.empty(0, dtype=np.intp)

    def offer(self, value: float, support: Index) -> None:
        """Keep a support if it is the best one so far."""
        if value > self.best or not self.winner.size:
            self.best, self.winner = value, support

    def go(
        self, K: FloatArray, H: FloatArray, places: Index, size: int, chosen: Index,
        explained: float,
    ) -> None:  # fmt: skip
        """Try all that have so many of some features beside those that are chosen.

        K and H are what the chosen ones have left.
        """
        if self.stop is not None and self.stop():
            raise TimeoutError
        if size == 0:
            self.n_tried += 1
            self.offer(explained, chosen)
            return
        own = np.diagonal(H)[places] / (np.diagonal(K)[places] + self.noise[places])
        # What tells most comes first: those after it, and what is left, are then small.
        order = np.argsort(-own, kind="stable")
        places, own = places[order], own[order]
        if size == 1:
            self.n_tried += places.size
            self.offer(explained + float(own[0]), np.append(chosen, places[0]))
        elif len(K) > MOST_SPECTRA and size > 2:
            self.compiled(K, H, places, size, chosen, explained)
        else:
            self.spectral(K, H, places, own, size, chosen, explained)

    def spectral(
        self, K: FloatArray, H: FloatArray, places: Index, own: FloatArray, size: int,
        chosen: Index, explained: float,
    ) -> None:  # fmt: skip
        """Leave features aside by the leading eigenvalues of what is left without them."""
        needed = max(self.value, self.best) - explained - self.margin
        leading = np.linalg.eigvalsh(K)[::-1]
        places = places[own + leading[: size - 1].sum() >= needed]
        if size == 2:
            self.pairs(K, H, places, chosen, explained)
            return
        from kspan.linalg.subset_scan import add_feature

        left = []
        for place in places:
            K1, H1 = np.empty_like(K), np.empty_like(H)
            gained, _ = add_feature(K, H, self.noise, int(place), K1, H1)
            bound = gained + float(np.linalg.eigvalsh(K1)[::-1][: size - 1].sum())
            if bound >= needed:
                left.append((bound, int(place), gained, K1, H1))
        left.sort(key=lambda child: child[:2])  # the weakest first: then those are out
        rest = np.array([child[1] for child in left], dtype=np.intp)
        for number, (bound, place, gained, K1, H1) in enumerate(left):
            if rest.size - number < size:
                break
            if bound < max(self.value, self.best) - explained - self.margin:
                continue
            with_it = np.append(chosen, place)
            self.go(K1, H1, rest[number + 1 :], size - 1, with_it, explained + gained)

    def compiled(
        self, K: FloatArray, H: FloatArray, order: Index, size: int, chosen: Index,
        explained: float,
    ) -> None:  # fmt: skip
        """Try many features, without a spectrum for each of them."""
        from kspan.linalg.subset_scan import scan_after  # compiled when it is used

        counts, found = np.zeros(1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for first in range(order.size - size + 1):
            if self.stop is not None and self.stop():
                raise TimeoutError
            needed = max(self.value, self.best) - explained
            gained = scan_after(K, H, self.noise, order, first, size, needed, found, counts)
            if gained > 0:
                self.offer(explained + gained, np.append(chosen, found))
        self.n_tried += int(counts[0])

    def pairs(
        self, K: FloatArray, H: FloatArray, places: Index, chosen: Index, explained: float
    ) -> None:
        """Try all pairs, in closed form."""
        self.n_tried += places.size * (places.size - 1) // 2
        if places.size < 2:
            return
        square = np.ix_(places, places)
        k, h = np.diagonal(K)[places] + self.noise[places], np.diagonal(H)[places]
        top = h[:, None] * k - 2 * H[square] * K[square] + h * k[:, None]
        bottom = k[:, None] * k - K[square] ** 2
        values = np.full(top.shape, -np.inf)
        above = np.triu(bottom > NOTHING * k[:, None] * k, 1)
        if not above.any():
            raise FloatingPointError("features may depend on each other: a ridge is needed")
        values[above] = top[above] / bottom[above]
        i, j = np.unravel_index(int(np.argmax(values)), values.shape)
        self.offer(explained + float(values[i, j]), np.append(chosen, places[[i, j]]))


def telling_error(problem: RepresentProblem) -> tuple[float, float]:
    """Return how well what all features have is known, and by how much two looks may differ.

    The second is room for honest claims, and 64 is more than features that are not copies of each
    other make of an error; nothing is proved by it.
    """
    covariance, m = problem.covariance, problem.n_components
    errors, variances = covariance.entry_errors(), np.maximum(covariance.diagonal(), 0.0)
    error = m * float(errors.sum())
    varies = variances > 0
    shares = np.zeros(varies.size)
    shares[varies] = errors[varies] / variances[varies]
    own = max(problem.choice.best_sum(shares), 0.0)
    return error, 2 * error + 64 * own * float(variances.sum())


def error_of(problem: Problem, value: float) -> tuple[float, float]:
    """Return how well the data behind a problem is known, and the room that claims have for it.

    Near copies make more of a rounding error than `telling_error` has room for: so much of the
    value that is claimed comes on top.
    """
    if not isinstance(problem, RepresentProblem):
        return data_error(problem)
    error, noise = telling_error(problem)
    return error, noise + ROOM * max(value, 0.0)

"""The data behind a bound, as one object: what is known of A, in which units, how exactly."""

import math
from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.rounding import UNIT, unit_scale
from kspan.problem import Choice
from kspan.proofs.check.claims import CertificateError, Problem, need

# No honest witness needs a matrix of more features.
LARGEST_MATRIX = 5000

# What is lost, in units of a scale, of numbers that are too small beside it.
UNDERFLOW = 1e-300

# Numbers of a dense copy of wide data: 2 GB.
LARGEST_FACTOR = 250_000_000


@dataclass(frozen=True, eq=False)
class Uncertainty:
    r"""How far A may be from the true one, on some features, in units of a scale.

    The true matrix is at most :math:`A + E + Diag(unseen)` with :math:`|E_{ij}| \le
    \sqrt{r_ir_j}`. For the projector P on m leading eigenvectors of a support S, by Cauchy and
    Schwarz, :math:`⟨E, P⟩ \le \|P\|_F \|E_{SS}\|_F \le \sqrt{m} \sum_{i∈S} r_i`: so every score
    of a bound has :math:`\sqrt{m}\,r_i` added, its Ky Fan sum the m largest of what is unseen.

    Parameters
    ----------
    errors : (n,) array
        r, see `kspan.covariance.Covariance.entry_errors`.
    unseen : (n,) array
        See `kspan.covariance.Covariance.unseen`.
    psd_slack : (n,) array
        The true matrix with this added to its diagonal is positive semidefinite.
    beyond : float
        What features can add that look constant, and are left out for that.
    """

    errors: FloatArray
    unseen: FloatArray
    psd_slack: FloatArray
    beyond: float = 0.0

    @classmethod
    def of(cls, problem: Problem, scale: float) -> "Uncertainty":
        """Take it from a problem, on all of its features."""
        covariance, choice = problem.covariance, problem.choice
        errors, unseen, beyond = covariance.entry_errors(), covariance.unseen(), 0.0
        slack, out = covariance.psd_slack(), ~choice.allowed
        if problem.nonnegative and out.any():
            # λ_max of a PSD matrix (A, with its slack) is at most the sum of those of its diagonal
            # blocks. A variance that is taken for zero is computed as at most its error, and off
            # by as much again.
            beyond = float((2 * errors + slack)[out].sum() / scale) * (1 + len(errors) * UNIT)
            beyond += float(unseen[out].max() / scale)
            if slack[out].any():
                beyond += float(slack[choice.allowed].max(initial=0.0) / scale)
        # Of features that may not be chosen nothing counts, and they may be too large.
        errors, unseen, slack = (
            np.where(choice.allowed, part, 0.0) / scale for part in (errors, unseen, slack)
        )
        errors = errors + choice.allowed * UNDERFLOW
        if not np.isfinite(slack).all():
            raise ValueError(
                "Features that may not be chosen are too large beside those that may: leave them "
                "out of the covariance."
            )
        return cls(errors, unseen, slack, beyond)

    @classmethod
    def none(cls, n_features: int) -> "Uncertainty":
        """Return that of numbers that are exact."""
        nothing = np.zeros(n_features)
        return cls(nothing, nothing, nothing)

    def on(self, places: Index) -> "Uncertainty":
        """Return the part on some of the features."""
        return Uncertainty(
            self.errors[places], self.unseen[places], self.psd_slack[places], self.beyond
        )

    def scores(self, m: int) -> FloatArray:
        """Return what is added to the score of every feature."""
        return math.sqrt(m) * (1 + 8 * UNIT) * self.errors

    def noise(self, m: int, choice: Choice) -> float:
        """Return by how much two computations of one A may differ in what they say.

        Data may come in another form, and sums be added in another order: each is off by its
        errors. Claims are made with that much room, so that everybody can follow them.
        """
        return 2 * choice.best_sum(self.scores(m))

    def total(self, m: int, choice: Choice) -> float:
        """Return by how much the optimum of A may be below the true one."""
        return choice.best_sum(self.scores(m)) + self.ky_fan(m)

    def ky_fan(self, m: int) -> float:
        """Return what is added to a Ky Fan sum."""
        return self.beyond + float(np.sort(self.unseen)[::-1][:m].sum()) * (1 + m * UNIT)


# What is left of entries that do not count; a power of two, so that nothing is rounded. Measured on
# genes and image features with groups and conflicts: zero is worse on some, one on all.
APART_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class KnownMatrix:
    """A on some features.

    Parameters
    ----------
    A : (n, n) array, exactly symmetric, in units of `scale`
    scale : a power of four
    uncertainty : Uncertainty
        How well it is known.
    """

    A: FloatArray
    scale: float
    uncertainty: Uncertainty

    @classmethod
    def exact(cls, A: FloatArray, scale: float = 1.0) -> "KnownMatrix":
        """Take a matrix as it stands."""
        return cls(A, scale, Uncertainty.none(len(A)))

    @classmethod
    def of(cls, problem: Problem, features: Index, scale: float | None = None) -> "KnownMatrix":
        """Take it from a problem, in a witness's units or in those of the data's size.

        Features that may not be chosen are zero: they may be too large for the scale. Entries of
        pairs that no support has are made smaller: no projector on a support has an entry there, so
        that any number will do, and small ones give small eigenvalues. A need not be positive
        semidefinite then; but for the trace bound, which looks at the diagonal only, no bound needs
        that.
        """
        need(
            features.size <= LARGEST_MATRIX, f"witness: needs a matrix of {features.size} features"
        )
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        A = problem.covariance.submatrix(features)
        out = np.flatnonzero(~problem.choice.allowed[features])
        if out.size:
            A = A.copy()
            A[out], A[:, out] = 0.0, 0.0
        apart = problem.choice.apart(features, features)
        if apart is not None:
            A = np.where(apart, APART_SHARE * A, A)
        A = A / scale
        return cls(0.5 * (A + A.T), scale, Uncertainty.of(problem, scale).on(features))

    def on(self, places: Index) -> "KnownMatrix":
        """Return the part on some of the features."""
        A = self.A[np.ix_(places, places)]
        return KnownMatrix(A, self.scale, self.uncertainty.on(places))

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.A)

    @property
    def variances(self) -> FloatArray:
        """The diagonal of A."""
        return np.diagonal(self.A)

    def value_error(self, m: int, choice: Choice) -> float:
        """What the computed sum of m eigenvalues on a support may be off by.

        An eigenvalue is off by 4(k+2)u times a norm, and that norm is at most the sum of the
        variances, with what A lacks to be positive semidefinite; what A is off by comes on top.
        What is unseen, above, is not in it.
        """
        sizes = np.abs(self.variances) + self.uncertainty.psd_slack
        rounding = 4 * m * (choice.size + 2) * UNIT * choice.best_sum(sizes)
        return rounding + choice.best_sum(self.uncertainty.scores(m))


@dataclass(frozen=True, eq=False)
class KnownVariances:
    """The diagonal of A on all features, zero for those that may not be chosen.

    Parameters
    ----------
    variances : (d,) array, in units of `scale`
    scale : a power of four
    uncertainty : Uncertainty
        How well A is known.
    """

    variances: FloatArray
    scale: float
    uncertainty: Uncertainty

    @classmethod
    def exact(cls, variances: FloatArray, scale: float = 1.0) -> "KnownVariances":
        """Take variances as they stand."""
        return cls(variances, scale, Uncertainty.none(variances.size))

    @classmethod
    def of(cls, problem: Problem, scale: float | None = None) -> "KnownVariances":
        """Take it from a problem."""
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        variances = np.where(problem.choice.allowed, problem.covariance.diagonal(), 0.0) / scale
        return cls(variances, scale, Uncertainty.of(problem, scale))


@dataclass(frozen=True, eq=False)
class KnownFactor:
    """X with ``A = X'X`` on some features, for data with few samples.

    Parameters
    ----------
    X : (r, n) array, in units of the root of `scale`
    scale : a power of four
    uncertainty : Uncertainty
        How well A is known.
    """

    X: FloatArray
    scale: float
    uncertainty: Uncertainty

    @classmethod
    def exact(cls, X: FloatArray, scale: float = 1.0) -> "KnownFactor":
        """Take a factor as it stands."""
        return cls(X, scale, Uncertainty.none(X.shape[1]))

    @classmethod
    def of(
        cls, problem: Problem, features: Index | None = None, scale: float | None = None
    ) -> "KnownFactor":
        """Take it from a problem, all features by default; those not allowed are zero."""
        scale = data_scale(problem) if scale is None else checked_scale(problem, scale)
        covariance = problem.covariance
        n, d = covariance.n_samples or 0, covariance.n_features
        if not covariance.is_wide and n < d and n * d <= LARGEST_FACTOR:
            covariance = covariance.densified()  # wide all the same, but kept in another way
        X = covariance.sample_factor()
        if X is None:
            raise CertificateError("witness: the problem has no data with few samples behind it")
        X = X / math.sqrt(scale)
        X[:, ~problem.choice.allowed] = 0.0
        known = Uncertainty.of(problem, scale)
        if features is None:
            return cls(X, scale, known)
        return cls(X[:, features], scale, known.on(features))


def data_error(problem: Problem) -> tuple[float, float]:
    """Return by how much the optimum of A may be below the true one, and `Uncertainty.noise`.

    In units of the problem.
    """
    scale, m, choice = data_scale(problem), problem.n_components, problem.choice
    known = Uncertainty.of(problem, scale)
    return known.total(m, choice) * scale, known.noise(m, choice) * scale


def data_scale(problem: Problem) -> float:
    """Return the power of four at the size of the largest variance that counts."""
    return unit_scale(_size(problem))


def checked_scale(problem: Problem, scale: float) -> float:
    """Require a power of four of about the size of the data.

    Then dividing by it and by its root is exact, and the rounding margins hold.
    """
    if math.isfinite(scale) and scale > 0:
        mantissa, exponent = math.frexp(scale)
        size = math.frexp(_size(problem))[1]
        if mantissa == 0.5 and exponent % 2 == 1 and abs(exponent - size) <= 20:
            return scale
    raise CertificateError(f"the scale is not a power of four of the data's size: {scale!r}")


def _size(problem: Problem) -> float:
    """Return the largest variance that counts, or that may hide in what looks constant."""
    covariance, choice = problem.covariance, problem.choice
    # All features are to be told, whether they may be chosen or not.
    counts = choice.allowed | (problem.kind == "represent")
    size = float(covariance.diagonal()[counts].max(initial=0.0))
    errors = covariance.entry_errors()
    # Of what a deflation has cancelled, entries are of the size of their errors.
    hidden = errors if problem.nonnegative else errors[counts]
    return max(size, float(hidden.max(initial=0.0)))

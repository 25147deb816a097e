r"""What two papers guarantee before anything is fitted, from the eigenvalues of A alone.

A certificate is about one answer and is nearly always much closer. These say what a method cannot
do worse than, on which spectra its guarantee says anything, and what another m, k or rank would
give.

**Rounding.** What is returned holds for A as it was given: each computed eigenvalue is within δ of
a true one, with δ from the rounding of the eigensolver and of the sums that A is made from (see
`kspan.proofs.check.known`), and enters at the end of that interval that makes the guarantee weaker.
If a given A lacks positive semidefiniteness by rounding, :math:`λ_d(A) \ge -s`, its forms may be
that much below zero, which is counted too. Leading eigenvalues of an iterative solver would not do:
they lie below the true ones.
"""

from dataclasses import dataclass

import numpy as np

from kspan.arrays import FloatArray
from kspan.covariance import Covariance, as_covariance
from kspan.linalg.rounding import UNIT
from kspan.problem import NonnegativeProblem, RowSparseProblem, require_count
from kspan.proofs.check.claims import CertificateError
from kspan.proofs.check.known import LARGEST_MATRIX, KnownFactor, KnownMatrix


def fspca_epsilon(
    covariance: Covariance | FloatArray, n_components: int, n_features_to_select: int
) -> float:
    r"""Return ε: what `go` and `ipu` may lose of the optimum, as a share of it, on these data.

    With m components, k of d features and :math:`λ_1 \ge … \ge λ_d` the eigenvalues of A ⪰ 0,

    .. math::
        \mathrm{tr}(W'AW) \ge (1 - ε)\, \mathrm{OPT}, \qquad
        ε = \min\Big\{ \frac{d\,G_1}{k},\; \frac{d\,G_2}{m},\; 1 - \frac{1}{κ},\;
                       1 - \frac{k}{d} \Big\},

        G_1 = \frac{\sum_{i=m+1}^{2m} λ_i}{\sum_{i \le m} λ_i}, \qquad
        G_2 = \frac{\sum_{i=m+1}^{2m} λ_i}{\sum_{i \le d} λ_i}, \qquad
        κ = \frac{λ_1}{λ_d},

    for the W of Go on :math:`A_m` (Theorem 5.1), and for every W that explains no less: that of IPU
    from there (Corollary 5.6), and that of "auto" where it is never worse than Go. It is zero if A
    has rank m or less.
    It is not about rules that features have to keep.

    Parameters
    ----------
    covariance : Covariance or (d, d) array
        A, from `kspan.as_covariance`, or a matrix.
    n_components : int
        m.
    n_features_to_select : int
        k.

    Returns
    -------
    float
        Between 0 and 1; rounded upwards.

    Raises
    ------
    ValueError
        If A lacks positive semidefiniteness beyond rounding, or has more than 5000 features and as
        many samples: all eigenvalues are needed, for what the cube of the smaller number costs.

    Notes
    -----
    *Proof.* Let I be the k largest entries of diag(A_m). The W of Go explains at least
    :math:`t = \sum_{i∈I} (A_m)_{ii}`, as A - A_m ⪰ 0; and OPT is at most t plus the m largest
    eigenvalues of A - A_m. So at most :math:`\sum_{i=m+1}^{2m} λ_i` is lost. The k largest of d
    numbers have k/d of their sum or more, so :math:`t \ge \frac{k}{d}\sum_{i \le m} λ_i`; the m
    features of largest variance explain all of theirs, which is :math:`\frac{m}{d}\mathrm{tr} A` or
    more. OPT is no less than either: the first two terms. Any W explains :math:`mλ_d` or more, and
    none explains more than :math:`\sum_{i \le m} λ_i \le mλ_1`: the third term, and with t the
    fourth. ∎

    References
    ----------
    Tian, Nie, Wang, Li, Learning Feature Sparse Principal Subspace, NeurIPS 2020.

    Examples
    --------
    >>> from kspan.datasets import make_scheme
    >>> from kspan.proofs import fspca_epsilon
    >>> A = make_scheme("D", random_state=0)  # eigenvalues 160, 80, 40, 20, 10, 5, 2, 1, ...
    >>> [round(fspca_epsilon(A, m, 10), 4) for m in (1, 2, 4, 6)]
    [0.5, 0.5, 0.12, 0.0444]
    """
    covariance = as_covariance(covariance, kind="covariance")
    problem = RowSparseProblem(covariance, n_components, n_features_to_select)
    d, m, k = problem.n_features, problem.n_components, problem.n_features_to_select
    spectrum = _Spectrum.of(covariance)
    low, high, lacking = spectrum.low, spectrum.high, m * spectrum.lacking
    lost = float(np.maximum(high[m : 2 * m], 0.0).sum()) + lacking
    # The value of Go is above the first of these, and the optimum above both.
    explained = k / d * float(low[:m].sum()) - lacking
    by_variances = m / d * spectrum.trace
    shares = [1 - float(low[-1] / high[0]), 1 - explained / float(high[:m].sum())]
    shares += [lost / least for least in (explained, by_variances) if least > 0]
    epsilon = min(shares) + (2 * d + 64) * UNIT
    return min(max(epsilon, 0.0), 1.0)


def nspca_rho(covariance: Covariance | FloatArray, n_nonzero_coefs: int, rank: int = 3) -> float:
    r"""Return ρ: which share of the optimum a nonnegative `spannogram` finds at least.

    With at most k of n features in a component, and :math:`λ_1 \ge … \ge λ_n` the eigenvalues of
    A ⪰ 0, the spannogram of rank d has

    .. math:: x'Ax \ge ρ_d\, \mathrm{OPT}, \qquad
        ρ_d = \max\Big\{ \frac{k}{2n},\;
              \frac{1}{1 + 2\frac{n}{k} λ_{d+1} / λ_1} \Big\}

    (Theorem 1, equation 4), and the net of rank d, with the probability that it states,
    :math:`x'Ax \ge (1 - ε)ρ_d\, \mathrm{OPT}` (Theorem 2). It is one if A has rank d or less. Of
    several components it is about the first; a later one has that of what is left of A.

    Parameters
    ----------
    covariance : Covariance or (n, n) array
        A, from `kspan.as_covariance`, or a matrix.
    n_nonzero_coefs : int
        k.
    rank : int
        d.

    Returns
    -------
    float
        Between 0 and 1; rounded downwards.

    Raises
    ------
    ValueError
        If A lacks positive semidefiniteness beyond rounding, or has more than 5000 features and as
        many samples: all eigenvalues are needed, for what the cube of the smaller number costs.

    Notes
    -----
    *Proof.* Take the positive entries of the leading eigenvector, or the negative ones if those
    have the larger sum of squares, which then is 1/2 or more. The k largest of them have squares
    with the sum k/(2n) or more, and the unit vector along them explains as large a share of λ_1
    or a larger one, in A_d alone. So the optimum a of A_d is at least :math:`λ_1 k/(2n)`. The
    x that attains it explains a or more in A, as A - A_d ⪰ 0; and OPT is at most λ_1, which is the
    first term, and at most :math:`a + λ_{d+1}`, which is the second as a/(a + λ) grows with a. ∎

    References
    ----------
    Asteris, Papailiopoulos, Dimakis, Nonnegative Sparse PCA with Provable Guarantees, ICML 2014.

    Examples
    --------
    >>> from kspan.datasets import make_scheme
    >>> from kspan.proofs import nspca_rho
    >>> A = make_scheme("D", random_state=0)  # eigenvalues 160, 80, 40, 20, 10, 5, 2, 1, ...
    >>> [round(nspca_rho(A, 10, rank), 4) for rank in (1, 2, 4, 6)]
    [0.3333, 0.5, 0.8, 0.9524]
    """
    covariance = as_covariance(covariance, kind="covariance")
    k = NonnegativeProblem(covariance, 1, n_nonzero_coefs).n_nonzero_coefs
    require_count("rank", rank, least=1)
    n = covariance.n_features
    spectrum = _Spectrum.of(covariance)
    leading = max(k / (2 * n) * float(spectrum.low[0]), 0.0)
    explained = leading - spectrum.lacking
    beyond = max(float(spectrum.high[rank]), 0.0) if rank < n else 0.0
    shares = [explained / float(spectrum.high[0])]
    if leading > 0:
        shares.append(explained / (leading + beyond))
    return min(max(max(shares) - 64 * UNIT, 0.0), 1.0)


@dataclass(frozen=True)
class _Spectrum:
    """Between what the eigenvalues of A are, in descending order and in units of a scale.

    Parameters
    ----------
    low, high : (d,) arrays
    lacking : minus the smallest eigenvalue is at most this, with what a sketch has not seen
    trace : at most that of A
    """

    low: FloatArray
    high: FloatArray
    lacking: float
    trace: float

    @classmethod
    def of(cls, covariance: Covariance) -> "_Spectrum":
        """Compute it, from the samples if there are few of them.

        By Weyl no eigenvalue moves by more than the norm of what a matrix is off by. Those margins
        are in `kspan.proofs.check.bounds`.
        """
        covariance.ensure_psd()
        if covariance.indefiniteness:
            raise ValueError(
                "The guarantee is for positive semidefinite covariances: this one has an "
                f"eigenvalue below zero, by {covariance.indefiniteness:.2g} of the largest."
            )
        known = _known(RowSparseProblem(covariance, 1, 1))
        d, uncertainty = covariance.n_features, known.uncertainty
        values = np.zeros(d)
        if isinstance(known, KnownFactor):
            variances = np.einsum("ij,ij->j", known.X, known.X)
            found = np.linalg.eigvalsh(known.X @ known.X.T)
            rounding = 8 * (len(known.X) + d + 8) * UNIT * float(variances.sum())
        else:
            variances = known.variances
            found = np.linalg.eigvalsh(known.A)
            rounding = 4 * (d + 2) * UNIT * float(np.linalg.norm(known.A))
        values[: found.size] = found[::-1]
        errors = float(uncertainty.errors.sum())
        off = (errors + rounding) * (1 + d * UNIT)
        total = float(variances.sum()) * (1 - 4 * (d + 8) * UNIT) - errors
        unseen = float(uncertainty.unseen.max())
        lacking = float(uncertainty.psd_slack.max()) + unseen
        return cls(values - off, values + off + unseen, lacking, total)


def _known(problem: RowSparseProblem) -> KnownMatrix | KnownFactor:
    """Return A, or X with A = X'X if that is smaller."""
    covariance, d = problem.covariance, problem.n_features
    n = covariance.n_samples or d
    if n < d and n <= LARGEST_MATRIX:
        try:
            return KnownFactor.of(problem)
        except CertificateError:
            pass  # the samples are not at hand
    if d <= LARGEST_MATRIX:
        return KnownMatrix.of(problem, np.arange(d))
    raise ValueError(
        f"All eigenvalues of {d:,} features are out of reach: the guarantee needs at most "
        f"{LARGEST_MATRIX:,} features, or as few samples in memory."
    )

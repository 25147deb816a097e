"""`RepresentProblem`: k features from which all others can be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance
from kspan.linalg.representing import best_scores
from kspan.linalg.rounding import UNIT, unit_scale
from kspan.linalg.selection import placed
from kspan.problem.choice import Choice
from kspan.problem.shared_features import SharedFeatures
from kspan.problem.solution import Candidate

# Noise of each chosen feature, as a share of its variance. Enough to make copies of a feature
# worth nothing, and the numbers of a proof exact.
RIDGE = 1e-5


@dataclass(frozen=True, init=False, eq=False)
class RepresentProblem(SharedFeatures):
    r"""Find k features whose best m combinations tell the most about all features.

    .. math:: \max_{|S| = k} \sum_{i \le m} λ_i\bigl((A^2)_{SS},\, A_{SS} + ρ\,Diag(A_{SS})\bigr)

    is the variance of all features that m scores, made of the features in S, explain by linear
    regression; m = k is the choice of "principal variables", or of a subset of columns.

    Parameters
    ----------
    covariance : Covariance
        A, from `as_covariance`.
    n_components : int
        m.
    n_features_to_select : int or Choice
        k, with m ≤ k ≤ d; or all rules about the features at once, and then without the next two.
    include, exclude : sequences of int
        Features that must, and must not, be chosen; all are to be told in any case.
    ridge : float, default=1e-5
        ρ: every chosen feature is taken to be measured with noise, of this share of its variance.
        What is explained is then what a panel with such noise explains.

    Attributes
    ----------
    choice : Choice
        Which features may be chosen together.

    Examples
    --------
    >>> import numpy as np
    >>> from kspan import RepresentProblem, as_covariance, solve
    >>> A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.9], [0.0, 0.9, 1.0]])
    >>> problem = RepresentProblem(as_covariance(A, kind="covariance"), 1, 1, ridge=0.0)
    >>> round(solve(problem).objective, 6)  # 1 of its own, 0.9² of the other one
    1.81
    """

    kind: ClassVar[str] = "represent"

    ridge: float

    def __init__(
        self,
        covariance: Covariance,
        n_components: int,
        n_features_to_select: int | Choice,
        include: Sequence[int] | Index = (),
        exclude: Sequence[int] | Index = (),
        *,
        ridge: float = RIDGE,
    ):
        super().__init__(covariance, n_components, n_features_to_select, include, exclude)
        if isinstance(ridge, bool | str) or not 0 <= ridge < np.inf:
            raise ValueError(f"ridge must be a number, zero or more, got {ridge!r}.")
        object.__setattr__(self, "ridge", float(ridge))

    @property
    def options(self) -> dict[str, Any]:
        """See `SharedFeatures.options`."""
        return {"ridge": self.ridge}

    @cached_property
    def scale(self) -> float:
        """A power of four of the size of the largest variance: what moments are in units of."""
        return unit_scale(float(self.covariance.diagonal().max()))

    @cached_property
    def sample_gram(self) -> FloatArray:
        """XX' of wide data."""
        X = self.covariance.sample_factor()
        assert X is not None
        X = X / np.sqrt(self.scale)
        return X @ X.T

    def noise(self) -> FloatArray:
        """Return the variance of the noise of every feature."""
        return self.ridge * np.maximum(self.covariance.diagonal(), 0.0)

    def moments(self, support: Index) -> tuple[FloatArray, FloatArray]:
        """Return K and H of a support, see `kspan.linalg.representing`, in units of `scale`.

        One pass over the data; none of the sizes is that of all features squared.
        """
        covariance, scale = self.covariance, self.scale
        if covariance.is_wide:
            X = covariance.sample_factor(support)
            assert X is not None
            X = X / np.sqrt(scale)
            K, H = X.T @ X, X.T @ (self.sample_gram @ X)
        else:
            if covariance.dtype == np.float64:
                C = covariance.columns(support) / scale
            else:  # products of float32 data have seven digits
                one_each = placed(np.eye(support.size), support, self.n_features)
                C = covariance.precise_product(one_each) / scale
            K, H = C[support], C.T @ C
        K = (K + K.T) / 2
        K[np.diag_indices_from(K)] += self.noise()[support] / scale
        return K, H

    def refit(self, support: Index) -> Candidate:
        """Return the best combinations of the features of a support.

        Weights W with :math:`W'(A_{SS} + noise)W = I`, and what each explains of all features.
        """
        weights, values = best_scores(*self.moments(support), self.n_components)
        return Candidate(support, weights / np.sqrt(self.scale), values * self.scale)

    def refit_all(self, supports: Sequence[Index]) -> list[Candidate]:
        """Return `refit` of every support."""
        return [self.refit(support) for support in supports]

    def explained_at_least(self, support: Index, weights: FloatArray) -> float:
        r"""Return what combinations W of a support explain of all features, rounded downwards.

        With :math:`M = W'(A_{SS} + noise)W` the scores explain
        :math:`\mathrm{tr}(M^{-1}(AW)'(AW)) \ge \|AW\|_F^2 / λ_{\max}(M)`, and no combinations of
        these features explain more than the best. As
        :math:`|a_{ij}| \le \sqrt{a_{ii}a_{jj}}`, rounding moves an entry (p, q) of M by at most
        :math:`(2k+8)u\,s_ps_q` with :math:`s_p = \sum_i |w_{ip}|\sqrt{a_{ii} + noise_i}`, and what
        A itself is off by, `Covariance.product_errors`, by :math:`(2 + ρ)t_pt_q` with t made from
        these in the same way; an entry of AW is off by those of its product.
        """
        k, m, d = support.size, self.n_components, self.n_features
        W = weights
        if not (isinstance(W, np.ndarray) and W.dtype == np.float64 and W.shape == (k, m)):
            raise ValueError("weights: do not fit the support")
        scale, covariance = self.scale, self.covariance
        W = W * np.sqrt(scale)
        if not np.isfinite(W).all() or np.abs(W).max() > 1e100:
            raise ValueError("weights: are not finite")
        variances = np.maximum(covariance.diagonal(), 0.0) / scale
        errors = covariance.product_errors() / scale
        noise = self.noise()[support] / scale
        M = W.T @ (covariance.submatrix(support) / scale) @ W + (W.T * noise) @ W
        s = np.abs(W).T @ np.sqrt(variances[support] + noise)
        t = np.abs(W).T @ np.sqrt(errors[support])
        spread = (2 * k + 16) * UNIT * float(s @ s) + (3 + self.ridge) * float(t @ t)
        largest = float(np.linalg.eigvalsh((M + M.T) / 2)[-1]) * (1 + 8 * m * UNIT) + spread
        image = covariance.precise_product(placed(W, support, d)) / scale
        off = np.sqrt(errors.sum() * float(t @ t)) * (1 + 2 * d * UNIT)
        length = float(np.linalg.norm(image)) * (1 - 2 * (d + m) * UNIT) - off
        if not largest > 0 or length <= 0:
            return 0.0
        return float(length**2 / largest * (1 - 8 * UNIT) * scale)

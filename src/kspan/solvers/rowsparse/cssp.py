r"""CSSP: choose columns that span the data well, then encode by the best rank-m fit in them.

With C the k chosen columns of X, of A = X'X, and :math:`C = QR`, the encoder is

.. math:: H_I = \text{left singular vectors of } R^{-1} (Q'X)_m

so that XH spans the best rank-m approximation of X within the span of C. Only A is needed:
:math:`C'X = A_{I:}`, and an eigendecomposition of :math:`A_{II}` takes the place of R.

The columns are chosen by

- "leverage": the k features with the largest row norms in the m leading eigenvectors;
- "dual-set": dual-set spectral sparsification for the first of them, then adaptive sampling, with
  probabilities proportional to what the columns chosen so far leave unexplained.

Cost: one call of ``leading(m)``, then O(dkm + k³); adaptive sampling O(dk²). Passes over the data:
those of ``leading``, and at most eight more.

Guarantee: in expectation, an error of reconstruction within a factor 1 + O(m / k) of that of PCA
("dual-set"). None on the explained variance, which is not what it optimises.

Reference: Magdon-Ismail, Boutsidis, Optimal Sparse Linear Encoders and Sparse PCA, NIPS 2016;
the selection follows Boutsidis, Drineas, Magdon-Ismail, Near-optimal column-based matrix
reconstruction, SIAM J. Comput. 2014.

Differs from the paper in: adaptive sampling draws without replacement, so that exactly k columns
are chosen. For k too small for the dual set, m columns are drawn by variance in its place.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.problem import Candidate, RowSparseProblem, Solution
from kspan.progress import Monitor
from kspan.solvers.method import RowSparseMethod
from kspan.solvers.rowsparse.go import one_step_solution


@dataclass(frozen=True, eq=False)
class CSSP(RowSparseMethod):
    """Choose columns and encode; there is nothing to stop.

    Parameters
    ----------
    columns : {"leverage", "dual-set"}
        How the features are chosen; the second draws some of them.
    refine : bool
        Take the leading eigenvectors of A on the chosen features, which explain the most
        variance there, instead of the paper's encoder.
    """

    name = "cssp"
    summary = "columns that reconstruct the data well by least squares"
    guarantee = 'reconstruction error near that of PCA, in expectation ("dual-set")'
    reference = "Magdon-Ismail, Boutsidis, NIPS 2016"

    columns: Literal["leverage", "dual-set"] = "leverage"
    refine: bool = False

    def check_options(self) -> None:
        """The rule for the columns is known."""
        if self.columns not in ("leverage", "dual-set"):
            raise ValueError(f"columns must be 'leverage' or 'dual-set', got {self.columns!r}.")

    def run(
        self, problem: RowSparseProblem, monitor: Monitor, rng: np.random.Generator
    ) -> Solution:
        """Choose and encode, with one report at the end."""
        if self.columns == "leverage":
            V = problem.covariance.leading(problem.n_components).vectors
            support = problem.select(np.einsum("ij,ij->i", V, V))
        else:
            support = _dual_set_then_adaptive(problem, rng)
        best = problem.refit(support) if self.refine else encoder(problem, support)
        return one_step_solution(problem, best, self.name, monitor)


def encoder(problem: RowSparseProblem, support: Index) -> Candidate:
    """Return the span of H on the chosen columns."""
    to_orthonormal = _inverse_root(problem, support)  # C times it is Q
    projected = problem.covariance.columns(support) @ to_orthonormal  # X'Q
    projected /= np.abs(projected).max(initial=0.0) or 1.0
    # Left singular vectors of Q'X; beyond the rank of C any directions do.
    left = np.linalg.svd(projected.T @ projected)[0][:, : problem.n_components]
    basis = to_orthonormal @ left
    missing = problem.n_components - basis.shape[1]
    if missing > 0:
        basis = np.hstack([basis, np.zeros((support.size, missing))])
    return problem.on_span(support, basis)


def _inverse_root(problem: RowSparseProblem, support: Index) -> FloatArray:
    """Return T with ``T' A_SS T = I`` on the range of A_SS (k × rank)."""
    values, vectors = np.linalg.eigh(problem.covariance.submatrix(support))
    # `columns`, which T multiplies, is as accurate as the data's type.
    rounding = support.size * np.finfo(problem.covariance.dtype).eps
    kept = values > rounding * values[-1]
    root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
    return root


def _dual_set_then_adaptive(problem: RowSparseProblem, rng: np.random.Generator) -> Index:
    """Return k features: forced ones, those of the dual set, and a sample of the rest."""
    covariance, k, m = problem.covariance, problem.choice.size, problem.n_components
    chosen = problem.choice.include
    n_first = min(int(2 * m * (2 * m / k) ** (-2 / 3)), k - 1)
    if n_first > m:
        pool = problem.choice.features
        pairs = covariance.leading(m, pool if pool.size < problem.n_features else None)
        V = pairs.vectors
        explained = (V * V) @ np.maximum(pairs.values, 0.0)
        left_over = np.maximum(covariance.diagonal()[pool] - explained, 0.0)
        picked = pool[dual_set(V, left_over, n_first)]
        new = np.setdiff1d(picked, chosen)[: k - chosen.size]
        chosen = np.union1d(chosen, new).astype(np.intp)
    if not chosen.size:
        chosen = _draw(problem, chosen, m, rng)
    return _draw(problem, chosen, k, rng)


def _draw(problem: RowSparseProblem, chosen: Index, size: int, rng: np.random.Generator) -> Index:
    """Sample until there are `size` features: by the variance that `chosen` leaves over."""
    covariance = problem.covariance
    variances = np.maximum(covariance.diagonal(), 0.0)
    weights = variances.copy()
    if chosen.size:
        scaled = covariance.columns(chosen) @ _inverse_root(problem, chosen)
        weights = np.maximum(weights - np.einsum("ij,ij->i", scaled, scaled), 0.0)
    weights[~problem.choice.coming(chosen)] = 0.0
    likely = np.flatnonzero(weights > np.sqrt(np.finfo(float).eps) * variances)
    scores = np.zeros(variances.size)
    if likely.size:
        chances = weights[likely] / weights[likely].sum()
        count = min(size - chosen.size, likely.size)
        scores[rng.choice(likely, count, replace=False, p=chances)] = 1.0
    scores[chosen] = 2.0
    # Should the draw fall short, `select` fills up.
    if size == problem.choice.size:
        return problem.select(scores)
    # Rules are for the last draw: so few features may not be able to keep them.
    return problem.changed(choice=problem.choice.without_rules().resized(size)).select(scores)


def dual_set(V: FloatArray, squares: FloatArray, count: int) -> Index:
    """Choose up to `count` rows of V by dual-set spectral sparsification.

    Keeps the smallest eigenvalue of a weighted sum of v_j v_j' growing while the weighted sum of
    `squares` stays small. Some row always meets both barriers, but for rounding; rows may be met
    again.

    Parameters
    ----------
    V : (d, m) orthonormal columns
    squares : (d,) squared lengths of the columns of X - X V V'
    count : number of steps, above m
    """
    d, m = V.shape
    total = squares.sum() / (1.0 - np.sqrt(m / count))
    upper = squares / total if total > 0 else np.zeros(d)
    M = np.zeros((m, m))
    picked: list[int] = []
    place = 0
    for tau in range(count):
        barrier = tau - np.sqrt(count * m)
        values, vectors = np.linalg.eigh(M)
        gain = np.sum(1 / (values - barrier - 1)) - np.sum(1 / (values - barrier))
        turned = (V @ vectors) / (values - barrier - 1)  # rows of V times D
        first = np.einsum("ij,ij->i", turned, V @ vectors)
        lower = np.einsum("ij,ij->i", turned, turned) / gain - first
        # Cyclic scan from where the last one ended.
        met = np.flatnonzero(np.roll((upper <= lower) & (lower + upper > 0), -place))
        if not met.size:
            break
        j = (place + int(met[0])) % d
        M += 2.0 / (upper[j] + lower[j]) * np.outer(V[j], V[j])
        picked.append(j)
        place = (j + 1) % d
    return np.unique(np.array(picked, dtype=np.intp))

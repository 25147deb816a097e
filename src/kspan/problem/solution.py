"""What a solver answers."""

from dataclasses import dataclass, field

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.linalg.selection import placed
from kspan.progress import Status

# A score that adds no more than this share of its variance depends on those before it.
DEPENDENT = 1e-12


@dataclass(frozen=True)
class Candidate:
    """A feasible point: k features and m orthonormal directions on them.

    Attributes
    ----------
    support : (k,) sorted feature indices
    weights : (k, m) orthonormal columns, the principal axes of their span
    variances : (m,) variance along each, descending
    """

    support: Index
    weights: FloatArray
    variances: FloatArray

    @property
    def objective(self) -> float:
        """The explained variance ``tr(W'AW)``."""
        return float(self.variances.sum())

    def loadings(self, n_features: int) -> FloatArray:
        """Return the (d, m) matrix W; rows outside the support are zero."""
        return placed(self.weights, self.support, n_features)


@dataclass(frozen=True)
class Outlook:
    """What is known of a problem after a look at it from above.

    Attributes
    ----------
    best : the best point that is known
    upper : what no feasible point exceeds
    is_settled : whether it is proved that no point is better, as far as numbers can tell
    is_led : whether a relaxation of the problem has led to points, as good as many starts
    """

    best: Candidate
    upper: float
    is_settled: bool
    is_led: bool


@dataclass(frozen=True)
class Solution:
    """The features a method chose, the loadings on them, and how it got there.

    Attributes
    ----------
    support : (k,) sorted indices of the chosen features
    weights : (k, m) loadings on the chosen features, orthonormal columns
    explained_variance : (m,) variance along each column, descending
    n_features : d
    solver : name of the method
    status : how it ended; ``status.advice`` says what that means
    history : objective after every step that gave a feasible point
    n_iter : number of steps
    """

    support: Index
    weights: FloatArray
    explained_variance: FloatArray
    n_features: int
    solver: str
    status: Status
    history: FloatArray = field(repr=False)
    n_iter: int

    @classmethod
    def from_candidate(
        cls, candidate: Candidate, *, n_features: int, solver: str, status: Status,
        history: list[float], n_iter: int,
    ) -> "Solution":  # fmt: skip
        """Dress up the best point of a run."""
        return cls(
            candidate.support, candidate.weights, candidate.variances, n_features, solver,
            status, np.asarray(history), n_iter,
        )  # fmt: skip

    @property
    def objective(self) -> float:
        """The explained variance: the sum of ``explained_variance``."""
        return float(self.explained_variance.sum())

    @property
    def loadings(self) -> FloatArray:
        """The (d, m) matrix W with orthonormal columns; rows outside the support are zero."""
        return placed(self.weights, self.support, self.n_features)


@dataclass(frozen=True)
class LoadingsSolution:
    """Sparse components that need not share features, nor be orthogonal.

    Attributes
    ----------
    loadings : (d, m) unit columns, each with zeros that are exactly zero
    explained_variance : (m,) adjusted variances: what each column's score adds to those before
        it. With ``XZ = QR`` they are the squared diagonal of R; their sum is the variance that
        all scores explain together, and for orthogonal scores the sum of their variances.
    solver, status, history, n_iter : as in `Solution`
    """

    loadings: FloatArray
    explained_variance: FloatArray
    solver: str
    status: Status
    history: FloatArray = field(repr=False)
    n_iter: int

    @classmethod
    def from_loadings(
        cls, loadings: FloatArray, gram: FloatArray, *, solver: str, status: Status,
        history: list[float], n_iter: int,
    ) -> "LoadingsSolution":  # fmt: skip
        """Build from the loadings Z and ``Z'AZ``."""
        variances = adjusted_variances(gram)
        return cls(loadings, variances, solver, status, np.asarray(history), n_iter)

    @property
    def objective(self) -> float:
        """The sum of the adjusted variances."""
        return float(self.explained_variance.sum())

    @property
    def orthogonality_error(self) -> float:
        """The largest ``|Z'Z - I|``."""
        Z = self.loadings
        return float(np.abs(Z.T @ Z - np.eye(Z.shape[1])).max())

    @property
    def support(self) -> Index:
        """The features that any component uses."""
        return np.flatnonzero(self.loadings.any(axis=1))


def adjusted_variances(gram: FloatArray) -> FloatArray:
    """Return the squared diagonal of R in ``XZ = QR``, from ``gram = Z'X'XZ`` alone.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_variances(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([4., 1.])
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # root' root = gram
    diagonal = np.diagonal(np.linalg.qr(root, mode="r"))
    squares: FloatArray = diagonal * diagonal
    dependent = np.flatnonzero(squares <= DEPENDENT * np.diagonal(gram))
    if dependent.size and dependent[0] < squares.size - 1:
        # Q has an arbitrary column there, which would take from those after it.
        others = np.delete(np.arange(squares.size), dependent[0])
        squares[others] = adjusted_variances(gram[np.ix_(others, others)])
    return squares

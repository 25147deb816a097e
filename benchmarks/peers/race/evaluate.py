"""The judge: two kinds of explained variance in float64 from the data, whoever found the loadings.

*Variance* is that of the components themselves, on the features they use. *Told* is what m scores
on these features explain, by linear regression, of the variance of all features.
"""

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds


class Judge:
    """Scores loadings on one data set; neither densifies sparse data nor centres a copy."""

    def __init__(self, X: Any, m: int) -> None:
        self.X, self.m = X, m
        self.mean = np.asarray(X.mean(axis=0)).ravel()

    def variance(self, W: np.ndarray) -> float:
        """Return the sample variance that span(W) explains."""
        rows = np.flatnonzero(np.any(W != 0, axis=1))
        if rows.size == 0:
            return 0.0
        Q = basis(W[rows])
        scores = np.asarray(self._columns(rows) @ Q) - self.mean[rows] @ Q
        return float(np.sum(scores**2) / (self.X.shape[0] - 1))

    def refit(self, support: np.ndarray) -> np.ndarray:
        """Return the m leading principal components of the chosen features, as d x m loadings."""
        rows = np.unique(support)
        V = np.linalg.svd(self._centred(rows), full_matrices=False)[2][: self.m].T
        W = np.zeros((self.X.shape[1], V.shape[1]))
        W[rows] = V
        return W

    def told(self, support: np.ndarray) -> float:
        """Return the variance of all features that the best m combinations of some of them explain.

        Regression on the chosen columns projects on their span, with the orthonormal basis Q; the
        m best directions in it are the leading left singular vectors of Q'X.
        """
        rows = np.unique(support)
        Q = basis(self._centred(rows))
        told = np.asarray(self.X.T @ Q) - np.outer(self.mean, Q.sum(axis=0))
        lengths = np.linalg.svd(told, compute_uv=False)[: self.m]
        return float(np.sum(lengths**2) / (self.X.shape[0] - 1))

    def total(self) -> float:
        """Return the variance of all features."""
        n = self.X.shape[0]
        if hasattr(self.X, "multiply"):
            squares = np.asarray(self.X.multiply(self.X).sum(axis=0)).ravel()
            return float(np.sum(squares - n * self.mean**2) / (n - 1))
        return float(np.sum((self.X - self.mean) ** 2) / (n - 1))

    def most(self) -> float:
        """Return what m principal components of all features explain: nobody can tell more."""
        n, d = self.X.shape
        if not hasattr(self.X, "toarray"):
            Z = self.X - self.mean
            values = np.linalg.eigvalsh(Z @ Z.T if n < d else Z.T @ Z)
            return float(np.sum(values[-self.m :]) / (n - 1))
        centred = LinearOperator(
            (n, d), dtype=np.float64,
            matvec=lambda v: self.X @ v.ravel() - self.mean @ v.ravel(),
            rmatvec=lambda u: self.X.T @ u.ravel() - self.mean * u.sum(),
        )  # fmt: skip
        lengths = svds(centred, self.m, return_singular_vectors=False, random_state=0)
        return float(np.sum(lengths**2) / (n - 1))

    def _centred(self, rows: np.ndarray) -> np.ndarray:
        """Return the chosen columns alone, centred: k of them, or as many as a peer has left."""
        part = self._columns(rows)
        part = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
        return part - self.mean[rows]

    def _columns(self, rows: np.ndarray) -> Any:
        return self.X if rows.size == self.X.shape[1] else self.X[:, rows]


def basis(W: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of span(W); loadings that repeat others add nothing."""
    W = np.asarray(W, dtype=np.float64)
    lengths = np.linalg.norm(W, axis=0)
    W = W[:, lengths > 0] / lengths[lengths > 0]
    U, s, _ = np.linalg.svd(W, full_matrices=False)
    return U[:, s > 1e-10 * s.max(initial=1.0)]


def orthogonality_error(W: np.ndarray) -> float:
    """Return max |V'V - I| of the loadings at unit length; a loading of zeros counts as 1."""
    W = np.asarray(W, dtype=np.float64)
    lengths = np.linalg.norm(W, axis=0)
    V = W / np.where(lengths > 0, lengths, 1.0)
    return float(np.abs(V.T @ V - np.eye(W.shape[1])).max())


def n_features(W: np.ndarray) -> int:
    """Return how many features the components use together."""
    return int(np.any(W != 0, axis=1).sum())


def score(judge: Judge, found: dict[str, np.ndarray], k: int | None) -> dict[str, Any]:
    """Return variance, features and orthogonality of one answer, and what its features tell.

    With k, the answer also gets the best components that its features allow; a larger set of
    features is first cut to the k with the longest rows. The peer keeps what is better. The
    orthogonality is that of what the peer returned, if it returned components. What is told has
    k features at most, so that an answer without k has none.
    """
    if "support" in found:
        W = judge.refit(found["support"])
        return _scored(judge, judge.variance(W), W, None, "refit")
    W = np.nan_to_num(found["loadings"])
    error, used = orthogonality_error(W), n_features(W)
    if k is None or used == 0:
        return _scored(judge, judge.variance(W), W, error, "span", is_told=False)
    if used > k:
        rows = np.argsort(-np.linalg.norm(W, axis=1), kind="stable")[:k]
        best = judge.refit(rows)
        return _scored(judge, judge.variance(best), best, error, "longest k rows, refit")
    span = judge.variance(W)
    refit = judge.variance(judge.refit(np.flatnonzero(np.any(W != 0, axis=1))))
    return _scored(judge, max(span, refit), W, error, "span" if span >= refit else "refit")


def _scored(
    judge: Judge, variance: float, W: np.ndarray, error: float | None, how: str,
    is_told: bool = True,
) -> dict[str, Any]:  # fmt: skip
    support = np.flatnonzero(np.any(W != 0, axis=1))
    scored = {
        "variance": variance, "features": support.size, "orthogonality": error, "scored": how,
    }  # fmt: skip
    if is_told:
        scored |= {"support": support.tolist(), "told": judge.told(support)}
    return scored


def best_answer(
    judge: Judge, found: list[dict[str, np.ndarray]], k: int
) -> tuple[int, dict[str, Any]]:
    """Return which of several answers is best with at most k features, and its score.

    Only if none has so few is one cut: the one with the fewest.
    """
    counts = [one["support"].size if "support" in one else n_features(one["loadings"])
              for one in found]  # fmt: skip
    few = [i for i, count in enumerate(counts) if 0 < count <= k] or [int(np.argmin(
        [count if count > k else np.inf for count in counts]))]  # fmt: skip
    scores = {i: score(judge, found[i], k) for i in few}
    best = max(scores, key=lambda i: scores[i]["variance"])
    return best, scores[best]

"""What loadings are worth, computed from data and loadings alone, in float64."""

from typing import Any

import numpy as np


def centred_scores(X: Any, V: np.ndarray) -> np.ndarray:
    """Return (X - mean) V; X may be sparse."""
    V = np.asarray(V, dtype=np.float64)
    T = np.asarray(X @ V, dtype=np.float64)
    return T - T.mean(axis=0)


def total(X: Any) -> float:
    """Return the sum of squares of the centred data."""
    if hasattr(X, "tocsc"):
        X = X.astype(np.float64)
        mean = np.asarray(X.mean(axis=0)).ravel()
        return float(X.multiply(X).sum() - X.shape[0] * np.sum(mean**2))
    X = np.asarray(X, dtype=np.float64)
    return float(np.sum((X - X.mean(axis=0)) ** 2))


def plain_pca(X: Any, r: int) -> float:
    """Return the sum of squares of the scores of plain PCA, without kspan."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = X.shape[0]
    if not hasattr(X, "tocsc"):
        X = X - X.mean(axis=0)
        return float(np.linalg.eigvalsh(X @ X.T)[-r:].sum())
    X = X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()

    def gram(u: np.ndarray) -> np.ndarray:
        u = u.ravel() - u.mean()
        image = X @ (X.T @ u - mean * u.sum())
        return image - image.mean()

    operator = LinearOperator((n, n), matvec=gram, dtype=np.float64)
    return float(eigsh(operator, r, v0=np.ones(n) + np.arange(n) / n)[0].sum())


def measures(X: Any, V: np.ndarray) -> dict[str, Any]:
    """Return sums of squares of scores, the orthogonality error, and numbers of features.

    - "span": ‖X qf(V)‖², what the span of the loadings explains;
    - "adjusted": Σ diag(R)² with XV = QR, what each score adds to those before it;
    - "raw": ‖XV‖², the sum of the variances, in which overlapping components count twice.
    """
    T = centred_scores(X, V)
    Q = np.linalg.qr(V)[0]
    return {
        "span": float(np.sum(centred_scores(X, Q) ** 2)),
        "adjusted": float(np.sum(np.diagonal(np.linalg.qr(T, mode="r")) ** 2)),
        "raw": float(np.sum(T**2)),
        "orthogonality error": float(np.abs(V.T @ V - np.eye(V.shape[1])).max()),
        "features": int(V.any(axis=1).sum()),
        "in each": np.count_nonzero(V, axis=0).tolist(),
    }


def recovery_error(V: np.ndarray, truth: np.ndarray) -> float:
    """Return ‖QQ' - GG'‖² of the spans of two (d, r) matrices."""
    Q, G = np.linalg.qr(V)[0], np.linalg.qr(truth)[0]
    return float(2 * (Q.shape[1] - np.sum((Q.T @ G) ** 2)))


def objective(X: Any, V: np.ndarray, alpha: float, penalty: str = "l1") -> dict[str, float]:
    """Return the paper's objectives (2) and (4), divided by n - 1: X'X/(n - 1) is a covariance."""
    n = X.shape[0]
    size = np.abs(V).sum() if penalty == "l1" else np.linalg.norm(V, axis=1).sum()
    four = float(alpha * size - 0.5 * np.sum(centred_scores(X, V) ** 2) / (n - 1))
    return {"(2)": four + 0.5 * total(X) / (n - 1), "(4)": four}

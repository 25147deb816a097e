"""How each method is called. Runs in the environment of the package, not in ours.

Each function imports its package and returns ``fit(X, m, k, value)``, which returns the loadings
(features x m), or the indices of the chosen features. The import is not timed, all else is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Fit = Callable[[Any, int, int, Any], np.ndarray]


def _kspan(solver: str) -> Callable[[], Fit]:
    def load() -> Fit:
        from kspan import FeatureSparsePCA

        def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
            return FeatureSparsePCA(m, k, solver=solver, random_state=0).fit(X).components_.T

        return fit

    return load


def _kspan_chosen(criterion: str) -> Callable[[], Fit]:
    def load() -> Fit:
        from kspan import FeatureSparsePCA

        def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
            model = FeatureSparsePCA(m, k, criterion=criterion, random_state=0)
            return model.fit(X).get_support(indices=True)

        return fit

    return load


def _largest_loadings() -> Fit:
    from sklearn.decomposition import PCA

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        loadings = PCA(m, random_state=0).fit(X).components_
        return np.argsort(-np.sum(loadings**2, axis=0), kind="stable")[:k]

    return fit


def _forward() -> Fit:
    """Select forwards by the R² of all features, with what is left of them after each step."""

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        if hasattr(X, "toarray"):
            raise TypeError("what is left of sparse data is dense")
        left = X - X.mean(axis=0)
        n, d = left.shape
        smallest = 1e-12 * np.sum(left**2, axis=0).max()
        chosen = []
        for _ in range(k):
            lengths = np.sum(left**2, axis=0)
            if n < d:
                told = np.sum(left * (left @ left.T @ left), axis=0)
            else:
                told = np.sum((left.T @ left) ** 2, axis=0)
            gains = np.where(lengths > smallest, told / np.maximum(lengths, smallest), 0.0)
            gains[chosen] = -1.0
            j = int(np.argmax(gains))
            chosen.append(j)
            if lengths[j] > smallest:
                q = left[:, j] / np.sqrt(lengths[j])
                left = left - np.outer(q, q @ left)
        return np.array(chosen)

    return fit


def _sequential() -> Fit:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import make_scorer, r2_score

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        everyone = np.arange(X.shape[0])
        told = make_scorer(r2_score, multioutput="variance_weighted")
        model = SequentialFeatureSelector(
            LinearRegression(), n_features_to_select=k, scoring=told, cv=[(everyone, everyone)]
        )
        return model.fit(X, X).get_support(indices=True)

    return fit


def _variance_top_k() -> Fit:
    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        if hasattr(X, "multiply"):
            mean = np.asarray(X.mean(axis=0)).ravel()
            variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        else:
            variance = X.var(axis=0)
        return np.argpartition(-variance, k - 1)[:k]

    return fit


def _sparse_pca() -> Fit:
    from sklearn.decomposition import SparsePCA

    return lambda X, m, k, value: SparsePCA(m, alpha=value, random_state=0).fit(X).components_.T


def _mini_batch_sparse_pca() -> Fit:
    from sklearn.decomposition import MiniBatchSparsePCA

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        return MiniBatchSparsePCA(m, alpha=value, random_state=0).fit(X).components_.T

    return fit


def _abess() -> Fit:
    from abess.decomposition import SparsePCA

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        sizes = None
        if value is not None:  # a table: which sizes (rows) to try for which component (columns)
            sizes = np.zeros((int(value), m), dtype=int)
            sizes[-1] = 1
        model = SparsePCA(support_size=sizes)
        if hasattr(X, "toarray") or X.shape[0] >= X.shape[1]:
            return model.fit(X, number=m).coef_
        # With fewer samples than features it returns ones from data, so it gets a covariance,
        # with a trace of ridge, because it refuses eigenvalues that rounding makes negative.
        A = np.cov(X.T)
        A = (A + A.T) / 2
        A[np.diag_indices(len(A))] += 1e-8 * np.trace(A)
        return model.fit(Sigma=A, number=m, n=X.shape[0]).coef_

    return fit


def _sparsepca() -> Fit:
    from sparsepca import spca

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        # Both penalties are those of the package's own example; it works in place.
        found = spca(X - X.mean(axis=0), value * np.ones((m, 1)), 1, k=m, normalize=False)
        return found["loadings"]

    return fit


def _skmatter(name: str) -> Callable[[], Fit]:
    def load() -> Fit:
        from skmatter import feature_selection
        from skmatter.preprocessing import StandardFlexibleScaler

        method = getattr(feature_selection, name)

        def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
            Z = StandardFlexibleScaler(column_wise=False).fit_transform(X)
            return method(n_to_select=k).fit(Z).selected_idx_

        return fit

    return load


def _fastcan() -> Fit:
    from fastcan import FastCan
    from sklearn.decomposition import PCA

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        target = PCA(m, random_state=0).fit_transform(X)
        return FastCan(k, verbose=0).fit(X, target).indices_

    return fit


def _xeofs() -> Fit:
    import xarray
    from xeofs.single import SparsePCA

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        n, d = X.shape
        coordinates = {"sample": np.arange(n), "feature": np.arange(d)}
        table = xarray.DataArray(X, dims=("sample", "feature"), coords=coordinates)
        model = SparsePCA(n_modes=m, alpha=value, random_state=0)
        found = model.fit(table, dim="sample").components()
        return found.transpose("feature", "mode").values

    return fit


def _pca() -> Fit:
    from sklearn.decomposition import PCA

    return lambda X, m, k, value: PCA(m, random_state=0).fit(X).components_.T


def _dask_pca() -> Fit:
    import dask
    import dask.array
    from dask_ml.decomposition import PCA

    dask.config.set(scheduler="synchronous")  # one core, like all others

    def fit(X: Any, m: int, k: int, value: Any) -> np.ndarray:
        blocks = dask.array.from_array(X, chunks=X.shape)
        return np.asarray(PCA(n_components=m, random_state=0).fit(blocks).components_).T

    return fit


FITS: dict[str, Callable[[], Fit]] = {
    "kspan_auto": _kspan("auto"),
    "kspan_ipu": _kspan("ipu"),
    "kspan_go": _kspan("go"),
    "kspan_represent": _kspan_chosen("represent"),
    "kspan_variance": _kspan_chosen("variance"),
    "largest_loadings": _largest_loadings,
    "forward": _forward,
    "sequential": _sequential,
    "variance_top_k": _variance_top_k,
    "sparse_pca": _sparse_pca,
    "mini_batch_sparse_pca": _mini_batch_sparse_pca,
    "abess": _abess,
    "sparsepca": _sparsepca,
    "cur": _skmatter("CUR"),
    "fps": _skmatter("FPS"),
    "fastcan": _fastcan,
    "xeofs": _xeofs,
    "pca": _pca,
    "dask_pca": _dask_pca,
}

"""Every way to hold data, with every estimator: the same features, the same variance."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    FeatureSparseSelector,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
)
from kspan.io import RowSource, rows
from tests.out_of_core import OUT_OF_CORE

NAMES = [f"f{i}" for i in range(12)]

BACKENDS = {
    "fortran": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    **OUT_OF_CORE,
    "dask array": lambda X: da.from_array(X, chunks=((20, 50, 0, 31), (5, 7))),
    "dask sparse": lambda X: da.from_array(X, chunks=(30, 12)).map_blocks(sp.csr_matrix),
    "dask dataframe": lambda X: dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=4),
}

ESTIMATORS = {
    "features": FeatureSparsePCA(2, 4, random_state=0),
    "features, scaled": FeatureSparsePCA(2, 4, scale=True, random_state=0),
    "features, proved": FeatureSparsePCA(2, 4, certify="exact", random_state=0),
    "features for a share": FeatureSparsePCA(2, explained_share=0.8, random_state=0),
    "features by ipu": FeatureSparsePCA(2, 4, solver="ipu"),
    "selector": FeatureSparseSelector(2, 4, random_state=0),
    "orthonormal": StiefelSparsePCA(2, n_nonzero_coefs=3, random_state=0),
    "separate": ElementSparsePCA(2, 3),
    "nonnegative": NonnegativeSparsePCA(2, 3, random_state=0),
    "nonnegative, scaled": NonnegativeSparsePCA(2, 3, scale=True, random_state=0),
}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(7)
    return rng.standard_normal((101, 3)) @ rng.standard_normal((3, 12)) + rng.random((101, 12)) + 9


@pytest.fixture(scope="module")
def references(X):
    return {name: clone(estimator).fit(X) for name, estimator in ESTIMATORS.items()}


# Every form of data with two estimators, every estimator with three forms; the rest is slow.
FEW_ESTIMATORS, FEW_BACKENDS = ("features", "nonnegative, scaled"), ("npy", "csr", "dask array")
PAIRS = [
    pytest.param(backend, name, id=f"{backend}-{name}", marks=[] if fast else [pytest.mark.slow])
    for backend in BACKENDS
    for name in ESTIMATORS
    for fast in [name in FEW_ESTIMATORS or backend in FEW_BACKENDS]
]


@pytest.mark.parametrize(("backend", "name"), PAIRS)
def test_the_answer_is_that_of_data_in_memory(X, references, monkeypatch, backend, name):
    monkeypatch.setattr(RowSource, "block_bytes", 1500)  # several blocks, however small the data
    monkeypatch.setattr(rows, "FEWEST_ROWS", 1)
    reference, given = references[name], BACKENDS[backend](X)
    fitted = clone(ESTIMATORS[name]).fit(given)
    np.testing.assert_array_equal(fitted.get_support(), reference.get_support())
    assert fitted.objective_ == pytest.approx(reference.objective_, rel=1e-8)
    np.testing.assert_allclose(fitted.components_, reference.components_, atol=1e-6)
    projected = fitted.transform(given)
    if backend.startswith("dask") and name != "selector":
        assert isinstance(projected, da.Array), "transform stays lazy"
    projected = projected.toarray() if sp.issparse(projected) else np.asarray(projected)
    np.testing.assert_allclose(projected, reference.transform(X), atol=1e-6)
    assert fitted.score(given) == pytest.approx(reference.score(X), rel=1e-8)
    if backend in ("pandas", "polars", "dask dataframe", "parquet"):
        assert list(fitted.feature_names_in_) == NAMES
    if name == "features, proved":
        assert fitted.certificate_.status.value == "optimal"

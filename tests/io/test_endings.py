"""Whatever has an ending in the table is taken everywhere, with its names."""

import gzip
import json

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import zarr
from typer.testing import CliRunner

from kspan import (
    FeatureSparsePCA,
    FeatureSparseSelector,
    as_covariance,
    selection_stability,
    sparsity_path,
)
from kspan.cli.app import app
from kspan.io import endings, known_endings, open_data, read_table
from kspan.io.table import Grid

NAMES = tuple("abcdef")
# Ten digits: what writes spreadsheets keeps fifteen only.
X = (np.random.default_rng(0).standard_normal((30, 6)) @ np.diag([3, 1, 2, 1, 1, 2]) + 5).round(10)
FRAME = pd.DataFrame(X, columns=NAMES)


def text(path):
    FRAME.to_csv(path, index=False)


def npy(path):
    np.save(path, X)


def npz(path):
    np.savez(path, X=X, feature_names=NAMES)


def mtx(path):
    scipy.io.mmwrite(path, X, precision=17)


def mat(path):
    scipy.io.savemat(path, {"X": X})


def h5ad(path):
    anndata.AnnData(X, var=pd.DataFrame(index=NAMES)).write_h5ad(path)


def hdf5(path):
    with h5py.File(path, "w") as file:
        file["table"] = X


def zarr_array(path):
    zarr.save_array(path, X)


def xlsx(path):
    pytest.importorskip("openpyxl")
    FRAME.to_excel(path, index=False)


def mtx_gz(path):
    mtx(path.with_suffix(""))
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))


WRITERS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab", ".dat", ".csv.gz", ".tsv.bz2"), text),
    **dict.fromkeys((".parquet", ".pq"), FRAME.to_parquet),
    **dict.fromkeys((".h5", ".hdf5"), hdf5),
    ".npy": npy, ".npz": npz, ".mtx": mtx, ".mtx.gz": mtx_gz, ".mat": mat, ".h5ad": h5ad,
    ".zarr": zarr_array, ".xlsx": xlsx,
}  # fmt: skip
NAMELESS = {npy, mtx, mtx_gz, mat, hdf5, zarr_array}


def test_none_is_left_out():
    assert set(known_endings()) <= set(WRITERS)


@pytest.mark.parametrize("ending", WRITERS)
def test_everything_takes_a_path(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    WRITERS[ending](path)
    _check_everything(path, named=WRITERS[ending] not in NAMELESS)


def _check_everything(path, named):
    include = ["b"] if named else [1]
    asked = {"n_components": 2, "n_features_to_select": 3, "random_state": 0}
    expected = FeatureSparsePCA(**asked, include=[1]).fit(X)

    fitted = FeatureSparsePCA(**asked, include=include).fit(path)
    np.testing.assert_array_equal(fitted.get_support(), expected.get_support())
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert tuple(getattr(fitted, "feature_names_in_", ())) == (NAMES if named else ())
    np.testing.assert_allclose(fitted.transform(path), expected.transform(X), atol=1e-9)
    assert fitted.score(path) == pytest.approx(expected.score(X))

    selector = FeatureSparseSelector(**asked, include=include).fit(str(path))
    np.testing.assert_array_equal(selector.transform(path), X[:, expected.get_support()])

    np.testing.assert_allclose(as_covariance(path).diagonal(), X.var(axis=0, ddof=1))
    found = sparsity_path(path, 2, ks=[3], include=include, certify=False, random_state=0)
    assert found.feature_names == (list(NAMES) if named else None)
    assert found.objective[0] == pytest.approx(expected.objective_, rel=1e-9)
    counted = selection_stability(path, 1, 2, n_resamples=2, include=include, random_state=0)
    assert counted.frequencies[1] == 1
    table = read_table(path)
    np.testing.assert_allclose(np.asarray(table.X), X)
    assert table.feature_names == (NAMES if named else None)


@pytest.mark.parametrize("ending", [".csv.gz", ".npy"])
def test_other_features_are_refused(tmp_path, ending):
    path, other = tmp_path / f"t{ending}", tmp_path / f"fewer{ending}"
    WRITERS[ending](path)
    fitted = FeatureSparsePCA(1, 2).fit(path)
    if ending == ".npy":
        np.save(other, X[:, :5])
    else:
        FRAME.iloc[:, :5].to_csv(other, index=False)
    for estimator in (fitted, FeatureSparseSelector(1, 2).fit(path)):
        with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6"):
            estimator.transform(other)
    if ending != ".npy":
        FRAME.iloc[:, ::-1].to_csv(other, index=False)
        with pytest.raises(ValueError, match="names should match"):
            fitted.transform(other)
        fitted.transform(FRAME)
        assert not hasattr(fitted.fit(X), "feature_names_in_")


@pytest.mark.parametrize("ending", [".csv", ".npy", ".parquet"])
def test_a_precomputed_covariance_may_be_in_a_file(tmp_path, ending):
    A = np.cov(X.T)
    path = tmp_path / f"t{ending}"
    if ending == ".npy":
        np.save(path, A)
    else:
        frame = pd.DataFrame(A, columns=NAMES)
        frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    expected = FeatureSparsePCA(1, 2, covariance="precomputed").fit(A)
    fitted = FeatureSparsePCA(1, 2, covariance="precomputed").fit(path)
    np.testing.assert_array_equal(fitted.components_, expected.components_)
    np.testing.assert_allclose(as_covariance(path, kind="covariance").diagonal(), np.diag(A))
    found = sparsity_path(path, 1, ks=[2], covariance="precomputed", certify=False)
    assert found.objective[0] == pytest.approx(expected.objective_)


def test_what_streams_is_never_loaded_by_an_estimator(tmp_path):
    for ending, kind in endings.ENDINGS.items():
        path = tmp_path / f"t{ending}"
        WRITERS[ending](path)
        assert (open_data(path).rows is not None) == (kind.stream is not None)
        assert open_data(path, load_bytes=1e9).rows is None


def test_a_new_ending_is_one_line_and_a_reader(tmp_path, monkeypatch):
    def read_toy(path):
        with open(path) as file:
            names = tuple(file.readline().split())
            return Grid(np.loadtxt(file), column_names=names)

    monkeypatch.setitem(endings.ENDINGS, ".toy", endings.Kind("toy", load=read_toy))
    path = tmp_path / "t.toy"
    np.savetxt(path, X, header=" ".join(NAMES), comments="")
    _check_everything(path, named=True)
    result = CliRunner().invoke(app, ["fit", str(path), "-m", "1", "-k", "2", "--json"])
    assert result.exit_code == 0, result.output
    assert {row["feature"] for row in json.loads(result.stdout)["selected"]} <= set(NAMES)

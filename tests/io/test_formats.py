"""Every kind of file gives back the table that was put in, and its names."""

import gzip

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
import zarr

from kspan import FeatureSparsePCA
from kspan.io import RowSource, read_table

X = np.array([[1.0, 0.0, -2.5], [0.0, 3.0, 1e-300], [0.1, 0.0, 4.0], [5.0, 6.0, 0.0]])
ROWS, COLUMNS = ("r0", "r1", "r2", "r3"), ("a", "b", "c")


def text(folder):
    path = folder / "t.csv"
    pd.DataFrame(X, ROWS, COLUMNS).to_csv(path)
    return path


def parquet(folder):
    path = folder / "t.parquet"
    pd.DataFrame(X, ROWS, COLUMNS).to_parquet(path)
    return path


def npy(folder):
    path = folder / "t.npy"
    np.save(path, X)
    return path


def npz(folder):
    path = folder / "t.npz"
    np.savez(path, X=X, y=np.ones((4, 9)), sample_names=ROWS, feature_names=COLUMNS)
    return path


def npz_sparse(folder):
    path = folder / "s.npz"
    sp.save_npz(path, sp.csr_array(X))
    return path


def mtx(folder):
    path = folder / "t.mtx"
    scipy.io.mmwrite(path, sp.coo_array(X), precision=17)
    return path


def mtx_gz(folder):
    path = folder / "t.mtx.gz"
    path.write_bytes(gzip.compress(mtx(folder).read_bytes()))
    return path


def mtx_dense(folder):
    path = folder / "d.mtx"
    scipy.io.mmwrite(path, X, precision=17)
    return path


def mat(folder):
    path = folder / "t.mat"
    scipy.io.savemat(path, {"data": X, "label": np.ones((1, 4)), "n": 3, "name": "text"})
    return path


def mat_sparse(folder):
    path = folder / "s.mat"
    scipy.io.savemat(path, {"X": sp.csc_array(X), "other": X})
    return path


def mat_73(folder):
    path = folder / "t73.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["data"] = X.T
        file["data"].attrs["MATLAB_class"] = np.bytes_("double")
        file["name"] = np.ones((4, 2), np.uint16)
        file["name"].attrs["MATLAB_class"] = np.bytes_("char")
    return _as_matlab_73(path)


def mat_73_sparse(folder):
    path = folder / "s73.mat"
    columns = sp.csc_array(X)
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("data")
        group.attrs["MATLAB_class"] = np.bytes_("double")
        group.attrs["MATLAB_sparse"] = np.uint64(4)
        group["data"] = columns.data
        group["ir"], group["jc"] = columns.indices.astype("u8"), columns.indptr.astype("u8")
    return _as_matlab_73(path)


def _as_matlab_73(path):
    """Write what MATLAB writes before the HDF5 file: text, version 2.0, and its byte order."""
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def h5ad(folder):
    return _h5ad(folder / "t.h5ad", X)


def h5ad_sparse(folder):
    return _h5ad(folder / "s.h5ad", sp.csr_matrix(X))


def _h5ad(path, values):
    data = anndata.AnnData(values, pd.DataFrame(index=ROWS), pd.DataFrame(index=COLUMNS))
    data.layers["twice"] = values * 2
    data.write_h5ad(path)
    return path


def hdf5(folder):
    path = folder / "t.h5"
    with h5py.File(path, "w") as file:
        file["group/data"] = X
    return path


def zarr_array(folder):
    path = folder / "t.zarr"
    zarr.save_array(path, X)
    return path


NAMED = {text, parquet, npz, h5ad, h5ad_sparse}
SPARSE = {npz_sparse, mtx, mtx_gz, mat_sparse, mat_73_sparse, h5ad_sparse}
FORMATS = [
    text, parquet, npy, npz, npz_sparse, mtx, mtx_gz, mtx_dense, mat, mat_sparse, mat_73,
    mat_73_sparse, h5ad, h5ad_sparse, hdf5, zarr_array,
]  # fmt: skip


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("write", FORMATS)
def test_round_trip(tmp_path, write, transpose):
    path = write(tmp_path)
    table = read_table(path, transpose=transpose)
    assert table.source == str(path)
    if write in SPARSE:
        assert table.X.format in ("csr", "csc")
        values = table.X.toarray()
    else:
        assert isinstance(table.X, np.ndarray)
        values = table.X
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, X.T if transpose else X)
    names = (COLUMNS, ROWS) if write in NAMED else (None, None)
    assert (table.feature_names, table.sample_names) == (names[::-1] if transpose else names)


@pytest.mark.parametrize("write", FORMATS)
def test_estimators_take_it(tmp_path, write):
    fitted = FeatureSparsePCA(1, n_features_to_select=2).fit(read_table(write(tmp_path)).X)
    direct = FeatureSparsePCA(1, n_features_to_select=2).fit(X)
    np.testing.assert_allclose(np.abs(fitted.components_), np.abs(direct.components_), atol=1e-9)


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f2", ">f8", "i4", "u1", "?"])
def test_types_of_numbers(tmp_path, dtype):
    values = np.array([[1, 0], [1, 1]], dtype=dtype)
    np.save(tmp_path / "t.npy", values)
    np.savez(tmp_path / "t.npz", values)
    for name in ("t.npy", "t.npz"):
        found = read_table(tmp_path / name).X
        assert found.dtype == (np.float32 if dtype.endswith("f4") else np.float64)
        np.testing.assert_array_equal(found, values.astype(float))


def test_keys(tmp_path):
    for path in (npz(tmp_path), mat(tmp_path)):
        key = {".npz": "y", ".mat": "label"}[path.suffix]
        table = read_table(path, key=key)
        np.testing.assert_array_equal(np.unique(table.X), [1])
        assert any(key in note for note in table.notes)
    path = hdf5(tmp_path)
    np.testing.assert_array_equal(read_table(path, key="group/data").X, X)
    table = read_table(f"{path}::group/data")
    np.testing.assert_array_equal(table.X, X)
    assert table.source == f"{path}::group/data"
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("data", data=X)
    np.testing.assert_array_equal(read_table(tmp_path / "g.zarr", key="data").X, X)


@pytest.mark.parametrize("write", [h5ad, h5ad_sparse])
def test_layers(tmp_path, write):
    path = write(tmp_path)
    found = read_table(path, layer="twice").X
    np.testing.assert_array_equal(found.toarray() if write is h5ad_sparse else found, 2 * X)
    with pytest.raises(ValueError, match="has no layer 'raw'; it has 'twice'"):
        read_table(path, layer="raw")


def test_h5ad_without_x_and_with_names_that_repeat(tmp_path):
    path = tmp_path / "t.h5ad"
    data = anndata.AnnData(None, pd.DataFrame(index=ROWS), pd.DataFrame(index=COLUMNS))
    data.layers["raw"] = X
    data.write_h5ad(path)
    with pytest.raises(ValueError, match=r"has no X, but 1 layer\(s\); name one"):
        read_table(path)
    with pytest.warns(UserWarning, match="not unique"):
        anndata.AnnData(X, None, pd.DataFrame(index=["a", "b", "a"])).write_h5ad(path)
    table = read_table(path)
    assert table.feature_names == ("a", "b", "a")
    assert "feature names repeat, the first being 'a'" in table.notes


def test_parquet_indices(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(X, ROWS, COLUMNS)
    frame.rename_axis("who").to_parquet(path)
    assert read_table(path).sample_names == ROWS
    frame.reset_index(names="who").to_parquet(path)
    table = read_table(path)
    assert (table.sample_names, table.feature_names) == (ROWS, COLUMNS)
    assert "index: column 'who' names the rows" in table.notes
    frame.reset_index(drop=True).to_parquet(path)
    table = read_table(path)
    assert (table.sample_names, table.feature_names) == (None, COLUMNS)
    table = read_table(path, index=True)
    assert (table.sample_names, table.feature_names) == (("1.0", "0.0", "0.1", "5.0"), ("b", "c"))


def test_parquet_types(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"i": [1, 2], "f": np.float32([0.5, 1]), "b": [True, False]})
    frame.to_parquet(path)
    table = read_table(path)
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X, [[1, 0.5, 1], [2, 1, 0]])
    frame.astype(np.float32).to_parquet(path)
    assert read_table(path).X.dtype == np.float32


@pytest.mark.parametrize("write", [npy, parquet, hdf5, zarr_array])
def test_large_files_are_handed_on(tmp_path, write):
    path = write(tmp_path)
    table = read_table(path, load_bytes=90)
    assert isinstance(table.X, RowSource)
    assert "not loaded: large, and read in blocks" in table.notes
    assert table.feature_names == (COLUMNS if write is parquet else None)
    np.testing.assert_array_equal(table.X.head(4), X)
    FeatureSparsePCA(1, n_features_to_select=2).fit(table.X)
    if write is hdf5:
        table = read_table(path, key="group/data", load_bytes=90)
        np.testing.assert_array_equal(table.X.head(4), X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_npy_file_is_transposed_as_it_is_read(tmp_path, order):
    path = tmp_path / "t.npy"
    np.save(path, np.asarray(X, order=order))
    table = read_table(path, transpose=True, load_bytes=90)
    np.testing.assert_array_equal(table.X.head(9), X.T)
    FeatureSparsePCA(1, n_features_to_select=2).fit(table.X)


def test_a_pattern_is_ones_and_zeros_of_matlab_are_no_numbers(tmp_path):
    (tmp_path / "t.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n"
    )
    np.testing.assert_array_equal(read_table(tmp_path / "t.mtx").X.toarray(), np.eye(2))
    path = tmp_path / "zeros.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("data")
        group.attrs["MATLAB_sparse"] = np.uint64(2)
        group["jc"] = np.zeros(4, "u8")
    assert read_table(_as_matlab_73(path)).X.shape == (2, 3)

"""Data in blocks: passes, sketches, streams, and what goes wrong on the way."""

import tracemalloc

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn import config_context

from kspan import (
    FeatureSparsePCA,
    as_covariance,
)
from kspan.covariance import data_covariance, sparse_data
from kspan.io import RowSource, open_data
from kspan.io import rows as row_blocks
from kspan.io.row_files import ArraySource, FileSource
from tests.out_of_core import npy, parquet


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(RowSource, "block_bytes", 1500)
    monkeypatch.setattr(row_blocks, "FEWEST_ROWS", 1)


@pytest.fixture
def X(rng):
    return rng.standard_normal((101, 3)) @ rng.standard_normal((3, 12)) + rng.random((101, 12)) + 9


def test_passes_are_counted(X):
    covariance = as_covariance(npy(X))
    assert covariance.n_passes == 1
    covariance.matmat(np.ones((12, 2)))
    assert covariance.n_passes == 2, "a product with A is one pass, not two"
    covariance.submatrix(np.array([1, 2]))
    covariance.submatrices(np.array([[1, 2], [2, 5]]))
    covariance.columns(np.array([3]))
    assert covariance.n_passes == 5
    covariance.leading(2)
    covariance.leading(2)
    covariance.matmat(np.ones((12, 2)))
    assert covariance.n_passes == 6, "with A formed nothing is read any more"


@pytest.mark.parametrize("scale", [False, True])
def test_the_sketch_is_a_product(X, scale):
    columns, product = as_covariance(npy(X), scale=scale).sketch
    A = np.corrcoef(X.T) if scale else np.cov(X.T)
    np.testing.assert_allclose(product, A @ columns, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [7, 20, 50, 101, 500])
def test_streams_are_those_of_data_in_memory(X, size):
    mine, others = as_covariance(npy(X)).row_blocks(size), as_covariance(X).row_blocks(size)
    for one, other in zip(mine, others, strict=True):
        np.testing.assert_array_equal(one.X, other.X)


def test_a_large_mean_costs_no_digits(rng):
    X = rng.standard_normal((300, 4)) + 1e9
    covariance = as_covariance(npy(X))
    np.testing.assert_allclose(covariance.diagonal(), X.var(axis=0, ddof=1), rtol=1e-9)


def test_fortran_order_and_other_types(X):
    A = np.cov(np.round(X).T)
    for given in (np.asfortranarray(np.round(X)), np.round(X).astype(np.int16), np.round(X) > 0):
        expected = np.cov(np.asarray(given, dtype=float).T) if given.dtype == bool else A
        if not expected.any():
            continue
        covariance = as_covariance(npy(given))
        assert covariance.dtype == np.float64
        np.testing.assert_allclose(covariance.submatrix(np.arange(12)), expected, atol=1e-10)
    assert as_covariance(npy(X.astype(">f4"))).dtype == np.float32


def test_names_come_from_parquet(X):
    path = parquet(X)
    fitted = FeatureSparsePCA(1, 3, random_state=0).fit(path)
    names = [f"f{i}" for i in range(12)]
    assert list(fitted.feature_names_in_) == names
    assert set(fitted.selected_features_) <= set(names)
    fitted.transform(pd.DataFrame(X, columns=names))
    other = path.with_name("other.parquet")
    pd.DataFrame(X, columns=names[::-1]).to_parquet(other)
    with pytest.raises(ValueError, match="names should match"):
        fitted.transform(other)
    assert not hasattr(fitted.fit(npy(X)), "feature_names_in_")
    with pytest.raises(ValueError, match="12 features"):
        fitted.transform(npy(X[:, :5]))


def test_few_passes_over_costly_data(X, rng, monkeypatch):
    """A few hundred candidates and a second look: at most six passes, and the same answer."""
    monkeypatch.setattr(data_covariance, "GRAM_WORK", 0)
    X = rng.standard_normal((400, 600))
    X[:, 100:112] += 2 * rng.standard_normal((400, 1))
    X[:, 300:309] += 2 * rng.standard_normal((400, 1))
    asked = {"n_components": 2, "n_features_to_select": 21, "random_state": 0}
    fitted = FeatureSparsePCA(**asked).fit(npy(X))
    reference = FeatureSparsePCA(**asked).fit(X)
    assert fitted.n_passes_ <= 6
    assert reference.n_passes_ >= 1
    np.testing.assert_array_equal(fitted.get_support(), reference.get_support())
    assert fitted.objective_ == pytest.approx(reference.objective_, rel=1e-10)
    assert np.all(np.diff(fitted.objective_history_) >= 0)


def test_very_many_sparse_features_go_by_candidates(rng, monkeypatch):
    monkeypatch.setattr(sparse_data, "MANY_SPARSE_FEATURES", 100)
    X = rng.random((300, 600)) * (rng.random((300, 600)) < 0.1)
    X[:, 40:52] += rng.random((300, 1))
    asked = {"n_components": 1, "n_features_to_select": 12, "random_state": 0}
    fitted = FeatureSparsePCA(**asked).fit(sp.csr_array(X))
    assert fitted.get_support(indices=True).tolist() == list(range(40, 52))
    assert fitted.n_passes_ <= 12, "two for a product with sparse data"
    reference = FeatureSparsePCA(**asked).fit(X)
    assert fitted.objective_ == pytest.approx(reference.objective_, rel=1e-10)


def test_few_passes_honour_include_and_exclude(rng, monkeypatch):
    monkeypatch.setattr(data_covariance, "GRAM_WORK", 0)
    X = rng.standard_normal((200, 500))
    X[:, 100:112] += 2 * rng.standard_normal((200, 1))
    fitted = FeatureSparsePCA(1, 10, include=[499], exclude=[100, 101], random_state=0).fit(npy(X))
    chosen = fitted.get_support(indices=True)
    assert 499 in chosen
    assert not {100, 101} & set(chosen)
    assert set(chosen) - {499} <= set(range(102, 112))


# --- what goes wrong


def test_not_finite_names_the_rows_and_the_column(X):
    X[77, 5] = np.nan
    with pytest.raises(ValueError, match=r"rows 75 to 89, the first in column 5 \('f5'\)"):
        as_covariance(_grouped(X))
    with pytest.raises(ValueError, match="column 5"):
        as_covariance(npy(X))


def _grouped(X):
    """Write Parquet with groups of 15 rows."""
    path = parquet(X)
    pd.DataFrame(X, columns=[f"f{i}" for i in range(12)]).to_parquet(path, row_group_size=15)
    return path


def test_a_file_that_is_cut_off(X):
    path = npy(X)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"rows \d+ to \d+ could not be read: the file ends"):
        as_covariance(path)


def test_a_file_that_is_cut_off_between_two_passes(X):
    path = npy(X)
    covariance = as_covariance(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match="could not be read"):
        covariance.matmat(np.ones((12, 1)))


def test_a_read_error_names_the_rows(X):
    class Broken:
        shape, dtype = X.shape, X.dtype

        def __getitem__(self, rows):
            if rows.start >= 45:
                raise OSError("the disk is on fire")
            return X[rows]

    with pytest.raises(ValueError, match="rows 45 to 59 could not be read: the disk is on fire"):
        as_covariance(ArraySource(Broken(), "broken"))


def test_blocks_of_another_shape_or_kind(X):
    class Odd:
        shape, dtype = X.shape, X.dtype

        def __init__(self, change):
            self.change = change

        def __getitem__(self, rows):
            return self.change(X[rows]) if rows.start else X[rows]

    with pytest.raises(ValueError, match="changed or cut off"):
        as_covariance(ArraySource(Odd(lambda part: part[:, :5]), "odd"))
    with pytest.raises(ValueError, match="are not numbers"):
        as_covariance(ArraySource(Odd(lambda part: part.astype(str)), "odd"))
    # Another type of numbers is taken as what was announced.
    mixed = as_covariance(ArraySource(Odd(lambda part: part.astype(np.float32)), "mixed"))
    np.testing.assert_allclose(mixed.diagonal(), X.var(axis=0, ddof=1), rtol=1e-4)


def test_files_that_are_not_what_they_say(tmp_path, X):
    for name, message in (
        ("x.npy", "not a NumPy file"), ("x.parquet", "not a Parquet file"),
        ("x.h5", "not an HDF5 file"), ("x.ods", "ending '.ods' is not known"),
    ):  # fmt: skip
        (tmp_path / name).write_text("hello")
        with pytest.raises(ValueError, match=message):
            open_data(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no such file"):
        as_covariance(tmp_path / "nothing.npy")
    np.save(tmp_path / "flat.npy", np.arange(5.0))
    with pytest.raises(ValueError, match="expected 2D array, got 1D"):
        open_data(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(ValueError, match="must be numeric"):
        open_data(tmp_path / "text.npy")
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_parquet(tmp_path / "text.parquet")
    with pytest.warns(UserWarning, match="text columns are left out: 'b'"):
        assert open_data(tmp_path / "text.parquet").rows.shape == (2, 1)
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = X, X
    with pytest.raises(ValueError, match="has 2 tables"):
        open_data(tmp_path / "two.h5")
    assert open_data(f"{tmp_path / 'two.h5'}::b").rows.shape == X.shape
    with pytest.raises(ValueError, match="no 'c' in it"):
        open_data(f"{tmp_path / 'two.h5'}::c")
    zarr.open_group(tmp_path / "group.zarr", mode="w").create_array("a", data=X)
    with pytest.raises(ValueError, match="is a group"):
        open_data(tmp_path / "group.zarr")
    assert open_data(f"{tmp_path / 'group.zarr'}::a").rows.shape == X.shape


def test_one_row_and_constant_data(tmp_path):
    np.save(tmp_path / "one.npy", np.ones((1, 3)))
    with pytest.raises(ValueError, match="one sample has no variance"):
        as_covariance(tmp_path / "one.npy")
    np.save(tmp_path / "constant.npy", np.ones((9, 3)))
    with pytest.raises(ValueError, match="All features are constant"):
        as_covariance(tmp_path / "constant.npy")


def test_what_is_read_in_blocks(X, tmp_path):
    assert open_data(X).rows is None
    assert open_data(pd.DataFrame(X)).rows is None
    whole = np.load(npy(X), mmap_mode="r")
    assert isinstance(open_data(whole).rows, FileSource)
    assert isinstance(open_data(whole[10:]).rows, ArraySource)
    np.testing.assert_allclose(
        as_covariance(whole[10:]).diagonal(), X[10:].var(axis=0, ddof=1), rtol=1e-9
    )


def test_chunks_are_not_read_twice(X, tmp_path):
    array = zarr.open(tmp_path / "a.zarr", mode="w", shape=X.shape, dtype="f8", chunks=(10, 12))
    array[:] = X
    assert open_data(array).rows.edges() == [*range(0, 101, 10), 101]


def test_a_pass_tells_how_far_it_is(X, monkeypatch):
    monkeypatch.setattr(row_blocks, "REPORT_EVERY", -1.0)  # every block
    rows = open_data(npy(X)).rows
    seen = []
    rows.on_rows = seen.append
    covariance = as_covariance(rows)
    covariance.matmat(np.ones((12, 1)))
    assert {reading.n_passes for reading in seen} == {1, 2}
    for n_passes in (1, 2):
        told = [reading.rows for reading in seen if reading.n_passes == n_passes]
        assert told == rows.edges()[1:]
        assert len(told) > 3
        assert told[-1] == 101 == seen[-1].n_rows


def test_verbose_shows_passes_and_rows(X, capsys):
    FeatureSparsePCA(2, 4, verbose=1).fit(npy(X))
    lines = [line for line in capsys.readouterr().err.splitlines() if "pass" in line]
    assert lines, "no pass was shown"
    assert all("101 of 101 rows" in line for line in lines), "one line a pass in a pipe"
    FeatureSparsePCA(2, 4).fit(npy(X))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mapped", [True, False])
def test_a_mapped_file_is_never_copied_as_a_whole(tmp_path, rng, dtype, order, mapped):
    """Nor as doubles, nor to put rows together that are apart in it."""
    X = rng.standard_normal((16_000, 3)) @ rng.standard_normal((3, 300))
    X = np.asarray(X + rng.standard_normal(X.shape), dtype=dtype, order=order)
    np.save(tmp_path / "data.npy", X)
    expected = FeatureSparsePCA(2, 10, solver="ipu", random_state=0).fit(X)
    size = X.nbytes
    del X
    given = tmp_path / "data.npy"
    given = np.load(given, mmap_mode="r") if mapped else given
    with config_context(working_memory=32):  # blocks of half a megabyte
        tracemalloc.start()
        try:
            fitted = FeatureSparsePCA(2, 10, solver="ipu", random_state=0).fit(given)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < size / 2
    np.testing.assert_array_equal(fitted.get_support(), expected.get_support())
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-12)

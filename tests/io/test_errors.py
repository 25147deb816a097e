"""Files that are no tables: one line that begins with the name of the file and says where."""

import builtins
import gzip
import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import zarr

from kspan.io import TableError, known_endings, read_table
from kspan.io import table as base

# case: name of the file, content, what is said
CASES = {
    "text among numbers": (
        "t.csv", "a,b\n1,x\n2,5\n",
        "column 2 'b' has text: 'x' on line 2. If it is no feature, drop it."),
    "text among numbers, after an index": (
        "t.csv", "id,a,kind\nr,1,x\ns,2,5\n", "column 3 'kind' has text: 'x' on line 2."),
    "text beside a column of text": (
        "t.csv", "kind,a\nq,1\nq,x\nq,2\n", "column 2 'a' has text: 'x' on line 3."),
    "text below a column of text": (
        "t.csv", "kind,a\n" + "q,1\n" * 99 + "q,x\n", "column 2 'a' has text: 'x' on line 101."),
    "missing beside a column of text": (
        "t.csv", "id,kind,a,b\nr,x,1,2\ns,y,3,\n", "(line 3), column 4 'b'; fill in"),
    "short line below text": ("t.csv", "a,b\n" + "1,x\n" * 60 + "1\n", "line 62 has 1 field"),
    "text late": ("t.csv", "a,b\n1,2\n" + "3,4\n" * 99 + "5,oops\n", "'oops' on line 102."),
    "text in the first row": ("t.csv", "rose,abc,1.5\ntulip,3,2.5\n", "column 2 has text: 'abc'"),
    "only text": ("t.csv", "x\ny\nz\n", "has no column of numbers; these are text: '1'."),
    "names late": ("t.csv", "a,b\n" + "1,2\n" * 50 + "r,2\n", "'r' on line 52; does it name"),
    "thousands": ("t.tsv", "a\tb\n1,234\t5\n", "column 1 'a' has text: '1,234' on line 2"),
    "long text": ("t.csv", f"a\n1\n{'z' * 99}\n", f"{'z' * 37}...' on line 3"),
    "points among commas": ("t.csv", "a;b\n1,5;2\n" + "3;4\n" * 50 + "1.5;2\n", "'1.5' on line 53"),
    "empty cell": ("t.csv", "a,b\n1,2\n3,\n", "1 missing value, in row 2 (line 3), column 2 'b'; "
                   "fill in or drop it."),
    "missing, with index": ("t.csv", "id,a,b\nr,1,2\ns,NA,4\nt,,nan\n",
                            "3 missing values, the first in row 2 's' (line 3), column 2 'a'; "
                            "fill in or drop them."),
    "missing, no names": ("t.csv", "1,2\n3,NA\n", "1 missing value, in row 2 (line 2), column 2;"),
    "missing after a space": ("t.csv", "a,b\n1,2\n3, NA\n", "in row 2 (line 3), column 2 'b'"),
    "missing after two spaces": ("t.csv", "a,b\n1,2\n3,  NA\n", "'b' has text: ' NA' on line 3."),
    "missing first cell": ("t.csv", ",2,3\n4,5,6\n", "1 missing value, in row 1 (line 1)"),
    "missing below two lines": ("t.csv", '"a\nb",c\n1,2\n\n3,\n', "(line 5), column 2 'c'"),
    "all missing": ("t.csv", "a,b\n1,\n2,\n", "2 missing values, the first in row 1 (line 2)"),
    "infinite": ("t.csv", "a,b\n1,inf\n", "1 infinite value, in row 1 (line 2), column 2 'b'"),
    "short line": ("t.csv", "a,b,c\n1,2,3\n4,5\n", "line 3 has 2 fields, expected 3."),
    "shorter line": ("t.csv", "a,b,c\n1,2,3\n4\n5,6,7\n", "line 3 has 1 field, expected 3."),
    "long line": ("t.csv", "a,b\n1,2\n3,4,5\n6,7\n", "line 3 has 3 fields, expected 2."),
    "long line, late": ("t.csv", "1,2\n" * 99 + "3,4,5\n", "line 100 has 3 fields, expected 2."),
    "first line short": ("t.csv", "1,2\n3,4,5\n6,7,8\n", "line 1 has 2 fields, expected 3."),
    "header too long": ("t.csv", "a,b,c\n1,2\n3,4\n", "line 1: the header has 3 fields, but"),
    "open quote": ("t.csv", 'a,b\n1,2\n"3,4\n5,6\n', "is a quote left open?"),
    "open quote, long": ("t.csv", 'a,b\n1,2\n"' + "3,4\n" * 50_000, "is a quote left open?"),
    "carriage return": ("t.csv", "a,b\n1,2\n3\r,4\n", "line 3 has 1 field, expected 2."),
    "carriage return first": ("t.csv", "a\r,b\n1,2\n", "'b' on line 2"),
    "after the last delimiter": ("t.csv", "1,2,\n" * 50 + "1,2,3\n", "on line 51 a number follows"),
    "empty": ("t.csv", "", "the file is empty."),
    "blank": ("t.csv", "\n\n\n", "the file is empty"),
    "only a header": ("t.csv", "a,b\n", "there is a header, but no row"),
    "zero bytes": ("t.csv", b"a,b\n1,\x002\n", "is not text: there is a zero byte on line 2."),
    "gzip without its ending": ("t.csv", gzip.compress(b"a\n1\n"), "its name should end with .gz"),
    "gzip in name only": ("t.csv.gz", "a\n1\n", "could not be unpacked: Not a gzipped file"),
    "gzip cut off": ("t.csv.gz", gzip.compress(b"a\n1\n" * 99)[:-9], "could not be unpacked"),
    "spreadsheet": ("t.csv", b"PK\x03\x04...", "its name should end with .xlsx"),
    "old spreadsheet": ("t.csv", b"\xd0\xcf\x11\xe0...", "export it as CSV"),
    "Parquet as CSV": ("t.csv", b"PAR1...", "its name should end with .parquet"),
    "half UTF-16": ("t.csv", b"\xff\xfea", "is not the UTF-16 text"),
    "unknown ending": ("t.ods", "1", "the ending '.ods' is not known; known are .csv, .tsv,"),
    "no ending": ("table", "1", "the name has no ending; known are .csv"),
    "compressed NumPy": ("t.npy.gz", "1", "NumPy files are not read compressed; unpack it first."),
    "not NumPy": ("t.npy", "1,2\n", "is not a NumPy file, whatever its ending says."),
    "NumPy cut off": ("t.npy", b"\x93NUMPY\x01\x00", "could not be read as NumPy"),
    "not an archive": ("t.npz", "1,2\n", "is not a NumPy archive, whatever its ending says."),
    "archive cut off": ("t.npz", b"PK\x03\x04", "could not be read as NumPy archive"),
    "not Parquet": ("t.parquet", "1,2\n", "is not a Parquet file"),
    "not MatrixMarket": ("t.mtx", "1,2\n", "could not be read as MatrixMarket"),
    "not MATLAB": ("t.mat", "1,2\n", "could not be read as MATLAB"),
    "not HDF5": ("t.h5", "1,2\n", "not an HDF5 file"),
    "not AnnData": ("t.h5ad", "1,2\n", "could not be read as AnnData"),
}  # fmt: skip


def refused(path, **options):
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("case", CASES)
def test_refused(tmp_path, case):
    name, content, said = CASES[case]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert said in refused(path)


def test_it_is_a_value_error():
    assert issubclass(TableError, ValueError)


def test_no_file(tmp_path):
    assert refused(tmp_path / "none.csv").endswith(": there is no such file.")
    assert refused(tmp_path / "none.zarr").endswith(": there is no such file.")


def test_a_directory(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert refused(tmp_path / "folder.csv").endswith(": is a directory, not a file.")


def test_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "secret.csv"
    path.write_text("1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # nothing is secret from root

        def denied(*arguments, **options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("pathlib.Path.open", denied)
    assert refused(path).endswith(": cannot be opened: Permission denied.")


def test_names_of_two_lines_stay_on_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a\nb",c\n1,x\n1,2\n')
    refused(path)


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "é"])
def test_a_delimiter_is_one_character(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n")
    assert "a delimiter is one character" in refused(path, delimiter=delimiter)


def test_an_index_that_is_told_not_to_be_there(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nr,1,2\n")
    assert "the header has 2 fields, but the rows have 3" in refused(path, index=False)


@pytest.mark.parametrize(
    ("name", "option"),
    [("t.csv", {"key": "X"}), ("t.csv", {"layer": "raw"}), ("t.npy", {"header": True}),
     ("t.npy", {"delimiter": ","}), ("t.mtx", {"index": True})],
)  # fmt: skip
def test_options_without_meaning(tmp_path, name, option):
    assert f"{next(iter(option))} has no meaning" in refused(tmp_path / name, **option)


def test_arrays_that_are_no_tables(tmp_path):
    path = tmp_path / "t.npy"
    for array, said in (
        (np.ones(3), "expected 2D array, got 1D array instead."),
        (np.ones((2, 2, 2)), "expected 2D array, got 3D array instead."),
        (np.array([["a", "b"]]), "the data must be numeric, but its type is <U1."),
        (np.ones((2, 2), complex), "complex data not supported"),
        (np.ones((0, 3)), "the table is empty: 0 rows and 3 columns."),
        (np.array([[1.0, np.nan], [np.nan, np.inf]]), "2 missing values, the first in row 1,"),
        (np.array([[1.0, -np.inf]]), "1 infinite value, in row 1, column 2;"),
    ):  # fmt: skip
        np.save(path, array)
        assert said in refused(path)
    whole = tmp_path / "whole.npy"
    np.save(whole, np.ones((9, 9)))
    path.write_bytes(whole.read_bytes()[:-8])
    assert "could not be read as NumPy" in refused(path)


class Trap:
    """Says so if it is unpickled."""

    def __reduce__(self):
        return (builtins.exec, ("raise SystemExit('unpickled')",))


def test_nothing_is_unpickled(tmp_path):
    objects = np.array([[Trap(), Trap()]], dtype=object)
    np.save(tmp_path / "t.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=objects)
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Trap()))
    assert "holds Python objects (a pickle), which are never loaded" in refused(tmp_path / "t.npy")
    assert "has no table" in refused(tmp_path / "t.npz")
    assert "holds Python objects" in refused(tmp_path / "t.npz", key="X")
    assert "is not a NumPy file" in refused(tmp_path / "p.npy")


def test_archives(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((2, 3)), b=np.ones((4, 5)), c=np.ones(7))
    assert "has 2 tables (a 2x3, b 4x5); name one by its key." in refused(path)
    assert "has no table 'd'; it has a 2x3, b 4x5." in refused(path, key="d")
    assert "expected 2D array, got 1D array" in refused(path, key="c")
    np.savez(path, c=np.ones(7))
    assert "has no table" in refused(path)


def test_matlab(tmp_path):
    path = tmp_path / "t.mat"
    scipy.io.savemat(path, {"a": np.ones((2, 3)), "b": np.ones((4, 5)), "name": "text"})
    assert "has 2 tables (a 2x3, b 4x5)" in refused(path)
    assert "has no table 'name'" in refused(path, key="name")
    scipy.io.savemat(path, {"X": np.array([[1.0, np.nan]])})
    assert "1 missing value, in row 1, column 2" in refused(path)


def test_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "1.5"]}).to_parquet(path)
    assert "column 'b' (column 2) is not of numbers, but of type" in refused(path)
    pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2]]}).to_parquet(path)
    assert "If it is no feature, drop it." in refused(path)
    pd.DataFrame({"b": ["x", "y", "x", "x"]}).to_parquet(path)
    assert "has no column of numbers; these are text: 'b'." in refused(path)
    pd.DataFrame({"a": [1.0, None], "b": [True, False]}).to_parquet(path)
    assert "1 missing value, in row 2, column 1 'a'" in refused(path)
    pd.DataFrame({"a": [1.0, 2], "b": pd.array([True, None], "boolean")}).to_parquet(path)
    assert "1 missing value, in row 2, column 2 'b'" in refused(path)
    pd.DataFrame({"a": []}).to_parquet(path)
    assert "the table is empty: 0 rows" in refused(path)


def test_sparse_missing_values(tmp_path):
    path = tmp_path / "t.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 5\n3 2 nan\n2 4 nan\n"
    )
    assert "2 missing values, the first in row 2, column 4;" in refused(path)
    path.write_text("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 5 1\n")
    assert "complex data not supported" in refused(path)


def test_stores(tmp_path):
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["b"] = np.ones((2, 3)), np.ones((4, 5))
        file["list"], file["names"] = np.ones(3), [[b"x"]]
    assert "has 3 tables" in refused(path)
    assert "there is no 'c' in it." in refused(path, key="c")
    assert "expected 2D array, got 1D array" in refused(path, key="list")
    assert "must be numeric" in refused(path, key="names")
    folder = tmp_path / "t.zarr"
    group = zarr.open_group(folder, mode="w")
    group.create_array("a", shape=(2, 3), dtype="f8")
    assert "is a group; name one of its arrays" in refused(folder)
    assert "there is no 'b' in it." in refused(folder, key="b")
    (tmp_path / "empty.zarr").mkdir()
    refused(tmp_path / "empty.zarr")


@pytest.mark.parametrize(
    ("name", "package"),
    [("t.csv", "pyarrow"), ("t.parquet", "pyarrow"), ("t.h5", "h5py"), ("t.h5ad", "anndata"),
     ("t.zarr", "zarr"), ("t.xlsx", "openpyxl")],
)  # fmt: skip
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name, package):
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / name
    path.write_text("a,b\n1,2\n")
    message = refused(path)
    assert f"needs {package}: pip install 'kspan[io]'" in message


def test_too_large_to_transpose(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(np.ones((50, 4)), columns=list("abcd")).to_parquet(path)
    assert "too large to transpose in memory" in refused(path, transpose=True, load_bytes=100)


def test_no_memory(tmp_path, monkeypatch):
    path = tmp_path / "t.npy"
    np.save(path, np.ones((2, 2)))

    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(np, "fromfile", full)
    assert refused(path).endswith(": does not fit in memory.")


def test_long_explanations_are_cut():
    assert len(str(base.refuse("t.csv", "word " * 1000))) < 520


def test_importing_it_is_cheap():
    heavy = ("pandas", "pyarrow", "sklearn", "h5py", "zarr", "anndata", "scipy", "numba")
    code = f"import sys, kspan.io; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_endings_are_known():
    assert {".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".mtx", ".mat", ".h5ad", ".h5",
            ".hdf5", ".zarr"} <= set(known_endings())  # fmt: skip

"""Columns that are no features: text, labels, names of rows, and what somebody drops."""

import io
import sys
import warnings
from types import SimpleNamespace

import anndata
import numpy as np
import pandas as pd
import pytest

from kspan import FeatureSparsePCA, as_covariance
from kspan.io import Table, TableError, open_data, read_table
from kspan.io.class_columns import class_columns

N = 30


@pytest.fixture
def frame(rng):
    """Plants: names, two columns of text, a class in numbers, and three that are measured."""
    frame = pd.DataFrame(rng.standard_normal((N, 3)), columns=["a", "b", "c"])
    frame.insert(0, "plant", [f"p{i}" for i in range(N)])
    frame.insert(2, "species", np.array(["rose", "tulip", "lily"])[np.arange(N) % 3])
    frame["note"] = "grown in shade"
    frame["class"] = np.arange(N) % 3
    return frame


WRITERS = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda frame, path: frame.to_parquet(path, row_group_size=8),
}
ENDINGS = list(WRITERS)


@pytest.fixture
def write(tmp_path):
    def write(frame, ending=".csv"):
        path = tmp_path / f"t{ending}"
        WRITERS[ending](frame, path)
        return path

    return write


@pytest.mark.parametrize("ending", ENDINGS)
def test_text_is_set_aside_and_named(frame, write, ending):
    table = read_table(write(frame, ending))
    assert table.feature_names == ("a", "b", "c", "class")
    assert table.text_columns == ("species", "note")
    assert table.sample_names == tuple(frame["plant"])
    assert table.labels is None
    np.testing.assert_array_equal(table.X, frame[["a", "b", "c", "class"]])


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("load_bytes", [0, 1e9])
def test_label_drop_and_index(frame, write, ending, load_bytes):
    path = write(frame, ending)
    table = read_table(path, label="species", drop=["class", "note"], load_bytes=load_bytes)
    X = table.X if isinstance(table.X, np.ndarray) else table.X.load()
    np.testing.assert_array_equal(X, frame[["a", "b", "c"]])
    assert table.feature_names == ("a", "b", "c")
    assert table.labels == tuple(frame["species"])
    assert table.label_name == "species"
    assert table.text_columns == ()
    table = read_table(path, label="class", drop="note", index="species", load_bytes=load_bytes)
    assert table.labels == tuple(map(str, frame["class"]))
    assert table.sample_names == tuple(frame["species"])
    assert table.text_columns == ("plant",)
    assert "index: column 'species' names the rows" in table.notes
    assert "index: none" not in table.notes


def test_names_that_no_column_has(frame, write):
    path = write(frame)
    for asked, said in (
        ({"drop": "clas"}, "has no column of the name 'clas'. Did you mean 'class'?"),
        ({"drop": ["note", "Species"]}, "'Species'. Did you mean 'species'?"),
        ({"index": "zebra"}, "has no column of the name 'zebra'."),
        ({"label": "zebra"}, "has no column 'zebra', and there is no file of that name."),
        ({"label": "species", "transpose": True}, "the label 'species' cannot be a column"),
    ):
        with pytest.raises(TableError) as caught:
            read_table(path, **asked)
        assert said in str(caught.value)
    np.save(path.with_suffix(".npy"), np.ones((3, 2)))
    with pytest.raises(TableError, match=r"'a'\. Its columns have no names"):
        read_table(path.with_suffix(".npy"), drop="a")
    path.write_text("a,b,a\n1,2,3\n4,5,6\n")
    with pytest.raises(TableError, match="several columns of the name 'a'"):
        read_table(path, label="a")


def test_without_a_header_columns_have_numbers(frame, write, tmp_path):
    path = tmp_path / "uci.csv"
    frame[["a", "b", "species", "c", "class"]].to_csv(path, index=False, header=False)
    table = read_table(path)
    assert table.feature_names is None
    assert table.text_columns == ("3",)
    assert table.columns == ("1", "2", "4", "5")
    table = read_table(path, label="3", drop="5")
    assert table.labels == tuple(frame["species"])
    np.testing.assert_array_equal(table.X, frame[["a", "b", "c"]])


# cells of a column, whether it is text, or what is said of the cell that is wrong
RULE = {
    "words": (["x", "y"] * 5, True),
    "words and gaps": (["x", "", "NA", "y"], True),
    "dates": (["2024-01-05", "2024-02-06"], True),
    "names with numbers in them": (["1007_s_at", "1053_at"], True),
    "truth": (["True", "False"], True),
    "one number in eleven": (["7"] + ["x"] * 10, True),
    "one number in ten": (["7"] + ["x"] * 9, "'x'"),
    "one word in many": (["1"] * 50 + ["oops"], "'oops'"),
    "thousands": (["1,234", "5,678"], "'1,234'"),
    "decimal commas among points": (["1.5", "1,5"], "'1,5'"),
    "limits of detection": (["<0.5", "<0.5", "0.7"], "'<0.5'"),
    "per cent": (["5%", "7 %"], "'5%'"),
    "money": (["$3", "€4.50"], "'$3'"),
    "numbers": (["1", "-2e3", " 4.", ".5"], False),
}


@pytest.mark.parametrize("case", RULE)
@pytest.mark.parametrize("lines_before", [0, 60])
def test_the_rule(tmp_path, case, lines_before):
    cells, text = RULE[case]
    # Below lines without anything, the first ones do not show what the column is.
    cells = [""] * lines_before + cells
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": np.arange(len(cells)), "b": cells}).to_csv(path, index=False)
    if isinstance(text, str):
        with pytest.raises(TableError, match=r"column 2 'b' has text: .* drop it\.$") as caught:
            read_table(path, allow_missing=True)
        assert text in str(caught.value)
        assert read_table(path, drop="b").feature_names == ("a",)
        assert read_table(path, only=["a"]).feature_names == ("a",)
        return
    table = read_table(path, allow_missing=True)
    assert table.text_columns == (("b",) if text else ())


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("lines_before", [0, 60])
def test_what_is_wanted_is_not_text(tmp_path, ending, lines_before):
    path = tmp_path / f"t{ending}"
    words = pd.array([None] * lines_before + ["x", "y"], "string")
    frame = pd.DataFrame({"b": np.arange(len(words)), "a": words})
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    assert read_table(path).text_columns == ("a",)
    said = "column 2 'a' has text: 'x' on line" if ending == ".csv" else "'a' .* is not of numbers"
    with pytest.raises(TableError, match=said):
        read_table(path, only=["a"])
    assert read_table(path, only=["b"]).feature_names == ("b",)


def test_the_first_column_names_the_rows_if_it_differs(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{name},{i}" for i, name in enumerate(["u", "v", "w", "x"])]
    for header, cells, is_index in (
        ("plant,a", "uvwx", True), ("plant,a", "uuux", False), ("sample,a", "uuux", True),
        (",a", "uuux", True), ("species,a", "uvwx", True), ("species,a", "uuwx", False),
    ):  # fmt: skip
        lines = [f"{name},{i},{i * i}" for i, name in enumerate(cells)]
        path.write_text("\n".join([f"{header},b", *lines]))
        table = read_table(path)
        assert (table.sample_names is not None) == is_index
        assert table.text_columns == (() if is_index else ("plant" if "plant" in header else
                                                           "species",))  # fmt: skip
    assert read_table(path, label="species").labels == tuple("uuwx")


def test_transposed_tables_lose_descriptions(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("gene\tdescription\ts1\ts2\nA\tx y\t1\t2\nB\tz\t3\t4\n")
    table = read_table(path, transpose=True)
    assert (table.feature_names, table.sample_names) == (("A", "B"), ("s1", "s2"))
    assert table.text_columns == ("description",)
    np.testing.assert_array_equal(table.X, [[1, 3], [2, 4]])
    table = read_table(path, transpose=True, drop=["description", "s1"])
    np.testing.assert_array_equal(table.X, [[2, 4]])


@pytest.mark.parametrize("ending", ENDINGS)
def test_estimators_warn_of_columns_that_they_leave_out(frame, write, ending):
    path = write(frame, ending)
    with pytest.warns(UserWarning, match="left out: 'species', 'note'"):
        fitted = FeatureSparsePCA(2, 2, random_state=0).fit(path)
    assert list(fitted.feature_names_in_) == ["a", "b", "c", "class"]
    with pytest.warns(UserWarning, match="left out"):
        opened = open_data(path)
    assert opened.text_columns == ("species", "note")
    with pytest.warns(UserWarning, match="left out"):
        assert as_covariance(path).n_features == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is not asked for needs no warning
        fitted.panel().transform(path)
        assert read_table(path, only=["c", "a"]).feature_names == ("a", "c")


def test_data_frames_with_text_say_how_to_leave_it_out(frame):
    with pytest.raises(ValueError, match=r"column 0 \('plant'\).*X\.drop\(columns=\['plant'\]\)"):
        FeatureSparsePCA(2, 2).fit(frame)
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"X\.drop\('plant'\)"):
        FeatureSparsePCA(2, 2).fit(polars.DataFrame(frame))


def test_labels_of_files_and_cells(frame, write, tmp_path):
    path = write(frame.drop(columns=["species", "note"]))
    beside = tmp_path / "colours.csv"
    frame[["plant", "species"]].sample(frac=1, random_state=0).to_csv(beside, index=False)
    table = read_table(path, label=str(beside))
    assert (table.labels, table.label_name) == (tuple(frame["species"]), "colours")
    beside.write_text("\n".join(["species", *frame["species"]]))
    assert read_table(path, label=str(beside)).labels == tuple(frame["species"])
    beside.write_text("a\nb\n")
    with pytest.raises(TableError, match=r"colours\.csv: has 2 values for 30 samples"):
        read_table(path, label=str(beside))
    of_cells = frame.set_index("plant")[["species"]]
    cells = anndata.AnnData(frame[["a", "b", "c"]].to_numpy(), obs=of_cells)
    cells.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad", label="species")
    assert (table.labels, table.label_name) == (tuple(frame["species"]), "species")


def test_standard_input(frame, monkeypatch):
    def given(content):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    given(frame.to_csv(index=False).encode())
    table = read_table("-", label="species", drop="note")
    assert table.source == "standard input"
    assert table.feature_names == ("a", "b", "c", "class")
    given(frame[["a", "b"]].to_csv(index=False, sep="\t").encode())
    np.testing.assert_array_equal(read_table("-").X, frame[["a", "b"]])
    given(b"")
    with pytest.raises(TableError, match=r"^standard input: the file is empty"):
        read_table("-")


# --- columns of numbers that look like classes


def table_of(**columns):
    X = np.column_stack([np.asarray(values, dtype=float) for values in columns.values()])
    return Table(X, tuple(columns), None, "t.csv", columns=tuple(columns))


def test_numbers_that_look_like_classes(rng):
    a, b = rng.standard_normal((2, 60))
    ids, three, many = np.arange(60), np.arange(60) % 3, np.arange(60) % 20
    for columns, found in (
        ({"a": a, "b": b}, []),
        ({"a": a, "b": b, "z": three}, [("z", 3)]),
        ({"z": three, "a": a, "b": b}, [("z", 3)]),
        ({"a": a, "z": three, "b": b}, []),
        ({"a": a, "class": three, "b": b}, [("class", 3)]),
        ({"a": a, "Tumor_Class": three, "b": b}, [("Tumor_Class", 3)]),
        ({"a": a, "classic": three, "b": b}, []),
        ({"a": a, "class": three + 0.5, "b": b}, []),
        ({"a": a, "class": many, "b": b}, []),
        ({"a": a[:6], "b": b[:6], "class": three[:6]}, [("class", 3)]),
        ({"a": a[:6], "b": b[:6], "z": three[:6]}, []),
        ({"a": a[:5], "b": b[:5], "class": three[:5]}, []),
        ({"a": a, "class": ids, "b": b}, []),
        ({"a": a, "class": np.ones(60), "b": b}, []),
        ({"a": many, "b": ids, "c": ids, "z": three}, []),  # counts: all are whole numbers
        ({"a": a, "y": three, "z": three}, [("y", 3)]),
        ({"a": a, "z": np.where(three == 1, np.nan, three)}, []),
    ):
        assert class_columns(table_of(**columns)) == found

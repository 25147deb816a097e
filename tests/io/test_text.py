"""Text files: what is found out about them, and that names and numbers come back exactly."""

import bz2
import csv
import gzip
import io
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kspan import FeatureSparsePCA
from kspan.io import Table, layout, read_table

NUMBERS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.fixture
def read(tmp_path):
    def read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(path, **options)

    return read


# case: text, names of features, names of samples, a part of the notes
CASES = {
    "comma": ("a,b\n1,2\n3,4\n", "ab", None, "delimiter: comma"),
    "tab": ("a\tb\n1\t2\n3\t4\n", "ab", None, "delimiter: tab"),
    "semicolon": ("a;b\n1;2\n3;4\n", "ab", None, "delimiter: semicolon"),
    "bar": ("a|b\n1|2\n3|4\n", "ab", None, "delimiter: bar"),
    "space": ("a b\n1 2\n3 4\n", "ab", None, "delimiter: white space"),
    "spaces and tabs": ("  1   2\n 3\t4 \n", None, None, "delimiter: white space"),
    "space after comma": ("a, b\n1, 2\n3, 4\n", "ab", None, "delimiter: comma"),
    "no header": ("1,2\n3,4\n", None, None, "header: none"),
    "no newline at the end": ("a,b\n1,2\n3,4", "ab", None, "header: line 1"),
    "blank lines": ("\na,b\n\n1,2\n\n\n3,4\n\n", "ab", None, "header: line 2"),
    "Windows": ("a,b\r\n1,2\r\n3,4\r\n", "ab", None, "header: line 1"),
    "old Mac": ("a,b\r1,2\r3,4\r", "ab", None, "header: line 1"),
    "old Mac, quoted": ('"a","b"\r1,2\r3,4\r', "ab", None, "header: line 1"),
    "byte order mark": ("\ufeffa,b\n1,2\n3,4\n", "ab", None, "header: line 1"),
    "quoted header": ('"a,1","b ""2"""\n1,2\n3,4\n', ("a,1", 'b "2"'), None, "header: line 1"),
    "name of two lines": ('"a\nb",c\n1,2\n3,4\n', ("a\nb", "c"), None, "header: line 2"),
    "quoted numbers": ('"a","b"\n"1","2"\n"3","4"\n', "ab", None, "header: line 1"),
    "one name a number": ("a,7\n1,2\n3,4\n", "a7", None, "header: line 1"),
    "text index": ("id,a,b\nr,1,2\ns,3,4\n", "ab", "rs", "index: the first column (it is text)"),
    "text index, no header": ("r,1,2\ns,3,4\n", None, "rs", "header: none"),
    "index with commas": ('id;a;b\n"r,1";1;2\ns,2;3;4\n', "ab", ("r,1", "s,2"), "semicolon"),
    "index with spaces": ("id\ta\tb\nr 1\t1\t2\ns 1\t3\t4\n", "ab", ("r 1", "s 1"), "tab"),
    "R": ('"a" "b"\n"r" 1 2\n"s" 3 4\n', "ab", "rs", "one name fewer"),
    "R, names with spaces": ('"a 1" "b"\n"r" 1 2\n"s" 3 4\n', ("a 1", "b"), "rs", "one name fewer"),
    "R, rows by number": ('"a" "b"\n"1" 1 2\n"2" 3 4\n', "ab", "12", "one name fewer"),
    "pandas": (",a,b\n0,1,2\n1,3,4\n", "ab", "01", "it has no name"),
    "pandas, names that are numbers": (",0,1\n5,1,2\n2,3,4\n", "01", "52", "it has no name"),
    "pandas, twice": ("Unnamed: 0,a,b\n0,1,2\n1,3,4\n", "ab", "01", "of pandas"),
    "genes, samples by number": ("gene,1,2\nr,1,2\ns,3,4\n", "12", "rs", "header: line 1"),
    "delimiter at the end": ("a,b,\n1,2,\n3,4,\n", "ab", None, "dropped an empty last column"),
    "delimiter at the end of rows": ("a,b\n1,2,\n3,4,\n", "ab", None, "dropped an empty"),
    "names that repeat": ("a,a\n1,2\n3,4\n", "aa", None, "names repeat, the first being 'a'"),
    "signs and exponents": ("a,b\n+1.0,.2e1\n3.,4E+00\n", "ab", None, "header: line 1"),
}


@pytest.mark.parametrize("case", CASES)
def test_found_out(read, case):
    text, features, samples, note = CASES[case]
    table = read(text)
    assert table.feature_names == (None if features is None else tuple(features))
    assert table.sample_names == (None if samples is None else tuple(samples))
    np.testing.assert_array_equal(table.X, NUMBERS)
    assert table.X.dtype == np.float64
    assert note in "; ".join(table.notes)


def test_a_table_says_where_it_is_from(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n")
    table = read_table(str(tmp_path / "t.csv"))
    assert isinstance(table, Table)
    assert table.source == str(tmp_path / "t.csv")


@pytest.mark.parametrize("delimiter", [";", "\t", " "])
def test_decimal_commas(read, delimiter):
    text = "a;b\n1,5;2\n-3,25;4e1\n".replace(";", delimiter)
    table = read(text)
    np.testing.assert_array_equal(table.X, [[1.5, 2], [-3.25, 40]])
    assert "decimal mark: comma" in table.notes


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_without_a_header(read, delimiter):
    table = read("1;2,5\n3;4,5\n".replace(";", delimiter))
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4.5]])


@pytest.mark.parametrize(
    ("text", "shape", "features"),
    [("5\n", (1, 1), None), ("a\n5\n", (1, 1), ("a",)), ("1\n2\n", (2, 1), None),
     ("a,b\n1,2\n", (1, 2), ("a", "b")), ("1,2\n", (1, 2), None)],
)  # fmt: skip
def test_single_rows_and_columns(read, text, shape, features):
    table = read(text)
    assert table.X.shape == shape
    assert table.feature_names == features
    if shape[1] == 1:
        assert "delimiter: none, a single column" in table.notes


def test_what_is_told_is_not_found_out(read):
    text = "1,2,3\n4,5,6\n"
    assert read(text, header=True).feature_names == ("1", "2", "3")
    told = read(text, header=True, index=True)
    assert (told.feature_names, told.sample_names) == (("2", "3"), ("4",))
    np.testing.assert_array_equal(told.X, [[5, 6]])
    assert read(",a\n0,1\n1,2\n", index=False, header=True).X.shape == (2, 2)
    assert read("1~2\n3~4\n", delimiter="~").X.shape == (2, 2)
    for spelled in ("\t", "\\t", "tab", "whitespace"):
        assert read("1\t2\n3\t4\n", delimiter=spelled).X.shape == (2, 2)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("name", ["t.csv", "t.TSV", "t.txt"])
def test_compressed(read, ending, pack, name):
    table = read(pack(b"a\tb\n1\t2\n3\t4\n"), name + ending)
    assert table.feature_names == ("a", "b")
    np.testing.assert_array_equal(table.X, NUMBERS)


def test_encodings(read):
    text = "höhe,größe\n1,2\n3,4\n"
    for encoding, note in (("utf-8", None), ("utf-8-sig", None), ("latin-1", "Latin-1"),
                           ("utf-16", "UTF-16")):  # fmt: skip
        table = read(text.encode(encoding))
        assert table.feature_names == ("höhe", "größe")
        assert any("encoding" in line for line in table.notes) == (note is not None)
        assert note is None or note in table.notes[0]


def test_transposed(read):
    text = "gene,s1,s2,s3\nA,1,2,3\nB,4,5,6\n"
    table, turned = read(text), read(text, transpose=True)
    np.testing.assert_array_equal(turned.X, table.X.T)
    assert turned.feature_names == table.sample_names == ("A", "B")
    assert turned.sample_names == table.feature_names == ("s1", "s2", "s3")
    assert any("transposed" in note for note in turned.notes)


# No zero byte, which no text has; no half of a character, which UTF-8 has not.
anything = st.text(
    st.one_of(
        st.sampled_from(",;|\t \"'<>&\n\r#.-é€😀"),
        st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
    ),
    max_size=12,
)
names = st.one_of(
    anything, st.sampled_from(["<script>alert(1)</script>", 'say "a, b"', "NA", "", "1.5", "é"])
)
# A letter in front, so that the names can be told from numbers.
letter_names = names.map("n{}".format)
floats = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def frames(draw):
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    values = draw(st.lists(st.lists(floats, min_size=d, max_size=d), min_size=n, max_size=n))
    rows = draw(st.lists(letter_names, min_size=n, max_size=n))
    columns = draw(st.lists(letter_names, min_size=d, max_size=d))
    return np.array(values), tuple(rows), tuple(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


def check(path, frame, **options):
    values, rows, columns = frame
    table = read_table(path, **options)
    assert table.feature_names == columns
    assert table.sample_names == rows
    # Bit for bit: minus zero is not zero.
    assert table.X.tobytes("C") == values.tobytes()


@given(frame=frames(), delimiter=st.sampled_from(",\t;|"))
def test_what_the_csv_module_writes_is_read_back(folder, frame, delimiter):
    values, rows, columns = frame
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["id", *columns])
    writer.writerows([name, *row] for name, row in zip(rows, values.tolist(), strict=True))
    path = folder / "csv.csv"
    path.write_bytes(text.getvalue().encode())
    check(path, frame, delimiter=delimiter)


@given(frame=frames(), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]))
def test_what_pandas_writes_is_read_back(folder, frame, quoting):
    values, rows, columns = frame
    if quoting == csv.QUOTE_MINIMAL:  # pandas does not quote these, and nobody can read them back
        assume("\r" not in "".join([*rows, *columns]))
    path = folder / "pandas.csv.gz"
    pd.DataFrame(values, rows, columns).to_csv(path, quoting=quoting, compression="gzip")
    check(path, frame, delimiter=",")


@given(frame=frames(), names=st.lists(names, min_size=10, max_size=10))
def test_names_that_look_like_numbers_are_read_back_if_told(folder, frame, names):
    values, rows, columns = frame
    rows, columns = tuple(names[: len(rows)]), tuple(names[5 : 5 + len(columns)])
    path = folder / "told.csv"
    pd.DataFrame(values, rows, columns).to_csv(path, quoting=csv.QUOTE_ALL)
    check(path, (values, rows, columns), delimiter=",", header=True, index=True)


words = st.text(st.characters(categories=("L",)), min_size=1, max_size=8).map("n{}".format)


@given(frame=frames(), words=st.lists(words, min_size=10, max_size=10),
       delimiter=st.sampled_from(",\t;| "))  # fmt: skip
def test_delimiters_are_found_out(folder, frame, words, delimiter):
    values, rows, columns = frame
    rows, columns = tuple(words[: len(rows)]), tuple(words[5 : 5 + len(columns)])
    path = folder / "found.txt"
    pd.DataFrame(values, rows, columns).to_csv(path, sep=delimiter, index_label="id")
    check(path, (values, rows, columns))


@pytest.mark.parametrize(("n", "d"), [(77, 7129), (100, 20_000)])
def test_wide_tables_are_read_by_pyarrow(tmp_path, monkeypatch, rng, n, d):
    """Cells looked at in Python do not grow with the table, nor does it take long."""
    X = rng.standard_normal((n, d))
    rows, columns = [f"s{i}" for i in range(n)], [f"g{j}" for j in range(d)]
    path = tmp_path / "wide.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns])
        writer.writerows([name, *row] for name, row in zip(rows, X.tolist(), strict=True))
    looked_at = 0

    def counted(function):
        def count(*arguments):
            nonlocal looked_at
            looked_at += 1
            return function(*arguments)

        return count

    for name in ("is_number", "is_text", "has_decimal_comma"):
        monkeypatch.setattr(layout, name, counted(getattr(layout, name)))
    start = time.perf_counter()
    table = read_table(path)
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(table.X, X)
    assert table.feature_names == tuple(columns)
    assert table.sample_names == tuple(rows)
    assert looked_at < 20_000
    assert seconds < 10, "half a second on two cores of 2024; ten, in case others work here too"


def test_estimators_take_a_table(read, rng):
    X = rng.standard_normal((20, 5))
    text = "\n".join([",".join("abcde"), *(",".join(map(repr, row)) for row in X.tolist())])
    table = read(text)
    fitted = FeatureSparsePCA(1, n_features_to_select=2).fit(table.X)
    assert fitted.components_.shape == (1, 5)

"""Excel files: by the same rules as text, with sheets."""

import datetime

import numpy as np
import pandas as pd
import pytest

from kspan import FeatureSparsePCA
from kspan.io import TableError, read_table
from tests.test_cli import run

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def write(tmp_path):
    def write(**sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / "t.xlsx")
        return tmp_path / "t.xlsx"

    return write


ROWS = [
    ["id", "species", "a", "b", "when", "c"],
    ["p1", "rose", 1, 0.1, datetime.date(2024, 1, 5), 1e-9],
    ["p2", "rose", 2, 0.30000000000001, datetime.date(2024, 1, 6), -5],
    ["p3", "tulip", 4, 1 / 8, datetime.date(2024, 1, 7), 2],
]


def test_numbers_names_and_text(write):
    path = write(data=ROWS)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, [[row[2], row[3], row[5]] for row in ROWS[1:]])
    assert (table.feature_names, table.sample_names) == (("a", "b", "c"), ("p1", "p2", "p3"))
    assert table.text_columns == ("species", "when")
    assert table.notes[0] == "sheet: 'data'"
    assert not any("delimiter" in note for note in table.notes)
    table = read_table(path, label="species", drop=["when", "a"])
    assert (table.labels, table.feature_names) == (("rose", "rose", "tulip"), ("b", "c"))


def test_sheets(write):
    path = write(notes=[], data=ROWS, more=[["x", "y"], [1, 2], [3, 4]])
    assert read_table(path).notes[0] == "sheet: 'data' of 'notes', 'data', 'more'"
    table = read_table(path, key="more")
    assert table.feature_names == ("x", "y")
    np.testing.assert_array_equal(read_table(f"{path}::more").X, [[1, 2], [3, 4]])
    with pytest.raises(TableError, match="has no sheet 'other'; it has 'notes', 'data', 'more'"):
        read_table(path, key="other")
    with pytest.raises(TableError, match="there is nothing in its cells"):
        read_table(path, key="notes")


def test_rows_and_columns_without_anything(write):
    path = write(data=[[], [None, "a", None, "b"], [None, 1, None, 2], [], [None, 3, None, 4]])
    table = read_table(path)
    assert table.feature_names == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_what_is_wrong_is_said_by_row(write, tmp_path):
    for rows, said in (
        ([["a", "b"], [1, 2], [], [3, "1,5"]], "column 2 'b' has text: '1,5' on line 4."),
        ([["a", "b"], [1, 2], [3, None]], "1 missing value, in row 2 (line 3), column 2 'b'"),
        ([["a", "b"], [1, 2], [3, "#DIV/0!"]], "'#DIV/0!' on line 3"),
        ([["a"], ["x"]], "has no column of numbers; these are text"),
    ):
        with pytest.raises(TableError) as caught:
            read_table(write(data=rows))
        assert said in str(caught.value)
    (tmp_path / "t.xlsx").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(TableError, match="is not an Excel file"):
        read_table(tmp_path / "t.xlsx")


def test_everything_takes_it(write, rng, tmp_path):
    # What writes them keeps fifteen digits.
    frame = pd.DataFrame(rng.standard_normal((30, 4)).round(10), columns=list("abcd"))
    path = write(data=[list(frame), *frame.to_numpy().tolist()])
    fitted = FeatureSparsePCA(2, 3, random_state=0).fit(path)
    expected = FeatureSparsePCA(2, 3, random_state=0).fit(frame).components_
    np.testing.assert_allclose(fitted.components_, expected, atol=1e-12)
    result = run("fit", path, "-k", 3, "--out", tmp_path / "fit.kspan")
    assert result.exit_code == 0, result.output
    assert run("verify", tmp_path / "fit.kspan", path).exit_code == 0

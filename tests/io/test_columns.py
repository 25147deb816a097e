"""Chosen columns in other tables: by name if both have names, else by place, or a clear line."""

import numpy as np
import pandas as pd
import pytest

from kspan.io.columns import MOST_LISTED, Chosen

X = np.arange(24.0).reshape(4, 6)
NAMES = list("abcdef")
PLACES = np.array([1, 4, 5])
NAMED, NAMELESS = Chosen(PLACES, 6, NAMES), Chosen(PLACES, 6, None)


def taken(chosen, given, names=None):
    return np.asarray(chosen.open(given, names).values, dtype=float)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 1, 4], [4, 0, 5, 1], [3, 5, 4, 2, 1, 0]])
def test_names_in_any_order(order):
    given, names = X[:, order], [NAMES[place] for place in order]
    np.testing.assert_array_equal(taken(NAMED, given, names), X[:, PLACES])
    np.testing.assert_array_equal(taken(NAMED, pd.DataFrame(given, columns=names)), X[:, PLACES])


@pytest.mark.parametrize("chosen", [NAMED, NAMELESS])
def test_places_without_names(chosen):
    for given in (X, X[:, PLACES], pd.DataFrame(X), pd.DataFrame(X[:, PLACES])):
        np.testing.assert_array_equal(taken(chosen, given), X[:, PLACES])
    with pytest.raises(ValueError, match=r"There are 5 columns, .* or all 6 of the table of"):
        chosen.open(X[:, :5])


def test_other_columns_may_hold_anything():
    frame = pd.DataFrame(X, columns=NAMES)
    frame["a"] = "text"
    frame["c"] = np.nan
    frame[7] = "no name"
    np.testing.assert_array_equal(taken(NAMED, frame), X[:, PLACES])
    frame["e"] = "text"
    with pytest.raises(ValueError, match="could not convert string"):
        NAMED.open(frame)


def test_names_that_are_missing_are_named():
    with pytest.raises(ValueError, match=r"^1 of the 3 chosen features is missing: .* 'e'\.$"):
        NAMED.open(X[:, 1:4], ["b", "c", "f"])
    with pytest.raises(ValueError, match=r"^2 of the 3 chosen .* are missing: .* 'e', 'f'\.$"):
        NAMED.open(X[:, :3], ["a", "b", "c"])
    many = Chosen(np.arange(20), 20, [f"g{j}" for j in range(20)])
    with pytest.raises(ValueError, match=f"'g7' and {20 - MOST_LISTED} more"):
        many.open(X[:, :1], ["h"])


def test_names_that_repeat():
    twice = ["b", "b", "c", "d", "e", "f"]
    with pytest.raises(ValueError, match="Several columns have the name 'b'"):
        NAMED.open(X, twice)
    # The same table has its columns where they were.
    np.testing.assert_array_equal(taken(Chosen(PLACES, 6, twice), X, twice), X[:, PLACES])
    with pytest.raises(ValueError, match="Several columns have the name 'b'"):
        Chosen(PLACES, 6, twice).open(X, twice[1:] + ["z"])
    np.testing.assert_array_equal(taken(NAMED, X, ["z", "b", "z", "z", "e", "f"]), X[:, PLACES])


def test_what_is_no_table():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        NAMED.open(np.ones(6))

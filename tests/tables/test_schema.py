"""Tables of every kind become the same floats, and go back as the table the model was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from texplainer.errors import InputError
from texplainer.tables import schema as frames

NUMBERS = {"age": [30.0, 40.0, 50.0], "income": [1.0, 2.5, 3.0]}
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_every_kind_read_and_write_alike(kind):
    table = KINDS[kind](NUMBERS)
    schema, rows = frames.learn(table)
    assert schema.names == ("age", "income") and schema.kind == kind
    np.testing.assert_array_equal(rows, np.array(list(NUMBERS.values())).T)
    back = schema.write(rows)
    assert type(back) is type(table)
    np.testing.assert_array_equal(schema.read(back), rows)


@pytest.mark.parametrize("kind", KINDS)
def test_reordered_columns_are_put_in_order(kind):
    schema, rows = frames.learn(KINDS[kind](NUMBERS))
    turned = KINDS[kind]({name: NUMBERS[name] for name in reversed(NUMBERS)})
    np.testing.assert_array_equal(schema.read(turned), rows)


def test_arrays_lists_single_rows_series_and_dicts():
    array = np.array(list(NUMBERS.values())).T
    schema, rows = frames.learn(array)
    assert schema.names == ("x0", "x1")
    np.testing.assert_array_equal(schema.read(array.tolist()), rows)
    np.testing.assert_array_equal(schema.read(array[0]), rows[:1])
    np.testing.assert_array_equal(schema.read([30, 1]), [[30.0, 1.0]])
    np.testing.assert_array_equal(schema.read(array.astype(np.float32)), rows)
    np.testing.assert_array_equal(schema.read(np.array([[True, False]])), [[1.0, 0.0]])
    table = pd.DataFrame(NUMBERS)
    schema, rows = frames.learn(table)
    np.testing.assert_array_equal(schema.read(table.iloc[1]), rows[1:2])
    np.testing.assert_array_equal(schema.read(table.iloc[1].to_dict()), rows[1:2])


def test_text_and_category_columns_become_codes_and_come_back():
    table = pd.DataFrame(
        {
            "n": [1.0, 2.0, 3.0],
            "text": ["b", "a", "b"],
            "cat": pd.Categorical(["x", None, "y"], ["y", "x", "z"]),
        }
    )
    schema, rows = frames.learn(table)
    assert schema.levels == {1: ("a", "b"), 2: ("y", "x", "z")}
    np.testing.assert_array_equal(rows, [[1, 1, 1], [2, 0, np.nan], [3, 1, 0]])
    back = schema.write(rows)
    assert back["cat"].dtype == table["cat"].dtype
    assert back["text"].tolist() == ["b", "a", "b"]
    pd.testing.assert_series_equal(back["cat"], table["cat"])


def test_declared_integer_categories_come_back_as_integers():
    schema, rows = frames.learn(pd.DataFrame({"n": [0.5, 0.7, 0.1], "job": [7, 3, 7]}), categorical=["job"])
    np.testing.assert_array_equal(rows[:, 1], [1, 0, 1])
    assert schema.write(rows)["job"].dtype.kind == "i"


def test_categories_that_other_calls_met_change_nothing():
    table = pd.DataFrame({"n": [0.5, 0.7, 0.1], "job": [7, 3, 7]})
    schema, rows = frames.learn(table, categorical=["job"])
    other = schema.read(pd.DataFrame({"n": [0.5, 0.5], "job": [2.5, 4.0]}))
    assert schema.write(rows)["job"].dtype.kind == "i"
    assert schema.write(other[1:])["job"].tolist() == [4.0]
    assert schema.write(np.concatenate([rows, other]))["job"].tolist() == [7.0, 3.0, 7.0, 2.5, 4.0]


def test_rows_have_the_same_keys_in_whatever_order_their_categories_are_met():
    background = pd.DataFrame({"n": [0.5, 0.7], "job": ["a", "b"]})
    first, second = (frames.learn(background)[0] for _ in range(2))
    table = pd.DataFrame({"n": [1.0, 2.0, 1.0], "job": ["new", "newer", "a"]})
    forwards, backwards = first.read(table), second.read(table[::-1])
    assert not np.array_equal(forwards, backwards[::-1])
    assert first.keys(forwards) == second.keys(backwards)[::-1]
    assert len(set(first.keys(forwards))) == 3


def test_missing_cells_are_nan():
    _, rows = frames.learn(
        pd.DataFrame({"n": pd.array([1, None, 3], dtype="Int64"), "m": [1.0, 2.0, np.nan]})
    )
    np.testing.assert_array_equal(rows, [[1, 1], [np.nan, 2], [3, np.nan]])


BAD = {
    "a missing column": (pd.DataFrame({"age": [1.0]}), r"lacks the columns \['income'\]"),
    "an extra column": (pd.DataFrame({**NUMBERS, "y": [0, 1, 0]}), r"unexpected columns \['y'\]"),
    "a wrong width": (np.zeros((2, 3)), "3 columns; expected 2"),
    "text in a number": (
        pd.DataFrame({"age": ["old"], "income": [1.0]}),
        "'old' in column 'age' is not a number",
    ),
    "no rows": (pd.DataFrame({"age": [], "income": []}), "0 rows"),
    "three dimensions": (np.zeros((2, 2, 2)), "3 dimensions"),
    "ragged rows": ([[1.0], [1.0, 2.0]], "unequal lengths"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_say_what_is_wrong(name):
    schema, _ = frames.learn(pd.DataFrame(NUMBERS))
    table, message = BAD[name]
    with pytest.raises(InputError, match=message):
        schema.read(table)


def test_bad_backgrounds_say_what_is_wrong():
    with pytest.raises(InputError, match="occur twice"):
        frames.learn(np.zeros((2, 2)), ["a", "a"])
    with pytest.raises(InputError, match="3 names for a background of 2 columns"):
        frames.learn(np.zeros((2, 2)), ["a", "b", "c"])
    with pytest.raises(InputError, match="not in the table"):
        frames.learn(pd.DataFrame(NUMBERS), categorical=["job"])

"""Rows by identifier or condition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from texplainer.app.workbench import matching_rows
from texplainer.errors import InputError
from texplainer.tables.schema import learn

TABLE = pd.DataFrame(
    {"age": [20.0, 35.0, np.nan, 50.0], "job title": pd.Categorical(["cook", "nurse", "cook", "pilot"])},
    index=["A-1", "A-2", "B-1", "20"],
)


def found(words: object) -> list[int]:
    schema, rows = learn(TABLE)
    return matching_rows(words, schema, rows, list(TABLE.index)).tolist()


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("A-2", [1]),
        ("row B-1", [2]),
        ("20", [3]),
        ("age > 20", [1, 3]),
        ("AGE<=35", [0, 1]),
        ("age != 20", [1, 2, 3]),
        ("job title = cook", [0, 2]),
        ("job title != cook", [1, 3]),
    ],
)
def test_rows_are_found(words: str, rows: list[int]) -> None:
    assert found(words) == rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ag > 20", r"'ag' is not a feature. Did you mean 'age'\?"),
        ("age > old", "'old' is not a number"),
        ("job title = cok", r"not a category of 'job title'; it has cook, nurse, pilot. Did you mean 'cook'"),
        ("job title < cook", "compare it with = or !="),
        ("A-9", "no row has the identifier 'A-9'; they go from A-1 to 20"),
        ("age > 99", "no row matches 'age > 99'"),
        ("  ", "nothing to look for"),
        (None, "nothing to look for"),
    ],
)
def test_a_wrong_search_is_an_error(words: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        found(words)

"""Wide tables: work is counted, not timed. It must grow with the columns, not with their square."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from texplainer import TExplainer
from texplainer.categories import detect
from texplainer.errors import BackgroundWarning
from texplainer.tables import native
from texplainer.tables.onehot import ColumnGroup, OneHotLayout


def _frame(columns, rows=30):
    return pd.DataFrame(
        np.random.default_rng(0).normal(size=(rows, columns)), columns=[f"c{j}" for j in range(columns)]
    )


def test_the_background_is_split_into_columns_once(monkeypatch):
    split = []
    pandas = native._of_pandas
    monkeypatch.setattr(native, "_of_pandas", lambda table: split.append(table) or pandas(table))
    TExplainer(lambda table: np.asarray(table).sum(axis=1), _frame(40))
    assert len(split) == 1


def test_the_prefixes_of_a_name_are_found_once(monkeypatch):
    """Names with a prefix of their own each: comparing all with all would take a second for 3,000 of them."""
    asked = []
    prefixes = detect._prefixes
    monkeypatch.setattr(detect, "_prefixes", lambda name: asked.append(name) or prefixes(name))
    names = [f"word_{j}_x" for j in range(300)]
    rows = (np.random.default_rng(0).random((50, 300)) < 0.2).astype(float)
    assert detect.onehot_groups(names, rows, True) == {}
    assert len(asked) == len(names)


def test_codes_of_a_group_are_those_of_the_equal_pattern():
    rng = np.random.default_rng(0)
    patterns = np.unique(rng.integers(-1, 2, (40, 3)).astype(float), axis=0)
    group = ColumnGroup((0, 2, 3), patterns)
    wide = rng.normal(size=(60, 4))
    wide[:, group.columns] = patterns[rng.integers(0, len(patterns), 60)]
    wide[:, 3] = np.where(wide[:, 3] == 0, -0.0, wide[:, 3])  # the same number
    wide[7, 2] = np.nan
    found = OneHotLayout(4, (0, 1), {0: group}).to_codes(wide, list("abcd"))
    twin = [
        np.nan if np.isnan(row).any() else next(i for i, p in enumerate(patterns) if (p == row).all())
        for row in wide[:, group.columns]
    ]
    np.testing.assert_array_equal(found[:, 0], twin)
    np.testing.assert_array_equal(found[:, 1], wide[:, 1])


@pytest.mark.parametrize("kind", ["constant", "one-hot"])
def test_a_warning_lists_a_few_columns_only(kind):
    if kind == "constant":
        table = _frame(500)
        table.iloc[:, 1:] = 1.0
    else:
        table = np.repeat(np.eye(30), 10, axis=0)
        table = np.hstack([table, np.ones((300, 1)), table[::-1]])
        table[0, 30] = 2.0  # between two groups
    with pytest.warns(BackgroundWarning) as found:
        TExplainer(lambda rows: np.asarray(rows).sum(axis=1), table)
    assert all(len(str(one.message)) < 800 for one in found)


def test_a_booster_reads_a_frame_of_floats_at_once(monkeypatch):
    """XGBoost reads a frame column by column: 0.3 s a prediction for 10,000 columns, ten times an array's."""
    xgboost = pytest.importorskip("xgboost")
    table = _frame(5)
    matrix, given = xgboost.DMatrix, []
    model = xgboost.train({"max_depth": 2}, matrix(table, label=table["c0"]), 3)
    monkeypatch.setattr(
        xgboost, "DMatrix", lambda data, **more: given.append(type(data)) or matrix(data, **more)
    )
    found = TExplainer(model, table)(table[["c4", "c3", "c2", "c1", "c0"]])
    assert set(given) == {np.ndarray}
    np.testing.assert_array_equal(np.ravel(found.predictions), model.predict(matrix(table)))

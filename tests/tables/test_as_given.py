"""Tables and headers as people give them: masked cells, time zones, names given twice, things that are no table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer.errors import InputError
from texplainer.tables.schema import learn

X = np.random.default_rng(0).normal(size=(40, 3))


def test_a_sparse_matrix_of_keys_is_no_mapping():
    np.testing.assert_array_equal(learn(sparse.dok_matrix(X))[1], X)


@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_masked_cells_are_missing(dtype):
    table = np.ma.masked_greater(np.arange(6).reshape(3, 2).astype(dtype), 4)
    np.testing.assert_array_equal(learn(table)[1], [[0, 1], [2, 3], [4, np.nan]])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_times_come_back_in_their_zone(kind):
    frame = pd.DataFrame(
        {"t": pd.date_range("2021-03-27", periods=3, tz="Europe/Berlin", unit="us"), "n": 1.0}
    )
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    schema, rows = learn(frame)
    np.testing.assert_allclose(np.diff(rows[:, 0]), [1.0, 23 / 24])  # the clocks went forward
    back = schema.write(rows)
    assert (
        back["t"].to_pylist() == frame["t"].to_pylist()
        if kind == "pyarrow"
        else (back["t"] == frame["t"]).all()
    )
    dtype = (lambda t: t.schema.field("t").type) if kind == "pyarrow" else (lambda t: t["t"].dtype)
    assert dtype(back) == dtype(frame)


def test_a_frame_with_names_of_its_own_may_be_given_others():
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    explainer = tx.TExplainer(model, pd.DataFrame(X), feature_names=["age", "b", "c"])
    found = explainer(pd.DataFrame(X[:3])[[2, 0, 1]])
    assert found.feature_names == ("age", "b", "c")
    np.testing.assert_array_equal(found.data, X[:3])
    np.testing.assert_array_equal(
        explainer(pd.DataFrame(X[:3], columns=["age", "b", "c"])).values, found.values
    )


@pytest.mark.parametrize("table", [None, "rows.csv", 5])
def test_what_has_no_rows_is_named(table):
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    with pytest.raises(InputError, match="was passed as a table; expected rows and features"):
        tx.TExplainer(model, X)(table)


def test_model_and_background_in_the_wrong_order_say_so():
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    with pytest.raises(InputError, match=r"a LogisticRegression was passed as a table.*model first"):
        tx.TExplainer(X, model)
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)  # a sequence of trees, too
    with pytest.raises(InputError, match=r"a RandomForestClassifier was passed as a table.*model first"):
        tx.TExplainer(X, forest)


def test_a_mistyped_column_is_told_by_its_right_name():
    explainer = tx.TExplainer(lambda t: t["alpha"].to_numpy(), pd.DataFrame(X, columns=["alpha", "b", "c"]))
    with pytest.raises(InputError, match=r"Did you mean 'alpha' by 'alpa'\?"):
        explainer(pd.DataFrame(X, columns=["alpa", "b", "c"]))

"""Tables as people have them: odd headers, sparse, lazy, nullable, dated, narrow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer.errors import InputError, LazyTableWarning
from texplainer.tables.schema import learn

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
HEADERS = {
    "integers": ([0, 1, 2], ("0", "1", "2")),
    "a mixture": (["a", None, 4.5], ("a", "None", "4.5")),
    "a missing one": (["a", np.nan, "c"], ("a", "nan", "c")),
    "two rows": (pd.MultiIndex.from_tuples([("a", 0), ("a", 1), ("b", 0)]), ("a/0", "a/1", "b/0")),
}


@pytest.mark.parametrize("name", HEADERS)
def test_any_header_is_read_and_given_back(name):
    header, names = HEADERS[name]
    frame = pd.DataFrame(X).set_axis(header, axis=1)
    schema, rows = learn(frame)
    assert schema.names == names
    pd.testing.assert_frame_equal(schema.write(rows), frame)
    np.testing.assert_array_equal(schema.read(frame[:4]), X[:4])


def test_a_frame_made_of_an_array_is_explained():
    model = LogisticRegression().fit(pd.DataFrame(X), Y)
    explanation = tx.TExplainer(model, pd.DataFrame(X))(pd.DataFrame(X[:3]))
    assert explanation.feature_names == ("0", "1", "2")


def test_names_of_the_model_serve_a_table_without_any():
    model = LogisticRegression().fit(pd.DataFrame(X, columns=["age", "b", "c"]), Y)
    assert tx.TExplainer(model, X)(X[:2]).feature_names == ("age", "b", "c")


def test_duplicate_names_are_refused():
    with pytest.raises(InputError, match=r"\['a'\] occur twice.*Rename them"):
        learn(pd.DataFrame(X, columns=["a", "a", "b"]))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array, pd.DataFrame.sparse.from_spmatrix])
def test_sparse_tables_are_read(make):
    table = make(sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0.0)))
    np.testing.assert_array_equal(learn(table)[1], np.where(np.abs(X) > 1, X, 0.0))


def test_a_sparse_table_too_large_to_be_dense_says_so():
    with pytest.raises(InputError, match=r"100000 x 100000 values.*in parts"):
        learn(sparse.csr_matrix((100_000, 100_000)))


def test_lazy_frames_are_collected():
    with pytest.warns(LazyTableWarning):
        np.testing.assert_array_equal(learn(pl.DataFrame(X).lazy())[1], X)


def test_nullable_numbers_and_booleans():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "f": pd.array([0.5, None, 2.0], dtype="Float64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "plain": [True, False, False],
        }
    )
    schema, rows = learn(frame)
    assert schema.levels == {2: (False, True), 3: (False, True)}
    expected = [[1, 0.5, 1, 1], [np.nan, np.nan, np.nan, 0], [3, 2, 0, 0]]
    np.testing.assert_array_equal(rows, np.array(expected, dtype=float))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_datetimes_are_days_and_come_back_as_they_were(make):
    days = np.array(["2020-01-01", "2020-01-03", "2021-01-01"], dtype="datetime64[us]")
    frame = make({"day": days, "n": [1.0, 2.0, 3.0]})
    schema, rows = learn(frame)
    assert not schema.levels and list(np.diff(rows[:, 0])) == [2.0, 364.0]
    back = schema.write(rows)["day"]
    np.testing.assert_array_equal(np.asarray(back).astype("datetime64[us]"), days)


def test_float32_reaches_the_model_as_float32():
    seen = set()

    def model(rows):
        seen.add(rows.dtype)
        return rows[:, 0]

    explainer = tx.TExplainer(model, X.astype(np.float32))
    explainer(X[:2].astype(np.float32))
    assert seen == {np.dtype(np.float32)} and explainer.predictor.dtype == np.float32


REFUSED = {
    "complex numbers": (X + 1j, "complex numbers; expected real ones"),
    "lists": (pd.DataFrame({"a": [[1, 2], [3]]}), "'a' holds list values such as"),
    "dicts": (pd.DataFrame({"a": [{"k": 1}, {"k": 2}]}), "'a' holds dict values such as"),
    "ragged rows": ([[1, 2], [3]], "unequal lengths"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_is_refused(name):
    table, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        learn(table)

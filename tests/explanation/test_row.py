"""One row as people read it: contributions and slopes side by side."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import texplainer as tx
from texplainer.explanation.row import FLAT, row_tables


def explained(function, rows=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, 3))
    return tx.TExplainer(function, X, feature_names=["a", "b", "c"])(X[:5]), X


def test_both_columns_are_those_of_the_two_attributions():
    explanation, _ = explained(lambda X: 2 * X[:, 0] - X[:, 1])
    (table,) = row_tables(explanation[0])
    assert [column.head for column in table.columns] == ["contribution", "slope per SD"]
    np.testing.assert_array_equal(table.columns[1].values, explanation[0].values)
    shapley = explanation[0].with_attribution("shapley")
    np.testing.assert_array_equal(table.columns[0].values, shapley.values)
    assert list(table.order) == list(np.argsort(-np.abs(shapley.values), kind="stable"))


def test_a_feature_the_model_uses_is_never_shown_as_a_plain_zero():
    """Far from its one threshold the model has no slope, but the feature has a contribution."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2).fit(
        X, np.where(X[:, 0] > 0, 5.0, 0.0)
    )
    row = np.array([[2.0, 0.0, 0.0]])
    explanation = tx.TExplainer(model, X, feature_names=["a", "b", "c"])(row)
    assert explanation.values[0, 0] == 0
    (table,) = row_tables(explanation)
    lines = {line[0]: line for line in table.lines()}
    assert lines["a"][-1] == FLAT and any(note.startswith(FLAT) for note in table.notes())
    assert lines["b"][-1] == "0" and lines["b"][-2] == "0"  # the model does not use it


def test_a_loaded_row_says_how_to_get_the_column_it_lacks(tmp_path):
    explanation, _ = explained(lambda X: X[:, 0])
    explanation.save(tmp_path / "one.npz")
    (table,) = row_tables(tx.Explanation.load(tmp_path / "one.npz")[0])
    assert "explainer(X, attribution='shapley')" in table.missing or len(table.columns) == 2

"""One row as people read it: contributions and slopes side by side."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer.explanation.text import FLAT, number, row_tables


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


def step_of_a(rows):
    """Constant near the rows explained, but not elsewhere; the other columns are used or not used at all."""
    return np.where(rows[:, 0] > 0, 5.0, 0.0) + rows[:, 1]


@pytest.mark.parametrize("given", ["trees", "function"])
def test_what_is_flat_here_is_named_in_the_reason(given):
    X = np.random.default_rng(0).normal(size=(400, 3))
    trees = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=4).fit(X, 5.0 * (X[:, 0] > 0) + X[:, 1])
    rows = np.array([[2.0, 0.1, 0.0], [0.01, 0.1, 0.0]])
    explanation = tx.TExplainer(trees if given == "trees" else step_of_a, X, feature_names=["a", "b", "c"])(
        rows
    )
    np.testing.assert_array_equal(explanation.diagnostics.flat[:, 0], [True, False])
    assert not explanation.diagnostics.flat[:, 2].any()  # not used: 0, and nothing to be said
    assert "flat for moves up to 0.61 SD, changes beyond: 'a'" in explanation.diagnostics.reason[0]
    assert "'a'" not in explanation.diagnostics.reason[1]
    assert explanation.diagnostics.stability[0] == "stable"


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".arrow", ".feather", ".csv", ".jsonl"])
def test_what_is_flat_survives_saving(tmp_path, suffix):
    X = np.random.default_rng(0).normal(size=(400, 3))
    explanation = tx.TExplainer(step_of_a, X, feature_names=["a", "b", "c"])(np.array([[2.0, 0.1, 0.0]]))
    explanation.save(tmp_path / f"one{suffix}")
    loaded = tx.Explanation.load(tmp_path / f"one{suffix}")
    assert loaded.diagnostics.reason[0] == "flat for moves up to 0.61 SD, changes beyond: 'a'"
    for shown in (str(loaded[0]), loaded[0]._repr_html_()):
        assert "flat for moves up to 0.61 SD" in shown or "flat: no change for moves up to 0.61 SD" in shown


def test_each_output_has_its_own_flat_features():
    X = np.random.default_rng(0).normal(size=(400, 2))

    def two(rows):
        return np.stack([rows[:, 0], np.where(rows[:, 0] > 0, 1.0, 0.0) + rows[:, 1]], axis=1)

    explanation = tx.TExplainer(two, X)(np.array([[2.0, 0.0]]))
    np.testing.assert_array_equal(explanation.diagnostics.flat[0, 0], [False, True])


def test_a_row_of_a_loaded_explanation_keeps_its_number(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    explanation = tx.TExplainer(lambda rows: rows[:, 0], X)(X)
    explanation.save(tmp_path / "one.npz")
    loaded = tx.Explanation.load(tmp_path / "one.npz")
    assert str(loaded[7]).startswith("row 7,")
    np.testing.assert_array_equal(loaded[5:9][1:3].index, [6, 7])
    np.testing.assert_array_equal(loaded[[3, 1]].index, explanation[[3, 1]].index)


def test_a_base_value_in_log_odds_is_not_shown_as_a_probability():
    # the mean of log-odds is not the log-odds of the mean probability
    X = np.random.default_rng(0).normal(size=(100, 1))
    explanation = tx.TExplainer(LogisticRegression().fit(X, X[:, 0] > 1), X)(X[:1])
    base = f"; base value: log-odds {number(float(explanation.base_values))}"
    assert str(explanation).splitlines()[0].endswith(base)
    assert str(explanation.reasons(1)).splitlines()[1].endswith(base)


def test_an_output_does_not_name_the_flat_features_of_another():
    X = np.random.default_rng(0).normal(size=(400, 2))

    def two(rows):
        return np.stack([rows[:, 0], np.where(rows[:, 0] > 0, 1.0, 0.0) + rows[:, 1]], axis=1)

    first, second = str(tx.TExplainer(two, X, feature_names=["a", "b"])(np.array([[2.0, 0.0]]))).split("\n\n")
    assert "flat" not in first and "flat: no change for moves up to 0.61 SD" in second

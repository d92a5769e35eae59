"""The relative change of slopes and exact Shapley values against many random moves, and the moves themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor

import texplainer as tx
from texplainer.gradients.moves import normal_moves


@pytest.mark.parametrize("count", [2, 3, 8])
def test_normal_moves_hold_the_same_quantiles_in_every_feature(count):
    moves = normal_moves(50, count)
    assert moves.shape == (count, 50)
    np.testing.assert_allclose(moves.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose((moves**2).mean(axis=0), 1.0)
    np.testing.assert_allclose(np.sort(moves, axis=0), np.sort(moves, axis=0)[:, :1].repeat(50, axis=1))
    assert len(np.unique(moves, axis=1).T) == min(50, [2, 6, 50][[2, 3, 8].index(count)])


def test_the_relative_change_of_a_forest_ranks_rows_as_many_random_moves_do():
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    model = RandomForestRegressor(20, min_samples_leaf=3, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    rows, explainer = X[:40], tx.TExplainer(model, X[100:200])
    found = explainer(rows, attribution="shapley")
    step = 0.05 * explainer.background.unit * rng.normal(size=(30, *rows.shape))
    there = explainer((rows + step).reshape(-1, 4), attribution="shapley").values.reshape(30, 40, 4)
    size = np.linalg.norm(found.values, axis=1)
    expected = np.linalg.norm(there - found.values, axis=2).mean(axis=0) / size
    stated = found.diagnostics.relative_change.ravel()
    assert spearmanr(stated, expected)[0] > 0.85
    assert 0.8 < np.median(stated / expected) < 1.25


def test_the_change_of_slopes_of_several_classes_of_trees_is_near_the_measured_one():
    pytest.importorskip("numba")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.6, 0.6])
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=3, random_state=0).fit(X, y)
    explainer = tx.TExplainer(model, X[:200])
    rows = X[:60]
    found = explainer(rows)
    sd, (low, high) = explainer.background.unit, explainer.background.bounds
    size = np.linalg.norm(found.values, axis=1)
    lengths = []
    for _ in range(16):
        moved = np.clip(rows + 0.05 * sd * rng.normal(size=rows.shape), low, high)
        lengths.append(np.linalg.norm(explainer(moved).values - found.values, axis=1))
    ratio = found.diagnostics.relative_change / (np.mean(lengths, axis=0) / size)
    assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.8

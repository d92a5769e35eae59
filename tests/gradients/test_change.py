"""How much slopes change, from second derivatives."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score

from texplainer import TExplainer
from texplainer.gradients.change import pairs_of


def quadratic(features, seed=0):
    """A function with constant second derivatives, and these."""
    bends = np.random.default_rng(seed).normal(size=(features, features))
    bends = bends + bends.T
    return lambda rows: np.einsum("rj,jk,rk->r", rows, bends, rows) / 2 + rows.sum(axis=1), bends


@pytest.mark.parametrize("features", [1, 2, 5, 9, 14])
def test_the_change_of_a_quadratic_function_is_known(features):
    f, bends = quadratic(features)
    X = np.random.default_rng(1).normal(size=(200, features)) * np.linspace(0.5, 2, features)
    explainer = TExplainer(f, X, bounds=None)
    found, sd = explainer(X[:10]), explainer.background.unit
    length = 0.05 * np.sqrt(2 / np.pi) * np.linalg.norm(sd[:, None] * bends * sd)
    size = np.linalg.norm(found.values, axis=1)
    assert found.diagnostics.relative_change.ravel() == pytest.approx(length / size, rel=1e-6)


def test_at_the_edge_of_the_range_nodes_of_one_side_tell_the_bend():
    """A move off the range stays at the edge: half the mean square."""
    f, bends = quadratic(3)
    X = np.random.default_rng(1).uniform(size=(200, 3))
    X[0] = X.max(axis=0)
    explainer = TExplainer(f, X)
    found, sd = explainer(X[:1]), explainer.background.unit
    length = 0.05 * np.sqrt(1 / np.pi) * np.linalg.norm(sd[:, None] * bends * sd)
    assert found.diagnostics.relative_change * np.linalg.norm(found.values) == pytest.approx(length, rel=1e-6)


def test_of_many_pairs_some_stand_for_all():
    f, bends = quadratic(40)
    X = np.random.default_rng(1).normal(size=(200, 40))
    explainer = TExplainer(f, X, bounds=None)
    found, sd = explainer(X[:10]), explainer.background.unit
    length = 0.05 * np.sqrt(2 / np.pi) * np.linalg.norm(sd[:, None] * bends * sd)
    size = np.linalg.norm(found.values, axis=1)
    assert found.diagnostics.relative_change.ravel() == pytest.approx(length / size, rel=0.15)


@pytest.mark.parametrize("features", [1, 2, 3, 8, 9, 40])
@pytest.mark.parametrize("count", [0, 5, 80, 10_000])
def test_pairs_differ_and_every_feature_is_in_about_as_many(features, count):
    pairs = pairs_of(features, count)
    every = features * (features - 1) // 2
    assert len(pairs) == min(count, every) == len({tuple(sorted(pair)) for pair in pairs.tolist()})
    assert all(a != b for a, b in pairs.tolist())
    often = np.bincount(pairs.ravel(), minlength=features)
    assert np.ptp(often) <= 2


def test_the_change_of_a_smooth_function_ranks_rows_as_many_measured_moves_do():
    X, y = make_friedman1(260, random_state=0)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X[60:], y[60:])
    explainer, rows = TExplainer(lambda rows: model.predict(rows), X[60:]), X[:60]
    found, rng = explainer(rows), np.random.default_rng(0)
    low, high = np.minimum(X[60:].min(axis=0), rows), np.maximum(X[60:].max(axis=0), rows)
    lengths = []
    for _ in range(40):
        moved = rows + 0.05 * explainer.background.unit * rng.normal(size=rows.shape)
        lengths.append(np.linalg.norm(explainer(np.clip(moved, low, high)).values - found.values, axis=1))
    measured = np.mean(lengths, axis=0) / np.linalg.norm(found.values, axis=1)
    stated = found.diagnostics.relative_change.ravel()
    assert roc_auc_score(measured > np.median(measured), stated) > 0.95
    assert np.mean((stated < 1.5 * measured) & (measured < 1.5 * stated)) > 0.9

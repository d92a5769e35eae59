"""Slopes from moves of one feature at a time, of models known by their predictions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from texplainer import TExplainer
from texplainer.errors import InputError
from texplainer.gradients.choose import choose
from texplainer.gradients.engine import Settings
from texplainer.gradients.moves import (
    AveragedDifferences,
    Moves,
    affordable,
    calibrated,
    gauss,
    least_evals,
    moves_of,
    step_squares,
)
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames

X = np.random.default_rng(11).normal(size=(200, 3)) * [1.0, 2.0, 0.5]
WIDTH = 6**0.5 * 0.25


def _model(function):
    schema, rows = frames.learn(X)
    return prediction.adapt(function, schema, rows[:8])


def averaged(f, explainer, rows, points=2000):
    """The definition, slowly: SD x (mean of f above - mean of f below) / (mean move up - mean move down)."""
    sd, (low, high) = explainer.background.unit, explainer.background.bounds or (-np.inf, np.inf)
    low, high = np.broadcast_to(low, sd.shape), np.broadcast_to(high, sd.shape)
    t, found = (np.arange(points) + 0.5) / points, np.zeros(rows.shape)
    for i, row in enumerate(rows):
        for j in range(len(row)):
            up = max(0.0, min(WIDTH * sd[j], high[j] - row[j]))
            down = max(0.0, min(WIDTH * sd[j], row[j] - low[j]))
            at = np.repeat(row[None], 2 * points, axis=0)
            at[:, j] += np.concatenate([up * t, -down * t])
            above, below = f(at).reshape(2, points).mean(axis=1)
            found[i, j] = sd[j] * (above - below) / ((up + down) / 2)
    return found


def bent(rows):
    return np.sin(rows[:, 0]) * rows[:, 1] + np.abs(rows[:, 2] - 0.1)


def fitted(name):
    y = bent(X)
    if name == "network":
        return MLPRegressor(
            hidden_layer_sizes=(16,), random_state=0, solver="lbfgs", max_iter=200, tol=1e-2
        ).fit(X, y)
    return GradientBoostingRegressor(n_estimators=50, random_state=0).fit(X, y)


@pytest.mark.parametrize("name", ["function", "network", "trees"])
def test_slopes_of_functions_are_within_their_bounds_of_the_definition(name):
    f = bent if name == "function" else fitted(name).predict
    explainer = TExplainer(lambda rows: f(rows), X)
    rows = np.concatenate([X[:25], X[X.argmax(axis=0)], X[X.argmin(axis=0)], X[:2] + 9.0])
    found, twin = explainer(rows), averaged(f, explainer, rows)
    gap = np.abs(found.values - twin)
    assert np.mean(gap <= found.diagnostics.error + 1e-12) >= 0.97
    size = np.linalg.norm(twin, axis=1)
    off = np.linalg.norm(gap, axis=1) / np.maximum(size, 1e-9)
    assert np.median(off) < (0.15 if name == "trees" else 0.02)


@pytest.mark.parametrize("nodes", [2, 8, 16])
def test_bounds_are_calibrated_by_a_finer_rule_whatever_the_number_of_nodes(nodes):
    """Sixteen nodes were compared with themselves: an error of zero."""
    step = _model(lambda rows: (rows[:, 0] > 0.1) + (rows[:, 1] > -0.3) * 2.0)
    moves = moves_of(step, X, Settings("auto", 0.25))
    sd = X.std(axis=0)
    found = calibrated(AveragedDifferences(step, moves, sd, nodes), X)
    many = replace(found, nodes=100)
    few, true = found(X), many(X)
    unsure = few.error > 0
    assert np.mean(np.abs(few.values - true.values)[unsure] <= few.error[unsure]) >= 0.95


def test_the_error_of_a_step_between_two_nodes_is_its_root_mean_square():
    t, weight = gauss(4)
    for k, square in enumerate(step_squares(4)):
        at = np.linspace(t[k - 1] if k else 0.0, t[k], 20_001)
        seen = weight[:k].sum()  # of the nodes below the step; the rule misses `at` by the rest
        assert square == pytest.approx(np.mean((at - seen) ** 2), rel=1e-3)


KINKS = np.array([1.0, -2.0, 0.5, 1.0])


def few_columns(name, columns):
    """A function of a few columns, the model behind it if it has exact slopes, and its data."""
    rng = np.random.default_rng([5, columns])
    data = rng.normal(size=(700, columns)) * rng.uniform(0.3, 3.0, columns)
    scaled = data / data.std(axis=0)
    if name == "kinks":
        size = data.std(axis=0)
        return (
            lambda rows: np.abs(rows / size - 0.3) @ KINKS[:columns] + np.maximum(rows[:, 0], rows[:, 1])
        ), data
    y = np.sin(2 * scaled[:, 0]) * scaled[:, 1] + np.abs(scaled[:, -1] - 0.2)
    model = {
        "boosted": GradientBoostingRegressor(n_estimators=50, random_state=0),
        "deep": GradientBoostingRegressor(n_estimators=40, max_depth=6, random_state=0),
        "forest": RandomForestRegressor(20, random_state=0),
    }[name].fit(data[:400], y[:400])
    return model.predict, data


@pytest.mark.parametrize("threshold", [0.3, 1.2])
def test_bounds_of_a_function_with_one_step_cover(threshold):
    """Cells without a step made the bounds of the others narrow: 88% were covered."""
    data = np.random.default_rng([31, 4, 1]).normal(size=(1100, 4))

    def f(rows):
        return 2.0 * (rows[:, 0] > threshold) + 0.3 * rows[:, 1]

    explainer = TExplainer(f, data[600:800])
    found, rows = explainer(data[800:920]), data[800:920]
    gap = np.abs(found.values - averaged(f, explainer, rows))
    assert np.mean(gap <= found.diagnostics.error + 2e-3) >= 0.97


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_bounds_of_functions_of_few_columns_cover_and_are_not_wide(columns):
    """Bounds that were calibrated on the largest of 18 errors covered 96% here, or were ten times the error."""
    covered, ratio = [], []
    for name in ("kinks", "boosted", "deep", "forest"):
        f, data = few_columns(name, columns)
        explainer = TExplainer(lambda rows, f=f: f(rows), data[400:600])
        rows = data[600:]
        found = explainer(rows)
        gap, bound = np.abs(found.values - averaged(f, explainer, rows, 500)), found.diagnostics.error
        covered.append(np.mean(gap <= bound + 1e-3 * np.abs(found.values).mean()))
        if name != "kinks":  # exact where no kink is in reach
            ratio.append(np.median(bound) / np.median(gap))
    assert np.mean(covered) >= 0.99 and min(covered) >= 0.97
    assert np.mean(ratio) <= 8


def test_log_odds_of_one_class_of_trees_are_within_their_bounds_of_the_definition():
    """Not a sum of trees: sixteen nodes on a side."""
    model = GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0)
    model.fit(X, np.digitize(bent(X), [-0.3, 0.6]))
    explainer = TExplainer(model, X, output=0)
    rows = X[:60]
    found = explainer(rows)

    def log_odds(at):
        p = model.predict_proba(at)[:, 0]
        return np.log(p / (1 - p))

    gap = np.abs(found.values - averaged(log_odds, explainer, rows))
    assert np.mean(gap <= found.diagnostics.error + 1e-3 * np.abs(found.values)) >= 0.97


@pytest.mark.parametrize("whole", [False, True])
def test_slopes_of_trees_in_float32_are_exact_where_float32_is_coarse(whole):
    """Times in seconds are rounded to multiples of 128 by the forest; the moves are not."""
    times = 1.7e9 + np.random.default_rng(2).uniform(0, 21600, 200)
    data = np.column_stack([np.round(times) if whole else times, X[:, 1]])
    model = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
    explainer = TExplainer(model.fit(data, np.sin(data[:, 0] / 3000.0)), data)
    assert explainer.engine.name == "tree"
    twin = averaged(model.predict, explainer, data[:40], points=20_000)
    np.testing.assert_allclose(explainer(data[:40]).values, twin, atol=1e-3 * np.abs(twin).max())


@pytest.mark.parametrize("name", ["network", "trees"])
def test_a_model_and_its_function_have_the_same_slopes_within_bounds(name):
    model = fitted(name)
    both = [TExplainer(of, X)(X[:60]) for of in (model, lambda rows: model.predict(rows))]
    gap = np.abs(both[0].values - both[1].values)
    assert np.mean(gap <= both[0].diagnostics.error + both[1].diagnostics.error + 1e-12) >= 0.97


@settings(max_examples=10, deadline=None)
@given(strategies.integers(0, 2**31), strategies.sampled_from([0.1, 0.25, 1.0]))
def test_a_linear_model_and_whole_numbers_are_exact(seed, smoothing):
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=3)
    table = np.column_stack([X[:, 0], np.round(30 * X[:, 1]), np.round(300 * X[:, 2])])
    explainer = TExplainer(lambda rows: rows @ beta + 3.0, table, smoothing=smoothing)
    assert len(explainer.background.discrete.integers) == 2 or smoothing == 0.1
    found = explainer(table[:20])
    np.testing.assert_allclose(found.values, np.tile(beta * explainer.background.unit, (20, 1)), rtol=1e-9)


def test_moves_of_whole_numbers_have_the_mean_of_rounded_moves():
    moves = Moves(np.array([2.45]), None, np.array([True]))
    x = np.array([[3.0], [-2.0]])
    t = (np.arange(200_000) + 0.5) / 200_000 * 2.45
    for row in x:
        twin = np.floor(row + t + 0.5).mean() - np.floor(row - t + 0.5).mean()
        np.testing.assert_allclose(moves.width(row[None], moves.reach(row[None])), twin, rtol=1e-4)


def test_an_unused_feature_has_exactly_no_slope():
    explainer = TExplainer(lambda rows: np.exp(rows[:, 0]) + rows[:, 2], X)
    assert not explainer(X[:50]).values[:, 1].any()


def test_a_row_has_the_same_bits_whatever_else_is_in_the_batch():
    explainer = TExplainer(bent, X)
    among, alone = explainer(X), [explainer(X[i : i + 1]) for i in (0, 7, 150)]
    for name in ("error", "relative_change"):
        np.testing.assert_array_equal(
            np.concatenate([a.diagnostics[name] for a in alone]), among.diagnostics[name][[0, 7, 150]]
        )
    np.testing.assert_array_equal(np.concatenate([a.values for a in alone]), among.values[[0, 7, 150]])


def test_the_change_is_that_of_measured_moves():
    explainer = TExplainer(bent, X, bounds=None)
    found, rng = explainer(X[:60]), np.random.default_rng(3)
    moves = 0.05 * explainer.background.unit * rng.normal(size=(40, *X[:60].shape))
    away = [np.linalg.norm(explainer(X[:60] + move).values - found.values, axis=1) for move in moves]
    measured = np.mean(away, axis=0) / np.linalg.norm(found.values, axis=1)
    ratio = found.diagnostics.relative_change / measured
    assert 0.6 < np.median(ratio) < 1.6 and np.mean((ratio > 0.4) & (ratio < 2.5)) > 0.9


def test_a_row_costs_what_is_promised_and_max_evals_is_kept():
    seen = []

    def f(rows):
        seen.append(len(rows))
        return bent(rows)

    for budget in (None, 15, 20, 40, 100):
        explainer = TExplainer(f, X, max_evals=budget)
        seen.clear()
        found = explainer.engine.gradient(X[:10])
        assert sum(seen) == found.evaluations.sum() <= 10 * (budget or 4 * 3 + 64 + 96 + 1)
    assert affordable(20, None) == (3, 96) and affordable(400, None) == (2, 800)


@pytest.mark.parametrize("discrete", [0, 2])
@pytest.mark.parametrize("features", [1, 3, 9, 20])
def test_a_row_costs_no_more_than_max_evals_with_all_that_is_said_of_it(features, discrete):
    rng, seen = np.random.default_rng(features), []
    table = np.column_stack([rng.normal(size=(80, features)), rng.integers(2, size=(80, discrete))])

    def f(rows):
        seen.append(len(rows))
        return np.tanh(rows).sum(axis=1) + np.prod(1 + 0.1 * rows, axis=1)

    least = least_evals(features, 3 + (4 * discrete + 1 if discrete else 0))
    for budget in (least, least + features + 2, 2 * least, 400):
        explainer = TExplainer(f, table, max_evals=budget)
        explainer(table[:1])
        seen.clear()
        found = explainer(table[:10])
        assert sum(seen) <= found.diagnostics.evaluations.sum() <= 10 * budget


def test_a_budget_that_is_too_small_is_refused_with_the_least():
    with pytest.raises(InputError, match=f"max_evals=5 .* at least {least_evals(3)}"):
        TExplainer(bent, X, max_evals=5)


def test_building_an_explainer_of_a_function_costs_at_most_2000_evaluations():
    for features in (2, 8, 60, 300):
        table, seen = np.random.default_rng(0).normal(size=(200, features)), []

        def f(rows, seen=seen):
            seen.append(len(rows))
            return np.tanh(rows).sum(axis=1)

        TExplainer(f, table)
        assert sum(seen) <= 2000 + 4 * features


def test_linear_models_do_not_care():
    fitted = LinearRegression().fit(X, X @ [1.0, -2.0, 3.0])
    for width in (0.25, 0, 0.5):
        explanation = TExplainer(fitted, X, smoothing=width, attribution="gradient", bounds=None)(X[:5])
        np.testing.assert_allclose(explanation.values, np.tile([1.0, -2.0, 3.0], (5, 1)), rtol=1e-9)
    assert TExplainer(fitted, X, bounds=None).engine.width == 0.25


def test_black_boxes_are_averaged_by_default_where_the_gradient_is_shown():
    predictor = _model(lambda r: np.sin(r[:, 0]) + r[:, 1] ** 2)
    assert choose(predictor, X, "auto", Settings()).width > 0
    assert choose(predictor, X, "auto", Settings(average=False)).width == 0
    assert choose(predictor, X, "auto", Settings(step=0.1)).width == 0


@pytest.mark.parametrize("wrong", ["wide", "auto", -0.1, np.inf, np.nan, True, [0.1]])
def test_wrong_widths_are_named(wrong):
    with pytest.raises(InputError, match=r"smoothing=.* is not a bandwidth"):
        TExplainer(lambda r: r[:, 0], X, smoothing=wrong)


def test_a_step_and_a_width_contradict_each_other():
    with pytest.raises(InputError, match="both set the scale"):
        TExplainer(lambda r: r[:, 0], X, step="paper", smoothing=0.2)
    assert TExplainer(lambda r: r[:, 0], X, step="paper").engine.width == 0.0
    assert TExplainer(lambda r: r[:, 0], X, step=0.1, smoothing=0).attribution == "gradient"


def test_a_row_of_one_feature_has_the_same_bits_alone():
    """Where one number is left of a row, numpy adds up a long axis in pairs."""
    x = X[:, :1]
    model = SVR().fit(x, np.sin(3 * x[:, 0]))
    explainer = TExplainer(model, x, smoothing=0.2)
    among = explainer(x)
    for i in range(40):
        alone = explainer(x[i : i + 1])
        np.testing.assert_array_equal(alone.values[0], among.values[i])
        np.testing.assert_array_equal(alone.diagnostics.error[0], among.diagnostics.error[i])


def test_only_attributions_of_a_neighbourhood_average():
    fitted = LogisticRegression().fit(X, X[:, 0] > 0)
    assert TExplainer(fitted, X).engine.width > 0
    assert TExplainer(fitted, X, attribution="shapley").engine.width == 0.0
    assert TExplainer(fitted, X, attribution="gradient").engine.width == 0.0
    assert TExplainer(fitted, X, attribution="gradient", smoothing=0.2).engine.width == 0.2

"""Interactions of discrete columns are differences of slopes between neighbouring values, for every model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import texplainer as tx

NAMES = ["a", "b", "flag", "other", "count"]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    rows = random.normal(size=(400, 5))
    rows[:, 2:4] = random.integers(0, 2, size=(400, 2))
    rows[:, 4] = random.integers(0, 4, size=400)
    return rows


def target(rows):
    a, b, flag, other, count = rows.T
    return a * b + 2 * flag * a + 3 * flag * other + 0.5 * count**2 + other * count


def expected(explainer, row):
    """The definition, one term at a time."""
    predict, sigma = explainer.predictor, explainer.background.sigma
    values = {2: [0.0, 1.0], 3: [0.0, 1.0], 4: [0.0, 1.0, 2.0, 3.0]}

    def f(changes):
        moved = row.copy()
        for column, cell in changes.items():
            moved[column] = cell
        return predict(moved[None])[0, 0]

    def ends(column):
        below = [v for v in values[column] if v < row[column]]
        above = [v for v in values[column] if v > row[column]]
        return (below or [row[column]])[-1], (above or [row[column]])[0]

    out = np.zeros((5, 5))
    for i, j in ((2, 3), (2, 4), (3, 4)):
        (a, b), (c, d) = ends(i), ends(j)
        second = f({i: b, j: d}) - f({i: b, j: c}) - f({i: a, j: d}) + f({i: a, j: c})
        out[i, j] = out[j, i] = sigma[i] * sigma[j] * second / (b - a) / (d - c)
    at = min(max(row[4], 1), 2)
    out[4, 4] = sigma[4] ** 2 * (f({4: at + 1}) - 2 * f({4: at}) + f({4: at - 1}))
    for k in (0, 1):  # two moves to either side, at the nodes of Gauss and Legendre
        width = 6**0.5 * 0.25 * sigma[k]
        up = min(width, explainer.background.bounds[1][k] - row[k])
        down = min(width, row[k] - explainer.background.bounds[0][k])
        nodes = [(1 - 3**-0.5) / 2, (1 + 3**-0.5) / 2]
        for j in (2, 3, 4):
            low, high = ends(j)
            above, below = (
                [f({j: high, k: row[k] + move}) - f({j: low, k: row[k] + move}) for move in moves]
                for moves in ([up * t for t in nodes], [-down * t for t in nodes])
            )
            slope = (np.mean(above) - np.mean(below)) / ((up + down) / 2)
            out[j, k] = out[k, j] = sigma[j] * sigma[k] * slope / (high - low)
    return out


MODELS = {
    "forest": lambda X: RandomForestRegressor(30, min_samples_leaf=3, random_state=0).fit(X, target(X)),
    "network": lambda X: MLPRegressor(hidden_layer_sizes=(20, 20), max_iter=300, random_state=0).fit(
        X, target(X)
    ),
    "function": lambda X: target,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_definition_term_by_term(name, table):
    explainer = tx.TExplainer(MODELS[name](table), table, feature_names=NAMES)
    found = explainer.interactions(table[:6])
    discrete = np.zeros((5, 5), bool)
    discrete[2:], discrete[:, 2:] = True, True
    for i in range(6):
        twin = expected(explainer, table[i])
        assert np.abs(twin[2, 3]) > 0
        np.testing.assert_allclose(found.values[i][discrete], twin[discrete], atol=1e-6 * np.abs(twin).max())


def test_a_tree_model_has_the_interactions_of_its_flag(table):
    """0/1 x continuous and 0/1 x 0/1: these were 0 while the model multiplies them."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=200, max_depth=5).fit(table, target(table))
    explainer = tx.TExplainer(model, table, feature_names=NAMES)
    sigma = explainer.background.sigma
    values = explainer.interactions(table[:100]).values.mean(axis=0)
    assert values[2, 0] == pytest.approx(2 * sigma[2] * sigma[0], rel=0.4)
    assert values[2, 3] == pytest.approx(3 * sigma[2] * sigma[3], rel=0.1)
    assert values[4, 4] == pytest.approx(sigma[4] ** 2, rel=0.2)


@pytest.mark.parametrize("name", ["forest", "network"])
def test_both_doors_agree(name, table):
    model = MODELS[name](table)
    itself = tx.TExplainer(model, table).interactions(table[:20])
    function = tx.TExplainer(lambda rows: model.predict(rows), table).interactions(table[:20])
    np.testing.assert_allclose(itself.values, function.values, atol=1e-9)


@pytest.mark.parametrize("given", ["model", "function"])
def test_linear_models_have_none(given, table):
    model = LinearRegression().fit(table, table @ np.arange(5.0) + 1e3)
    explainer = tx.TExplainer(model if given == "model" else lambda rows: model.predict(rows), table)
    assert len(explainer.background.discrete.columns) == 3
    np.testing.assert_array_equal(explainer.interactions(table[:20]).values, 0.0)


def test_a_missing_cell_and_a_category_beside(table):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table, columns=NAMES)
    frame["kind"] = np.where(table[:, 0] > 0, "u", "v")

    def model(rows):
        return (rows["flag"].fillna(0.5) * ((rows["kind"] == "u") + rows["b"])).to_numpy()

    explainer = tx.TExplainer(model, frame)
    some = frame[:6].copy()
    some.loc[0, "flag"] = np.nan
    found, sigma = explainer.interactions(some), explainer.background.sigma
    assert np.all(found.values[0, 2] == 0)
    effect = (some["kind"] == "u") - (frame["kind"] == "u").mean()
    np.testing.assert_allclose(found.values[1:, 2, 5], sigma[2] * effect[1:], atol=1e-9)

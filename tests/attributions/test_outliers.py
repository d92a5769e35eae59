"""Outliers and sentinels in the background: contributions are still Shapley values, and still add up."""

import numpy as np
import pytest
from oracles import shapley_by_subsets
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import texplainer as tx
from texplainer.attributions import table
from texplainer.attributions.shapley import shapley


def data():
    X = np.random.default_rng(0).normal(size=(300, 4))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]


def network(activation):
    inner = MLPRegressor(
        hidden_layer_sizes=(16,), activation=activation, random_state=0, max_iter=200, tol=1e-3
    )
    return make_pipeline(StandardScaler(), inner)


MODELS = {
    "tanh": lambda: network("tanh"),
    "relu": lambda: network("relu"),
    "trees": lambda: HistGradientBoostingRegressor(max_iter=30),
}
DAMAGED = {"one value of 1e6": (slice(7, 8), 2, 1e6), "sentinels of -999": (slice(0, 10), 1, -999.0)}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("door", ["model", "function"])
@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("name", MODELS)
def test_contributions_are_those_of_the_subsets(name, damage, door):
    X, y = data()
    model = MODELS[name]().fit(X, y)
    background = X[:100].copy()
    rows, column, value = DAMAGED[damage]
    background[rows, column] = value
    explained = X[200:204]
    function = model if door == "model" else (lambda t: model.predict(t))
    found = tx.TExplainer(function, background, attribution="shapley")(explained)
    truth = np.array([shapley_by_subsets(model.predict, background, x) for x in explained])
    assert np.linalg.norm(found.values - truth) < 0.15 * np.linalg.norm(truth)
    np.testing.assert_allclose(found.diagnostics.completeness, 0.0, atol=1e-9 * np.abs(truth).max())
    others = np.arange(4) != column  # the damaged column does not spoil the others
    gap = np.linalg.norm((found.values - truth)[:, others])
    assert gap < 0.25 * np.linalg.norm(truth[:, others])


def test_values_that_do_not_add_up_are_never_stable(monkeypatch):
    def short(context):
        found = shapley(context)
        found.values[:, 0] += 3.0
        return found

    line = table.ATTRIBUTIONS["shapley"]
    from dataclasses import replace

    monkeypatch.setitem(table.ATTRIBUTIONS, "shapley", replace(line, compute=short))
    X, _ = data()
    found = tx.TExplainer(lambda t: t @ [1.0, 2.0, 3.0, 4.0], X, attribution="shapley")(X[:5])
    assert set(found.diagnostics.stability) == {"unstable"}
    assert all("miss the prediction by 3" in reason for reason in found.diagnostics.reason)

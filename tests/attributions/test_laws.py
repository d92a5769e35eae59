"""The laws every attribution keeps, whatever the engine: closed form, autodiff, trees, black box."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

from texplainer import TExplainer
from texplainer.attributions.replaced import references_of
from texplainer.attributions.table import GENERAL

X = np.random.default_rng(8).normal(size=(240, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0] + [0.0, 1.0, 5.0, 0.0, -2.0]
ROWS = X[:12]
BETA = np.array([1.0, -1.0, 4.0, 0.0, 0.2])
LINEAR = LinearRegression().fit(X, X @ BETA)
TARGET = np.tanh(X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
NETWORK = MLPRegressor(
    hidden_layer_sizes=(16, 16), activation="tanh", solver="lbfgs", max_iter=300, random_state=0
).fit(X, TARGET)
FOREST = RandomForestRegressor(30, max_depth=6, random_state=0).fit(X, TARGET)


def ignoring_the_last(model):
    """The same model with a sixth column that it does not look at."""
    return lambda rows: model.predict(rows[:, :5])


def torch_network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()


MODELS = {
    "closed form": lambda: NETWORK,
    "autodiff": torch_network,
    "trees": lambda: FOREST,
    "black box": lambda: lambda rows: NETWORK.predict(rows),
    "steps": lambda: lambda rows: np.floor(FOREST.predict(rows) * 4),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


# ---------------------------------------------------------------- 1. an unused feature


@pytest.mark.parametrize("name", GENERAL)
def test_an_unused_feature_has_nothing(name):
    wide = np.column_stack([X, np.random.default_rng([8, 2]).normal(size=len(X)) + 0.3 * X[:, 0]])
    for made in (
        ignoring_the_last(NETWORK),
        ignoring_the_last(FOREST),
        lambda r: np.exp(r[:, 0]) * r[:, 1] ** 3,
    ):
        values = TExplainer(made, wide, attribution=name)(wide[:6]).values
        np.testing.assert_array_equal(values[:, 5], 0.0)
        assert np.abs(values[:, :5]).max() > 0 or name in (
            "slope",
            "gradient",
        )  # a step is flat at a point


def test_an_unused_feature_of_exact_engines_has_nothing():
    wide = np.column_stack([X, np.random.default_rng([8, 3]).normal(size=len(X))])
    linear = LinearRegression().fit(wide, wide @ [*BETA, 0.0])
    linear.coef_[5] = 0.0
    forest = RandomForestRegressor(20, max_depth=4, random_state=0).fit(
        np.column_stack([X, 0 * X[:, 0]]), TARGET
    )
    for fitted in (linear, forest):
        for name in GENERAL:
            np.testing.assert_array_equal(
                TExplainer(fitted, wide)(wide[:6], attribution=name).values[:, 5], 0.0
            )


# ---------------------------------------------------------------- 2. linear models


@pytest.mark.parametrize(
    "made", [LINEAR, lambda rows: LINEAR.predict(rows)], ids=["closed form", "black box"]
)
@pytest.mark.parametrize("count", [240, 100])
def test_a_linear_model_gets_its_formulas(made, count):
    explainer = TExplainer(made, X[:count])
    sigma, mean = explainer.background.sigma, X[:count].mean(axis=0)
    found = {name: explainer(ROWS, attribution=name) for name in GENERAL}
    references = references_of(explainer.background)
    squares = (ROWS[:, None, :] - references.values[:-1]) ** 2
    distance = np.sqrt(np.sum(squares * references.weights[:-1], axis=1))
    tight = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(found["slope"].values, np.tile(sigma * BETA, (12, 1)), **tight)
    np.testing.assert_allclose(found["shapley"].values, BETA * (ROWS - mean), **tight)
    np.testing.assert_allclose(found["variation"].values, np.abs(BETA) * distance, **tight)
    np.testing.assert_allclose(found["gradient"].values, np.tile(BETA, (12, 1)), **tight)


def test_shares_of_a_row_do_not_hang_on_gaps_in_other_rows():
    """The cells of one row that are missing were once changed in steps in all rows beside it."""
    network = MLPRegressor(hidden_layer_sizes=(16,), max_iter=300, random_state=0)
    model = make_pipeline(SimpleImputer(), network).fit(X, np.tanh(X[:, 0] * X[:, 1]) + X[:, 2])
    explainer = TExplainer(model, X, attribution="shapley")
    assert explainer.engine.name == "closed-form"
    holed = X[:8].copy()
    holed[np.arange(8), np.arange(8) % 3] = np.nan
    holed[5, 1:4] = np.nan
    rows = np.concatenate([holed, X[8:16]])
    among = explainer(rows)
    for i in (0, 1, 5, 8, 15):
        alone = explainer(rows[i : i + 1])
        np.testing.assert_allclose(alone.values[0], among.values[i], rtol=1e-9, atol=1e-12)
        assert alone.diagnostics.evaluations[0] == among.diagnostics.evaluations[i]
    gap = among.values.sum(axis=1) + among.base_values - among.predictions
    assert np.abs(gap).max() < 0.05 * among.predictions.std()


def test_a_linear_model_with_categories_gets_its_formulas():
    levels = np.array(["red", "green", "blue"])
    table = pd.DataFrame(X[:, :3], columns=list("abc"))
    table["colour"] = levels[np.random.default_rng([8, 4]).integers(0, 3, len(table))]
    worth = {"red": 1.0, "green": -2.0, "blue": 0.5}

    def made(frame):
        return frame[["a", "b", "c"]].to_numpy() @ BETA[:3] + frame["colour"].map(worth).to_numpy(float)

    explainer = TExplainer(made, table)
    rows = table.iloc[:10]
    own = rows["colour"].map(worth).to_numpy()
    worths = table["colour"].map(worth).to_numpy()
    for name in ("slope", "shapley"):
        found = explainer(rows, attribution=name)
        np.testing.assert_allclose(found[:, "colour"].values, own - worths.mean(), atol=1e-9)
        assert found.units[3] != "per SD"
    effect = explainer(rows, attribution="variation")[:, "colour"].values
    np.testing.assert_allclose(effect, np.sqrt(((own[:, None] - worths) ** 2).mean(axis=1)), atol=1e-9)
    shares = explainer(rows, attribution="shapley")
    np.testing.assert_allclose(
        shares.values[:, :3], BETA[:3] * (X[:10, :3] - X[:, :3].mean(axis=0)), atol=1e-9
    )


# ---------------------------------------------------------------- 3. linearity, classes that cancel


@pytest.mark.parametrize("name", ["slope", "shapley"])
def test_values_are_linear_in_the_model(name):
    first, second = (lambda r: np.tanh(r[:, 0]) * r[:, 1]), (lambda r: r[:, 2] ** 2 + r[:, 3])
    parts = [TExplainer(f, X, attribution=name, smoothing=0.3)(ROWS) for f in (first, second)]
    whole = TExplainer(lambda r: 2 * first(r) - second(r), X, attribution=name, smoothing=0.3)(ROWS)
    slack = whole.diagnostics.error + 2 * parts[0].diagnostics.error + parts[1].diagnostics.error + 1e-9
    assert np.all(np.abs(whole.values - 2 * parts[0].values + parts[1].values) <= slack)


@pytest.mark.parametrize("name", ["slope", "shapley", "gradient"])
def test_classes_of_a_probability_cancel(name):
    labels = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
    for fitted in (
        LogisticRegression(max_iter=500),
        MLPClassifier((8,), solver="lbfgs", max_iter=200, random_state=0),
    ):
        explainer = TExplainer(fitted.fit(X, labels), X, output="all", scale="probability", attribution=name)
        values = explainer(ROWS).values  # (rows, features, classes)
        assert values.shape[2] == 3
        unit = (
            1e-12 if name == "gradient" else 1e-6
        )  # averages are taken in float32 where that is fine enough
        np.testing.assert_allclose(values.sum(axis=2), 0.0, atol=unit * max(1.0, np.abs(values).max()))


# ---------------------------------------------------------------- 4. a local dummy


def test_what_is_ignored_near_by_gets_nothing_in_local():
    def gated(rows):
        return np.where(rows[:, 3] > 0, 3.0 * np.tanh(rows[:, 0]), np.tanh(rows[:, 1]))

    rows = X[np.abs(X[:, 3]) > 1.5][:10]
    explanation = TExplainer(gated, X, smoothing=0.2)(rows)
    off = np.where(rows[:, 3] > 0, 1, 0)
    value = np.abs(explanation.values[np.arange(len(rows)), off])
    assert np.all(value <= explanation.diagnostics.error[np.arange(len(rows)), off] + 1e-12)


# ---------------------------------------------------------------- 5. continuity


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize(
    "made", [NETWORK, lambda rows: NETWORK.predict(rows)], ids=["closed form", "black box"]
)
def test_noise_in_the_last_digits_stays_there(name, made):
    clean = TExplainer(made, X, attribution=name)(ROWS)
    noisy = X * (1 + 1e-12 * np.random.default_rng([8, 5]).normal(size=X.shape))
    again = TExplainer(made, noisy, attribution=name)(ROWS)
    size = np.linalg.norm(clean.values, axis=1)
    rounding = 1e-7 if name == "gradient" and callable(made) and made is not NETWORK else 1e-9
    assert np.max(np.linalg.norm(again.values - clean.values, axis=1) / size) < rounding


@pytest.mark.parametrize("name", GENERAL)
def test_another_order_of_columns_stays_within_the_error_bars(name):
    order = np.array([3, 1, 4, 0, 2])
    back = np.argsort(order)
    explanation = TExplainer(lambda r: NETWORK.predict(r), X, attribution=name)(ROWS)
    other = TExplainer(lambda r: NETWORK.predict(r[:, back]), X[:, order], attribution=name)(ROWS[:, order])
    bars = explanation.diagnostics.error + other.diagnostics.error[:, back] + 1e-9
    assert np.mean(np.abs(other.values[:, back] - explanation.values) <= bars) >= 0.98


# ---------------------------------------------------------------- 6. sums


def test_shares_add_up(model):
    explanation = TExplainer(model, X, attribution="shapley")(ROWS)
    sd = explanation.predictions.std()
    assert np.abs(explanation.diagnostics.completeness).max() <= 1e-9 * max(1.0, sd)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=1e-9)


def test_shares_add_up_with_categories_and_missing_cells():
    table = pd.DataFrame(X[:, :3], columns=list("abc"))
    table.loc[::7, "b"] = np.nan
    table["kind"] = np.where(X[:, 3] > 0, "up", "down")

    def made(frame):
        a, b, c = (frame[k].to_numpy() for k in "abc")
        return np.sin(a) * np.where(np.isnan(b), 2.0, b) + c * (frame["kind"] == "up").to_numpy()

    explanation = TExplainer(made, table, attribution="shapley")(table.iloc[:15])
    assert np.abs(explanation.diagnostics.completeness).max() < 1e-9
    assert np.abs(explanation[:, "kind"].values).max() > 0.1 and abs(explanation[0, "b"].values) > 0


# ---------------------------------------------------------------- 7. error bounds


@pytest.mark.parametrize(
    "made", [NETWORK, lambda rows: NETWORK.predict(rows)], ids=["closed form", "black box"]
)
def test_shares_lie_within_their_error_bars_of_a_long_computation(made, monkeypatch):
    from texplainer.attributions import line_integral, walks

    short = TExplainer(made, X, attribution="shapley")(X[:30])
    monkeypatch.setattr(line_integral, "POINTS", 4096)
    monkeypatch.setattr(walks, "usual_walks", lambda width: 3840)
    long = TExplainer(made, X, attribution="shapley")(X[:30])
    assert np.mean(np.abs(short.values - long.values) <= short.diagnostics.error) >= 0.99
    bars = np.linalg.norm(short.diagnostics.error) / np.linalg.norm(long.values)
    assert bars < 0.9  # and say something

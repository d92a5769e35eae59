"""Shapley values through the explainer: exact for trees, also behind transformers; honest elsewhere."""

from functools import partial
from itertools import product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.special import expit, logit
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from xgboost import XGBClassifier

from texplainer import TExplainer
from texplainer.errors import InputError

pytest.importorskip("numba")


def table(count=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, count),
            "income": np.exp(rng.normal(size=count)),
            "kind": rng.choice(list("abc"), count),
            "own": rng.choice(["yes", "no"], count),
            "debt": rng.normal(size=count),
        }
    )
    frame.loc[::9, "debt"] = np.nan
    score = (frame.age > 45) + 2 * (frame.kind == "a") + (frame.income > 1) * (frame.own == "yes")
    return frame, (score + 0.3 * rng.normal(size=count) > 1.3).astype(int)


def bank_pipeline(model):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("numbers", numbers, ["age", "income", "debt"]), ("codes", codes, ["kind", "own"])]
    return make_pipeline(ColumnTransformer(parts), model)


def enumerated(f, row, background):
    """The definition: all subsets of the raw columns."""
    names = list(background.columns)
    worth = {}
    for present in product([False, True], repeat=len(names)):
        mixed = background.copy()
        for name, here in zip(names, present, strict=True):
            if here:
                mixed[name] = row[name]
        worth[present] = f(mixed).mean()
    values = np.zeros(len(names))
    for j in range(len(names)):
        for present, value in worth.items():
            if not present[j]:
                size = sum(present)
                share = factorial(size) * factorial(len(names) - 1 - size) / factorial(len(names))
                values[j] += share * (worth[(*present[:j], True, *present[j + 1 :])] - value)
    return values


@pytest.mark.parametrize("backgrounds", [37, 100])
@pytest.mark.parametrize(
    ("model", "output", "scale"),
    [
        (HistGradientBoostingClassifier(max_iter=20), lambda m, t: m.decision_function(t), "log-odds"),
        (RandomForestClassifier(10, random_state=0), lambda m, t: m.predict_proba(t)[:, 1], "probability"),
    ],
)
def test_trees_behind_a_column_transformer_are_exact(model, output, scale, backgrounds):
    frame, y = table()
    model = bank_pipeline(model).fit(frame, y)
    background, rows = frame.iloc[:backgrounds], frame.iloc[200:202]
    found = TExplainer(model, background, attribution="shapley", scale=scale)(rows)
    assert "exact Shapley values" in found.settings["how"]
    for i in range(2):
        expected = enumerated(lambda t: output(model, t), rows.iloc[i], background)
        np.testing.assert_allclose(found.values[i].reshape(-1), expected, rtol=1e-10, atol=1e-12)
    assert np.abs(found.diagnostics.completeness).max() < 1e-12


def test_columns_made_from_several_columns_are_not_taken_apart():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    model = make_pipeline(PolynomialFeatures(2), RandomForestClassifier(5, random_state=0))
    model.fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    found = TExplainer(model, X[:60], attribution="shapley")(X[:3])
    assert "made from several columns" in found.settings["why"]
    assert np.abs(found.diagnostics.completeness).max() < 1e-9


@pytest.mark.parametrize("backgrounds", [10, 37, 100, 150])
def test_linear_models_behind_encoders_have_a_closed_form(backgrounds):
    frame, y = table()
    model = bank_pipeline(LogisticRegression(max_iter=1000)).fit(frame, y)
    background, rows = frame.iloc[:backgrounds], frame.iloc[200:203]
    found = TExplainer(lambda t: model.decision_function(t), background, attribution="shapley")(rows)
    for i in range(3):
        expected = enumerated(model.decision_function, rows.iloc[i], background)
        np.testing.assert_allclose(found.values[i].reshape(-1), expected, atol=1e-9)


def boosted(library, kind, **options):
    return getattr(pytest.importorskip(library), kind)(**options)


#: model, and its raw prediction as a function
DOORS = {
    "xgboost": (
        lambda: boosted("xgboost", "XGBClassifier", n_estimators=30, max_depth=4, n_jobs=1),
        lambda model, rows: model.predict(rows, output_margin=True),
    ),
    "lightgbm": (
        lambda: boosted("lightgbm", "LGBMClassifier", n_estimators=30, num_leaves=15, n_jobs=1, verbose=-1),
        lambda model, rows: model.predict(rows, raw_score=True),
    ),
    "catboost": (
        lambda: boosted(
            "catboost", "CatBoostClassifier", iterations=30, depth=4, verbose=0, allow_writing_files=False
        ),
        lambda model, rows: model.predict(rows, prediction_type="RawFormulaVal"),
    ),
    "forest": (
        lambda: RandomForestClassifier(20, min_samples_leaf=3, random_state=0),
        lambda model, rows: model.predict_proba(rows)[:, 1],
    ),
    "histogram boosting": (
        lambda: HistGradientBoostingClassifier(max_iter=30),
        lambda model, rows: model.decision_function(rows),
    ),
}


def both_doors(model, predict, scale, backgrounds=1):
    """Shapley values of a model and of its prediction as a function, for each of some backgrounds."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 5))
    model.fit(X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int))
    for background in [X[:100], *rng.normal(size=(backgrounds - 1, 100, 5))]:
        own = TExplainer(model, background, attribution="shapley", scale=scale)(X[200:230])
        yield own, TExplainer(partial(predict, model), background, attribution="shapley")(X[200:230])


@pytest.mark.parametrize("name", DOORS)
def test_a_model_and_its_function_agree_within_the_bounds(name):
    make, predict = DOORS[name]
    covered = []  # the errors of the rows beside each other are alike: they share their walks
    for exact, walked in both_doors(make(), predict, "probability" if name == "forest" else "log-odds", 5):
        assert "exact Shapley values" in exact.settings["how"]
        gap = np.abs(exact.values - walked.values)
        covered.append(np.mean(gap <= exact.diagnostics.error + walked.diagnostics.error))
        assert gap.max() > 1e-6  # one is an estimate
    assert np.mean(covered) >= 0.99


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_network_and_its_function_point_the_same_way():
    """A line integral beside an estimate of the Shapley values; on the scale of log-odds, which is smooth."""
    network = MLPClassifier((32, 32), max_iter=200, random_state=0)

    def log_odds(model, rows):
        p = model.predict_proba(rows)[:, 1]
        return np.log(p / (1 - p))

    own, walked = next(both_doors(network, log_odds, "log-odds"))
    assert "line integrals" in own.settings["how"]
    one, other = own.values.reshape(-1), walked.values.reshape(-1)
    assert one @ other >= 0.98 * np.linalg.norm(one) * np.linalg.norm(other)


@pytest.mark.parametrize("features, background", [(3, 100), (4, 30), (7, 100), (13, 80), (30, 7)])
def test_max_evals_is_never_exceeded(features, background):
    """Also with the moves of the relative change, by the count of rows that reach the model."""
    X = np.random.default_rng([features, background]).normal(size=(background, features))
    asked = [0]

    def f(rows):
        asked[0] += len(rows)
        return np.tanh(rows).sum(axis=1) + rows[:, 0] * rows[:, -1]

    for budget in (4 * (features + 1), 5 * features + 5, 200, 500, 1600):
        explainer = TExplainer(f, X, attribution="shapley", max_evals=budget)
        explainer(X[:1])  # what is prepared once
        asked[0] = 0
        found = explainer(X[:5])
        assert found.diagnostics.evaluations.max() <= budget
        assert asked[0] <= 5 * budget + 64  # and the check of the user's own table
        assert found.diagnostics.evaluations.min() >= 0.5 * budget - 4 * features


def test_walks_of_many_rows_go_together_and_max_evals_bounds_them():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    calls = []

    def f(rows):
        calls.append(len(rows))
        return np.sin(3 * rows[:, 0]) * rows[:, 1] + rows[:, 2]

    explainer = TExplainer(f, X, attribution="shapley", max_evals=50)
    explainer(X[:20])
    calls.clear()
    explainer(X[:20])
    assert len(calls) <= 12
    assert sum(calls) <= 20 * 120


def test_path_dependent_values_are_those_of_xgboost():
    xgb = pytest.importorskip("xgboost")
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = xgb.XGBClassifier(n_estimators=20, max_depth=4).fit(X, np.nan_to_num(X[:, 0] * X[:, 1]) > 0)
    found = TExplainer(model, X[:50], attribution="shapley_path", output="all")(X[:20])
    own = model.get_booster().predict(xgb.DMatrix(X[:20]), pred_contribs=True)
    for output, sign in ((0, -1), (1, 1)):  # log-odds of either class
        np.testing.assert_allclose(found.values[:, :, output], sign * own[:, :-1], atol=1e-5)
        np.testing.assert_allclose(found.base_values[output], sign * own[0, -1], atol=1e-5)
    assert np.abs(found.diagnostics.completeness).max() < 1e-5
    assert "path-dependent" in found.settings["how"]


def test_path_dependent_values_need_trees_with_covers():
    X = np.random.default_rng(5).normal(size=(100, 3))
    forest = RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] > 0)
    for model, options, reason in (
        (lambda rows: rows[:, 0], {}, "not a tree ensemble"),
        (forest, {"scale": "log-odds"}, "not a sum of trees"),
        (forest, {"engine": "finite-difference"}, "another engine was asked for"),
    ):
        with pytest.raises(InputError, match=f"shapley_path' needs a tree ensemble.*{reason}"):
            TExplainer(model, X, attribution="shapley_path", **options)(X[:2])
    with pytest.raises(InputError, match="base value of its own"):
        TExplainer(forest, X)(X[:2], attribution=("slope", "shapley_path"))


@pytest.mark.parametrize(
    "model, classes, scale, remedy",
    [
        (XGBClassifier(n_estimators=5), 3, "log-odds", "raw"),
        (LGBMClassifier(n_estimators=5, verbose=-1), 3, "log-odds", "raw"),
        (HistGradientBoostingClassifier(max_iter=5), 3, "probability", "raw"),
        (GradientBoostingClassifier(n_estimators=5), 2, "probability", "log-odds"),
        (RandomForestClassifier(5), 3, "log-odds", "probability"),
    ],
    ids=lambda part: type(part).__name__ if hasattr(part, "fit") else str(part),
)
def test_the_scale_that_is_named_gives_exact_values(model, classes, scale, remedy):
    X = np.random.default_rng(8).normal(size=(120, 3))
    model.fit(X, np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5][: classes - 1]))
    found = TExplainer(model, X, scale=scale, attribution="shapley")(X[:2])
    assert f"scale='{remedy}' gives exact values" in found.settings["how"]
    exact = TExplainer(model, X, scale=remedy, attribution="shapley")(X[:2])
    assert exact.settings["how"].startswith("exact")


def test_path_dependent_values_behind_a_column_transformer_sum_up():
    frame, y = table()
    model = bank_pipeline(RandomForestClassifier(10, random_state=0)).fit(frame, y)
    found = TExplainer(model, frame[:60], attribution="shapley_path")(frame[60:70])
    forest, seen = model[-1], model[:-1].transform(frame[60:70])
    shap = pytest.importorskip("shap")
    own = shap.TreeExplainer(forest).shap_values(seen)[:, :, 1]
    np.testing.assert_allclose(found.values.sum(axis=1), own.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.base_values, shap.TreeExplainer(forest).expected_value[1], atol=1e-12)
    assert np.abs(found.values[:, 0] - own[:, 0]).max() > 0  # one-hot columns of a column are one player
    assert "contribution" in str(found[0])


@pytest.mark.parametrize("attribution", ["shapley", "shapley_path"])
def test_values_given_to_shap_sum_to_the_prediction_in_its_plots(attribution):
    shap = pytest.importorskip("shap")
    plt = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 4))
    model = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 0] * X[:, 1] > 0)
    given = TExplainer(model, X[:80], attribution=attribution)(X[100:110]).to_shap()
    total = given.base_values + given.values.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(X[100:110]), atol=1e-9)
    shap.plots.waterfall(given[0], show=False)
    texts = " ".join(text.get_text() for text in plt.gcf().findobj(plt.Text))
    plt.close("all")
    assert f"{total[0]:.3f}".replace("-", "\u2212") in texts or f"{total[0]:.3f}" in texts


def test_steps_that_few_rows_show_are_not_taken_for_an_additive_function():
    """The second feature decides near the threshold of the first: few pairs of rows show it."""
    covered = []
    for seed in (1, 4, 7, 10):
        X = np.random.default_rng(seed).normal(size=(60, 3))

        def f(rows):
            return (rows[:, 0] + 0.1 * rows[:, 1] > 0).astype(float)

        found = TExplainer(f, X, attribution="shapley")(X[:20])
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        true = np.array(
            [enumerated(lambda t: f(t.to_numpy()), row, frame) for _, row in frame[:20].iterrows()]
        )
        covered.append(np.abs(found.values - true) <= found.diagnostics.error + 1e-12)
    assert np.mean(covered) >= 0.98


@pytest.mark.parametrize("share", [0.95, 0.98, 0.995])
def test_an_interaction_of_large_values_is_not_taken_for_an_additive_function(share):
    """Few pairs of background rows show it, but its Shapley values are up to a quarter of an SD.

    Nor do many walks: bounds cover less than 99% of the values, but by far more than the 1e-15 of an additive function.
    """
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, rows = rng.normal(size=(500, 5)), rng.normal(size=(1000, 5))
        high = np.quantile(X, share, axis=0)

        def f(rows, high=high):
            return rows @ [0.3, 0.6, 0.9, 1.2, 1.5] + 10.0 * ((rows[:, 0] > high[0]) & (rows[:, 1] > high[1]))

        rows = np.concatenate([rows[rows[:, 0] > high[0]][:2], rows[:2]])
        found = TExplainer(f, X, attribution="shapley")(rows)
        frame, shown = pd.DataFrame(X), pd.DataFrame(rows)
        true = np.array([enumerated(lambda t: f(t.to_numpy()), row, frame) for _, row in shown.iterrows()])
        assert (np.abs(found.values - true) <= 3 * found.diagnostics.error).all()


def test_round_off_of_log_odds_leaves_a_linear_function_additive():
    """log-odds computed from a probability near 1 have lost digits; the bound includes them."""
    rng = np.random.default_rng(0)
    X, rows, slopes = rng.normal(size=(500, 7)), rng.normal(size=(50, 7)), np.full(7, 0.75)
    found = TExplainer(lambda t: logit(expit(t @ slopes)), X, attribution="shapley")(rows)
    true = slopes * (rows - X.mean(axis=0))
    np.testing.assert_allclose(found.values, true, atol=1e-9)
    assert np.mean(np.abs(found.values - true) <= found.diagnostics.error) >= 0.99


def test_a_zero_that_hides_round_off_has_a_bound():
    """Effects within the round-off of a float32 function around 1e5 are 0, but only an unused feature's is certain."""
    X, slopes = np.random.default_rng(0).normal(size=(80, 4)), np.array([1.0, 0.1, 0.01, 0.0])
    found = TExplainer(lambda t: (1e5 + t @ slopes).astype(np.float32), X, attribution="shapley")(X[:30])
    true = slopes * (X[:30] - X.mean(axis=0))
    assert np.all(np.abs(found.values - true) <= found.diagnostics.error)
    assert not found.values[:, 3].any() and not found.diagnostics.error[:, 3].any()


def test_the_method_that_is_named_is_the_one_of_additive_models():
    X = np.random.default_rng(0).normal(size=(60, 2))
    linear = LogisticRegression().fit(X, X[:, 0] > 0)
    assert (
        "closed form of a linear model" in TExplainer(linear, X)(X[:1], attribution="shapley").settings["how"]
    )
    for model in (lambda rows: np.sin(rows).sum(axis=1), MLPClassifier(max_iter=5).fit(X, X[:, 0] > 0)):
        assert "closed form if additive" in TExplainer(model, X)(X[:1], attribution="shapley").settings["how"]


@pytest.mark.parametrize("count", [2, 12])
def test_a_function_that_is_additive_on_the_background_alone_is_estimated_within_the_budget(count):
    """The background shows no interaction; the rows do."""
    X, asked = np.linspace([0.0, 0.0, 0.0], [1.0, 0.1, 0.2], count), [0]

    def f(rows):
        asked[0] += len(rows)
        return (rows[:, 0] + rows[:, 1] * (rows[:, 2] + 1) > 0.5).astype(float)

    rows = np.random.default_rng(0).normal(size=(30, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    shown = pd.DataFrame(rows, columns=["a", "b", "c"])
    true = np.array([enumerated(lambda t: f(t.to_numpy()), row, frame) for _, row in shown.iterrows()])
    for budget in (None, 16, 40, 200):
        explainer = TExplainer(f, X, attribution="shapley", max_evals=budget)
        explainer(rows)
        asked[0] = 0
        found = explainer(rows)
        assert np.mean(np.abs(found.values - true) <= found.diagnostics.error + 1e-12) >= 0.98
        assert asked[0] <= found.diagnostics.evaluations.sum()
        assert budget is None or found.diagnostics.evaluations.max() <= budget

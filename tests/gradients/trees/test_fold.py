"""Trees behind column-wise transformers, folded onto the raw columns: the same predictions, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

import texplainer as tx
from texplainer.errors import Unsupported
from texplainer.gradients.trees import engine, shapley
from texplainer.gradients.trees.ensemble import raw_sums
from texplainer.gradients.trees.fold import fold
from texplainer.gradients.trees.inputs import owners_of
from texplainer.gradients.trees.readers.table import load

NUMBERS = {
    "scaler": lambda: StandardScaler(),
    "imputer and scaler": lambda: make_pipeline(SimpleImputer(), StandardScaler()),
    "indicator": lambda: SimpleImputer(add_indicator=True),
    "logarithm": lambda: FunctionTransformer(np.log1p),
    "decreasing": lambda: FunctionTransformer(np.negative),
    "power": lambda: PowerTransformer(),
    "quantiles": lambda: QuantileTransformer(n_quantiles=40),
    "bins": lambda: make_pipeline(SimpleImputer(), KBinsDiscretizer(5, encode="ordinal")),
}
ENCODERS = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "target": lambda: TargetEncoder(target_type="binary"),
}
MODELS = {
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=20),
    "forest": lambda: RandomForestClassifier(10, max_depth=6, random_state=0),
    "boosting": lambda: make_pipeline(SimpleImputer(), GradientBoostingClassifier(n_estimators=10)),
}


def people(rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, rows).round(),
            "town": rng.choice(["x", "y", "z"], rows),
            "fare": rng.gamma(2, 10, rows),
            "owner": rng.choice(["u", "v"], rows),
        }
    )
    frame.loc[::17, "fare"] = np.nan
    return frame, ((frame.age > 40) ^ (frame.town == "x") ^ (frame.fare.fillna(0) > 20)).astype(int)


def fitted(numbers, encoder, model):
    frame, y = people()
    columns = make_column_transformer(
        (NUMBERS[numbers](), ["age", "fare"]), (ENCODERS[encoder](), ["town", "owner"])
    )
    return make_pipeline(columns, MODELS[model]()).fit(frame, y), frame


def folded_onto(explainer, ensemble):
    return fold(ensemble, explainer.predictor, explainer.background.rows, explainer.engine.owner)


CASES = [
    *((numbers, "one-hot", "histogram boosting") for numbers in NUMBERS),
    *(("imputer and scaler", encoder, model) for encoder in ENCODERS for model in MODELS),
]


@pytest.mark.parametrize(("numbers", "encoder", "model"), CASES)
def test_folded_trees_predict_what_the_model_predicts(numbers, encoder, model):
    pipeline, frame = fitted(numbers, encoder, model)
    explainer = tx.TExplainer(pipeline, frame[:200])
    assert explainer.engine.name == "tree", explainer.engine.why
    final = pipeline.steps[-1][1]
    ensemble = load(final.steps[-1][1] if hasattr(final, "steps") else final)
    folded, inputs = folded_onto(explainer, ensemble)
    new = frame[200:].copy()
    new.loc[new.index[:20], "town"] = "elsewhere"  # a category that nobody has seen
    new.loc[new.index[20:30], "age"] = np.linspace(0, 200, 10)
    rows = explainer.schema.read(new)
    raw = raw_sums(folded, inputs(rows))
    probability = pipeline.predict_proba(new)[:, 1]
    share = raw[:, 0] if folded.link == "share" else 1 / (1 + np.exp(-raw[:, 0]))
    np.testing.assert_allclose(share, probability, atol=1e-12)


def test_values_at_thresholds_keep_their_side():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, size=(300, 3)) / 3.0
    model = make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)).fit(
        X, X[:, 0] > X[:, 1]
    )
    explainer = tx.TExplainer(model, X[:100])
    folded, inputs = folded_onto(explainer, load(model[-1]))
    edges = np.unique(folded.threshold[(folded.kind & 1) == 0])
    rows = np.repeat(X[:1], 2 * len(edges), axis=0)
    rows[:, 0] = np.concatenate([edges, np.nextafter(edges, np.inf)])
    np.testing.assert_allclose(
        raw_sums(folded, inputs(rows))[:, 0], model.predict_proba(rows)[:, 1], atol=1e-12
    )


def test_slopes_are_those_of_differences():
    pipeline, frame = fitted("imputer and scaler", "one-hot", "forest")
    exact = tx.TExplainer(pipeline, frame[:200])(frame[200:208]).values[:, [0, 2]]
    other = tx.TExplainer(pipeline, frame[:200], engine="finite-difference")(frame[200:208]).values[:, [0, 2]]
    assert (exact * other).sum() > 0.95 * np.linalg.norm(exact) * np.linalg.norm(other)


def test_conditions_that_are_not_one_interval_are_refused():
    frame, y = people()
    bins = make_pipeline(SimpleImputer(), KBinsDiscretizer(5, encode="onehot-dense"))
    model = make_pipeline(bins, RandomForestClassifier(5, random_state=0)).fit(frame[["age", "fare"]], y)
    explainer = tx.TExplainer(lambda t: model.predict_proba(t)[:, 1], frame[["age", "fare"]])
    from dataclasses import replace

    predictor = replace(explainer.predictor, model=model)
    owner = np.repeat([0, 1], 5)  # five bins of each column
    with pytest.raises(Unsupported, match="several intervals"):
        fold(load(model[-1]), predictor, explainer.background.rows, owner)


def test_the_columns_of_inputs_are_found_once(monkeypatch):
    calls = []
    for module in (engine, shapley):
        ask = lambda *parts: calls.append(parts) or owners_of(*parts)  # noqa: E731
        monkeypatch.setattr(module, "owners_of", ask)
    pipeline, frame = fitted("scaler", "one-hot", "forest")
    explainer = tx.TExplainer(pipeline, frame[:100])
    values = explainer(frame[:5], attribution="shapley").values
    assert len(calls) == 1
    monkeypatch.undo()
    apart = shapley.tree_shapley(explainer.predictor, explainer.background.rows)
    np.testing.assert_array_equal(apart(explainer.schema.read(frame[:5]))[:, :, 0], values)


def test_trees_behind_mixing_transformers_are_explained_by_their_predictions():
    X = np.random.default_rng(2).normal(size=(200, 4))
    model = make_pipeline(PCA(3), GradientBoostingClassifier(n_estimators=5)).fit(X, X[:, 0] > 0)
    assert tx.TExplainer(model, X).engine.name == "finite-difference"


def town_and_gain():
    """A background that lacks what the last rows hold: the town "z", and a gain."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=400),
            "gain": np.where(rng.random(400) < 0.1, rng.exponential(3000, 400), 0.0),
            "town": rng.choice(["x", "y", "z"], 400),
        }
    )
    y = frame.age * np.where(frame.town == "z", 5, 1) + frame.age * np.where(frame.gain > 1000, 3, 0)
    usual = (frame.town != "z") & (frame.gain == 0)
    rare = pd.concat([frame[frame.town == "z"][:4], frame[frame.gain > 1000][:4]])
    return frame, y, frame[usual][:100], rare


def averaged_by_hand(predict, frame, name, sd, low, high, points=2000):
    """SD times the mean over moves up minus the mean over moves down, per unit, at many points."""
    out, at = [], (np.arange(points) + 0.5) / points
    for i in range(len(frame)):
        x, row = frame[name].iloc[i], pd.concat([frame.iloc[[i]]] * points)
        up, down = min(6**0.5 / 4 * sd, high - x), min(6**0.5 / 4 * sd, x - low)
        above, below = (predict(row.assign(**{name: x + move * at})).mean() for move in (up, -down))
        out.append(sd * (above - below) / ((up + down) / 2))
    return np.array(out)


@pytest.mark.filterwarnings("ignore::texplainer.errors.BackgroundWarning")  # the gain is constant
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("numbers", ["scaler", "power", "median"])
def test_slopes_of_rows_that_hold_what_the_background_lacks(encoder, numbers):
    frame, y, background, rare = town_and_gain()
    kinds = {**NUMBERS, "median": lambda: SimpleImputer(strategy="median")}
    encoders = {**ENCODERS, "target": lambda: TargetEncoder(target_type="continuous", random_state=0)}
    columns = make_column_transformer((kinds[numbers](), ["age", "gain"]), (encoders[encoder](), ["town"]))
    model = make_pipeline(columns, RandomForestRegressor(10, random_state=0)).fit(frame, y)
    explainer = tx.TExplainer(model, background)
    assert explainer.engine.name == "tree", explainer.engine.why
    age = background.age
    by_hand = averaged_by_hand(
        model.predict, rare, "age", explainer.background.sigma[0], age.min(), age.max()
    )
    np.testing.assert_allclose(explainer(rare).values[:, 0], by_hand, atol=0.01 * np.abs(by_hand).max())


def both_large(cells):
    cells = np.asarray(cells)
    return np.column_stack([cells, (cells[:, 0] > 2) & (cells[:, 1] > 2)])


MIXING = {
    "product": lambda: PolynomialFeatures(2, interaction_only=True, include_bias=False),
    "rare condition": lambda: FunctionTransformer(both_large),
    "neighbours' mean": lambda: KNNImputer(n_neighbors=3),
}


@pytest.mark.filterwarnings("ignore::texplainer.errors.BackgroundWarning")  # one row
@pytest.mark.parametrize("mixing", MIXING)
@pytest.mark.parametrize("count", [1, 3, 30])
def test_a_small_background_does_not_hide_that_columns_are_mixed(mixing, count):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    X[:20, :2] = 3.0
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X) if mixing == "neighbours' mean" else X
    model = make_pipeline(MIXING[mixing](), RandomForestRegressor(10, random_state=0))
    model.fit(holes, X[:, 0] + 5 * (X[:, 0] > 2) * (X[:, 1] > 2) + X[:, 2])
    background = X[(X[:, :2] < 1).all(axis=1)][:count]
    assert tx.TExplainer(model, background).engine.name == "finite-difference"

"""Models behind column-wise transformers of mixed tables: gradients of the raw columns against differences."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import texplainer as tx

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NUMBERS = ["age", "fare"]
TRANSFORMERS = {
    "scaled": StandardScaler(),
    "passed": "passthrough",
    "logarithm": FunctionTransformer(np.log1p),
    "Yeo-Johnson": PowerTransformer(),
    "Box-Cox": PowerTransformer(method="box-cox", standardize=False),
    "ranks": make_pipeline(QuantileTransformer(n_quantiles=12), StandardScaler()),
    "normal scores": QuantileTransformer(n_quantiles=12, output_distribution="normal"),
    "splines": SplineTransformer(n_knots=4),
    "products": make_pipeline(StandardScaler(), PolynomialFeatures(2)),
    "components": make_pipeline(StandardScaler(), PCA(2)),
}
ENCODERS = {
    "one-hot": OneHotEncoder(),
    "all but one": OneHotEncoder(drop="first", sparse_output=False),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "target": TargetEncoder(random_state=0),
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "town": rng.choice(list("xyz"), 160),
            "age": rng.normal(40, 9, 160).clip(1),
            "owner": rng.random(160) > 0.5,
            "fare": rng.gamma(2, 9, 160) + 0.1,
        }
    )


@pytest.fixture(scope="module")
def y(frame):
    return ((frame.age > 40) ^ (frame.town == "x")).astype(int)


def score(model, rows):
    p = model.predict_proba(rows)
    return np.log(p[:, 1] / p[:, 0])


def assert_gradients(model, frame, slack=1e-4):
    """Gradients beside central differences of the model, at rows away from kinks."""
    explainer = tx.TExplainer(model, frame[:80], attribution="gradient", scale="log-odds")
    assert explainer.engine.name == "closed-form", explainer.engine.why
    found = explainer(frame[80:100])
    for name in NUMBERS:
        h = 1e-4 * frame[name].std()
        ahead, behind = (frame[80:100].assign(**{name: frame[name][80:100] + s * h}) for s in (1, -1))
        expected = (score(model, ahead) - score(model, behind)) / (2 * h)
        close = np.isclose(
            found[:, name].gradient.ravel(), expected, rtol=slack, atol=slack * np.abs(expected).max()
        )
        assert close.mean() >= 0.9, (
            name,
            found[:, name].gradient.ravel(),
            expected,
        )  # a kink lies within h of few


@pytest.mark.parametrize("numbers", TRANSFORMERS)
def test_gradients_through_transformers_of_numbers(numbers, frame, y):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town", "owner"]), (TRANSFORMERS[numbers], NUMBERS)
    )
    assert_gradients(
        make_pipeline(columns, MLPClassifier((6,), max_iter=60, random_state=0)).fit(frame, y), frame
    )


@pytest.mark.parametrize("encoder", ENCODERS)
def test_contributions_of_a_linear_model_are_exact_behind_encoders(encoder, frame, y):
    """Its log-odds are a sum of functions of one column: contributions are its differences to the mean."""
    columns = make_column_transformer((ENCODERS[encoder], ["town", "owner"]), remainder=StandardScaler())
    model = make_pipeline(columns, LogisticRegression()).fit(frame, y)
    explainer = tx.TExplainer(model, frame[:80])
    assert explainer.engine.name == "closed-form", explainer.engine.why
    rows, background = frame[80:84], frame[:80]
    found = explainer(rows, attribution="shapley")
    for i in range(len(rows)):
        for name in frame:
            moved = background.assign(**{name: rows[name].iloc[i]})
            expected = (score(model, moved) - score(model, background)).mean()
            np.testing.assert_allclose(found[i, name].values, expected, atol=1e-9)


def test_a_category_that_the_background_does_not_have_is_transformed_when_met(frame, y):
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town", "owner"]), (StandardScaler(), NUMBERS)
    )
    model = make_pipeline(columns, MLPClassifier((6,), max_iter=60, random_state=0)).fit(frame, y)
    explainer = tx.TExplainer(model, frame[:80])
    rows = frame[80:83].assign(town=["q", "x", "r"])
    found = explainer(rows, attribution=("shapley", "gradient"))
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), score(model, rows), atol=1e-9)
    h = 1e-5 * frame.age.std()
    ahead, behind = (rows.assign(age=rows.age + s * h) for s in (1, -1))
    expected = (score(model, ahead) - score(model, behind)) / (2 * h)
    np.testing.assert_allclose(
        found.with_attribution("gradient")[:, "age"].gradient.ravel(), expected, rtol=1e-4
    )


def test_a_vote_of_pipelines_has_a_column_transformer_in_each(frame, y):
    def member(numbers):
        columns = make_column_transformer((OneHotEncoder(), ["town", "owner"]), (numbers, NUMBERS))
        return make_pipeline(columns, MLPClassifier((4,), max_iter=60, random_state=0))

    vote = VotingClassifier(
        [("a", member(StandardScaler())), ("b", member(PowerTransformer()))], voting="soft"
    )
    assert_gradients(vote.fit(frame, y), frame)


def test_what_mixes_numbers_and_categories_is_refused(frame, y):
    columns = make_column_transformer(
        (FunctionTransformer(lambda t: t[["age"]] * (t[["town"]] == "x").to_numpy()), ["age", "town"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame, y)
    report = tx.TExplainer(model, frame[:80]).engine_report()
    assert "takes numbers and categories together" in report

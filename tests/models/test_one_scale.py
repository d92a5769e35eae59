"""One rule of scale: a Pipeline is explained on the scale of its last step."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import texplainer as tx


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=8, max_depth=3)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=8, verbose=-1)


def catboost():
    return pytest.importorskip("catboost").CatBoostClassifier(iterations=8, verbose=0)


CLASSIFIERS = {
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "catboost": catboost,
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=8),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=8, random_state=0),
    "logistic": LogisticRegression,
}
WRAPPED = {
    "unchanged": lambda model: make_pipeline(FunctionTransformer(), model),
    "scaled": lambda model: make_pipeline(StandardScaler(), model),
    "a pipeline in a pipeline": lambda model: make_pipeline(
        FunctionTransformer(), make_pipeline(FunctionTransformer(), model)
    ),
    "searched": lambda model: GridSearchCV(make_pipeline(FunctionTransformer(), model), {}, cv=2),
    "searched at the end": lambda model: make_pipeline(FunctionTransformer(), GridSearchCV(model, {}, cv=2)),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_wrapping_a_classifier_does_not_change_its_scale(name, wrapper, classes):
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.digitize(X[:, 0] + X[:, 1], [0.0] if classes == 2 else [-0.7, 0.7])
    bare = tx.TExplainer(CLASSIFIERS[name]().fit(X, y), X, attribution="shapley")
    wrapped = tx.TExplainer(WRAPPED[wrapper](CLASSIFIERS[name]()).fit(X, y), X, attribution="shapley")
    assert wrapped.predictor.scale == bare.predictor.scale == "log-odds"
    assert wrapped.predictor.output_names == bare.predictor.output_names
    expected, found = bare(X[:4]), wrapped(X[:4])
    if wrapper != "scaled":
        np.testing.assert_allclose(found.predictions, expected.predictions, atol=1e-6)
        if classes == 2:  # of more the log-odds are not sums, and the walks depend on the last bits
            np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    probability = wrapped.predictor.model.predict_proba(X[:4])
    odds = np.log(probability / (1 - probability))[:, [1] if classes == 2 else [0, 1, 2]]
    np.testing.assert_allclose(found.predictions.reshape(odds.shape), odds, atol=1e-4)


def test_networks_behind_an_encoder_whose_answer_is_sparse():
    rng = np.random.default_rng(0)
    places = np.array([f"place {i}" for i in range(40)])
    frame = pd.DataFrame({"place": rng.choice(places, 300), "age": rng.normal(size=300)})
    target = (frame["age"] + (frame["place"] < "place 2") > 0).astype(int)
    encoder = make_column_transformer((OneHotEncoder(), ["place"]), (StandardScaler(), ["age"]))
    model = make_pipeline(encoder, MLPClassifier((8,), max_iter=50, random_state=0)).fit(frame, target)
    assert issparse(model[:-1].transform(frame))
    found = tx.TExplainer(model, frame[:100])(frame[100:105])
    p = model.predict_proba(frame[100:105])
    np.testing.assert_allclose(found.predictions.ravel(), np.log(p[:, 1] / p[:, 0]), rtol=1e-9)

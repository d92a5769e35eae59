"""Log-odds of every classifier: those of its probabilities, and its own where it has them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from texplainer.models.predictor import adapt
from texplainer.models.scales import softmax_log_odds
from texplainer.tables.schema import learn

X, Y3 = make_classification(240, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
Y2 = (Y3 > 0).astype(int)


def _xgboost(**options):
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=8, max_depth=3, **options)


def _lightgbm(**options):
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1, **options)


def _catboost(**options):
    quiet = {"iterations": 8, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    return pytest.importorskip("catboost").CatBoostClassifier(**quiet, **options)


#: models with log-odds of their own
OWN = {
    "logistic": LogisticRegression,
    "lda": LinearDiscriminantAnalysis,
    "qda": QuadraticDiscriminantAnalysis,
    "bayes": GaussianNB,
    "sgd": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "mlp": lambda: MLPClassifier((8,), max_iter=300, random_state=0),
    "mlp in a pipeline": lambda: make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=300)),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=8, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=8, random_state=0),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=8, random_state=0),
    "xgboost": _xgboost,
    "lightgbm": lambda: _lightgbm(sigmoid=0.7),
    "lightgbm forest": lambda: _lightgbm(boosting_type="rf", bagging_freq=1, bagging_fraction=0.7),
    "catboost": _catboost,
}
#: models whose probabilities come from nothing deeper
NONE = {
    "forest": lambda: RandomForestClassifier(10, random_state=0),
    "neighbours": KNeighborsClassifier,
    "process": GaussianProcessClassifier,
    "platt": lambda: SVC(probability=True, random_state=0),
}


def fitted(make, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(X, y)


def predict(model, scale, rows=X):
    schema, background = learn(X)
    predictor = adapt(model, schema, background[:8], output="all", scale=scale)
    return predictor, predictor(rows)


@pytest.mark.parametrize("y", [Y2, Y3], ids=["two", "three"])
@pytest.mark.parametrize("name", [*OWN, *NONE])
def test_the_margin_is_the_log_odds_of_the_probability(name, y):
    model = fitted({**OWN, **NONE}[name], y)
    p = np.asarray(model.predict_proba(X))
    margin = predict(model, "log-odds")[1]
    inside = (p > 1e-6) & (p < 1 - 1e-6)
    np.testing.assert_allclose(expit(margin), p, atol=2e-6)
    np.testing.assert_allclose(margin[inside], logit(p[inside]), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(predict(model, "probability")[1], p, atol=1e-6)
    assert adapt(model, *_learnt()).scale == ("log-odds" if name in OWN else "probability")


def _learnt():
    schema, background = learn(X)
    return schema, background[:8]


def test_a_network_keeps_its_log_odds_where_its_probability_is_saturated():
    model = fitted(OWN["mlp"], Y2)
    far = 60 * X
    p, z = model.predict_proba(far)[:, 1], predict(model, "log-odds", far)[1][:, 1]
    assert p.min() < 1e-18 and p.max() == 1.0
    small = (p > 0) & (p < 1e-3)
    np.testing.assert_allclose(z[small], np.log(p[small]) - np.log1p(-p[small]), rtol=1e-9)
    assert np.all(np.isfinite(z)) and z.max() > 37  # 1 - p would be 0 there
    np.testing.assert_array_equal(predict(model, "log-odds", far)[1].sum(axis=1), 0.0)


def test_log_odds_of_scores_far_apart():
    scores = np.array([[900.0, 0.0, -50.0], [0.0, 0.0, 0.0], [-800.0, -801.0, 700.0]])
    found = softmax_log_odds(scores)
    expected = [
        [900.0, -900.0, -950.0],
        [-np.log(2)] * 3,
        [-1500.0, -1501.0, 1500.0 - np.log1p(np.exp(-1.0))],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_raw_are_the_models_own_scores():
    model = fitted(OWN["logistic"], Y3)
    np.testing.assert_allclose(predict(model, "raw")[1], model.decision_function(X))
    boosted = fitted(OWN["xgboost"], Y3)
    np.testing.assert_allclose(predict(boosted, "raw")[1], boosted.predict(X, output_margin=True), rtol=1e-6)
    machine = fitted(NONE["platt"], Y2)
    np.testing.assert_allclose(predict(machine, "raw")[1][:, 1], machine.decision_function(X))


def test_decisions_without_probabilities_are_the_margin():
    model = RidgeClassifier().fit(X, Y3)
    predictor, margin = predict(model, "auto")
    assert predictor.scale == "log-odds"
    np.testing.assert_allclose(margin, model.decision_function(X))

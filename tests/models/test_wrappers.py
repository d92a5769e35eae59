"""Models inside others, methods of models, and estimators that are no classifier at first sight."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import texplainer as tx

X, Y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
Y2 = (Y > 0).astype(int)
FOREST = RandomForestClassifier(10, random_state=0)
WRAPPED = {
    "a search": (lambda: GridSearchCV(FOREST, {"max_depth": [3]}, cv=2).fit(X, Y2), "tree"),
    "a threshold": (lambda: FixedThresholdClassifier(FOREST).fit(X, Y2), "tree"),
    "a search at a pipeline's end": (
        lambda: make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {}, cv=2)).fit(X, Y2),
        "closed-form",
    ),
    "a method": (lambda: FOREST.fit(X, Y2).predict_proba, "tree"),
    "a partial of a method": (lambda: partial(LogisticRegression().fit(X, Y2).predict_proba), "closed-form"),
    "a regressor's predict": (lambda: Ridge().fit(X, X[:, 0]).predict, "closed-form"),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_model_inside_is_found(name):
    make, engine = WRAPPED[name]
    explainer = tx.TExplainer(make(), X)
    assert explainer.engine.name == engine
    assert np.any(explainer(X[:5]).values != 0)


def test_a_method_is_explained_on_what_it_returns():
    model = LogisticRegression().fit(X, Y2)
    explanation = tx.TExplainer(model.predict_proba, X)(X[:5])
    assert explanation.scale == "probability"
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(X[:5])[:, 1])
    raw = tx.TExplainer(model.decision_function, X)(X[:5])
    np.testing.assert_allclose(raw.predictions, model.decision_function(X[:5]))


def test_outliers_are_explained_by_their_score():
    model = IsolationForest(n_estimators=10, random_state=0).fit(X)
    explainer = tx.TExplainer(model, X)
    np.testing.assert_allclose(explainer(X[:5]).predictions, model.decision_function(X[:5]))
    assert explainer.predictor.output_names == ("score",)


def test_labels_alone_are_classes():
    codes = OutputCodeClassifier(LogisticRegression(), random_state=0).fit(X, Y + 5)
    explainer = tx.TExplainer(codes, X)
    assert explainer.predictor.output_names == ("5", "6", "7")
    np.testing.assert_array_equal(explainer(X[:20]).predictions.argmax(axis=1) + 5, codes.predict(X[:20]))


def test_two_labels_are_not_two_classes():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, np.column_stack([Y2, Y == 1]))
    explanation = tx.TExplainer(model, X)(X[:5])
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(X[:5]))
    assert explanation.output_names == ("y0", "y1")


class Duck:
    """Fitted on a frame, and wants one; its classes are a list."""

    def __init__(self):
        self.classes_ = ["no", "yes"]

    def predict_proba(self, table):
        p = 1 / (1 + np.exp(-table["a"].to_numpy()))
        return np.column_stack([1 - p, p])


def test_a_duck_gets_the_users_own_frame():
    table = pd.DataFrame(X, columns=list("abcde"))
    explainer = tx.TExplainer(Duck(), table)
    assert explainer.predictor.output_names == ("yes",)
    assert np.all(explainer(table[:5])[:, "b"].values == 0)


def test_a_function_of_arrays_gets_arrays_though_the_background_is_a_frame():
    table = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y2)
    np.testing.assert_allclose(tx.TExplainer(model.predict_proba, table)(table[:3]).predictions,
                               model.predict_proba(X[:3])[:, 1])  # fmt: skip

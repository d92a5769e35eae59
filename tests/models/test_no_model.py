"""What is not a model, or none of the kind it looks like, is told so in words."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin, RegressorMixin
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor

import texplainer as tx
from texplainer.errors import InputError, ModelError

X = np.random.default_rng(0).normal(size=(80, 3))
Y = (X[:, 0] > 0).astype(int)
LABELS = np.column_stack([Y, X[:, 1] > 0]).astype(int)


class Hazards:
    def predict_hazard(self, table):
        return np.exp(table[:, 0])

    def predict_time(self, table):
        return np.exp(-table[:, 0])


class Score(OutlierMixin, BaseEstimator):
    def decision_function(self, table):
        return table[:, 0] ** 2

    def predict(self, table):
        return (table[:, 0] > 1).astype(int)

    def predict_proba(self, table):
        p = 1 / (1 + np.exp(-table[:, 0]))
        return np.column_stack([1 - p, p])


class Network(RegressorMixin, BaseEstimator):
    """As skorch's regressors: `predict_proba` is there and gives predictions."""

    def predict(self, table):
        return 2 * table[:, 0]

    predict_proba = predict


REFUSED = {
    "a transformer": (lambda: PCA(2).fit(X), "PCA is not a model.*Pass a fitted model, or a function"),
    "clusters of these rows alone": (lambda: DBSCAN().fit(X), "DBSCAN is not a model"),
    "a search without a model": (
        lambda: GridSearchCV(LogisticRegression(), {}, refit=False).fit(X, Y), "GridSearchCV is not a model.*refit=True"
    ),
    "outliers of these rows alone": (lambda: LocalOutlierFactor().fit(X), "is not a model.*novelty=True"),
    "methods of other names": (Hazards, "as model.predict_hazard or predict_time, or a function"),
    "a class": (lambda: LogisticRegression, r"the class LogisticRegression was passed.*\.fit\(X, y\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_predicts_nothing_is_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        tx.TExplainer(make(), X)


def test_answers_that_are_no_numbers_are_named():
    class Distribution:
        __array_struct__ = 5

    with pytest.raises(ModelError, match=r"returned a Distribution, which is not an array.*one number"):
        tx.TExplainer(lambda table: Distribution(), X)


def test_a_tensor_that_asks_for_gradients_is_a_fine_answer():
    torch = pytest.importorskip("torch")
    weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
    explainer = tx.TExplainer(lambda table: torch.as_tensor(table) @ weights, X)
    np.testing.assert_allclose(explainer(X[:3]).predictions, X[:3].sum(axis=1))


def test_two_labels_of_a_ridge_classifier_are_no_binary_problem():
    model = RidgeClassifier().fit(X, LABELS)
    explainer = tx.TExplainer(model, X)
    assert explainer.predictor.task == "multilabel" and explainer.predictor.output_names == ("y0", "y1")
    assert explainer.engine.name == "closed-form"
    np.testing.assert_allclose(explainer(X[:4]).predictions, model.decision_function(X[:4]))


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
def test_two_labels_of_catboost_are_no_binary_problem(scale):
    catboost = pytest.importorskip("catboost")
    quiet = {"iterations": 4, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(loss_function="MultiLogloss", **quiet).fit(X, LABELS)
    explainer = tx.TExplainer(model, X, scale=scale)
    assert explainer.predictor.task == "multilabel" and explainer.engine.name == "tree"
    ask = {"probability": "Probability", "log-odds": "RawFormulaVal"}[scale]
    np.testing.assert_allclose(
        explainer(X[:4]).predictions, model.predict(X[:4], prediction_type=ask), rtol=1e-6
    )


def test_clusters_have_no_order():
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    found = tx.TExplainer(model, X)(X[:5])
    assert found.output_names == ("cluster 0", "cluster 1", "cluster 2")
    np.testing.assert_array_equal(np.argmax(found.predictions, axis=1), model.predict(X[:5]))


def test_a_regressor_with_predict_proba_is_a_regressor():
    predictor = tx.TExplainer(Network(), X).predictor
    assert (predictor.task, predictor.scale) == ("regression", "raw")


def test_a_detectors_probabilities_are_explained_where_they_are_asked_for():
    model = Score()
    assert tx.TExplainer(model, X).predictor.output_names == ("score",)
    found = tx.TExplainer(model.predict_proba, X)(X[:3])
    np.testing.assert_allclose(found.predictions, model.predict_proba(X[:3]))

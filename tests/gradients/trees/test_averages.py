"""Means and votes of trees are read as trees; what is no mean of trees is not."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import texplainer as tx
from texplainer.errors import EngineWarning

SEED = {"random_state": 0}
X = np.random.default_rng(0).normal(size=(150, 4))
SCORE = X[:, 0] + np.sin(X[:, 1])
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.5])
FOREST = RandomForestClassifier(5, **SEED)
MEANS = {
    "bagging": (BaggingClassifier(n_estimators=6, **SEED), TWO),
    "bagging of some columns": (BaggingClassifier(n_estimators=6, max_features=0.5, **SEED), THREE),
    "bagged forests": (
        BaggingRegressor(RandomForestRegressor(4, **SEED), n_estimators=3, max_features=0.7, **SEED), SCORE
    ),
    "weighted votes": (
        VotingClassifier(
            [("a", FOREST), ("b", DecisionTreeClassifier(max_depth=3)), ("c", ExtraTreesClassifier(4, **SEED))],
            voting="soft",
            weights=[1, 2, 4],
        ),
        THREE,
    ),
    "a member dropped": (
        VotingRegressor(
            [("a", RandomForestRegressor(4, **SEED)), ("b", "drop"), ("c", BaggingRegressor(n_estimators=3, **SEED))],
            weights=[3, 1, 1],
        ),
        SCORE,
    ),
}  # fmt: skip


def asked(model, rows):
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)[:, None]


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_of_trees_is_read_as_trees(name):
    model, y = MEANS[name]
    explainer = tx.TExplainer(model.fit(X, y), X, output="all")
    assert explainer.engine.name == "tree"
    found = np.asarray(explainer(X[:10]).predictions).reshape(10, -1)
    np.testing.assert_allclose(found, asked(model, X[:10]), atol=1e-12)


def test_a_bag_of_one_tree_is_that_tree():
    bag = BaggingClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=1, **SEED).fit(X, TWO)
    alone, together = (tx.TExplainer(m, X)(X[:10]) for m in (bag.estimators_[0], bag))
    np.testing.assert_allclose(together.values, alone.values, atol=1e-12)
    shares = [tx.TExplainer(m, X, attribution="shapley")(X[:10]).values for m in (bag.estimators_[0], bag)]
    np.testing.assert_allclose(*shares, atol=1e-12)


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 6), reason="its default adds up logarithms"
)
@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("scale", ["probability", "log-odds", "raw"])
def test_adaboost_is_read_as_votes(y, scale):
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6, **SEED).fit(X, y)
    explainer = tx.TExplainer(model, X, scale=scale, output="all")
    assert explainer.engine.name == "tree"
    p = model.predict_proba(X[:10])
    raw = model.decision_function(X[:10])
    expected = {"probability": p, "log-odds": np.log(p / (1 - p))}
    expected["raw"] = raw if raw.ndim == 2 else np.column_stack([-raw, raw])
    np.testing.assert_allclose(explainer(X[:10]).predictions, expected[scale], rtol=1e-6)


@pytest.mark.filterwarnings("error::texplainer.errors.EngineWarning")
@pytest.mark.parametrize(
    "model",
    [BaggingClassifier(KNeighborsClassifier(), n_estimators=2), AdaBoostClassifier(LogisticRegression())],
)
def test_means_of_others_are_not_called_trees(model):
    engine = tx.TExplainer(model.fit(X, TWO), X).engine
    assert engine.name == "finite-difference" and "not a tree ensemble" in engine.why


def test_counted_votes_are_no_mean():
    model = VotingClassifier([("a", FOREST), ("b", DecisionTreeClassifier(max_depth=3))]).fit(X, TWO)
    with pytest.warns(EngineWarning, match="it counts the votes of its members"):
        assert tx.TExplainer(model, X).engine.name == "finite-difference"


def test_a_tree_that_met_too_few_classes_is_not_misread():
    rare = np.where(np.arange(len(X)) < 2, 2, TWO)
    model = BaggingClassifier(n_estimators=5, **SEED).fit(X, rare)
    model.estimators_[0] = DecisionTreeClassifier(max_depth=3).fit(
        X, TWO
    )  # as members without weights may be
    with pytest.warns(EngineWarning, match="one of its trees saw only 2 of 3 classes"):
        explainer = tx.TExplainer(model, X)
    np.testing.assert_allclose(explainer(X[:5]).predictions, model.predict_proba(X[:5]), atol=1e-12)

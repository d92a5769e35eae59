"""Models made of trees: sums are explained exactly, by enumeration of all subsets; of others the reason is given."""

import warnings
from importlib import import_module

import numpy as np
import pytest
from oracles import shapley_by_subsets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostRegressor,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.tree import DecisionTreeRegressor

import texplainer as tx

# in float32 for the libraries that compare in it
X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32).astype(float)
SCORE = X[:, 0] + X[:, 1] * X[:, 2]
TWO = (SCORE > 0).astype(int)
BOTH = np.column_stack([SCORE, -2 * SCORE + X[:, 3]])


def forest():
    return RandomForestRegressor(4, max_depth=3, random_state=0)


def boosting():
    return GradientBoostingRegressor(n_estimators=5)


def few(classifier=True):
    return RandomForestClassifier(4, max_depth=3, random_state=0) if classifier else forest()


def library(name, path, **words):
    return getattr(
        pytest.importorskip(name) and import_module(path.rpartition(".")[0]), path.rpartition(".")[2]
    )(**words)


def survival():
    util = pytest.importorskip("sksurv.util")
    return util.Surv.from_arrays(SCORE > -1, np.exp(SCORE) + 0.1)


def gaps():
    return np.where(X > 1.2, -999.0, X)


SUMS = {
    "a vote of regressors": lambda: VotingRegressor([("a", forest()), ("b", boosting())], weights=[1, 3]).fit(X, SCORE),
    "a stack that ends in a linear model": lambda: StackingRegressor(
        [("a", forest()), ("b", boosting()), ("c", DecisionTreeRegressor(max_depth=3))], Ridge(), cv=2
    ).fit(X, SCORE),
    "a stack of boosters": lambda: StackingRegressor(
        [("a", library("xgboost", "xgboost.XGBRegressor", n_estimators=4)), ("b", forest())], Ridge(), cv=2
    ).fit(X, SCORE),
    "a vote in a stack": lambda: StackingRegressor([("a", VotingRegressor([("a", forest())]))], Ridge(), cv=2).fit(X, SCORE),
    "a forest a target": lambda: MultiOutputRegressor(forest()).fit(X, BOTH),
    "boosting a target": lambda: MultiOutputRegressor(boosting()).fit(X, BOTH),
    "xgboost dart with dropout": lambda: library(
        "xgboost", "xgboost.XGBRegressor", n_estimators=8, booster="dart", rate_drop=0.5, max_depth=3
    ).fit(X, SCORE),
    "xgboost with a number for missing": lambda: library(
        "xgboost", "xgboost.XGBRegressor", n_estimators=5, max_depth=3, missing=-999.0
    ).fit(gaps(), SCORE),
    "lightgbm with zeros for missing": lambda: library(
        "lightgbm", "lightgbm.LGBMRegressor", n_estimators=5, zero_as_missing=True, verbose=-1
    ).fit(np.where(X > 1.2, 0.0, X), SCORE),
    "a random survival forest": lambda: library(
        "sksurv", "sksurv.ensemble.RandomSurvivalForest", n_estimators=4, max_depth=3
    ).fit(X, survival()),
    "extra survival trees": lambda: library(
        "sksurv", "sksurv.ensemble.ExtraSurvivalTrees", n_estimators=4, max_depth=3
    ).fit(X, survival()),
    "survival boosting": lambda: library(
        "sksurv", "sksurv.ensemble.GradientBoostingSurvivalAnalysis", n_estimators=5
    ).fit(X, survival()),
    "a survival tree": lambda: library("sksurv", "sksurv.tree.SurvivalTree", max_depth=3).fit(X, survival()),
}  # fmt: skip
ROWS = {"xgboost with a number for missing": gaps}
OTHERS = {
    "AdaBoostRegressor": (lambda: AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, SCORE), "weighted median"),
    "IsolationForest": (lambda: IsolationForest(n_estimators=4, random_state=0).fit(X), "power of the mean depth"),
    "a calibrated forest": (lambda: CalibratedClassifierCV(few(), cv=2).fit(X, TWO), "curve of the sum of trees"),
    "a stack of classifiers": (lambda: StackingClassifier([("a", few())], LogisticRegression(), cv=2).fit(X, TWO), "its final estimator sees probabilities"),
    "a stack that ends in trees": (lambda: StackingRegressor([("a", forest())], forest(), cv=2).fit(X, SCORE), "is not linear"),
    "a stack with the columns": (lambda: StackingRegressor([("a", forest())], Ridge(), passthrough=True, cv=2).fit(X, SCORE), "sees the columns"),
    "a chain of labels": (lambda: ClassifierChain(few()).fit(X, np.column_stack([TWO, X[:, 1] > 0])), "the ones before it predict"),
    "a forest a label": (lambda: MultiOutputClassifier(few()).fit(X, np.column_stack([TWO, X[:, 1] > 0])), "one classifier for each label"),
    "forests against the rest": (lambda: OneVsRestClassifier(few()).fit(X, np.digitize(SCORE, [-1, 1])), "divided by their sum"),
    "a vote of counts": (lambda: VotingRegressor([("a", library("lightgbm", "lightgbm.LGBMRegressor", objective="poisson", verbose=-1))]).fit(X, np.exp(SCORE)), "'exponential' of it"),
    "float widths": (lambda: VotingRegressor([("a", library("lightgbm", "lightgbm.LGBMRegressor", verbose=-1)), ("b", forest())]).fit(X, SCORE), "different width"),
    "a quantile forest": (lambda: library("quantile_forest", "quantile_forest.RandomForestQuantileRegressor", n_estimators=4).fit(X, SCORE), "quantiles"),
    "linear trees of lightgbm": (lambda: library("lightgbm", "lightgbm.LGBMRegressor", linear_tree=True, n_estimators=4, verbose=-1).fit(X, SCORE), "leaves hold linear models"),
    "catboost with uncertainty": (
        lambda: library("catboost", "catboost.CatBoostRegressor", iterations=4, loss_function="RMSEWithUncertainty", verbose=False, allow_writing_files=False).fit(X, SCORE),
        "a variance",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries say is not the matter here
        yield


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_trees_are_explained_exactly(name):
    model, rows = SUMS[name](), ROWS.get(name, lambda: X)()
    explainer = tx.TExplainer(model, rows[:30])
    assert explainer.engine.name == "tree", explainer.engine_report()
    found = explainer(rows[30:33], attribution="shapley")
    assert "exact" in found.settings["how"]

    def predict(table):
        return np.asarray(model.predict(table), dtype=float).reshape(len(table), -1)

    for i in range(3):
        expected = np.column_stack(
            [
                shapley_by_subsets(lambda table, o=o: predict(table)[:, o], rows[:30], rows[30 + i])
                for o in range(found.arrays["values"].shape[2])
            ]
        )
        np.testing.assert_allclose(found.arrays["values"][i], expected, atol=2e-5 * np.abs(expected).max())
    np.testing.assert_allclose(found.arrays["predictions"], predict(rows[30:33]), rtol=1e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_a_sum_of_trees_says_why(name):
    make, words = OTHERS[name]
    report = tx.TExplainer(make(), X[:30]).engine_report()
    (line,) = [line for line in report.splitlines() if line.startswith("not tree: ")]
    assert words in line and len(line) < 220, line

"""Every library's models: read exactly, slopes like the twin's, refused clearly."""

# ruff: noqa: E402  (the engine needs optional packages, asked for first)

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

pytest.importorskip("numba")
xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from oracles_trees import moved_slopes, trees_of
from tree_shelf import GBR, MODELS, REAL, RFR, TWO, X, awkward, sklearn

import texplainer as tx
from texplainer.errors import Unsupported
from texplainer.gradients.moves import Moves
from texplainer.gradients.trees.engine import TreeModel, TreeSlopes, moved_trees
from texplainer.gradients.trees.ensemble import LARGEST, compared, raw_sums, unrounded
from texplainer.gradients.trees.readers.table import load


@pytest.mark.parametrize("name", MODELS)
def test_reads_the_model_and_finds_the_slopes_of_the_twin(name):
    make, own, tolerance = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data = make()
        ensemble = load(model)
        rows = awkward(ensemble, data)
        expected = np.asarray(own(model, rows), dtype=float).reshape(len(rows), -1)
    hard = raw_sums(ensemble, rows)
    np.testing.assert_allclose(hard, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))

    widths = np.nanstd(data, axis=0) * 0.4
    widths[[feature for feature, _ in ensemble.categories]] = 0.0
    found = slopes_of(ensemble, widths, rows[:6])
    bounds = {name: unrounded(ensemble, getattr(ensemble, name)) for name in ("threshold", "lower", "upper")}
    trees = list(trees_of(replace(ensemble, **bounds)))[:60]  # rows and moves are not rounded
    if len(trees) < len(ensemble.roots):
        return
    wide = np.concatenate([widths, np.zeros(len(ensemble.categories))])
    cells = ensemble.widen(rows[:6])
    rounded = compared(ensemble, cells)
    seen = np.where(np.abs(rounded) < LARGEST, cells, rounded)
    twin = moved_slopes(trees, seen, wide, len(ensemble.base))[:, : len(widths)]
    np.testing.assert_allclose(found, twin, rtol=0, atol=1e-12 * max(1, np.abs(twin).max()))
    assert found.any()


def slopes_of(ensemble, widths, rows):
    """Slopes of the raw sums without bounds."""
    moves = Moves(widths, None, np.zeros(len(widths), bool))
    model = TreeModel(None, ensemble, None, lambda rows: rows, False)
    link, largest = np.eye(len(ensemble.base)), np.zeros((len(widths), len(ensemble.base)))
    return TreeSlopes(model, moves, moved_trees(ensemble, moves.integers), link, largest)(rows).values


def test_treelite_reads_the_same():
    treelite = pytest.importorskip("treelite")
    model = sklearn(RFR, REAL, n_estimators=5)()[0]
    ensemble = load(model)
    other = treelite.sklearn.import_model(model)
    leaves = sum((other.get_tree_accessor(i).get_field("cleft") < 0).sum() for i in range(5))
    assert len(ensemble.value) == leaves
    raw = raw_sums(ensemble, X)
    np.testing.assert_allclose(
        raw[:, 0], treelite.gtil.predict(other, X.astype(np.float32)).ravel(), atol=1e-6
    )


def linear_leaves():
    return lgb.LGBMRegressor(n_estimators=3, linear_tree=True, verbose=-1).fit(X, REAL)


def zero_beside_categories():
    table = np.round(X)
    table[:, 3] = np.abs(table[:, 3])
    model = lgb.LGBMRegressor(n_estimators=3, zero_as_missing=True, verbose=-1, min_data_per_group=1)
    return model.fit(table, REAL + 9 * (table[:, 3] == 1), categorical_feature=[3])


def linear_booster():
    return xgb.XGBRegressor(n_estimators=3, booster="gblinear").fit(X, REAL)


def own_objective(y, p):
    return p - y, np.ones_like(p)


def custom_xgboost():
    return xgb.XGBRegressor(n_estimators=3, objective=own_objective).fit(X, REAL)


def custom_lightgbm():
    return lgb.LGBMRegressor(n_estimators=3, objective=own_objective, verbose=-1).fit(X, REAL)


def learned_start():
    return GBR(n_estimators=3, init=DecisionTreeRegressor(max_depth=2)).fit(X, REAL)


def catboost_categories():
    library = pytest.importorskip("catboost")
    table = np.column_stack([X.astype(object), np.random.default_rng(5).choice(["a", "b", "c"], len(X))])
    model = library.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False, cat_features=[4])
    return model.fit(table, TWO)


REFUSED = {
    "linear models": linear_leaves,
    "zero_as_missing": zero_beside_categories,
    "no trees": linear_booster,
    "objective is a function, ": custom_xgboost,
    "objective is a function": custom_lightgbm,
    "initial estimator": learned_start,
    "statistics of the labels": catboost_categories,
}


@pytest.mark.parametrize("word", REFUSED)
def test_refuses_what_it_cannot_read(word):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = REFUSED[word]()
    with pytest.raises(Unsupported, match=word):
        load(model)


def test_refuses_what_is_no_tree():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(Unsupported, match="not a supported tree ensemble"):
        load(LogisticRegression())


def test_quantiles_that_xgboost_sorts_are_not_taken_for_sums_of_trees():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 5))
    y = table[:, 0] * table[:, 1] + np.sin(table[:, 2]) + 0.1 * rng.normal(size=400)
    model = xgb.XGBRegressor(
        n_estimators=15, max_depth=4, objective="reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9]
    ).fit(table, y)
    scores, predictions = model.predict(table, output_margin=True), model.predict(table)
    crossing = (np.diff(scores, axis=1) < 0).any(axis=1)
    assert crossing.any()
    if (scores == predictions).all():  # an older XGBoost
        assert load(model).link == "identity"
        return
    with pytest.raises(Unsupported, match="sorts the quantiles"):
        load(model)
    with pytest.warns(tx.errors.EngineWarning, match="sorts the quantiles"):
        explainer = tx.TExplainer(model, table[~crossing][:40], attribution="shapley")
    found = explainer(table[crossing][:5])
    np.testing.assert_allclose(
        found.values.sum(axis=1) + found.base_values, predictions[crossing][:5], atol=1e-5
    )

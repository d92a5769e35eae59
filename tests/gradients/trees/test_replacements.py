"""Other values in place of cells: against predictions of the library, rows with the cell replaced."""

# ruff: noqa: E402  (the engine needs optional packages, asked for first)

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("numba")
xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from oracles_trees import hard, random_rows, random_tree
from tree_shelf import HOLES, MODELS, REAL, THREE, TWO, X, awkward

from texplainer.attributions.attribution import ExplainContext
from texplainer.attributions.replaced import noise_floor, references_of, replacement_effects
from texplainer.errors import BackgroundWarning
from texplainer.explainer import TExplainer
from texplainer.gradients.trees import replacements
from texplainer.gradients.trees.ensemble import LEAF, assemble, compared
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.replacements import columns_below, raw_changes


def cells_of(rows, columns):
    """Some cells of every column, missing or not."""
    row, column = np.meshgrid(np.arange(len(rows)), np.asarray(columns), indexing="ij")
    return row.reshape(-1), column.reshape(-1)


def changes(ensemble, rows, row, column, values, **how):
    rows, values = compared(ensemble, rows), compared(ensemble, values)
    return raw_changes(columns_below(ensemble), rows, row, column, values, len(ensemble.base), **how)


def by_hand(trees, rows, row, column, values, outputs):
    """The hard trees at every row with the cell replaced, less the hard trees at the row."""
    there = np.empty((len(row), len(values), outputs))
    for v, others in enumerate(values):
        points = rows[row]
        points[np.arange(len(row)), column] = others[column]
        there[:, v] = hard(trees, points, outputs)
    return there - hard(trees, rows, outputs)[row][:, None]


def both_roads(explainer, rows, columns):
    """What the engine says, what the library says, and the library's rounding; all values of all cells."""
    place = ExplainContext(
        rows, explainer.predictor(rows), explainer.background, explainer.predictor, explainer.engine, None
    )
    values = references_of(explainer.background).values[:-1]
    row, column = cells_of(rows, columns)
    found, asked = replacement_effects(place, row, column, values)
    twin, predictions = replacement_effects(
        replace(place, engine=replace(explainer.engine, replaced=None)), row, column, values
    )
    assert (asked, predictions) == (0, 16)
    floor = noise_floor(explainer.predictor, place.predictions, explainer.background.output_sd)
    return found, twin, floor[row][:, None]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(0, 6),
    width=st.sampled_from([1, 1, 3]),
    features=st.sampled_from([1, 3, 70]),
)
def test_equals_the_hard_trees_whatever_the_execution(seed, depth, width, features):
    """Repeated columns, cells and values on thresholds, missing, infinite and unsorted ones."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, features, width, depth, wild=True) for _ in range(3)]
    ensemble = assemble(trees, features=features, base=np.zeros(width), link="identity")
    rows, values = random_rows(rng, 9, features, wild=True), random_rows(rng, 5, features, wild=True)
    values = np.nan_to_num(values, nan=0.25, posinf=np.inf, neginf=-np.inf)
    asked = ensemble.column[ensemble.kind & LEAF == 0].astype(int)
    row, column = cells_of(rows, rng.choice(asked if len(asked) else [0], 3))
    found = {}
    for execution in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replacements, "_worth_compiling", lambda work, which=execution: which)
            found[execution] = changes(ensemble, rows, row, column, values)
    np.testing.assert_array_equal(found[True], found[False])
    twin = by_hand(trees, rows, row, column, values, width)
    np.testing.assert_allclose(found[True], twin, atol=1e-12)
    same = (twin == 0).all(axis=2)  # leaves are random numbers: no change, the same leaves
    assert not found[True][same].any()


def test_alone_or_in_a_batch_and_in_any_order_with_any_threads():
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, 5, 1, 6) for _ in range(20)]
    ensemble = assemble(trees, features=5, base=[0.0], link="identity")
    rows, values = random_rows(rng, 900, 5, wild=True), rng.normal(size=(16, 5))
    row, column = cells_of(rows, range(5))
    shuffled = rng.permutation(len(row))
    whole = changes(ensemble, rows, row, column, values, threads=1)
    again = changes(ensemble, rows, row[shuffled], column[shuffled], values, threads=3)
    np.testing.assert_array_equal(again, whole[shuffled])
    for at in (0, 77, len(row) - 1):
        one = slice(at, at + 1)
        alone = changes(ensemble, rows[row[one]], np.zeros(1, int), column[one], values)
        np.testing.assert_array_equal(alone[0], whole[at])


@pytest.mark.parametrize("name", MODELS)
def test_equals_predictions_of_the_library_on_every_shelf(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, data = MODELS[name][0]()
        explainer = TExplainer(model, data, output="all")
        rows = awkward(load(model), data)[::7]
        numeric = np.flatnonzero(explainer.predictor.schema.numeric)
        assert explainer.engine.name == "tree", explainer.engine.why
        if explainer.engine.replaced is None:  # the table does not say what the model has as categories
            assert "categories" in name and len(numeric) == data.shape[1]
            return
        found, twin, floor = both_roads(explainer, rows, numeric)
    assert found.any()
    assert (np.abs(found - twin) <= np.maximum(2 * floor, 1e-12)).all()


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["binary", "multiclass"])
@pytest.mark.parametrize("kind", [xgb.XGBClassifier, lgb.LGBMClassifier])
def test_links_are_passed(kind, y, scale):
    model = kind(n_estimators=20, n_jobs=1).fit(HOLES, y)
    explainer = TExplainer(model, HOLES[:200], scale=scale, output="all")
    found, twin, floor = both_roads(explainer, HOLES[200:240], range(4))
    assert (np.abs(found - twin) <= 2 * floor).all() and found.any()


def test_what_is_unusual_is_left_to_the_library():
    piped = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, TWO)
    assert TExplainer(piped, X).engine.replaced is None  # it scales by other roundings than ours
    forest = RandomForestClassifier(5, random_state=0).fit(HOLES, TWO)
    assert (
        TExplainer(forest, HOLES, scale="log-odds").engine.replaced is None
    )  # of saturated shares: no digits
    assert TExplainer(forest, HOLES).engine.replaced is not None
    model, data = MODELS["xgboost categories"][0]()
    for describe, replaced in (
        ([3], True),
        ([], False),
    ):  # a category of the model that the table calls a number
        engine = TExplainer(model, data, categorical=describe).engine
        assert engine.name == "tree" and (engine.replaced is not None) == replaced


@pytest.mark.parametrize("kind", [lgb.LGBMRegressor, HistGradientBoostingRegressor, xgb.XGBRegressor])
def test_cells_of_float32_tables_are_compared_as_the_model_gets_them(kind):
    """Background values lie in the middle of two neighbours of the table, as thresholds do."""
    rng = np.random.default_rng(4)
    table = rng.normal(size=(113, 3)).astype(np.float32)
    y = table[:, 0] + np.sin(3 * table[:, 1]) + table[:, 2] * table[:, 0]
    model = kind(**({"verbose": -1, "min_child_samples": 2} if kind is lgb.LGBMRegressor else {})).fit(
        table, y
    )
    ordered = np.sort(table, axis=0)
    explainer = TExplainer(model, (ordered[1:] + ordered[:-1]) / 2)
    rows = np.where(np.arange(3) == rng.integers(3, size=(60, 1)), np.float32(np.nan), table[:60])
    found = explainer(rows)
    values = references_of(explainer.background).values[:-1]
    for i, j in zip(*np.nonzero(np.isnan(rows)), strict=True):
        points = np.tile(rows[i], (16, 1))
        points[:, j] = values[:, j]
        twin = model.predict(rows[i : i + 1])[0] - model.predict(points).astype(float).mean()
        assert abs(found.values[i, j] - twin) <= 2 * found.diagnostics.error[i, j] + 1e-9


def one_hot_table():
    rng = np.random.default_rng(5)
    kind = rng.integers(3, size=len(HOLES))
    cells = {f"kind_{level}": (kind == level).astype(float) for level in range(3)}
    return pd.DataFrame({"a": HOLES[:, 0], **cells, "b": HOLES[:, 1]}), REAL + kind * HOLES[:, 0].clip(0, 1)


def coded_table():
    kind = pd.Categorical(
        np.array(["low", "mid", "top"])[np.random.default_rng(5).integers(3, size=len(HOLES))]
    )
    return pd.DataFrame({"a": HOLES[:, 0], "kind": kind, "b": HOLES[:, 1]}), REAL + kind.codes


@pytest.mark.parametrize("make", [one_hot_table, coded_table])
def test_explanations_of_missing_cells_beside_categories(make):
    table, y = make()
    model = xgb.XGBRegressor(n_estimators=20, enable_categorical=True, n_jobs=1).fit(table, np.nan_to_num(y))
    explainer = TExplainer(model, table[:300])
    assert explainer.schema.levels and explainer.engine.replaced is not None
    assert_the_road_does_not_matter(explainer, table[300:], explainer.schema.read(table[300:]))


@pytest.mark.parametrize("attribution", ["slope", "gradient"])
def test_explanations_of_missing_cells(attribution):
    model = xgb.XGBClassifier(n_estimators=20, n_jobs=1).fit(HOLES, THREE)
    rows = np.where(
        np.random.default_rng(6).random(X.shape) < 0.4, np.nan, X
    )  # several in a row, all in some
    explainer = TExplainer(model, HOLES[:200], output="all", attribution=attribution)
    assert_the_road_does_not_matter(explainer, rows, rows)


def assert_the_road_does_not_matter(explainer, table, rows):
    with pytest.MonkeyPatch.context() as patch:
        walked = explainer(table)
        for around, (engine, categories) in explainer._parts.items():
            patch.setitem(explainer._parts, around, (replace(engine, replaced=None), categories))
        asked = explainer(table)
    gaps = np.isnan(rows) & explainer.predictor.schema.numeric
    assert walked.values[gaps].any()
    np.testing.assert_array_equal(walked.values[~gaps], asked.values[~gaps])
    np.testing.assert_array_equal(walked.diagnostics.error, asked.diagnostics.error)
    assert (np.abs(walked.values - asked.values) <= 2 * asked.diagnostics.error)[gaps].all()
    assert (walked.diagnostics.stability == asked.diagnostics.stability).all()
    spent = asked.diagnostics.evaluations - walked.diagnostics.evaluations
    spent = spent - 16 * gaps.sum(axis=1)
    # where a slope is 0, predictions also tell whether the column's other values change f: four of all such
    # cells together, then four of each
    zero = (np.abs(walked.gradient).reshape(*rows.shape, -1) == 0).any(axis=2) & np.isfinite(rows)
    zero = (zero & explainer.predictor.schema.numeric & (explainer.background.unit > 0)).sum(axis=1)
    assert np.isin(spent[zero > 0], [4, 8, 12, 16, 20]).all() and not spent[zero == 0].any()
    assert (spent <= 4 * (zero > 0) + 4 * zero).all()


def test_rows_with_missing_cells_alone_or_in_a_batch():
    model = xgb.XGBRegressor(n_estimators=20, n_jobs=1).fit(HOLES, REAL)
    explainer = TExplainer(model, HOLES[:200])
    whole = explainer(HOLES).values
    for i in np.flatnonzero(np.isnan(HOLES).any(axis=1))[:5]:
        np.testing.assert_array_equal(explainer(HOLES[i : i + 1]).values[0], whole[i])


def test_a_column_the_background_does_not_know_changes_nothing():
    model = lgb.LGBMRegressor(n_estimators=20, verbose=-1).fit(HOLES, REAL)
    background = HOLES[:200].copy()
    background[:, 1] = np.nan
    with pytest.warns(BackgroundWarning, match="constant"):
        explainer = TExplainer(model, background)
    assert not explainer(background[:20]).values[:, 1].any()

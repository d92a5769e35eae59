"""Shares along straight lines: against a walk of 10,000 steps, and their sums."""

# ruff: noqa: E402  (the engine needs optional packages, asked for first)

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("numba")
xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

from oracles_trees import hard, random_rows, random_tree, trees_of
from tree_shelf import MODELS, THREE, TWO, X

from texplainer.explainer import TExplainer
from texplainer.gradients.trees.ensemble import assemble
from texplainer.gradients.trees.lines import crossing_places, line_shares, line_shares_by_bin, rank_thresholds
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.soft import with_half_widths

STEPS = 10_000


def stations(ensemble, b, x, place, switching):
    """The cells on the way, (STEPS + 1, features), as the library rounds them."""
    b, x = (end.astype(ensemble.dtype).astype(float) for end in (b, x))
    s = np.linspace(0, 1, STEPS + 1)[:, None]
    with np.errstate(invalid="ignore"):
        even = b + s * (x - b)
        even[-1] = np.where(np.isfinite(x - b), x, even[-1])
    stiff = switching | ~np.isfinite(x - b)
    return np.where(stiff, np.where(s < place, b, x), even)


def walked(ensemble, b, x, place, switching):
    """The shares of one line, (features, outputs), tree by tree and step by step.

    What a tree changes in a step belongs to the one feature that, moved alone, changes it by as much.
    """
    way = stations(ensemble, b, x, place, switching)
    shares = np.zeros((len(b), len(ensemble.base)))
    for tree in trees_of(ensemble):
        value = hard_fast(tree, ensemble.widen(way), len(ensemble.base))
        for at in np.flatnonzero((np.diff(value, axis=0) != 0).any(axis=1)):
            alone = np.repeat(way[at : at + 1], len(b), axis=0)
            np.fill_diagonal(alone, way[at + 1])
            moved = hard_fast(tree, ensemble.widen(alone), len(ensemble.base)) - value[at]
            gap = np.abs(moved - (value[at + 1] - value[at])).sum(axis=1)
            shares[np.argmin(gap)] += value[at + 1] - value[at]
    return shares


def hard_fast(tree, rows, outputs):
    node = np.zeros(len(rows), dtype=int)
    while (tree.left[node] >= 0).any():
        inner = tree.left[node] >= 0
        x = rows[np.arange(len(rows)), tree.column[node]]
        left = np.where(np.isnan(x), tree.missing_left[node], x <= tree.threshold[node])
        node = np.where(inner, np.where(left, tree.left[node], tree.right[node]), node)
    value = np.zeros((len(rows), outputs))
    value[:, tree.output : tree.output + tree.value.shape[1]] = tree.value[node]
    return value


def model_and_data(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name][0]()


@pytest.mark.parametrize("name", MODELS)
def test_equals_a_walk_of_many_steps_and_sums(name):
    model, data = model_and_data(name)
    ensemble = load(model)
    starts, rows = data[:3], data[40:43]
    found = line_shares(rank_thresholds(ensemble), starts, np.ones(3), np.arange(3), rows)
    raw = with_half_widths(ensemble, np.zeros(ensemble.features))
    change = raw(rows)[0][:, None] - raw(starts)[0]
    np.testing.assert_allclose(found.sum(axis=2), change, atol=1e-12 * np.abs(ensemble.value).max() * 100)
    switching = np.isin(np.arange(ensemble.features), [feature for feature, _ in ensemble.categories])
    place = crossing_places(np.arange(3), ensemble.features)
    for r, row in enumerate(rows):
        for line, start in enumerate(starts):
            twin = walked(ensemble, start, row, place[line], switching)
            np.testing.assert_allclose(found[r, line], twin, atol=1e-9 * max(1, np.abs(twin).max()))
    assert found.any()


@pytest.mark.parametrize("name", MODELS)
def test_sums_to_what_the_library_predicts(name):
    model, data = model_and_data(name)
    own, tolerance = MODELS[name][1:]
    starts, rows = data[:16], data[16:200]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own_starts, own_rows = (
            np.asarray(own(model, z), dtype=float).reshape(len(z), -1) for z in (starts, rows)
        )
    found = line_shares(rank_thresholds(load(model)), starts, np.full(16, 1 / 16), np.zeros(16, int), rows)
    change = own_rows - own_starts.mean(axis=0)
    np.testing.assert_allclose(found[:, 0].sum(axis=1), change, rtol=0, atol=tolerance * np.std(own_rows))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(0, 6), width=st.sampled_from([1, 1, 3]))
def test_wild_lines_sum_exactly(seed, depth, width):
    """Equal thresholds, cells on thresholds, ties, missing and infinite cells."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, 3, width, depth, wild=True) for _ in range(3)]
    ensemble = assemble(trees, features=3, base=np.zeros(width), link="identity")
    starts, rows = random_rows(rng, 5, 3, wild=True), random_rows(rng, 9, 3, wild=True)
    found = line_shares(rank_thresholds(ensemble, [2]), starts, np.ones(5), np.arange(5), rows)
    change = hard(trees, rows, width)[:, None] - hard(trees, starts, width)
    np.testing.assert_allclose(found.sum(axis=2), change, atol=1e-12)
    binned = line_shares_by_bin(rank_thresholds(ensemble, [2]), starts, np.arange(5), rows)
    np.testing.assert_allclose(binned.sum(axis=2), found, atol=1e-12)


def test_groups_weights_and_threads():
    ensemble = load(model_and_data("xgboost multiclass")[0])
    prepared, starts, rows = rank_thresholds(ensemble), X[:6], X[50:90]
    weights, groups = np.array([0.5, 0.25, 0.25, 2.0, -1.0, 0.3]), np.array([0, 2, 0, 2, 0, 2])
    found = line_shares(prepared, starts, weights, groups, rows, threads=1)
    assert found.shape == (40, 3, 4, 3) and not found[:, 1].any()
    for group in (0, 2):
        mine = groups == group
        alone = line_shares(prepared, starts[mine], weights[mine], np.zeros(3, int), rows)
        np.testing.assert_allclose(found[:, group], alone[:, 0], atol=1e-12)
    np.testing.assert_array_equal(line_shares(prepared, starts, weights, groups, rows, threads=3), found)


@pytest.mark.parametrize("width", [1, 3])
def test_same_bits_in_every_batch_order_and_thread_and_one_by_one(width):
    rng = np.random.default_rng(7)
    trees = [random_tree(rng, 5, width, 7) for _ in range(20)]
    prepared = rank_thresholds(assemble(trees, features=5, base=np.zeros(width), link="identity"), [1])
    starts, rows = random_rows(rng, 11, 5, wild=True), random_rows(rng, 300, 5, wild=True)
    weights, groups = rng.random(11), rng.integers(0, 2, 11)

    def shares(rows, **how):
        return line_shares(prepared, starts, weights, groups, rows, **how)

    whole, shuffled = shares(rows, threads=1), rng.permutation(300)
    np.testing.assert_array_equal(shares(rows[shuffled], threads=3), whole[shuffled])
    for at in (slice(0, 1), slice(3, 20), slice(100, 170)):
        np.testing.assert_array_equal(shares(rows[at]), whole[at])
    single = line_shares_by_bin(prepared, starts, groups, rows, bins=2).sum(axis=2)
    twin = np.stack([np.einsum("l,rlfo->rfo", weights * (groups == g), single) for g in (0, 1)], axis=1)
    np.testing.assert_allclose(whole, twin, atol=1e-12)


def test_columns_far_from_zero_keep_their_places():
    """Thresholds of 1e6 plus a little: float32 alone could not tell them apart."""
    rng = np.random.default_rng(8)
    trees = [random_tree(rng, 3, 1, 5) for _ in range(10)]
    starts, rows = rng.normal(size=(6, 3)), rng.normal(size=(40, 3))

    def shares(offset):
        moved = [replace(tree, threshold=tree.threshold + offset) for tree in trees]
        ensemble = assemble(moved, features=3, base=[0.0], link="identity")
        return line_shares(
            rank_thresholds(ensemble), starts + offset, np.ones(6), np.arange(6), rows + offset
        )

    np.testing.assert_allclose(shares(1e6), shares(0.0), atol=1e-9)


def test_unused_features_get_nothing_and_shares_are_linear():
    rng = np.random.default_rng(5)
    trees = [random_tree(rng, 3, 1, 5) for _ in range(8)]
    starts, rows = rng.normal(size=(4, 4)), rng.normal(size=(10, 4))

    def shares(trees):
        ensemble = assemble(trees, features=4, base=[0.0], link="identity")
        return line_shares(rank_thresholds(ensemble), starts, np.full(4, 0.25), np.zeros(4, int), rows)

    assert not shares(trees)[:, :, 3].any()
    np.testing.assert_allclose(shares(trees), shares(trees[:3]) + shares(trees[3:]), atol=1e-12)


def test_no_tie_hangs_on_bits():
    """All features cross at the same place, at any scale: round-off of the cells changes nothing."""
    rng = np.random.default_rng(6)
    trees = [random_tree(rng, 4, 1, 5) for _ in range(10)]
    for tree in trees:
        tree.threshold[:] = np.round(tree.threshold)
    ensemble = assemble(trees, features=4, base=[0.0], link="identity")
    starts, rows = np.full((8, 4), -3.3), np.full((5, 4), 2.9)

    def shares(starts, rows):
        return line_shares(rank_thresholds(ensemble), starts, np.full(8, 1 / 8), np.zeros(8, int), rows)

    noise = 1 + 1e-13 * rng.normal(size=(5, 4))
    np.testing.assert_allclose(shares(starts, rows * noise), shares(starts, rows), atol=1e-12)


def test_places_are_fixed_pairs_spread_over_the_way():
    place = crossing_places(np.repeat([0, 1], [64, 65]), 6)
    np.testing.assert_allclose(place[:64:2] + place[1:64:2], 1.0)
    np.testing.assert_array_equal(place[:64], place[64:128])
    assert (place[128] == 0.5).all() and (place > 0).all() and (place < 1).all()
    gaps = np.diff(np.sort(np.vstack([np.zeros((1, 6)), place[:64], np.ones((1, 6))]), axis=0), axis=0)
    assert gaps.max() < 0.06


# --- as an explainer meets them
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["probability", "log-odds"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["binary", "multiclass"])
@pytest.mark.parametrize("kind", [xgb.XGBClassifier, lgb.LGBMClassifier, RandomForestClassifier])
def test_sums_on_the_explained_scale(kind, y, scale):
    quiet = {"verbose": -1} if kind is lgb.LGBMClassifier else {}
    model = kind(n_estimators=20, max_depth=4, n_jobs=1, **quiet).fit(X, y)
    explainer = TExplainer(model, X, scale=scale, output="all")
    starts, rows, groups = X[:10], X[100:130], np.arange(10) % 2
    shares = explainer.engine.lines(starts, np.full(10, 0.2), groups, rows)
    assert shares.shape == (30, 2, 4, len(explainer.predictor.outputs))
    at = explainer.predictor(starts)
    base = np.stack([at[groups == group].mean(axis=0) for group in (0, 1)])
    change = explainer.predictor(rows)[:, None] - base
    known = np.abs(change) < 20
    atol = (1e-5 if kind is xgb.XGBClassifier else 1e-10) * change[known].std()
    np.testing.assert_allclose(shares.sum(axis=2)[known], change[known], rtol=0, atol=atol)


def test_the_link_is_passed_jump_by_jump():
    """Eight parts of the way come near to every single jump, though a few thresholds carry most of the change."""
    model = xgb.XGBClassifier(n_estimators=30, max_depth=4, n_jobs=1).fit(X, TWO)
    explainer = TExplainer(model, X, scale="probability")
    starts, rows = X[:4], X[100:140]
    found = explainer.engine.lines(starts, np.ones(4), np.arange(4), rows)[..., 0]
    prepared = rank_thresholds(load(model))
    fine = line_shares_by_bin(prepared, starts, np.arange(4), rows, bins=4096)[..., 0]
    raw = with_half_widths(load(model), np.zeros(4))(starts)[0][:, 0]
    edge = raw[:, None] + np.cumsum(fine.sum(axis=3), axis=2)
    p = 1 / (1 + np.exp(-np.concatenate([np.broadcast_to(raw, edge.shape[:2])[:, :, None], edge], axis=2)))
    step = fine.sum(axis=3)
    slope = np.where(step == 0, 0, np.diff(p, axis=2) / np.where(step == 0, 1, step))
    twin = np.einsum("rlb,rlbf->rlf", slope, fine)
    assert np.abs(found - twin).mean() < 0.2 * np.abs(twin).mean()


def test_scalers_in_front_are_passed_and_mixing_is_not():
    pipe = make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0)).fit(X, TWO)
    explainer = TExplainer(pipe, X)
    found = explainer.engine.lines(X[:4], np.full(4, 0.25), np.zeros(4, int), X[50:60])
    change = explainer.predictor(X[50:60]) - explainer.predictor(X[:4]).mean(axis=0)
    np.testing.assert_allclose(found[:, 0].sum(axis=1), change, atol=1e-12)
    mixed = make_pipeline(PCA(4), RandomForestClassifier(10, random_state=0)).fit(X, TWO)
    assert TExplainer(mixed, X).engine.lines is None


def test_a_category_of_the_schema_switches_at_one_place():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(rng.choice(list("zyxw"), len(X)))})
    y = (frame["c"].isin(["x", "z"]) ^ (frame["a"] > 0)).astype(int)
    model = xgb.XGBClassifier(n_estimators=10, max_depth=3, enable_categorical=True, n_jobs=1).fit(frame, y)
    explainer = TExplainer(model, frame, scale="log-odds")
    rows = explainer.schema.read(frame)
    found = explainer.engine.lines(rows[:16], np.full(16, 1 / 16), np.zeros(16, int), rows[20:60])
    change = explainer.predictor(rows[20:60]) - explainer.predictor(rows[:16]).mean(axis=0)
    np.testing.assert_allclose(found[:, 0].sum(axis=1), change, atol=1e-5 * change.std())
    assert found[:, 0, 1].any()

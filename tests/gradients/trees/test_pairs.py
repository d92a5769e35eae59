"""Shapley interaction values of trees against the enumeration of all subsets, XGBoost's own, and their laws."""

from itertools import product
from math import factorial

import numpy as np
import pytest

pytest.importorskip("numba")

from oracles_trees import hard, random_rows, random_tree, trees_of
from tree_shelf import MODELS

from texplainer.gradients.trees.ensemble import assemble, compared
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import cover_tables, pattern_tables


def enumerated(ensemble, row, background, owner):
    """The definition: half of every pair's index, and on the diagonal the rest of the Shapley value."""
    players, trees = int(max(owner)) + 1, list(trees_of(ensemble))
    worth = {}
    for present in product([False, True], repeat=players):
        mixed = np.where(np.array(present)[owner], row, background)
        cells = compared(ensemble, ensemble.widen(mixed))
        worth[present] = hard(trees, cells, len(ensemble.base)).mean(axis=0)

    def at(present, *added):
        return worth[tuple(one or j in added for j, one in enumerate(present))]

    values = np.zeros((players, players, len(ensemble.base)))
    for i, present in product(range(players), worth):
        if present[i]:
            continue
        size = sum(present)
        share = factorial(size) * factorial(players - 1 - size) / factorial(players)
        values[i, i] += share * (at(present, i) - at(present))
        for j in range(players):
            if j != i and not present[j]:
                share = factorial(size) * factorial(players - 2 - size) / factorial(players - 1)
                index = at(present, i, j) - at(present, i) - at(present, j) + at(present)
                values[i, j] += share * index / 2
                values[i, i] -= share * index / 2
    return values


@pytest.mark.parametrize(
    ("depth", "owner"), [(1, range(5)), (4, range(5)), (8, range(5)), (7, (0, 1, 1, 2, 0))]
)
def test_random_trees_equal_the_enumeration(depth, owner):
    rng = np.random.default_rng(depth)
    trees = [random_tree(rng, 5, 2, depth) for _ in range(3)]
    ensemble = assemble(trees, features=5, base=np.zeros(2), link="identity")
    background, rows = random_rows(rng, 23, 5, wild=True), random_rows(rng, 3, 5, wild=True)
    found = pattern_tables(ensemble, background, owner=np.array(owner)).pairs(rows)
    for row, values in zip(rows, found, strict=True):
        expected = enumerated(ensemble, row, background, np.array(owner))
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "name", ["xgboost binary", "lightgbm multiclass", "histogram binary", "forest binary"]
)
def test_libraries_equal_the_enumeration(name):
    """With missing values."""
    model, data = MODELS[name][0]()
    ensemble, background, rows = load(model), data[:20], data[100:102]
    tables = pattern_tables(ensemble, background)
    found = tables.pairs(rows)
    for row, values in zip(rows, found, strict=True):
        expected = enumerated(ensemble, row, background, np.arange(data.shape[1]))
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.sum(axis=2), tables(rows), atol=1e-12)
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))


def test_long_paths_equal_shorter_ones_with_their_features_joined():
    """Paths of more features than tables have bits: rows by background rows. Owners join them into few."""
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, 16, 1, 14) for _ in range(2)]
    ensemble = assemble(trees, features=16, base=[0.0], link="identity")
    background, rows = random_rows(rng, 30, 16, wild=True), random_rows(rng, 5, 16, wild=True)
    long = pattern_tables(ensemble, background)
    assert long.groups.deep.any()
    found = long.pairs(rows)[..., 0]
    np.testing.assert_allclose(found.sum(axis=2), long(rows)[..., 0], atol=1e-12)
    # the index of a pair that is alone with a third player: all other features move together
    owner = np.full(16, 2)
    owner[[3, 7]] = 0, 1
    joined = pattern_tables(ensemble, background, owner=owner).pairs(rows)[..., 0]
    for row, values in zip(rows, joined, strict=True):
        expected = enumerated(ensemble, row, background, owner)[..., 0]
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_sums_over_sets_and_single_background_rows_agree():
    """The two ways to a leaf's pairs, on the same leaf."""
    import numba

    from texplainer.gradients.trees.kernels.pairs import _background_pairs, _tabulated_pairs
    from texplainer.gradients.trees.kernels.patterns import superset_sums

    # helpers have no wrappers for calls from Python
    add_up = numba.njit(lambda game, d, weight, sums: superset_sums(game, d, weight, sums))
    tabulated = numba.njit(lambda game, d, u, sums, out: _tabulated_pairs(game, d, u, sums, out))
    by_rows = numba.njit(lambda game, d, u, masks, out: _background_pairs(game, d, u, masks, out))
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 4, 1, 2)
    game = pattern_tables(
        assemble([tree], features=4, base=[0.0], link="identity"), random_rows(rng, 12, 4, False)
    ).game
    for d in (2, 5, 9):
        masks = rng.integers(1 << d, size=12).astype(np.uint64) | np.uint64(rng.integers(1 << d))
        weight, sums = np.bincount(masks.astype(int), game.weight, minlength=1 << d), np.empty((8, 1 << d))
        add_up(game, d, weight, sums)
        for u in range(1 << d):
            one, two = np.zeros((d, d)), np.zeros((64, 64))
            tabulated(game, d, u, sums, one)
            by_rows(game, d, np.uint64(u), masks, two)
            np.testing.assert_allclose(one, two[:d, :d], atol=1e-12)


@pytest.mark.parametrize("name", ["xgboost binary", "xgboost categories", "xgboost multiclass"])
def test_path_dependent_pairs_are_those_of_xgboost(name):
    xgb = pytest.importorskip("xgboost")
    model, data = MODELS[name][0]()
    found = cover_tables(load(model)).pairs(data[:10])
    table = xgb.DMatrix(data[:10], feature_types=model.feature_types, enable_categorical=True)
    own = model.get_booster().predict(table, pred_interactions=True)
    own = own.reshape(10, -1, *own.shape[-2:]).transpose(0, 2, 3, 1)[:, :-1, :-1]
    np.testing.assert_allclose(found, own, atol=1e-5)

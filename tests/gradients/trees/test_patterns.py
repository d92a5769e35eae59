"""Exact Shapley values of trees against the enumeration of all subsets, and their laws."""

from itertools import product
from math import factorial

import numpy as np
import pytest

pytest.importorskip("numba")

from oracles_trees import hard, trees_of
from random_trees import random_ensemble, random_rows
from tree_shelf import MODELS

from texplainer.gradients.trees import shapley
from texplainer.gradients.trees.ensemble import Tree, assemble, compared
from texplainer.gradients.trees.readers.table import load
from texplainer.gradients.trees.shapley import pattern_tables


def predict(ensemble, inputs):
    """The raw sums of the hard trees."""
    cells = compared(ensemble, ensemble.widen(inputs))
    return hard(list(trees_of(ensemble)), cells, len(ensemble.base), ensemble.base)


def enumerated(f, row, background, weights, owner):
    """Shapley values by their definition: f of all mixtures, all subsets; `owner` of every input."""
    features = int(max(owner)) + 1
    worth = {}
    for present in product([False, True], repeat=features):
        mixed = np.where(np.array(present)[owner], row, background)
        worth[present] = weights @ f(mixed)
    values = np.zeros((features, len(worth[present])))
    for j in range(features):
        for present in worth:
            if not present[j]:
                size = sum(present)
                share = factorial(size) * factorial(features - 1 - size) / factorial(features)
                after = (*present[:j], True, *present[j + 1 :])
                values[j] += share * (worth[after] - worth[present])
    return values


@pytest.mark.parametrize("backgrounds", [1, 37, 130])
@pytest.mark.parametrize("depth", [1, 3, 6, 9])
def test_random_trees_equal_the_enumeration(depth, backgrounds):
    rng = np.random.default_rng(depth)
    ensemble = random_ensemble(rng, depth=depth, width=2)
    background, rows = random_rows(rng, backgrounds), random_rows(rng, 3)
    weights = rng.random(backgrounds)
    weights /= weights.sum()
    found = pattern_tables(ensemble, background, weights=weights)(rows)
    for row, values in zip(rows, found, strict=True):
        expected = enumerated(lambda z: predict(ensemble, z), row, background, weights, np.arange(6))
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("features", [9, 14])
def test_deep_leaves_are_completed_by_the_background(features):
    """Leaves of more features than tables have bits: by sums over sets, and by classes of the background."""
    rng = np.random.default_rng(3)
    chain = features  # one long path, a leaf beside every split
    left = np.array([i for k in range(chain) for i in (2 * k + 1, -1)] + [-1])
    right = np.array([i for k in range(chain) for i in (2 * k + 2, -1)] + [-1])
    column = np.array([c for k in range(chain) for c in (k % features, 0)] + [0])
    tree = Tree(
        left,
        right,
        column,
        np.full(len(left), -1.0),
        np.zeros(len(left), bool),
        rng.normal(size=(len(left), 1)),
    )
    ensemble = assemble([tree], features=features, base=[0.0], link="identity")
    background, rows = rng.normal(size=(20, features)), rng.normal(size=(4, features)) - 0.5
    tables = pattern_tables(ensemble, background)
    assert tables.groups.deep.any() == (features > 10)
    found = tables(rows)[:, :, 0]
    weights = np.full(20, 1 / 20)
    expected = enumerated(lambda z: predict(ensemble, z), rows[0], background, weights, np.arange(features))
    np.testing.assert_allclose(found[0], expected[:, 0], rtol=1e-10, atol=1e-13)
    gap = predict(ensemble, rows)[:, 0] - predict(ensemble, background)[:, 0].mean()
    np.testing.assert_allclose(found.sum(axis=1), gap, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_library_equals_the_enumeration(name):
    """All readers: missing values, categories, several outputs, weights of trees."""
    make, _, _ = MODELS[name]
    model, data = make()
    ensemble = load(model)
    background, rows = data[:37], data[100:102]
    found = pattern_tables(ensemble, background)(rows)
    for row, values in zip(rows, found, strict=True):
        expected = enumerated(
            lambda z: predict(ensemble, z), row, background, np.full(37, 1 / 37), np.arange(data.shape[1])
        )
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-11)


def test_inputs_of_one_feature_are_one_player():
    """Inputs made from one raw column, as by a one-hot encoder, enter a mixture together."""
    rng = np.random.default_rng(5)
    ensemble = random_ensemble(rng, depth=7)
    owner = np.array([0, 1, 1, 2, 0, 2])
    background, rows = random_rows(rng, 40), random_rows(rng, 3)
    found = pattern_tables(ensemble, background, owner=owner)(rows)
    for row, values in zip(rows, found, strict=True):
        expected = enumerated(lambda z: predict(ensemble, z), row, background, np.full(40, 1 / 40), owner)
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("depth", [4, 14])
def test_a_row_is_bit_identical_whatever_else_is_in_the_batch(depth):
    rng = np.random.default_rng(7)
    ensemble = random_ensemble(rng, depth=depth, features=20, trees=4)
    tables = pattern_tables(ensemble, random_rows(rng, 100, 20))
    rows = random_rows(rng, 3000, 20)
    together = tables(rows)
    assert (tables(rows, threads=1) == together).all()
    for i in (0, 1234, 2999):
        assert (tables(rows[i : i + 1])[0] == together[i]).all()


@pytest.mark.parametrize("backgrounds", [7, 90, 300])
@pytest.mark.parametrize("rows", [1, 50, 200])
def test_whichever_side_is_pruned_the_values_equal_those_of_one_background_row_at_a_time(rows, backgrounds):
    rng = np.random.default_rng(5)
    ensemble = random_ensemble(rng, depth=14)
    background, cells = random_rows(rng, backgrounds), random_rows(rng, rows)
    tables = pattern_tables(ensemble, background)
    assert tables.groups.deep.any()
    single = np.mean([pattern_tables(ensemble, row[None])(cells) for row in background], axis=0)
    np.testing.assert_allclose(tables(cells), single, rtol=1e-10, atol=1e-13)


def test_tables_that_exceed_memory_are_made_in_parts():
    rng = np.random.default_rng(8)
    ensemble = random_ensemble(rng, depth=5, trees=9)
    background, rows = random_rows(rng, 50), random_rows(rng, 20)
    whole = pattern_tables(ensemble, background)
    parts = type(whole)(whole.ensemble, whole.nodes, whole.groups, whole.game, whole.features, memory=3000)
    assert len(parts._parts()) > 2
    np.testing.assert_array_equal(parts(rows), whole(rows))
    assert not parts._kept
    assert whole._kept


def test_tables_are_smaller_where_large_ones_do_not_fit_into_memory(monkeypatch):
    """Tables that are not kept are filled again in every call: 9 s for one row of a forest of 200 trees."""
    rng = np.random.default_rng(8)
    ensemble = random_ensemble(rng, depth=6, trees=20)
    background, rows = random_rows(rng, 50), random_rows(rng, 20)
    large = pattern_tables(ensemble, background)
    monkeypatch.setattr(shapley, "MEMORY", int(large.groups.table[-1]) // 2)
    small = pattern_tables(ensemble, background)
    assert 0 < small.groups.table[-1] <= shapley.MEMORY
    np.testing.assert_allclose(small(rows), large(rows), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("depth", [5, 14])
def test_a_large_block_shows_its_progress_and_steps_change_no_bit(depth, monkeypatch):
    rng = np.random.default_rng(9)
    ensemble = random_ensemble(rng, depth=depth, features=20, trees=9)
    background, rows = random_rows(rng, 50, 20), random_rows(rng, 300, 20)
    whole, seen = pattern_tables(ensemble, background)(rows), []
    monkeypatch.setattr(shapley, "MANY_NODES", len(rows))
    monkeypatch.setattr(shapley, "track", lambda tasks, label, *_: seen.append((label, len(tasks))) or tasks)
    np.testing.assert_array_equal(pattern_tables(ensemble, background)(rows), whole)
    assert ("adding up trees" if depth == 5 else "adding up deep leaves", 9) in seen


def test_symmetry_dummy_and_linearity():
    rng = np.random.default_rng(9)
    ensemble = random_ensemble(rng, depth=5, features=5)
    other = random_ensemble(rng, depth=4, features=5)
    background, rows = random_rows(rng, 60), random_rows(rng, 10)
    assert (
        pattern_tables(
            assemble(list(trees_of(ensemble)), features=6, base=[0.0], link="identity"), background
        )(rows)[:, 5]
        == 0
    ).all()
    background, rows = background[:, :5], rows[:, :5]
    both = assemble([*trees_of(ensemble), *trees_of(other)], features=5, base=[0.0], link="identity")
    apart = pattern_tables(ensemble, background)(rows) + pattern_tables(other, background)(rows)
    np.testing.assert_allclose(pattern_tables(both, background)(rows), apart, atol=1e-13)
    order = np.array([3, 1, 4, 0, 2])
    renamed = [
        Tree(t.left, t.right, np.argsort(order)[t.column], t.threshold, t.missing_left, t.value)
        for t in trees_of(ensemble)
    ]
    moved = assemble(renamed, features=5, base=[0.0], link="identity")
    values = pattern_tables(ensemble, background)(rows)
    np.testing.assert_allclose(
        pattern_tables(moved, background[:, order])(rows[:, order]), values[:, order], atol=1e-13
    )


def test_increasing_transformations_and_equivalent_thresholds_change_nothing():
    rng = np.random.default_rng(10)
    ensemble = random_ensemble(rng, depth=6, missing=False)
    background, rows = rng.normal(size=(60, 6)), rng.normal(size=(10, 6))
    values = pattern_tables(ensemble, background)(rows)
    bent = [
        Tree(t.left, t.right, t.column, np.exp(t.threshold), t.missing_left, t.value)
        for t in trees_of(ensemble)
    ]
    bent = assemble(bent, features=6, base=[0.0], link="identity")
    np.testing.assert_array_equal(pattern_tables(bent, np.exp(background))(np.exp(rows)), values)
    observed = np.vstack([background, rows])

    def lowered(tree):
        columns = observed[:, tree.column]  # (rows, nodes)
        below = np.where(columns <= tree.threshold, columns, -np.inf).max(axis=0)
        return Tree(
            tree.left, tree.right, tree.column, np.maximum(below, -1e6), tree.missing_left, tree.value
        )

    other = assemble([lowered(t) for t in trees_of(ensemble)], features=6, base=[0.0], link="identity")
    np.testing.assert_array_equal(pattern_tables(other, background)(rows), values)


def test_a_background_of_20_000_rows_equals_the_enumeration():
    rng = np.random.default_rng(11)
    ensemble = random_ensemble(rng, depth=6, features=4, trees=2)
    background, rows = random_rows(rng, 20_000, 4), random_rows(rng, 2, 4)
    weights = np.full(20_000, 1 / 20_000)
    # the twin predicts distinct mixtures of outcomes once: rows that satisfy the same conditions are one
    splits = {
        (int(t.column[n]), float(t.threshold[n]))
        for t in trees_of(ensemble)
        for n in np.flatnonzero(t.left >= 0)
    }
    assert len(splits) > 10
    found = pattern_tables(ensemble, background, weights=weights)(rows)

    def f(inputs):
        bins = np.column_stack(
            [
                np.where(
                    np.isnan(inputs[:, j]),
                    -1,
                    np.searchsorted(sorted(t for c, t in splits if c == j), inputs[:, j]),
                )
                for j in range(4)
            ]
        )
        _, first, which = np.unique(bins, axis=0, return_index=True, return_inverse=True)
        return predict(ensemble, inputs[first])[which.reshape(-1)]

    for row, values in zip(rows, found, strict=True):
        expected = enumerated(f, row, background, weights, np.arange(4))
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-11)

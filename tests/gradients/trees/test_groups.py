"""The cut of trees into groups, against a recursion over one tree and the truth of conditions."""

import numpy as np
import pytest

pytest.importorskip("numba")

from random_trees import random_ensemble, random_rows

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT, Tree, assemble
from texplainer.gradients.trees.groups import LARGE_TABLE
from texplainer.gradients.trees.kernels.patterns import MAX_BITS, MAX_LEAVES
from texplainer.gradients.trees.shapley import columns_of, pattern_tables


def is_leaf(nodes, node):
    return nodes.kind[node] & LEAF != 0


def split_of(nodes, node):
    return nodes.column[node], nodes.threshold[node], nodes.kind[node] & MISSING_LEFT


def cheapest(nodes, node, path):
    """The cost of a subtree, its groups (their first nodes) and its leaves without tables."""
    inside = [at for at in range(node, nodes.end[node]) if not is_leaf(nodes, at)]
    bits = len(path) + len({split_of(nodes, at) for at in inside})
    features = path | {nodes.feature[at] for at in inside}
    own = len(features) * (1 + 2**bits / LARGE_TABLE) if bits <= MAX_BITS else np.inf
    if is_leaf(nodes, node):
        return (own, [node], []) if own <= 8 * len(path) else (8 * len(path), [], [node])
    below = [cheapest(nodes, c, path | {nodes.feature[node]}) for c in (node + 1, nodes.right[node])]
    if own <= below[0][0] + below[1][0]:
        return own, [node], []
    return tuple(a + b for a, b in zip(*below, strict=True))


def conditions_of(nodes, leaf, cells):
    """Which features of a leaf's path are satisfied, by feature."""
    met, child = {}, leaf
    while nodes.parent[child] >= 0:
        at = nodes.parent[child]
        x = cells[nodes.column[at]]
        left = nodes.kind[at] & MISSING_LEFT != 0 if np.isnan(x) else x <= nodes.threshold[at]
        met[nodes.feature[at]] = met.get(nodes.feature[at], True) and left == (child == at + 1)
        child = at
    return met


def went_left(nodes, node, x):
    return nodes.kind[node] & MISSING_LEFT != 0 if np.isnan(x) else x <= nodes.threshold[node]


@pytest.mark.parametrize("features", [6, 25])
@pytest.mark.parametrize("depth", [0, 1, 4, 7, 9])
def test_the_cut_is_the_cheapest(depth, features):
    rng = np.random.default_rng([depth, features])
    ensemble = random_ensemble(rng, depth=depth, features=features, trees=4)
    owner = np.maximum(np.arange(features) - 1, 0)  # two inputs of one feature
    tables = pattern_tables(ensemble, random_rows(rng, 5, features), owner=owner)
    nodes, groups = tables.nodes, tables.groups
    for tree in range(4):
        first, last = nodes.roots[tree], nodes.roots[tree + 1]
        leaves = [n for n in range(first, last) if is_leaf(nodes, n)]
        roots, deep = [], leaves
        if len(leaves) <= MAX_LEAVES:
            _, roots, deep = cheapest(nodes, first, set())
        own = range(groups.first_group[tree], groups.first_group[tree + 1])
        found = [list(groups.leaf[groups.first_leaf[g] : groups.first_leaf[g + 1]]) for g in own]
        held = [[n for n in leaves if root <= n < nodes.end[root]] for root in roots]
        assert found == ([] if len(leaves) == 1 else held)
        for node in range(first, last):
            assert groups.deep[node] == any(node <= leaf < nodes.end[node] for leaf in deep)


@pytest.mark.parametrize("depth", [1, 4, 7])
def test_a_group_describes_the_conditions_of_its_leaves(depth):
    rng = np.random.default_rng([depth, 2])
    ensemble = random_ensemble(rng, depth=depth)
    tables = pattern_tables(ensemble, random_rows(rng, 5), owner=np.array([0, 1, 1, 2, 3, 4]))
    nodes, groups = tables.nodes, tables.groups
    tree_of = np.searchsorted(groups.first_group, np.arange(len(groups.table) - 1), side="right") - 1
    assert len(tree_of) > 0
    for cells in columns_of(ensemble, random_rows(rng, 10)).T:
        for g, tree in enumerate(tree_of):
            pattern, root = 0, nodes.roots[tree]
            for place, bit in enumerate(range(groups.first_bit[g], groups.first_bit[g + 1])):
                literals = groups.literal[groups.first_literal[bit] : groups.first_literal[bit + 1]]
                at = [root + (n if n >= 0 else ~n) for n in literals]
                holds = [
                    went_left(nodes, a, cells[nodes.column[a]]) == (n >= 0)
                    for a, n in zip(at, literals, strict=True)
                ]
                pattern |= all(holds) << place
            for place in range(groups.first_leaf[g], groups.first_leaf[g + 1]):
                begin, end = groups.first_condition[place : place + 2]
                met = {}
                for i, ones, zeros in groups.condition[begin:end]:
                    feature = groups.feature[groups.first_feature[g] + i]
                    met[feature] = pattern & ones == ones and pattern & zeros == 0
                assert met == conditions_of(nodes, groups.leaf[place], cells)


@pytest.mark.parametrize("features", [63, 64])
def test_a_path_of_more_features_than_bits_of_a_word_is_refused(features):
    count = 2 * features + 1  # a chain of splits, every left child a leaf
    inner = np.arange(count) % 2 == 0
    inner[-1] = False
    left = np.where(inner, np.arange(count) + 1, -1)
    right = np.where(inner, np.arange(count) + 2, -1)
    column = np.where(inner, np.arange(count) // 2, 0)
    tree = Tree(left, right, column, np.zeros(count), np.zeros(count, bool), np.ones((count, 1)))
    ensemble = assemble([tree], features=features, base=np.zeros(1), link="identity")
    if features == 63:
        assert pattern_tables(ensemble, np.zeros((2, features))).nodes.depth == features
        return
    with pytest.raises(Unsupported, match="more than 63 distinct features"):
        pattern_tables(ensemble, np.zeros((2, features)))

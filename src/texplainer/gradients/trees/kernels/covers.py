"""Compiled loops of the path-dependent Shapley values: cover ratios in place of background rows.

An absent feature i satisfies the conditions of a leaf's path with "probability" r_i, the product of the cover
ratios at its splits. With u_i = 1 where the row satisfies them, else 0, the leaf's values are integrals of
products over its features,

    v (u_i - r_i) times the integral over t of the product of (r_j + (u_j - r_j) t), j other than i,

which Gauss-Legendre quadrature gives exactly. Shallow leaves have tables, as in `patterns`. Deep ones are
visited row by row: the products of a path are kept on the way down, their sums added up on the way back.
"""

# pyright: basic

from __future__ import annotations

import numpy as np

from texplainer.gradients.machine_code import compiled, helper
from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT
from texplainer.gradients.trees.kernels.patterns import (
    BLOCK,
    LANES,
    MAX_BITS,
    add_leaf_table,
    path_features,
    pattern_values,
)


@compiled("patterns")
def fill_cover_tables(nodes, groups, game, table, first, last):
    """As `patterns.fill_tables`, for trees ``first..last``."""
    ratio, leaf_table = np.empty(MAX_BITS), np.empty((1 << MAX_BITS, MAX_BITS))
    sums = np.empty((LANES, 1 << MAX_BITS))
    origin = groups.table[groups.first_group[first]]
    table[:] = 0.0
    for g in range(groups.first_group[first], groups.first_group[last]):
        for at in range(groups.first_leaf[g], groups.first_leaf[g + 1]):
            d = _cover_ratios(nodes, groups, g, at, ratio)
            _cover_sums(game, d, ratio, sums)
            for u in range(1 << d):
                pattern_values(game, d, u, sums, leaf_table[u])
            add_leaf_table(nodes, groups, g, at, leaf_table, table, origin)


@helper
def _cover_ratios(nodes, groups, g, at, ratio):
    """The cover ratios of a leaf's features, all splits on a feature multiplied; how many features."""
    begin, end = groups.first_condition[at], groups.first_condition[at + 1]
    for i in range(end - begin):
        feature = groups.feature[groups.first_feature[g] + groups.condition[begin + i, 0]]
        ratio[i] = 1.0
        child = groups.leaf[at]
        while nodes.parent[child] >= 0:
            if nodes.feature[nodes.parent[child]] == feature:
                ratio[i] *= nodes.ratio[child]
            child = nodes.parent[child]
    return end - begin


@helper
def _cover_sums(game, d, ratio, sums):
    """As `patterns.superset_sums`, where condition i holds with "probability" ratio[i], whatever the others."""
    for k in range((d + 1) // 2):
        t, own = game.place[d, k], sums[k]
        own[0] = 1.0
        for i in range(d):
            for m in range(1 << i):
                own[m + (1 << i)] = own[m] * ratio[i]
                own[m] *= ratio[i] + (1.0 - ratio[i]) * t


@helper
def _most_features(nodes, groups, tree, found):
    """The largest number of distinct features on a path to a leaf without a table."""
    most = 0
    for node in range(nodes.roots[tree], nodes.roots[tree + 1]):
        if nodes.kind[node] & LEAF and groups.deep[node]:
            most = max(most, path_features(nodes, node, found))
    return most


@compiled("patterns")
def add_deep_cover_values(nodes, groups, game, cells, values, first_tree, last_tree, first, last):
    """Add the values of rows ``first..last`` by the leaves without tables to `values` (outputs, features, rows)."""
    levels, width, places = nodes.depth + 2, nodes.value.shape[1], game.place.shape[1]
    product, below = np.ones((levels, places)), np.empty((levels, width, places))
    change, at = np.empty((levels, places)), np.empty(levels, np.int64)  # of (u - r) / (r + (u - r) t)
    ratio, holds = np.ones(values.shape[1]), np.ones(values.shape[1])  # of each feature on the path
    old_ratio, old_holds = np.empty(levels), np.empty(levels)
    own, found = np.zeros((width, values.shape[1])), np.empty(nodes.depth + 1, np.int64)
    for start in range(first, last, BLOCK):
        for tree in range(first_tree, last_tree):
            root, end = nodes.roots[tree], nodes.roots[tree + 1]
            if not groups.deep[root] or nodes.kind[root] & LEAF:
                continue
            d = _most_features(nodes, groups, tree, found)
            points, place, mass = (d + 1) // 2, game.place[d], game.mass[d]
            for r in range(start, min(start + BLOCK, last)):
                own[:] = 0.0
                at[0], level, node = root, 0, root + 1
                below[0] = 0.0
                while True:
                    while level > 0 and (node >= nodes.end[at[level]]):  # back from a subtree
                        feature = nodes.feature[nodes.parent[at[level]]]
                        for w in range(width):
                            total = 0.0
                            for k in range(points):
                                total += mass[k] * below[level, w, k] * change[level, k]
                                below[level - 1, w, k] += below[level, w, k]
                            own[w, feature] += total
                        ratio[feature], holds[feature] = old_ratio[level], old_holds[level]
                        level -= 1
                    if node >= end:
                        break
                    if not groups.deep[node]:
                        node = nodes.end[node]
                        continue
                    parent = nodes.parent[node]
                    feature, x = nodes.feature[parent], cells[nodes.column[parent], r]
                    went_left = x <= nodes.threshold[parent]
                    if nodes.kind[parent] & MISSING_LEFT:
                        went_left = not (x > nodes.threshold[parent])
                    r0, u0 = ratio[feature], holds[feature]
                    r1, u1 = r0 * nodes.ratio[node], u0 if went_left == (node == parent + 1) else 0.0
                    if r1 == 0.0 and u1 == 0.0:  # reached by no mixture
                        node = nodes.end[node]
                        continue
                    level += 1
                    at[level], old_ratio[level], old_holds[level] = node, r0, u0
                    ratio[feature], holds[feature] = r1, u1
                    for k in range(points):
                        before, after = r0 + (u0 - r0) * place[k], r1 + (u1 - r1) * place[k]
                        product[level, k] = product[level - 1, k] * after / before
                        change[level, k] = (u1 - r1) / after - (u0 - r0) / before
                    if nodes.kind[node] & LEAF:
                        for w in range(width):
                            below[level, w, :points] = (
                                nodes.value[nodes.right[node], w] * product[level, :points]
                            )
                    else:
                        below[level] = 0.0
                    node += 1
                for w in range(width):
                    for feature in range(values.shape[1]):
                        values[nodes.output[tree] + w, feature, r] += own[w, feature]

"""Compiled loops of the exact Shapley values of trees.

A *pattern* says which conditions of a path a row satisfies, one bit a feature. Shallow trees are cut into
groups of neighbouring leaves; a group's pattern has a bit for every feature of the path to it and one for
every split inside it, and a table holds the Shapley values of every pattern. Deep leaves have no tables: the
rows of a block are kept in classes of equal patterns on the way down, and the values of a class are computed
once from the distinct patterns of the background rows.

Rows are stored column by column, (columns, rows). Bytes of outcomes are 255 where a row goes left.
"""

# pyright: basic

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from texplainer.gradients.machine_code import compiled, helper
from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT

BLOCK = 2048  # rows processed together: their patterns and values stay in cache
MAX_BITS = 10  # of a table's patterns
MAX_LEAVES = 128  # of a tree that gets tables
LANES = 8  # of quadrature: exact for up to 16 features
MAX_FEATURES = 63  # distinct features on one path: bits of a word


class Nodes(NamedTuple):
    """An ensemble's nodes in preorder, as the kernels read them."""

    kind: np.ndarray  # (nodes,) uint8
    column: np.ndarray  # (nodes,) int64
    feature: np.ndarray  # (nodes,) int64: the raw feature of the column
    threshold: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,) int64; at a leaf, its row of `value`
    parent: np.ndarray  # (nodes,) int64; -1 at a root
    end: np.ndarray  # (nodes,) int64: one past the node's subtree
    ratio: np.ndarray  # (nodes,) the node's cover over its parent's
    roots: np.ndarray  # (trees + 1,) int64
    output: np.ndarray  # (trees,) int64
    value: np.ndarray  # (leaves, width)
    depth: int


class Groups(NamedTuple):
    """Groups of leaves that share a table. `first_*` arrays have one entry more than what they index."""

    first_group: np.ndarray  # (trees + 1,)
    first_bit: np.ndarray  # (groups + 1,)
    first_literal: np.ndarray  # (bits + 1,)
    literal: np.ndarray  # (literals,) node within the tree, negative (~node) where the row must go right
    first_feature: np.ndarray  # (groups + 1,)
    feature: np.ndarray  # (group features,)
    first_leaf: np.ndarray  # (groups + 1,)
    leaf: np.ndarray  # (group leaves,) node
    first_condition: np.ndarray  # (group leaves + 1,)
    condition: (
        np.ndarray
    )  # (conditions, 3): position in the group's features, bits that are 1, bits that are 0
    table: np.ndarray  # (groups + 1,) where the tables begin
    deep: np.ndarray  # (nodes,) bool: whether a leaf without a table lies below


class Game(NamedTuple):
    """What absent features are replaced by: background rows; none where covers take their place (`covers`)."""

    cells: np.ndarray  # (columns, background rows)
    weight: np.ndarray  # (background rows,) sums to 1
    gain: np.ndarray  # (MAX + 2, MAX + 2), by q and p: (p-1)! q! / (p+q)!, 0 for p = 0
    loss: np.ndarray  # (MAX + 2, MAX + 2), by q and p: p! (q-1)! / (p+q)!, 0 for q = 0
    place: np.ndarray  # (MAX + 2, places) of Gauss-Legendre on [0, 1], by d features, exact for them
    mass: np.ndarray  # (MAX + 2, places) their weights, 0 behind the last place
    gains: np.ndarray  # (17, 17, LANES) by d and q: mass (1 - t)^q / t
    losses: np.ndarray  # (17, 17, LANES) by d and q: mass (1 - t)^(q-1), 0 for q = 0


@helper
def _popcount(x):
    x = np.uint64(x)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@helper
def path_features(nodes, node, found):
    """The distinct features on the path to a node, in `found`; their number."""
    count = 0
    at = nodes.parent[node]
    while at >= 0:
        new = True
        for i in range(count):
            new &= found[i] != nodes.feature[at]
        if new:
            found[count] = nodes.feature[at]
            count += 1
        at = nodes.parent[at]
    return count


# ------------------------------------------------------------------ patterns of rows


@helper
def _outcomes(nodes, tree, cells, start, count, out):
    """Bytes (nodes of the tree, rows): 255 where a row goes left at a split."""
    first = nodes.roots[tree]
    for node in range(first, nodes.roots[tree + 1]):
        if nodes.kind[node] & LEAF:
            continue
        x, threshold, byte = cells[nodes.column[node]], nodes.threshold[node], out[node - first]
        if nodes.kind[node] & MISSING_LEFT:
            for r in range(count):
                byte[r] = 0 if x[start + r] > threshold else 255
        else:
            for r in range(count):
                byte[r] = 255 if x[start + r] <= threshold else 0


@helper
def _patterns(groups, g, out, count, byte, pattern):
    """The patterns of rows in a group, from their outcomes."""
    pattern[:count] = 0
    for bit in range(groups.first_bit[g], groups.first_bit[g + 1]):
        byte[:count] = 255
        for i in range(groups.first_literal[bit], groups.first_literal[bit + 1]):
            literal = groups.literal[i]
            if literal >= 0:
                went = out[literal]
                for r in range(count):
                    byte[r] &= went[r]
            else:
                went = out[~literal]
                for r in range(count):
                    byte[r] &= ~went[r]
        mask = np.uint16(1 << (bit - groups.first_bit[g]))
        for r in range(count):
            pattern[r] |= np.uint16(byte[r] | (np.uint16(byte[r]) << 8)) & mask


# ------------------------------------------------------------------ tables


@compiled()
def fill_tables(nodes, groups, game, table, first, last):
    """Fill the tables of trees ``first..last``; `table` begins with that of the first one's first group."""
    count = game.cells.shape[1]
    out = np.empty((2 * MAX_LEAVES, BLOCK), np.uint8)
    byte, pattern = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint16)
    share = np.empty(1 << MAX_BITS)
    weight, leaf_table = np.empty(1 << MAX_BITS), np.empty((1 << MAX_BITS, MAX_BITS))
    sums = np.empty((LANES, 1 << MAX_BITS))
    origin = groups.table[groups.first_group[first]]
    for tree in range(first, last):
        begin, end = groups.first_group[tree], groups.first_group[tree + 1]
        if begin == end:
            continue
        for g in range(begin, end):
            table[groups.table[g] - origin : groups.table[g + 1] - origin] = 0.0
        # patterns of background rows, a block of rows at a time; the table's own memory holds no sums yet
        for g in range(begin, end):
            bits = groups.first_bit[g + 1] - groups.first_bit[g]
            share[: (1 << bits)] = 0.0
            for start in range(0, count, BLOCK):
                here = min(BLOCK, count - start)
                if g == begin or count > BLOCK:
                    _outcomes(nodes, tree, game.cells, start, here, out)
                _patterns(groups, g, out, here, byte, pattern)
                for r in range(here):
                    share[pattern[r]] += game.weight[start + r]
            _fill_group(nodes, groups, game, g, share, weight, sums, leaf_table, table, origin)


@helper
def _fill_group(nodes, groups, game, g, share, weight, sums, leaf_table, table, origin):
    """Add up the tables of a group's leaves; `share` (patterns,) of the background."""
    patterns = 1 << (groups.first_bit[g + 1] - groups.first_bit[g])
    for at in range(groups.first_leaf[g], groups.first_leaf[g + 1]):
        begin, end = groups.first_condition[at], groups.first_condition[at + 1]
        d = end - begin
        weight[: (1 << d)] = 0.0
        for pattern in range(patterns):
            if share[pattern] != 0.0:
                weight[_leaf_pattern(groups, begin, end, pattern)] += share[pattern]
        superset_sums(game, d, weight, sums)
        for u in range(1 << d):
            pattern_values(game, d, u, sums, leaf_table[u])
        add_leaf_table(nodes, groups, g, at, leaf_table, table, origin)


@helper
def add_leaf_table(nodes, groups, g, at, leaf_table, table, origin):
    """Add the table of a leaf of value 1, (patterns of the leaf, features), to that of its group."""
    patterns = 1 << (groups.first_bit[g + 1] - groups.first_bit[g])
    features = groups.first_feature[g + 1] - groups.first_feature[g]
    begin, end, leaf = groups.first_condition[at], groups.first_condition[at + 1], groups.leaf[at]
    for pattern in range(patterns):
        u = _leaf_pattern(groups, begin, end, pattern)
        for i in range(end - begin):
            value = leaf_table[u, i]
            if value != 0.0:
                row = groups.condition[begin + i, 0]
                for k in range(nodes.value.shape[1]):
                    place = groups.table[g] - origin + (k * features + row) * patterns + pattern
                    table[place] += nodes.value[nodes.right[leaf], k] * value


@helper
def _leaf_pattern(groups, begin, end, pattern):
    """Which of a leaf's conditions hold, given a group's pattern."""
    u = 0
    for i in range(begin, end):
        ones, zeros = groups.condition[i, 1], groups.condition[i, 2]
        if pattern & ones == ones and pattern & zeros == 0:
            u |= 1 << (i - begin)
    return u


@helper
def superset_sums(game, d, weight, sums):
    """For every set m of conditions the sum over the background's patterns w that contain m, (places, 2^d).

    Place t of the quadrature weighs a pattern by t^p, p = d - |w|. As (p-1)! q! / (p+q)! is the integral of
    t^(p-1) (1-t)^q, and the quadrature exact for d features, these sums are all that `pattern_values` needs.
    """
    patterns = 1 << d
    for k in range((d + 1) // 2):
        t, own = game.place[d, k], sums[k]
        own[patterns - 1] = 1.0
        for i in range(d):  # t^(d - |w|), from the full pattern down
            for w in range(1 << i):
                own[patterns - 1 - w - (1 << i)] = own[patterns - 1 - w] * t
        for w in range(patterns):
            own[w] *= weight[w]
        if d > 1:
            for w in range(0, patterns, 4):
                own[w + 2] += own[w + 3]
                own[w + 1] += own[w + 3]
                own[w] += own[w + 1] + own[w + 2] - own[w + 3]
        else:
            own[0] += own[1]
        for i in range(2, d):
            step = 1 << i
            for start in range(0, patterns, 2 * step):
                low, high = own[start : start + step], own[start + step : start + 2 * step]
                for m in range(step):
                    low[m] += high[m]


@helper
def pattern_values(game, d, u, sums, out):
    """Shapley values of a leaf of value 1 for a row of pattern u, in `out` (d,)."""
    fails = ((1 << d) - 1) & ~u
    q = _popcount(np.uint64(fails))
    gain, loss, lost, most = game.gains[d, q], game.losses[d, q], 0.0, 0.0
    for k in range((d + 1) // 2):
        lost += loss[k] * sums[k, fails]
        most += gain[k] * sums[k, fails]
    for i in range(d):
        other, rest = fails | 1 << i, most
        for k in range((d + 1) // 2):
            rest -= gain[k] * sums[k, other]
        out[i] = rest if u >> i & 1 else -lost


# ------------------------------------------------------------------ rows


@compiled()
def add_values(nodes, groups, game, table, cells, values, first_tree, last_tree, first, last):
    """Add the Shapley values of rows ``first..last`` by some trees to `values` (outputs, features, rows)."""
    out = np.empty((2 * MAX_LEAVES, BLOCK), np.uint8)
    byte, pattern = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint16)
    width = nodes.value.shape[1]
    origin = groups.table[groups.first_group[first_tree]]
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        for tree in range(first_tree, last_tree):
            if groups.first_group[tree] < groups.first_group[tree + 1]:
                _outcomes(nodes, tree, cells, start, count, out)
            for g in range(groups.first_group[tree], groups.first_group[tree + 1]):
                _patterns(groups, g, out, count, byte, pattern)
                patterns = 1 << (groups.first_bit[g + 1] - groups.first_bit[g])
                place = groups.table[g] - origin
                for k in range(width):
                    for i in range(groups.first_feature[g], groups.first_feature[g + 1]):
                        own = table[place : place + patterns]
                        sums = values[nodes.output[tree] + k, groups.feature[i], start : start + count]
                        for r in range(count):
                            sums[r] += own[pattern[r]]
                        place += patterns

"""Compiled loops of the Shapley values of deep trees: classes of rows, patterns of the background.

One walk down a tree takes a block of rows along. Rows that satisfy the same conditions of the path are one
*class*; so are background rows. A class that no background row completes ends there, with its rows. At a leaf
every class is evaluated once, and at two sibling leaves its two answers are added to its rows together.

A class is a mask, one bit a feature of the path, 1 where its rows satisfy all conditions on the feature.
"""

# pyright: basic

from __future__ import annotations

import numpy as np

from texplainer.gradients.machine_code import compiled, helper
from texplainer.gradients.trees.ensemble import LEAF, LEAF_PAIR, MISSING_LEFT
from texplainer.gradients.trees.kernels.patterns import (
    BLOCK,
    LANES,
    _popcount,
    pattern_values,
    superset_sums,
)

ONE = np.uint64(1)
LEFT, RIGHT, BOTH = 1, 2, 3
TABULATED = 10  # features up to which a leaf's sums over sets are tabulated


@helper
def _refine(
    nodes, node, bit, new, cells, start,
    rows, classes, count, masks, known,
    rows_out, classes_out, left_out, right_out, relabel,
    holders, words, sides, full,
):  # fmt: skip
    """Classes of rows behind a split: how many rows and classes are left.

    `left_out` and `right_out` are the masks in either child. Rows are left out where no background class
    completes them in the only child wanted by `sides`, see `_fill_holders`.
    """
    relabel[: 2 * known] = -1
    column, threshold = nodes.column[node], nodes.threshold[node]
    missing_left = nodes.kind[node] & MISSING_LEFT != 0
    own = ONE << np.uint64(bit)
    kept, made = 0, 0
    for i in range(count):
        x = cells[column, start + rows[i]]
        goes_left = not (x > threshold) if missing_left else x <= threshold
        key = 2 * classes[i] + goes_left
        label = relabel[key]
        if label == -1:
            mask = masks[classes[i]]
            met = new or mask & own != 0
            left = mask | own if met and goes_left else mask & ~own
            right = mask | own if met and not goes_left else mask & ~own
            label = made
            # where the class satisfies the condition, whatever completed it still does
            if sides == LEFT and not (met and goes_left) and not _completed(holders[0], words, full & ~left):
                label = -2
            if sides == RIGHT and (goes_left or not met) and not _completed(holders[1], words, full & ~right):
                label = -2
            relabel[key] = label
            if not met:  # both sides fail: one class
                relabel[key ^ 1] = label
            if label >= 0:
                left_out[made], right_out[made] = left, right
                made += 1
        rows_out[kept], classes_out[kept] = rows[i], label
        kept += label >= 0
    return kept, made


@helper
def _fill_holders(masks, known, d, words, holders):
    """For each bit the set of classes that have it, ``holders[bit, word]``; in the last row all classes."""
    for word in range(words):
        first, last = 64 * word, min(64 * word + 64, known)
        holders[-1, word] = (ONE << np.uint64(last - first)) - ONE if last - first < 64 else ~np.uint64(0)
        for i in range(d):
            found = np.uint64(0)
            for b in range(first, last):
                found |= (masks[b] >> np.uint64(i) & ONE) << np.uint64(b - first)
            holders[i, word] = found


@helper
def _completed(holders, words, fails):
    """Whether a class has all bits that another one fails."""
    for word in range(words):  # noqa: SIM110 (no generators in compiled code)
        if _completing(holders, word, fails):
            return True
    return False


@helper
def _completing(holders, word, fails):
    """The classes, 64 a word, that have all bits that another one fails."""
    found, rest = holders[-1, word], fails
    while rest and found:
        low = rest & (~rest + ONE)
        found &= holders[_popcount(low - ONE), word]
        rest ^= low
    return found


@helper
def _leaf_values(
    game, d, masks, classes, masks_b, backgrounds, holders, words, lacks, lacking, weight,
    shares, supersets, sums, unit,
):  # fmt: skip
    """Shapley values of a leaf of value 1 for every class, ``unit[bit, class]``.

    Few features: from the sums over all sets of conditions. Many: from the background classes that complete
    each class. `lacks` (backgrounds, bits) is 1 for the features a background class fails, `lacking` how many.
    """
    full = (ONE << np.uint64(d)) - ONE
    if d <= TABULATED:
        shares[: (1 << d)] = 0.0
        for b in range(backgrounds):
            shares[masks_b[b]] += weight[b]
        superset_sums(game, d, shares, supersets)
        for c in range(classes):
            pattern_values(game, d, np.int64(masks[c]), supersets, sums)
            for i in range(d):
                unit[i, c] = sums[i]
        return
    for c in range(classes):
        fails = full & ~masks[c]
        q = _popcount(fails)
        gain, loss = game.gain[q], game.loss[q]
        sums[:] = 0.0
        lost = 0.0
        for word in range(words):
            found = _completing(holders, word, fails)
            while found:
                first = found & (~found + ONE)
                found ^= first
                b = 64 * word + _popcount(first - ONE)
                p = lacking[b]
                share = weight[b] * gain[p]
                lost += weight[b] * loss[p]
                for chunk in range(0, d, LANES):  # a fixed number of lanes: no branches, vector instructions
                    for i in range(LANES):
                        sums[chunk + i] += share * lacks[b, chunk + i]
        for i in range(d):
            unit[i, c] = -lost if fails >> np.uint64(i) & ONE else sums[i]


@helper
def _background_masks(game, d, masks, classes, count, known, lacks, lacking, weight):
    """What every background class fails, and its weight."""
    full = (ONE << np.uint64(d)) - ONE
    weight[:known] = 0.0
    for b in range(count):
        weight[classes[b]] += game.weight[b]
    for b in range(known):
        lacking[b] = _popcount(full & ~masks[b])
        for i in range(d):
            lacks[b, i] = 0.0 if masks[b] >> np.uint64(i) & ONE else 1.0


@compiled("patterns")
def add_deep_values(nodes, groups, game, cells, values, first_tree, last_tree, first, last):
    """Add the Shapley values of rows ``first..last`` by the leaves without tables.

    One walk with its scratch memory: split into functions it would hand thirty arrays around.
    """
    levels, width, count_b = nodes.depth + 2, nodes.value.shape[1], game.cells.shape[1]
    size, most = max(1, min(BLOCK, last - first)), 64
    rows, classes = np.empty((levels, size), np.int32), np.empty((levels, size), np.int32)
    masks, other = np.empty((levels, size), np.uint64), np.empty(size, np.uint64)
    rows_b, classes_b = np.empty((levels, count_b), np.int32), np.empty((levels, count_b), np.int32)
    masks_b, other_b = np.empty((levels, max(1, count_b)), np.uint64), np.empty(max(1, count_b), np.uint64)
    count, known = np.empty(levels, np.int64), np.empty(levels, np.int64)
    known_b, bits = np.empty(levels, np.int64), np.empty(levels, np.int64)
    relabel = np.empty(2 * max(size, count_b), np.int64)
    words, holders = np.empty(levels, np.int64), np.empty((2, most + 1, (count_b + 63) // 64), np.uint64)
    lacks, lacking = np.empty((max(1, count_b), most)), np.empty(max(1, count_b), np.int64)
    lacks[:] = 0.0  # np.zeros would be one more function to compile
    weight, sums, path = np.empty(max(1, count_b)), np.empty(most), np.empty(most + 1, np.int64)
    shares, supersets = np.empty(1 << TABULATED), np.empty((LANES, 1 << TABULATED))
    unit, mixed = np.empty((2, most, size)), np.empty(size)
    stack, depth = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    both = np.int64(BOTH)  # not a literal: numba compiles helpers again for every literal
    for start in range(first, last, BLOCK):
        for tree in range(first_tree, last_tree):
            root = nodes.roots[tree]
            if not groups.deep[root] or nodes.kind[root] & LEAF:
                continue
            count[0] = min(BLOCK, last - start)
            for r in range(count[0]):
                rows[0, r], classes[0, r] = r, 0
            for b in range(count_b):
                rows_b[0, b], classes_b[0, b] = b, 0
            masks[0, 0], masks_b[0, 0], known[0], known_b[0], bits[0] = 0, 0, 1, 1, 0
            stack[0], depth[0], top = root, 0, 1
            while top > 0:
                top -= 1
                node, level = stack[top], depth[top]
                at = level
                if level > 0:  # what of the parent's rows is left in this child
                    split = nodes.parent[node]
                    at = level - 1
                    side = LEFT if node == split + 1 else RIGHT
                else:
                    split, side = node, both
                if level > 0:
                    _descend(
                        nodes, game, split, side, at, level, cells, start, path, bits, rows, classes, masks,
                        other, count, known, rows_b, classes_b, masks_b, other_b, known_b, relabel, holders, words,
                    )  # fmt: skip
                    if count[level] == 0:
                        continue
                leaf, pair = nodes.kind[node] & LEAF != 0, nodes.kind[node] & LEAF_PAIR != 0
                left, right = (node, node) if leaf else (node + 1, nodes.right[node])
                if leaf or (pair and (groups.deep[left] or groups.deep[right])):
                    if not leaf:  # two leaves at once
                        at, level, side = level, level + 1, both
                        _descend(
                            nodes, game, node, side, at, level, cells, start, path, bits, rows, classes, masks,
                            other, count, known, rows_b, classes_b, masks_b, other_b, known_b, relabel, holders, words,
                        )  # fmt: skip
                        if count[level] == 0:
                            continue
                    d = bits[level]
                    for s in range(1 if leaf else 2):
                        own, own_b = masks[level], masks_b[level]
                        if s == 1:
                            own, own_b = other, other_b
                        _background_masks(
                            game, d, own_b, classes_b[level], count_b, known_b[level], lacks, lacking, weight
                        )
                        _leaf_values(
                            game, d, own, known[level], own_b, known_b[level], holders[1 if side == RIGHT else s],
                            words[level], lacks, lacking, weight, shares, supersets, sums, unit[s],
                        )  # fmt: skip
                    _add(
                        values, nodes.output[tree], width, path, d, unit,
                        nodes.value[nodes.right[left]], nodes.value[nodes.right[right]], not leaf, mixed,
                        rows[level], classes[level], count[level], known[level], start,
                    )  # fmt: skip
                else:
                    for child in (right, left):
                        if groups.deep[child]:
                            stack[top], depth[top] = child, level + 1
                            top += 1


@helper
def _descend(
    nodes, game, split, side, at, level, cells, start, path, bits, rows, classes, masks,
    other, count, known, rows_b, classes_b, masks_b, other_b, known_b, relabel, holders, words,
):  # fmt: skip
    """Fill level `level` with the rows and background rows behind a split of level `at`."""
    d = bits[at]
    bit = 0
    while bit < d and path[bit] != nodes.feature[split]:
        bit += 1
    new = bit == d
    if new:
        path[bit] = nodes.feature[split]
    bits[level] = d + new
    full = (ONE << np.uint64(bits[level])) - ONE
    left_b, right_b, left, right = masks_b[level], other_b, masks[level], other
    if side == RIGHT:
        left_b, right_b, left, right = other_b, masks_b[level], other, masks[level]
    zero, both = np.int64(0), np.int64(BOTH)  # no literals, as above
    _, known_b[level] = _refine(
        nodes, split, bit, new, game.cells, zero,
        rows_b[at], classes_b[at], rows_b.shape[1], masks_b[at], known_b[at],
        rows_b[level], classes_b[level], left_b, right_b, relabel,
        holders, zero, both, full,
    )  # fmt: skip
    words[level] = (known_b[level] + 63) >> 6
    if side & LEFT:
        _fill_holders(left_b, known_b[level], bits[level], words[level], holders[0])
    if side & RIGHT:
        _fill_holders(right_b, known_b[level], bits[level], words[level], holders[1])
    count[level], known[level] = _refine(
        nodes, split, bit, new, cells, start,
        rows[at], classes[at], count[at], masks[at], known[at],
        rows[level], classes[level], left, right, relabel,
        holders, words[level], side, full,
    )  # fmt: skip


@helper
def _add(
    values, output, width, path, d, unit, left, right, pair, mixed, rows, classes, count, known, start
):  # fmt: skip
    """Add the values of one leaf or of two siblings to their rows."""
    for k in range(width):
        for i in range(d):
            for c in range(known):
                mixed[c] = left[k] * unit[0, i, c]
            if pair:
                for c in range(known):
                    mixed[c] += right[k] * unit[1, i, c]
            sums = values[output + k, path[i], start:]
            for r in range(count):
                sums[rows[r]] += mixed[classes[r]]

"""Compiled loops of the Shapley values of deep trees: classes of rows, patterns of the background.

One walk down a tree takes a block of rows along, and the background rows. Rows that satisfy the same conditions
of the path are one *class*; so are background rows. At every split the larger side of the two is pruned: a class
that no class of the smaller side completes ends there, with its rows. So many rows leave subtrees that no background
row leads to, and for one row most of the background is left behind after a few splits.

At a leaf every class is evaluated once, and at two sibling leaves its two answers are added to its rows together.
A class adds up the background classes that complete it; where these are many and the leaf's features few, it looks
its values up in the sums over all sets of conditions. Nothing of this depends on the other rows of the batch: what
is pruned would add nothing, so that a row's values are bit-identical whatever else is in it.

A class is a mask, one bit a feature of the path, 1 where its rows satisfy all conditions on the feature.
"""

# pyright: basic

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from texplainer.gradients.machine_code import compiled, helper
from texplainer.gradients.trees.ensemble import LEAF, LEAF_PAIR, MISSING_LEFT
from texplainer.gradients.trees.kernels.patterns import (
    BLOCK,
    LANES,
    MAX_FEATURES,
    _popcount,
    pattern_values,
    superset_sums,
)

ONE, FOUR, FIFTEEN = np.uint64(1), np.uint64(4), np.uint64(15)
LEFT, RIGHT, BOTH = 1, 2, 3
TABULATED = 10  # features up to which a leaf's sums over sets are tabulated
MOST = MAX_FEATURES + 1


class Classes(NamedTuple):
    """Rows, or background rows, and their classes at every level of a path."""

    cells: np.ndarray  # (columns, all rows)
    row: np.ndarray  # (levels, rows) int32
    label: np.ndarray  # (levels, rows) int32, the row's class
    mask: np.ndarray  # (levels, classes) uint64
    other: np.ndarray  # (classes,) uint64, at two sibling leaves: the masks in the right one
    rows: np.ndarray  # (levels,) how many rows are left
    known: np.ndarray  # (levels,) how many classes


@helper
def _empty_classes(cells, levels, size):
    return Classes(
        cells,
        np.empty((levels, size), np.int32),
        np.empty((levels, size), np.int32),
        np.empty((levels, size), np.uint64),
        np.empty(size, np.uint64),
        np.empty(levels, np.int64),
        np.empty(levels, np.int64),
    )


@helper
def _start(sets, first, last):
    """All rows ``first..last`` as one class, at level 0."""
    for r in range(last - first):
        sets.row[0, r], sets.label[0, r] = first + r, 0
    sets.mask[0, 0], sets.rows[0], sets.known[0] = 0, last - first, 1


@helper
def _refine(nodes, split, bit, new, sets, at, level, side, relabel, holders, words, full):
    """Fill level `level` with the rows behind a split of level `at`.

    Masks are those in the child `side`; of both, those in the left one, and in `other` those in the right one. Rows
    are left out that no class of the other side completes in the child, if `holders` has any `words`.
    """
    relabel[: 2 * sets.known[at]] = -1
    cells, threshold = sets.cells[nodes.column[split]], nodes.threshold[split]
    missing_left = nodes.kind[split] & MISSING_LEFT != 0
    own = ONE << np.uint64(bit)
    kept, made = 0, 0
    for i in range(sets.rows[at]):
        row, before = sets.row[at, i], sets.label[at, i]
        x = cells[row]
        goes_left = not (x > threshold) if missing_left else x <= threshold
        key = 2 * before + goes_left
        label = relabel[key]
        if label == -1:
            mask = sets.mask[at, before]
            met = new or mask & own != 0
            left = mask | own if met and goes_left else mask & ~own
            right = mask | own if met and not goes_left else mask & ~own
            mask = right if side == RIGHT else left
            label = made
            # where the class satisfies the condition, whatever completed it still does
            if words > 0 and mask & own == 0 and not _completed(holders, words, full & ~mask):
                label = -2
            relabel[key] = label
            if not met:  # both sides fail: one class
                relabel[key ^ 1] = label
            if label >= 0:
                sets.mask[level, made], sets.other[made] = mask, right
                made += 1
        sets.row[level, kept], sets.label[level, kept] = row, label
        kept += label >= 0
    sets.rows[level], sets.known[level] = kept, made


@helper
def _descend(nodes, split, side, at, level, path, bits, small, large, relabel, holders):
    """Fill level `level` of both sides, and prune the larger one."""
    d = bits[at]
    bit = 0
    while bit < d and path[bit] != nodes.feature[split]:
        bit += 1
    new = bit == d
    if new:
        path[bit] = nodes.feature[split]
    bits[level] = d + new
    full = (ONE << np.uint64(bits[level])) - ONE
    words = none = np.int64(-1)
    _refine(nodes, split, bit, new, small, at, level, side, relabel, holders, none, full)
    if side != BOTH:
        words = _fill_holders(small.mask[level], small.known[level], bits[level], holders)
    _refine(nodes, split, bit, new, large, at, level, side, relabel, holders, words, full)


@helper
def _fill_holders(masks, known, d, holders):
    """For four bits at a time the classes that have all bits of a value, ``holders[bits, value, word]``. The words."""
    words = (known + 63) >> 6
    for quad in range((d + 3) >> 2):
        own, shift = holders[quad], np.uint64(4 * quad)
        own[:, :words] = 0
        for b in range(known):
            own[masks[b] >> shift & FIFTEEN, b >> 6] |= ONE << np.uint64(b & 63)
        for i in range(4):
            for value in range(16):
                if not value >> i & 1:
                    for word in range(words):
                        own[value, word] |= own[value | 1 << i, word]
    return words


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
    found, rest, quad = holders[0, fails & FIFTEEN, word], fails >> FOUR, 1
    while rest and found:
        found &= holders[quad, rest & FIFTEEN, word]
        rest >>= FOUR
        quad += 1
    return found


class Scratch(NamedTuple):
    """Memory of `_leaf_values`."""

    weight: np.ndarray  # (background classes,)
    lacks: np.ndarray  # (bits / 4, background classes, 4) 1 for the features a class fails
    lacking: np.ndarray  # (background classes,) how many
    shares: np.ndarray  # (patterns,)
    supersets: np.ndarray  # (places, patterns)
    sums: np.ndarray  # (bits,)
    completing: np.ndarray  # (background classes,) those that complete a class
    share: np.ndarray  # (background classes,) and what each of them gives
    bits: np.ndarray  # (16, 4) the bits of the numbers up to 15


@helper
def _leaf_values(game, d, masks, classes, masks_b, background, level, holders, scratch, unit):
    """Shapley values of a leaf of value 1 for every class, ``unit[bit, class]``."""
    full, known = (ONE << np.uint64(d)) - ONE, background.known[level]
    weight, lacks, lacking, sums = scratch.weight, scratch.lacks, scratch.lacking, scratch.sums
    completing, shares = scratch.completing, scratch.share
    weight[:known] = 0.0
    for b in range(background.rows[level]):
        weight[background.label[level, b]] += game.weight[background.row[level, b]]
    if d <= TABULATED and 1 << d <= len(game.weight):
        scratch.shares[: (1 << d)] = 0.0
        for b in range(known):
            scratch.shares[masks_b[b]] += weight[b]
        superset_sums(game, d, scratch.shares, scratch.supersets)
        for c in range(classes):
            pattern_values(game, d, np.int64(masks[c]), scratch.supersets, sums)
            for i in range(d):
                unit[i, c] = sums[i]
        return
    for b in range(known):
        lacking[b] = _popcount(full & ~masks_b[b])
        for i in range(d):
            lacks[i >> 2, b, i & 3] = 0.0 if masks_b[b] >> np.uint64(i) & ONE else 1.0
    words = _fill_holders(masks_b, known, d, holders)
    for c in range(classes):
        fails = full & ~masks[c]
        q = _popcount(fails)
        gain, loss = game.gain[q], game.loss[q]
        lost, count = 0.0, 0
        for word in range(words):
            found = _completing(holders, word, fails)
            while found:
                first = found & (~found + ONE)
                found ^= first
                b = 64 * word + _popcount(first - ONE)
                p = lacking[b]
                lost += weight[b] * loss[p]
                completing[count], shares[count] = b, weight[b] * gain[p]
                count += 1
        for quad in range((d + 3) >> 2):
            failed = scratch.bits[fails >> np.uint64(4 * quad) & FIFTEEN]
            s0, s1, s2, s3 = -lost * failed[0], -lost * failed[1], -lost * failed[2], -lost * failed[3]
            for k in range(count):
                lack, share = lacks[quad, completing[k]], shares[k]
                s0 += share * lack[0]
                s1 += share * lack[1]
                s2 += share * lack[2]
                s3 += share * lack[3]
            sums[4 * quad], sums[4 * quad + 1], sums[4 * quad + 2], sums[4 * quad + 3] = s0, s1, s2, s3
        for i in range(d):
            unit[i, c] = sums[i]


@compiled("patterns")
def add_deep_values(nodes, groups, game, cells, values, first_tree, last_tree, first, last):
    """Add the Shapley values of rows ``first..last`` by the leaves without tables.

    One walk with its scratch memory: split into functions it would hand thirty arrays around.
    """
    levels, width, count_b = nodes.depth + 2, nodes.value.shape[1], game.cells.shape[1]
    size, most = max(1, min(BLOCK, last - first)), max(1, count_b)
    rows, background = _empty_classes(cells, levels, size), _empty_classes(game.cells, levels, most)
    small, large = (rows, background) if size < count_b else (background, rows)
    path, bits = np.empty(MOST + 1, np.int64), np.empty(levels, np.int64)
    relabel = np.empty(2 * max(size, most), np.int64)
    holders = np.empty((MOST // 4, 16, (max(size, most) + 63) // 64), np.uint64)
    scratch = Scratch(
        np.empty(most), np.empty((MOST // 4, most, 4)), np.empty(most, np.int64),
        np.empty(1 << TABULATED), np.empty((LANES, (1 << TABULATED) + LANES)), np.empty(MOST),
        np.empty(most, np.int64), np.empty(most), np.empty((16, 4)),
    )  # fmt: skip
    for value in range(16):
        for i in range(4):
            scratch.bits[value, i] = value >> i & 1
    scratch.lacks[:] = 0.0  # np.zeros would be one more function to compile
    unit, mixed = (
        np.empty((2, MOST, size + LANES)),
        np.empty(size),
    )  # no strides of powers of 2: one cache set
    stack, depth = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    both = np.int64(BOTH)  # not a literal: numba compiles helpers again for every literal
    for start in range(first, last, BLOCK):
        for tree in range(first_tree, last_tree):
            root = nodes.roots[tree]
            if not groups.deep[root] or nodes.kind[root] & LEAF:
                continue
            _start(rows, start, min(start + BLOCK, last))
            _start(background, np.int64(0), count_b)
            stack[0], depth[0], bits[0], top = root, 0, 0, 1
            while top > 0:
                top -= 1
                node, level = stack[top], depth[top]
                if level > 0:  # what of the parent's rows is left in this child
                    split = nodes.parent[node]
                    side = LEFT if node == split + 1 else RIGHT
                    _descend(nodes, split, side, level - 1, level, path, bits, small, large, relabel, holders)
                    if large.rows[level] == 0:
                        continue
                leaf, pair = nodes.kind[node] & LEAF != 0, nodes.kind[node] & LEAF_PAIR != 0
                left, right = (node, node) if leaf else (node + 1, nodes.right[node])
                if leaf or (pair and (groups.deep[left] or groups.deep[right])):
                    if not leaf:  # two leaves at once
                        level += 1
                        _descend(
                            nodes, node, both, level - 1, level, path, bits, small, large, relabel, holders
                        )
                    d, known = bits[level], rows.known[level]
                    for s in range(1 if leaf else 2):
                        masks, masks_b = rows.mask[level], background.mask[level]
                        if s == 1:
                            masks, masks_b = rows.other, background.other
                        _leaf_values(
                            game, d, masks, known, masks_b, background, level, holders, scratch, unit[s]
                        )
                    _add(
                        values, nodes.output[tree], width, path, d, unit,
                        nodes.value[nodes.right[left]], nodes.value[nodes.right[right]], not leaf, mixed,
                        rows.row[level], rows.label[level], rows.rows[level], known,
                    )  # fmt: skip
                else:
                    for child in (right, left):
                        if groups.deep[child]:
                            stack[top], depth[top] = child, level + 1
                            top += 1


@helper
def _add(values, output, width, path, d, unit, left, right, pair, mixed, rows, classes, count, known):
    """Add the values of one leaf or of two siblings to their rows."""
    for k in range(width):
        for i in range(d):
            for c in range(known):
                mixed[c] = left[k] * unit[0, i, c]
            if pair:
                for c in range(known):
                    mixed[c] += right[k] * unit[1, i, c]
            sums = values[output + k, path[i]]
            for r in range(count):
                sums[rows[r]] += mixed[classes[r]]

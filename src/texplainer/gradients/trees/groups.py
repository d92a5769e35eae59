"""Cut trees into groups of neighbouring leaves that share a table, see `kernels.patterns`.

A group is a subtree. Its pattern has a bit for every feature of the path to it and one for every distinct split
inside it; the cut with the cheapest look-ups is chosen from the leaves up. Leaves that no group takes are
*deep*. All trees at once in numpy: compiling loops takes much longer than running them once per explainer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT, Integers, depth_levels
from texplainer.gradients.trees.kernels.patterns import MAX_BITS, MAX_FEATURES, MAX_LEAVES, Groups, Nodes

LARGE_TABLE = 600.0  # patterns whose memory traffic costs as much as their look-ups
SMALLER_BITS = (8, 6)  # of the largest patterns, in turn, where those of MAX_BITS need too much memory
WORDS = -(-MAX_LEAVES // 64)  # that hold a bit for every split of a tree with tables


def cut_into_groups(nodes: Nodes, memory: int) -> Groups:
    """Choose the groups of all trees and describe them, or raise `Unsupported` where a path is too long.

    Tables of more than `memory` entries cannot be kept. Filling them again for every call costs far more than
    the look-ups that large tables save, so smaller ones are taken instead.
    """
    groups = _cut(nodes, MAX_BITS)
    for bits in SMALLER_BITS:
        if groups.table[-1] > memory:
            groups = _cut(nodes, bits)
    return groups


def _cut(nodes: Nodes, most: int) -> Groups:
    """The groups whose patterns have up to `most` bits."""
    leaf = nodes.kind & LEAF != 0
    levels = depth_levels(nodes.right, leaf, nodes.roots[:-1])
    sizes = np.diff(nodes.roots)
    tree = np.repeat(np.arange(len(sizes)), sizes)
    chosen, open_ = _chosen(nodes, leaf, levels, tree, (sizes < 2 * MAX_LEAVES)[tree], most)
    deep = leaf & open_ & ~chosen
    _check_paths(nodes, np.flatnonzero(deep), levels)
    for inner in reversed(levels):
        deep[inner] = deep[inner + 1] | deep[nodes.right[inner]]
    root = np.flatnonzero(open_ & chosen & (~leaf | (nodes.parent >= 0)))
    return _described(nodes, leaf, tree, root, deep)


def _chosen(
    nodes: Nodes,
    leaf: NDArray[np.bool_],
    levels: list[Integers],
    tree: Integers,
    tabled: NDArray[np.bool_],
    most: int,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Nodes whose subtree is better a group than cut further, and nodes that no chosen node lies above."""
    chosen, open_ = np.zeros(len(leaf), np.bool_), np.ones(len(leaf), np.bool_)
    if not tabled.any():
        return chosen, open_
    levels, right = [inner[tabled[inner]] for inner in levels], nodes.right
    split = np.flatnonzero(tabled & ~leaf)
    own_feature, own_split = (
        np.zeros((len(leaf), WORDS), np.uint64),
        np.zeros((len(leaf), WORDS), np.uint64),
    )
    _set_bits(own_feature, split, tree[split], _codes(nodes.feature[split]))
    _set_bits(own_split, split, tree[split], _splits(nodes)[split])
    path = np.zeros_like(own_feature)
    for inner in levels:
        path[inner + 1] = path[right[inner]] = path[inner] | own_feature[inner]
    features, inside = own_feature.copy(), own_split.copy()
    for inner in reversed(levels):
        features[inner] |= features[inner + 1] | features[right[inner]]
        inside[inner] |= inside[inner + 1] | inside[right[inner]]
    met, width = _count_bits(path), _count_bits(path | features)
    bits = met + _count_bits(inside)
    own = np.where(tabled & (bits <= most), width * (1.0 + 2.0 ** np.minimum(bits, 99) / LARGE_TABLE), np.inf)
    below = 8.0 * met
    chosen[leaf] = own[leaf] <= below[leaf]
    cost = np.minimum(own, below)
    for inner in reversed(levels):
        cut = cost[inner + 1] + cost[right[inner]]
        chosen[inner] = own[inner] <= cut
        cost[inner] = np.minimum(own[inner], cut)
    for inner in levels:
        open_[inner + 1] = open_[right[inner]] = open_[inner] & ~chosen[inner]
    return chosen, open_


def _codes(values: NDArray) -> Integers:
    """0, 1, ... for the distinct values."""
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _splits(nodes: Nodes) -> Integers:
    """The same number for nodes that send every row the same way."""
    side = 2 * nodes.column + (nodes.kind & MISSING_LEFT != 0)
    return _codes(side * (len(nodes.kind) + 1) + _codes(nodes.threshold))


def _set_bits(words: NDArray[np.uint64], node: Integers, tree: Integers, code: Integers) -> None:
    """In each node's `words` the bit of its code, numbered within the tree."""
    key, bit = np.unique(tree * (code.max(initial=0) + 1) + code, return_inverse=True)
    bit = bit.reshape(-1)
    first = np.searchsorted(key, tree * (code.max(initial=0) + 1))
    bit = bit - first
    words[node, bit // 64] = np.uint64(1) << (bit % 64).astype(np.uint64)


def _count_bits(words: NDArray[np.uint64]) -> Integers:
    """The number of bits set in the last axis."""
    return np.unpackbits(words.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)


def _check_paths(nodes: Nodes, leaves: Integers, levels: list[Integers]) -> None:
    """Refuse leaves without tables whose path has more features than a word has bits."""
    if len(levels) <= MAX_FEATURES:
        return
    depth = np.zeros(len(nodes.kind), np.int64)
    for level, inner in enumerate(levels):
        depth[inner + 1] = depth[nodes.right[inner]] = level + 1
    leaves = leaves[depth[leaves] > MAX_FEATURES]
    position, at, _ = _ancestors(nodes, leaves, np.full(len(leaves), -1))
    features = int(nodes.feature.max()) + 1
    met = np.unique(position * features + nodes.feature[at]) // features
    if np.bincount(met, minlength=1).max() > MAX_FEATURES:
        raise Unsupported(f"a path of its trees has more than {MAX_FEATURES} distinct features.")


def _described(
    nodes: Nodes, leaf: NDArray[np.bool_], tree: Integers, root: Integers, deep: NDArray[np.bool_]
) -> Groups:
    """Bits, features and leaves of the groups below the nodes `root`, in order."""
    count, start = len(root), nodes.roots[:-1][tree]
    features = int(nodes.feature.max(initial=0)) + 1
    # conditions of the paths, from the group up: (group, ancestor, whether it goes left)
    group, at, left = _ancestors(nodes, root, np.full(count, -1))
    new, path_bit = _first_of(group, group * features + nodes.feature[at])
    # splits inside, in preorder
    mask = np.zeros(len(leaf) + 1, np.int64)
    np.add.at(mask, root, 1)
    np.add.at(mask, nodes.end[root], -1)
    member = np.flatnonzero(np.cumsum(mask[:-1]) > 0)
    of = np.searchsorted(root, member, side="right") - 1
    inner, leaves = ~leaf[member], leaf[member]
    split, split_group = member[inner], of[inner]
    key = _splits(nodes)[split] if len(split) else np.empty(0, np.int64)
    distinct, split_bit = _first_of(split_group, split_group * (key.max(initial=0) + 1) + key)
    # all bits of a group: those of the path, then those inside
    paths = np.bincount(group[new], minlength=count)
    insides = np.bincount(split_group[distinct], minlength=count)
    first_bit = _starts(paths + insides)
    path_bit = path_bit - _starts(paths)[group]
    split_bit = split_bit - _starts(insides)[split_group] + paths[split_group]
    literal = np.concatenate(
        [np.where(left, at - start[at], ~(at - start[at])), (split - start[split])[distinct]]
    )
    bit = np.concatenate([first_bit[group] + path_bit, (first_bit[split_group] + split_bit)[distinct]])
    # features: those of the path, then new ones inside
    own = np.concatenate([group[new], split_group[distinct]])
    feature = np.concatenate([nodes.feature[at[new]], nodes.feature[split[distinct]]])
    order = np.argsort(own, kind="stable")
    own, feature = own[order], feature[order]
    fresh, _ = _first_of(own, own * features + feature)
    own, feature = own[fresh], feature[fresh]
    first_feature = _starts(np.bincount(own, minlength=count))
    # leaves, and for each of their features the bits that must be 1, and 0
    held, held_group = member[leaves], of[leaves]
    first_leaf = _starts(np.bincount(held_group, minlength=count))
    conditions = _conditions(
        nodes,
        held,
        held_group,
        root,
        first_feature,
        own * features + feature,
        paths,
        split,
        split_bit,
        features,
    )
    width = np.diff(first_feature)
    return Groups(
        first_group=np.searchsorted(root, nodes.roots),
        first_bit=first_bit,
        first_literal=_starts(np.bincount(bit, minlength=first_bit[-1])),
        literal=literal[np.argsort(bit, kind="stable")],
        first_feature=first_feature,
        feature=feature,
        first_leaf=first_leaf,
        leaf=held,
        first_condition=conditions[0],
        condition=conditions[1],
        table=_starts(nodes.value.shape[1] * width * (1 << np.diff(first_bit))),
        deep=deep,
    )


def _ancestors(nodes: Nodes, node: Integers, top: Integers) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """The ancestors of nodes, up to and with those in `top` (-1: to the roots), nearest first.

    For each the position of its node, the ancestor, and whether the path goes left there.
    """
    position, child = np.arange(len(node)), node
    found = []
    while len(position):
        at = nodes.parent[child]
        inside = (child != top) & (at >= 0)
        position, child, top, at = position[inside], child[inside], top[inside], at[inside]
        found.append((position, at, child == at + 1))
        child = at
    position, at, left = (np.concatenate(part) for part in zip(*found, strict=True)) if found else _none()
    order = np.argsort(position, kind="stable")
    return position[order], at[order], left[order]


def _none() -> tuple[Integers, Integers, NDArray[np.bool_]]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)


def _first_of(group: Integers, key: Integers) -> tuple[Integers, Integers]:
    """Where each key occurs first, ascending, and for all entries the place of their key in that list."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.reshape(-1)]


def _starts(counts: Integers) -> Integers:
    """Where runs of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _conditions(
    nodes: Nodes,
    held: Integers,
    held_group: Integers,
    root: Integers,
    first_feature: Integers,
    known: Integers,
    paths: Integers,
    split: Integers,
    split_bit: Integers,
    features: int,
) -> tuple[Integers, Integers]:
    """The conditions of leaves: where each leaf's begin, and (position of the feature, bits 1, bits 0)."""
    # those of the path to the group: one bit each
    times = paths[held_group]
    leaf = np.repeat(np.arange(len(held)), times)
    position = np.arange(len(leaf)) - np.repeat(_starts(times)[:-1], times)
    # those inside the group
    below, at, left = _ancestors(nodes, held, root[held_group])
    group = held_group[below]
    order = np.argsort(known)
    where = order[np.searchsorted(known, group * features + nodes.feature[at], sorter=order)]
    bit = np.int64(1) << split_bit[np.searchsorted(split, at)]
    row = np.concatenate([leaf, below])
    column = np.concatenate([position, where - first_feature[group]])
    ones = np.concatenate([np.int64(1) << position, np.where(left, bit, 0)])
    zeros = np.concatenate([np.zeros(len(leaf), np.int64), np.where(left, 0, bit)])
    most = int(column.max(initial=0)) + 1
    key, inverse = np.unique(row * most + column, return_inverse=True)
    condition = np.zeros((len(key), 3), np.int64)
    condition[:, 0] = key % most
    np.bitwise_or.at(condition[:, 1], inverse.reshape(-1), ones)
    np.bitwise_or.at(condition[:, 2], inverse.reshape(-1), zeros)
    return _starts(np.bincount(key // most, minlength=len(held))), condition

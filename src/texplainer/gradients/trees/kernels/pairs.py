"""Compiled loops of the Shapley interaction values of trees.

For a leaf of value v, with A and B the features that must come from x and from the background row, p = |A| and
q = |B|, the interaction index of a pair is (Grabisch & Roubens 1999)

    v (p-2)! q! / (p+q-1)!      both in A,
    v p! (q-2)! / (p+q-1)!      both in B,
    -v (p-1)! (q-1)! / (p+q-1)! one in each.

With covers in place of background rows it is the integral of v (u_i - r_i) (u_j - r_j) times the product over
the other features, see `covers`.
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
    _popcount,
    path_features,
    superset_sums,
)

MAX = 64  # features of a path
ONE = np.uint64(1)


@compiled("patterns")
def add_pairs(nodes, game, covers, cells, values, first, last):
    """Add the interaction indices of rows ``first..last`` to `values` (outputs, rows, features, features).

    Above the diagonal of each leaf's features only: the lower of two features first.
    """
    count_b, size = game.cells.shape[1], max(1, min(BLOCK, last - first))
    masks, masks_b = np.empty(size, np.uint64), np.empty(count_b, np.uint64)
    path, found = np.empty(nodes.depth + 1, np.int64), np.empty((1 << MAX_BITS, MAX_BITS, MAX_BITS))
    made = np.empty(1 << MAX_BITS, np.bool_)
    weight, sums = np.empty(1 << MAX_BITS), np.empty((LANES, 1 << MAX_BITS))
    ratio, one = np.empty(MAX), np.empty((MAX, MAX))
    for start in range(first, last, BLOCK):
        count = min(BLOCK, last - start)
        for tree in range(len(nodes.output)):
            for leaf in range(nodes.roots[tree], nodes.roots[tree + 1]):
                if not nodes.kind[leaf] & LEAF or nodes.parent[leaf] < 0:
                    continue
                d = path_features(nodes, leaf, path)
                path[:d] = np.sort(path[:d])
                _masks(nodes, leaf, path, d, cells, start, count, masks)
                _masks(nodes, leaf, path, d, game.cells, 0, count_b, masks_b)
                if covers:
                    _ratios(nodes, leaf, path, d, ratio)
                if d <= MAX_BITS:
                    weight[: 1 << d] = 0.0
                    for b in range(count_b):
                        weight[masks_b[b]] += game.weight[b]
                    if not covers:
                        superset_sums(game, d, weight, sums)
                    made[: 1 << d] = False
                    for r in range(count):
                        u = np.int64(masks[r])
                        if not made[u]:
                            made[u] = True
                            if covers:
                                _cover_pairs(game, d, u, ratio, found[u])
                            else:
                                _tabulated_pairs(game, d, u, sums, found[u])
                        _add(nodes, tree, leaf, path, d, found[u], values, start + r)
                else:
                    order = np.argsort(masks[:count])
                    for at in range(count):
                        u = masks[order[at]]
                        if at == 0 or u != masks[order[at - 1]]:
                            if covers:
                                _cover_pairs(game, d, np.int64(u), ratio, one)
                            else:
                                _background_pairs(game, d, u, masks_b, one)
                        _add(nodes, tree, leaf, path, d, one, values, start + order[at])


@helper
def _add(nodes, tree, leaf, path, d, pairs, values, row):
    for k in range(nodes.value.shape[1]):
        v, own = nodes.value[nodes.right[leaf], k], values[nodes.output[tree] + k, row]
        for i in range(d - 1):
            line = own[path[i]]
            for j in range(i + 1, d):
                line[path[j]] += v * pairs[i, j]


@helper
def _masks(nodes, leaf, path, d, cells, start, count, masks):
    """Which features of a leaf's path rows satisfy, a bit each."""
    masks[:count] = (ONE << np.uint64(d)) - ONE
    child, at = leaf, nodes.parent[leaf]
    while at >= 0:
        bit = ~(ONE << np.uint64(np.searchsorted(path[:d], nodes.feature[at])))
        x, threshold = cells[nodes.column[at]], nodes.threshold[at]
        left, missing_left = child == at + 1, nodes.kind[at] & MISSING_LEFT != 0
        for r in range(count):
            went = not (x[start + r] > threshold) if missing_left else x[start + r] <= threshold
            if went != left:
                masks[r] &= bit
        child, at = at, nodes.parent[at]


@helper
def _ratios(nodes, leaf, path, d, ratio):
    """The cover ratios of a leaf's features, all splits on a feature multiplied."""
    ratio[:d] = 1.0
    child = leaf
    while nodes.parent[child] >= 0:
        ratio[np.searchsorted(path[:d], nodes.feature[nodes.parent[child]])] *= nodes.ratio[child]
        child = nodes.parent[child]


@helper
def _tabulated_pairs(game, d, u, sums, out):
    """The indices of a leaf of value 1 for a row of pattern u, from the sums over sets of conditions."""
    fails = ((1 << d) - 1) & ~u
    q = _popcount(fails)
    out[:d, :d] = 0.0
    for k in range((d + 1) // 2):
        t, own = game.place[d, k], sums[k]
        whole = own[fails]
        if whole == 0.0:  # no background row completes it
            continue
        both = game.mass[d, k] * (1.0 - t) ** q / (t * t)
        mixed = game.mass[d, k] * (1.0 - t) ** (q - 1) / t
        none = game.mass[d, k] * (1.0 - t) ** (q - 2)
        for i in range(d - 1):
            for j in range(i + 1, d):
                here_i, here_j = u >> i & 1, u >> j & 1
                if here_i and here_j:
                    rest = own[fails | 1 << i] + own[fails | 1 << j] - own[fails | 1 << i | 1 << j]
                    out[i, j] += both * (whole - rest)
                elif here_i:
                    out[i, j] -= mixed * (whole - own[fails | 1 << i])
                elif here_j:
                    out[i, j] -= mixed * (whole - own[fails | 1 << j])
                else:
                    out[i, j] += none * whole


@helper
def _background_pairs(game, d, u, masks_b, out):
    """As `_tabulated_pairs`, from the background rows one by one."""
    full = (ONE << np.uint64(d)) - ONE
    fails = full & ~u
    q = _popcount(fails)
    out[:d, :d] = 0.0
    for b in range(len(masks_b)):
        if masks_b[b] & fails != fails:
            continue
        needed, p = u & ~masks_b[b], _popcount(u & ~masks_b[b])
        both = game.weight[b] * game.gain[q, p - 1] if p > 1 else 0.0
        mixed = game.weight[b] * game.gain[q - 1, p] if p > 0 and q > 0 else 0.0
        none = game.weight[b] * game.gain[p, q - 1] if q > 1 else 0.0
        for i in range(d - 1):
            here_i, gone_i = needed >> np.uint64(i) & ONE, fails >> np.uint64(i) & ONE
            if not (here_i or gone_i):
                continue
            for j in range(i + 1, d):
                here_j, gone_j = needed >> np.uint64(j) & ONE, fails >> np.uint64(j) & ONE
                if here_i and here_j:
                    out[i, j] += both
                elif gone_i and gone_j:
                    out[i, j] += none
                elif here_j or gone_j:
                    out[i, j] -= mixed


@helper
def _cover_pairs(game, d, u, ratio, out):
    """As `_tabulated_pairs`, covers in place of background rows."""
    out[:d, :d] = 0.0
    for i in range(d):
        if ratio[i] == 0.0 and not u >> i & 1:  # reached by no mixture
            return
    for k in range((d + 1) // 2):
        t, product = game.place[d, k], game.mass[d, k]
        for i in range(d):
            product *= ratio[i] + ((u >> i & 1) - ratio[i]) * t
        for i in range(d - 1):
            own = (u >> i & 1) - ratio[i]
            own = product * own / (ratio[i] + own * t)
            for j in range(i + 1, d):
                other = (u >> j & 1) - ratio[j]
                out[i, j] += own * other / (ratio[j] + other * t)

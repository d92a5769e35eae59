"""The order of nodes in memory: preorder, with the thresholds of ancestors on the same column."""

# pyright: basic

import numpy as np


def preorder(left, right, column, threshold, roots):
    """Order of the nodes, right child, ancestor bounds and thresholds clamped between them, and the depth.

    Level by level in numpy: compiling a walk would take longer than most models are worth.
    """
    count = len(left)
    parent, went_left = np.full(count, -1), np.zeros(count, bool)
    levels = [np.asarray(roots, dtype=np.int64)]
    while True:
        inner = levels[-1][left[levels[-1]] >= 0]
        if not len(inner):
            break
        parent[left[inner]] = parent[right[inner]] = inner
        went_left[left[inner]] = True
        levels.append(np.concatenate([left[inner], right[inner]]))
    size = np.ones(count, np.int64)
    for level in reversed(levels):
        inner = level[left[level] >= 0]
        size[inner] += size[left[inner]] + size[right[inner]]
    place = np.full(count, -1)
    place[levels[0]] = np.cumsum(size[levels[0]]) - size[levels[0]]
    lower, upper, clamped = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count)
    for depth, level in enumerate(levels):
        inner = level[left[level] >= 0]
        place[left[inner]] = place[inner] + 1
        place[right[inner]] = place[inner] + 1 + size[left[inner]]
        _bound(inner, depth, parent, went_left, column, clamped, lower, upper)
        # Outside its ancestors' interval a threshold decides nothing: on the bound it does the same.
        clamped[inner] = np.minimum(np.maximum(threshold[inner], lower[inner]), upper[inner])
    reached = np.concatenate(levels)
    order = np.empty(len(reached), np.int64)
    order[place[reached]] = reached
    child = np.where(left[order] < 0, -1, place[right[order]])
    return order, child, lower[order], upper[order], clamped[order], len(levels) - 1


def _bound(nodes, depth, parent, went_left, column, clamped, lower, upper):
    """Find the nearest thresholds of the `depth` ancestors on the nodes' own columns, on either side."""
    walker, own = nodes, column[nodes]
    low, high = lower[nodes], upper[nodes]
    for _ in range(depth):
        side, walker = went_left[walker], parent[walker]
        same, bound = column[walker] == own, clamped[walker]
        high = np.where(same & side & (high == np.inf), bound, high)
        low = np.where(same & ~side & (low == -np.inf), bound, low)
    lower[nodes], upper[nodes] = low, high


def depth_levels(right, leaf, roots):
    """The inner nodes of all trees by depth, from the roots down."""
    level, found = np.asarray(roots, dtype=np.int64), []
    while len(level):
        inner = level[~leaf[level]]
        found.append(inner)
        level = np.concatenate([inner + 1, right[inner].astype(np.int64)])
    return found


def subtree_ends(right, leaf, roots):
    """One past the last node of every node's subtree."""
    end = np.arange(1, len(leaf) + 1)
    for inner in reversed(depth_levels(right, leaf, roots)):
        end[inner] = end[right[inner].astype(np.int64)]
    return end

"""The order of nodes in memory, and of rows in a batch.

Nodes are laid out in preorder, with the ancestor bounds the soft splits need. Rows are put into an
order in which neighbours are alike: a block of similar rows goes the same way at many splits, so that
whole subtrees are skipped.
"""

# pyright: basic

import numpy as np

from texplainer.gradients.machine_code import cached_njit


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


@cached_njit()
def coherent_order(rows, importance, block):
    """A permutation of the rows: halved again and again along the column with the largest weighted range.

    `importance` (columns,) weighs a unit of each column. The halves are multiples of `block` rows.
    """
    count = len(rows)
    order, keys = np.arange(count), np.empty(count)
    ends = np.empty(count // block + 2, np.int64)
    first, top = 0, 0
    ends[0] = count
    while top >= 0:
        last = ends[top]
        if last - first <= block:
            first = last
            top -= 1
            continue
        column = _widest(rows, order, first, last, importance)
        for i in range(first, last):
            key = rows[order[i], column]
            keys[i] = np.inf if np.isnan(key) else key
        middle = first + max(1, (last - first) // block // 2) * block
        _select(keys, order, first, last - 1, middle)
        top += 1
        ends[top] = middle
    return order


@cached_njit()
def _select(keys, order, low, high, middle):
    """Move the smallest keys of ``low..high``, with their rows, before `middle` (Hoare's quickselect)."""
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@cached_njit()
def _widest(rows, order, first, last, importance):
    """The column with the largest weighted range over at most 64 of the rows."""
    stride = max(1, (last - first) // 64)
    best, widest = 0, -1.0
    for column in range(rows.shape[1]):
        if importance[column] > 0.0:
            low, high = np.inf, -np.inf
            for i in range(first, last, stride):
                low, high = min(low, rows[order[i], column]), max(high, rows[order[i], column])
            if (high - low) * importance[column] > widest:
                best, widest = column, (high - low) * importance[column]
    return best


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


def subtree_ranges(right, leaf, roots, value):
    """Largest minus smallest leaf value below every node, (nodes, width)."""
    low = np.zeros((len(leaf), value.shape[1]))
    low[leaf] = value[right[leaf].astype(np.int64)]
    high = low.copy()
    for inner in reversed(depth_levels(right, leaf, roots)):
        far = right[inner].astype(np.int64)
        low[inner] = np.minimum(low[inner + 1], low[far])
        high[inner] = np.maximum(high[inner + 1], high[far])
    return high - low

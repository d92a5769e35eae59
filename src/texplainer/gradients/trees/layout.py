"""The order of nodes in memory, and of rows in a batch.

Nodes are laid out in preorder, with the ancestor bounds the soft splits need. Rows are put into an
order in which neighbours are alike: a block of similar rows goes the same way at many splits, so that
whole subtrees are skipped.
"""

# pyright: basic

import numpy as np
from numba import njit


@njit(cache=True)
def preorder(left, right, column, threshold, roots):
    """Order of the nodes, right child, ancestor bounds and thresholds clamped between them, and the depth."""
    count = len(left)
    order, child = np.empty(count, np.int64), np.full(count, -1)
    parent, went_left = np.full(count, -1), np.zeros(count, np.bool_)
    lower, upper, clamped = np.full(count, -np.inf), np.full(count, np.inf), np.zeros(count)
    height = np.zeros(count, np.int64)
    stack, above, sides = (
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.int64),
        np.empty(count + 1, np.bool_),
    )
    placed, depth = 0, 0
    for root in roots:
        top = 0
        stack[0], above[0], sides[0] = root, -1, False
        while top >= 0:
            old, up, side = stack[top], above[top], sides[top]
            top -= 1
            new = placed
            placed += 1
            order[new], parent[new], went_left[new] = old, up, side
            if up >= 0:
                height[new] = height[up] + 1
                depth = max(depth, height[new])
                if not side:
                    child[up] = new
            if left[old] < 0:
                continue
            walker = new
            while parent[walker] >= 0:
                side, walker = went_left[walker], parent[walker]
                if column[order[walker]] == column[old]:
                    if side and upper[new] == np.inf:
                        upper[new] = clamped[walker]
                    if not side and lower[new] == -np.inf:
                        lower[new] = clamped[walker]
            # Outside its ancestors' interval a threshold decides nothing: on the bound it does the same.
            clamped[new] = min(max(threshold[old], lower[new]), upper[new])
            top += 1
            stack[top], above[top], sides[top] = right[old], new, False
            top += 1
            stack[top], above[top], sides[top] = left[old], new, True
    return (
        order[:placed],
        child[:placed],
        lower[:placed],
        upper[:placed],
        clamped[:placed],
        depth,
    )


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(cache=True)
def subtree_ends(right, leaf):
    """One past the last node of every node's subtree."""
    end = np.empty(len(leaf), np.int64)
    for node in range(len(leaf) - 1, -1, -1):
        end[node] = node + 1 if leaf[node] else end[np.int64(right[node])]
    return end


@njit(cache=True)
def subtree_ranges(right, leaf, value):
    """Largest minus smallest leaf value below every node, (nodes, width)."""
    count, width = len(leaf), value.shape[1]
    low, high = np.empty((count, width)), np.empty((count, width))
    for node in range(count - 1, -1, -1):
        far = np.int64(right[node])
        for i in range(width):
            if leaf[node]:
                low[node, i], high[node, i] = value[far, i], value[far, i]
            else:
                low[node, i] = min(low[node + 1, i], low[far, i])
                high[node, i] = max(high[node + 1, i], high[far, i])
    return high - low


@njit(cache=True)
def fold_ranges(first, last, tree, output, ranges, cells, outputs):
    """For each cell, the sum over trees of the largest range among the tree's nodes that cover it.

    Node i covers the cells ``first[i]..last[i]``; nodes of one tree stand together.
    """
    total, largest = np.zeros((cells, outputs)), np.zeros((cells, ranges.shape[1]))
    start = 0
    while start < len(tree):
        end, one = start, tree[start]
        while end < len(tree) and tree[end] == one:
            for cell in range(first[end], last[end] + 1):
                for i in range(ranges.shape[1]):
                    largest[cell, i] = max(largest[cell, i], ranges[end, i])
            end += 1
        for cell in range(cells):
            for i in range(ranges.shape[1]):
                total[cell, output[one] + i] += largest[cell, i]
                largest[cell, i] = 0.0
        start = end
    return total

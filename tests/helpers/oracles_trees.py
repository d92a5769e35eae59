"""The slow, obvious twin of the tree engine: enumerate the leaf boxes, multiply interval masses, use the product rule."""

import numpy as np

from texplainer.gradients.trees.ensemble import LEAF, MISSING_LEFT, Tree

GRID = np.array(
    [-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0]
)  # few thresholds: equal and repeated ones are common


def random_tree(rng, features, width, depth, output=0, wild=False):
    rows = []

    def grow(level):
        at = len(rows)
        rows.append(None)
        if level == 0 or rng.random() < 0.15:
            rows[at] = (-1, -1, 0, 0.0, False, rng.normal(size=width))
            return at
        threshold = rng.choice(GRID) if rng.random() < 0.7 else rng.normal()
        if wild and rng.random() < 0.1:
            threshold = rng.choice([-np.inf, np.inf])
        column, missing = rng.integers(features), rng.random() < 0.5
        left, right = grow(level - 1), grow(level - 1)
        rows[at] = (left, right, column, threshold, missing, np.zeros(width))
        return at

    grow(depth)
    left, right, column, threshold, missing, value = zip(*rows, strict=True)
    return Tree(*map(np.array, (left, right, column, threshold, missing)), np.vstack(value), output)


def random_rows(rng, rows, features, wild):
    x = np.where(
        rng.random((rows, features)) < 0.3,
        rng.choice(GRID, (rows, features)),
        rng.normal(size=(rows, features)),
    )
    if wild:
        odd = rng.random((rows, features))
        x[odd < 0.08], x[(odd > 0.08) & (odd < 0.12)], x[odd > 0.97] = np.nan, np.inf, -np.inf
    return x


def distribution(z):
    """Of the triangular noise on [-1, 1]."""
    z = np.clip(z, -1.0, 1.0)
    return np.where(z < 0, (1 + z) ** 2 / 2, 1 - (1 - z) ** 2 / 2)


def density(z):
    return np.maximum(0.0, 1 - np.abs(z))


def leaf_boxes(tree):
    """(value, {column: (low, high)}, {column: whether NaN follows the path}) of every leaf."""

    def visit(node, box, follows):
        if tree.left[node] < 0:
            yield tree.value[node], box, follows
            return
        column, threshold = int(tree.column[node]), float(tree.threshold[node])
        low, high = box.get(column, (None, np.inf))  # None: unbounded, so that -inf itself is inside
        default = bool(tree.missing_left[node])
        kept = follows.get(column, True)
        yield from visit(
            int(tree.left[node]),
            {**box, column: (low, min(high, threshold))},
            {**follows, column: kept and default},
        )
        yield from visit(
            int(tree.right[node]),
            {**box, column: (threshold if low is None else max(low, threshold), high)},
            {**follows, column: kept and not default},
        )

    yield from visit(0, {}, {})


def interval(x, low, high, width):
    """Mass of the noisy value in (low, high] and its derivative by x."""
    if low is not None and low >= high:
        return 0.0, 0.0
    if width == 0.0 or np.isinf(x):
        return float((low is None or x > low) and x <= high), 0.0
    bottom = -np.inf if low is None else (low - x) / width
    top = (high - x) / width
    return distribution(top) - distribution(bottom), (density(bottom) - density(top)) / width


def moved_slopes(trees, rows, widths, outputs):
    """Slopes averaged over moves of one column within widths, (rows, columns, outputs), leaf by leaf."""
    found = np.zeros((len(rows), len(widths), outputs))
    for tree in trees:
        for leaf, box, follows in leaf_boxes(tree):
            reach = slice(tree.output, tree.output + len(leaf))
            for r, row in enumerate(rows):
                inside = {
                    column: float(follows[column])
                    if np.isnan(row[column])
                    else interval(row[column], *ends, 0.0)[0]
                    for column, ends in box.items()
                }
                for column, (low, high) in box.items():
                    others = np.prod([m for c, m in inside.items() if c != column])
                    if others and widths[column] and not np.isnan(row[column]):
                        slope = interval(row[column], low, high, widths[column])[1]
                        found[r, column, reach] += leaf * slope
    return found


def hard(trees, rows, outputs, base=0.0):
    """The plain prediction, one comparison after the other."""
    value = np.zeros((len(rows), outputs)) + base
    for tree in trees:
        for r, row in enumerate(rows):
            node = 0
            while tree.left[node] >= 0:
                x = row[int(tree.column[node])]
                left = tree.missing_left[node] if np.isnan(x) else x <= tree.threshold[node]
                node = int(tree.left[node] if left else tree.right[node])
            value[r, tree.output : tree.output + len(tree.value[node])] += tree.value[node]
    return value


def trees_of(ensemble):
    """The trees of a loaded ensemble, one by one."""
    ends = np.append(ensemble.roots[1:], len(ensemble.kind)).astype(int)
    for root, end, output in zip(ensemble.roots.astype(int), ends, ensemble.output, strict=True):
        kind = ensemble.kind[root:end]
        leaf = (kind & LEAF) != 0
        right = ensemble.right[root:end].astype(int)
        yield Tree(
            left=np.where(leaf, -1, np.arange(1, end - root + 1)),
            right=np.where(leaf, -1, right - root),
            column=ensemble.column[root:end].astype(int),
            threshold=np.where(ensemble.threshold[root:end] > 1e308, np.inf, ensemble.threshold[root:end]),
            missing_left=(kind & MISSING_LEFT) != 0,
            value=ensemble.value[np.where(leaf, right, 0)],
            output=int(output),
            cover=None if ensemble.cover is None else ensemble.cover[root:end],
        )

"""Tree ensembles as plain arrays, the one form every library's model is read into.

Nodes of all trees lie in preorder (the left child of node i is i + 1), one array a field. Every split
sends a row left when ``x <= threshold``; NaN follows `missing_left`. Each node also knows the tightest
thresholds of its ancestors on its own column, so that a column repeated on a path counts as one
interval.

Categorical splits become *virtual columns*, one for each (feature, set of categories going left): 0
inside the set, 1 outside, split at one half.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: bits of TreeEnsemble.kind; LEAF_PAIR: both children are leaves; HARD: a split without noise (`soft`)
LEAF, LEAF_PAIR, LOWER, UPPER, MISSING_LEFT, HARD = 1, 2, 4, 8, 16, 32
MAX_NODES = 30_000_000  # about 1.2 GB of node arrays
EDGE, FAR, LARGEST = 0.9e308, 1.7e308, 1e308  # stand-ins for infinite thresholds; cells lie between the two


class CategoryColumns:
    """Collects the virtual columns of a model while its trees are read."""

    def __init__(self, features: int) -> None:
        self.features = features
        self._columns: dict[tuple[int, tuple[int, ...]], int] = {}

    def column(self, feature: int, codes: Sequence[int]) -> int:
        """The virtual column of a feature and the set of categories that go left."""
        key = (feature, tuple(sorted(codes)))
        return self._columns.setdefault(key, self.features + len(self._columns))

    @property
    def known(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Feature and codes of every virtual column, in order."""
        return tuple(self._columns)


@dataclass(frozen=True)
class Tree:
    """One tree as a library gives it: node 0 is the root, leaves have ``left < 0``, any order."""

    left: NDArray[Any]  # (nodes,) index of the child taken when x <= threshold
    right: NDArray[Any]  # (nodes,)
    column: NDArray[Any]  # (nodes,) feature, or features + position in `categories`
    threshold: NDArray[Any]  # (nodes,)
    missing_left: NDArray[Any]  # (nodes,) bool
    value: NDArray[Any]  # (nodes, width) read at leaves
    output: int = 0  # the first raw output it adds to
    cover: NDArray[Any] | None = None  # (nodes,) weight of the training rows that reached each node


@dataclass(frozen=True)
class TreeEnsemble:
    """``raw = base + sum of leaf values``; outputs of the model are ``link(raw)``.

    Attributes
    ----------
    link : name of the map from raw outputs to the model's own predictions, see `LINKS` of `gradients/maps`.
    steepness : factor on the raw outputs inside a logistic link.
    dtype : the type the library rounds inputs to before it compares.
    tolerance : how closely the library itself adds up, relative.
    categories : for each virtual column its feature and the category codes that go left.
    missing : the number that the library takes for a missing value besides NaN; NaN for none.
    missing_within : how far from it a number is taken for missing, too.
    codes : feature and the code of every category, where the library gives them itself and takes others for missing.
    cover : weight of the training rows that reached each node; None where the model does not hold it.
    """

    kind: NDArray[np.uint8]  # (nodes,) bits LEAF, LEAF_PAIR, LOWER, UPPER, MISSING_LEFT
    column: NDArray[np.uint64]  # (nodes,)
    threshold: Floats  # (nodes,)
    lower: Floats  # (nodes,) tightest ancestor bounds on the node's own column
    upper: Floats  # (nodes,)
    right: NDArray[np.uint64]  # (nodes,) right child; at a leaf, its row of `value`
    roots: NDArray[np.uint64]  # (trees,)
    output: NDArray[np.uint64]  # (trees,) first raw output the tree adds to
    value: Floats  # (leaves, width)
    base: Floats  # (raw outputs,)
    features: int
    depth: int
    link: str
    steepness: float
    dtype: type
    tolerance: float
    categories: tuple[tuple[int, tuple[int, ...]], ...] = field(default=())
    missing: float = np.nan
    missing_within: float = 0.0
    codes: tuple[tuple[int, dict[Any, float]], ...] = ()
    cover: Floats | None = None  # (nodes,)

    @property
    def columns(self) -> int:
        """Features plus virtual columns."""
        return self.features + len(self.categories)

    def marked(self, inputs: Floats) -> Floats:
        """Inputs with NaN for every missing value, and for what the library takes for one."""
        if np.isnan(self.missing) and not self.codes:
            return inputs
        with np.errstate(over="ignore"):  # compared as the library compares
            rounded = inputs.astype(self.dtype)
            low, high = (self.dtype(self.missing + sign * self.missing_within) for sign in (-1, 1))
        missing = (rounded >= low) & (rounded <= high)
        for feature, codes in self.codes:
            missing[:, feature] |= ~np.isin(inputs[:, feature], list(codes.values()))
        return np.where(missing, np.nan, inputs)

    def widen(self, rows: Floats) -> Floats:
        """Append the virtual columns: 0 where the category goes left, 1 elsewhere, NaN where missing."""
        if not self.categories:
            return rows
        virtual = np.empty((len(rows), len(self.categories)))
        for position, (feature, codes) in enumerate(self.categories):
            cells = rows[:, feature]
            outside = 1.0 - np.isin(np.trunc(cells), codes)
            virtual[:, position] = np.where(np.isnan(cells), np.nan, outside)
        return np.hstack([rows, virtual])


def assemble(
    trees: Sequence[Tree],
    *,
    features: int,
    base: Sequence[float] | Floats,
    link: str,
    steepness: float = 1.0,
    dtype: type = np.float64,
    tolerance: float = 1e-10,
    categories: Sequence[tuple[int, tuple[int, ...]]] = (),
    missing: float = np.nan,
    missing_within: float = 0.0,
    codes: Sequence[tuple[int, dict[Any, float]]] = (),
) -> TreeEnsemble:
    """One ensemble of all trees; their leaves may have values for one output or for several."""
    return TreeEnsemble(
        **_nodes(trees, features, features + len(categories)),
        output=np.array([tree.output for tree in trees], dtype=np.uint64),
        base=np.asarray(base, dtype=np.float64),
        features=features,
        link=link,
        steepness=steepness,
        dtype=dtype,
        tolerance=tolerance,
        categories=tuple(categories),
        missing=missing,
        missing_within=missing_within,
        codes=tuple(codes),
    )


def _nodes(trees: Sequence[Tree], features: int, columns: int) -> dict[str, Any]:
    """Lay the trees out in preorder and find the ancestor bounds of every node."""
    sizes = np.array([len(tree.left) for tree in trees], dtype=np.int64)
    if sizes.sum() > MAX_NODES:
        raise ValueError(
            f"the ensemble has {sizes.sum():,} nodes; the tree engine takes at most {MAX_NODES:,}"
        )
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    def joined(name: str, kind: type) -> NDArray[Any]:
        return np.concatenate([np.asarray(getattr(tree, name)) for tree in trees]).astype(kind)

    left, right = joined("left", np.int64), joined("right", np.int64)
    shift = np.repeat(starts, sizes)
    left, right = np.where(left < 0, -1, left + shift), np.where(left < 0, -1, right + shift)
    threshold = finite_threshold(joined("threshold", np.float64))
    order, child, lower, upper, threshold, depth = preorder(
        left, right, joined("column", np.int64), threshold, starts
    )
    leaf = left[order] < 0
    column = np.where(leaf, 0, joined("column", np.int64)[order])
    if len(column) and column.max() >= columns:
        raise ValueError(f"a tree splits on column {column.max()}, but the model has {features} features")
    value = np.concatenate([np.asarray(tree.value, dtype=np.float64) for tree in trees])[order][leaf] + 0.0
    if not np.isfinite(value).all():
        raise ValueError("a leaf of the ensemble holds a value that is not finite")
    covers = [tree.cover for tree in trees if tree.cover is not None]
    followed = np.append(leaf, [False, False])
    flags = {
        LEAF: leaf,
        LEAF_PAIR: ~leaf & followed[1:-1] & followed[2:],
        LOWER: np.isfinite(lower),
        UPPER: np.isfinite(upper),
        MISSING_LEFT: joined("missing_left", np.bool_)[order],
    }
    return {
        "kind": _bits(flags),
        "column": column.astype(np.uint64),
        "threshold": threshold,
        "lower": lower,
        "upper": upper,
        "right": np.where(leaf, np.cumsum(leaf) - 1, child).astype(np.uint64),
        "roots": np.concatenate([[0], np.cumsum(_reached(order, starts))[:-1]]).astype(np.uint64),
        "value": np.ascontiguousarray(value),
        "depth": int(depth),
        "cover": np.concatenate(covers).astype(np.float64)[order] if len(covers) == len(trees) else None,
    }


def _bits(flags: dict[int, NDArray[np.bool_]]) -> NDArray[np.uint8]:
    return np.sum([np.where(flag, bit, 0) for bit, flag in flags.items()], axis=0).astype(np.uint8)


def _reached(order: Integers, starts: Integers) -> Integers:
    """Nodes reached from each root (a pruned model may keep dead nodes)."""
    return np.bincount(np.searchsorted(starts, order, side="right") - 1, minlength=len(starts))


def finite_threshold(threshold: Floats) -> Floats:
    """Infinite thresholds as finite stand-ins that compare rightly with rows clipped to +-1e308."""
    return np.where(threshold == np.inf, FAR, np.clip(threshold, -EDGE, EDGE))


def compared(ensemble: TreeEnsemble, cells: Floats) -> Floats:
    """Cells as the library compares them, and within the stand-ins of infinite thresholds."""
    with np.errstate(over="ignore"):
        rounded = cells.astype(ensemble.dtype).astype(np.float64)
    return np.clip(rounded, -LARGEST, LARGEST)


def unrounded(ensemble: TreeEnsemble, threshold: Floats) -> Floats:
    """The largest numbers that the library rounds to at most a threshold.

    Large numbers that float32 can hold are far apart: 128 for times in seconds, 2 for dates such as 20201231.
    """
    if ensemble.dtype == np.float64:
        return threshold.copy()
    inside = np.abs(threshold) < float(np.finfo(ensemble.dtype).max) / 2
    at = np.where(inside, threshold, 0.0)
    near = at.astype(ensemble.dtype)
    below = np.where(near > at, np.nextafter(near, ensemble.dtype(-np.inf)), near)
    above = np.nextafter(below, ensemble.dtype(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    left = middle.astype(ensemble.dtype) <= at  # a number in the middle is rounded to the even side
    return np.where(inside, np.where(left, middle, np.nextafter(middle, -np.inf)), threshold)


def raw_sums(ensemble: TreeEnsemble, inputs: Floats) -> Floats:
    """The ensemble's raw sums at rows of its inputs, (rows, raw outputs)."""
    cells = compared(ensemble, ensemble.widen(inputs))
    rows, raw = np.arange(len(inputs)), np.repeat(ensemble.base[None], len(inputs), axis=0)
    column, right = ensemble.column.astype(np.int64), ensemble.right.astype(np.int64)
    for root, output in zip(ensemble.roots.astype(np.int64), ensemble.output.astype(np.int64), strict=True):
        node = np.full(len(inputs), root)
        for _ in range(ensemble.depth):
            kind, x = ensemble.kind[node], cells[rows, column[node]]
            left = np.where(np.isnan(x), kind & MISSING_LEFT != 0, x <= ensemble.threshold[node])
            node = np.where(kind & LEAF != 0, node, np.where(left, node + 1, right[node]))
        raw[:, output : output + ensemble.value.shape[1]] += ensemble.value[right[node]]
    return raw


# ---------------------------------------------------------------- the order of nodes in memory


def preorder(
    left: np.ndarray, right: np.ndarray, column: np.ndarray, threshold: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
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


def _bound(
    nodes: np.ndarray,
    depth: int,
    parent: np.ndarray,
    went_left: np.ndarray,
    column: np.ndarray,
    clamped: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> None:
    """Find the nearest thresholds of the `depth` ancestors on the nodes' own columns, on either side."""
    walker, own = nodes, column[nodes]
    low, high = lower[nodes], upper[nodes]
    for _ in range(depth):
        side, walker = went_left[walker], parent[walker]
        same, bound = column[walker] == own, clamped[walker]
        high = np.where(same & side & (high == np.inf), bound, high)
        low = np.where(same & ~side & (low == -np.inf), bound, low)
    lower[nodes], upper[nodes] = low, high


def depth_levels(right: np.ndarray, leaf: np.ndarray, roots: np.ndarray) -> list[np.ndarray]:
    """The inner nodes of all trees by depth, from the roots down."""
    level, found = np.asarray(roots, dtype=np.int64), []
    while len(level):
        inner = level[~leaf[level]]
        found.append(inner)
        level = np.concatenate([inner + 1, right[inner].astype(np.int64)])
    return found


def subtree_ends(right: np.ndarray, leaf: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """One past the last node of every node's subtree."""
    end = np.arange(1, len(leaf) + 1)
    for inner in reversed(depth_levels(right, leaf, roots)):
        end[inner] = end[right[inner].astype(np.int64)]
    return end

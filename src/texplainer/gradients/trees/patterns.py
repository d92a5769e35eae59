r"""Exact Shapley values of tree ensembles, from patterns of satisfied conditions.

The game is v(S) = mean over background rows b of f(x_S, b_rest), all rows of the background, each with its
weight. A leaf of value v whose path has d distinct features is reached by a mixture of x and b only if every
feature's conditions hold for the row it is taken from. Let u be the features whose conditions x satisfies, w
those that b satisfies. If together they are all d features, then with A = u \ w, B = w \ u, p = |A|, q = |B|

    each feature of A gains  v (p-1)! q! / (p+q)!,   each feature of B loses  v p! (q-1)! / (p+q)!

So only the truth of conditions matters, for x and for b: missing values, categories and thresholds are
whatever the library makes of them. And a condition belongs to whichever raw feature its column is made from.

The path-dependent game (XGBoost's `pred_contribs`, shap's "tree_path_dependent") has no background: an absent
feature's conditions hold with the cover ratios of the path, see `kernels.covers`.

References: Lundberg et al. 2020 (the game); Laberge & Pequignot 2022 (a leaf's values by p and q).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import Unsupported
from texplainer.gradients.trees.ensemble import LEAF, Floats, Integers, TreeEnsemble
from texplainer.gradients.trees.kernels.classes import add_deep_values
from texplainer.gradients.trees.kernels.covers import add_deep_cover_values, fill_cover_tables
from texplainer.gradients.trees.kernels.pairs import add_pairs
from texplainer.gradients.trees.kernels.patterns import (
    LANES,
    MAX_BITS,
    MAX_FEATURES,
    MAX_LEAVES,
    Game,
    Groups,
    Nodes,
    add_values,
    cut_into_groups,
    fill_tables,
)
from texplainer.gradients.trees.layout import depth_levels, subtree_ends
from texplainer.gradients.trees.soft import compared, in_threads
from texplainer.support.progress import track

MEMORY = 2**25  # table entries held at a time: 256 MB
MANY_TABLES = 2**22  # entries from which a progress bar is shown while tables are filled
FEW_ROWS = 256  # a thread takes at least as many


@dataclass(frozen=True)
class PatternTables:
    """The Shapley values of an ensemble's raw sums, prepared for one background or for the trees' covers.

    Tables are filled when they are first needed and kept, unless they are larger than `memory` entries: then
    they are filled for a part of the trees at a time, while the rows pass.
    """

    ensemble: TreeEnsemble
    nodes: Nodes
    groups: Groups
    game: Game
    features: int  # raw features
    covers: bool = False  # whether the trees' covers take the place of background rows
    memory: int = MEMORY
    _kept: dict[int, Floats] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, inputs: Floats, threads: int | None = None) -> Floats:
        """Shapley values of rows given as the trees' inputs, (rows, features, raw outputs)."""
        cells = columns_of(self.ensemble, inputs)
        values = np.zeros((len(self.ensemble.base), self.features, len(inputs)))
        for part, (first, last) in enumerate(self._parts()):
            table = self._table(part, first, last)

            def work(start: int, stop: int, table: Any = table, first: int = first, last: int = last) -> None:
                add_values(self.nodes, self.groups, self.game, table, cells, values, first, last, start, stop)
                if self.groups.deep.any():
                    add_deep = add_deep_cover_values if self.covers else add_deep_values
                    add_deep(self.nodes, self.groups, self.game, cells, values, first, last, start, stop)

            in_threads(work, len(inputs), FEW_ROWS, threads)
        return values.transpose(2, 1, 0)

    def pairs(self, inputs: Floats, threads: int | None = None) -> Floats:
        """Shapley interaction values, (rows, features, features, raw outputs), in shap's convention.

        Symmetric: half of a pair's index on either side of the diagonal, on it what is left of the feature's
        Shapley value.
        """
        cells, own = columns_of(self.ensemble, inputs), self(inputs, threads)
        values = np.zeros((len(self.ensemble.base), len(inputs), self.features, self.features))

        def work(start: int, stop: int) -> None:
            add_pairs(self.nodes, self.game, self.covers, cells, values, start, stop)

        in_threads(work, len(inputs), FEW_ROWS, threads)
        values = (values + values.swapaxes(2, 3)) / 2
        every = np.arange(self.features)
        values[:, :, every, every] = own.transpose(2, 0, 1) - values.sum(axis=3)
        return values.transpose(1, 2, 3, 0)

    def _parts(self) -> list[tuple[int, int]]:
        """Ranges of trees whose tables fit into memory together."""
        ends = self.groups.table[self.groups.first_group]  # (trees + 1,)
        parts, first = [], 0
        while first < len(ends) - 1:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + self.memory, side="right")) - 1)
            parts.append((first, last))
            first = last
        return parts

    def _table(self, part: int, first: int, last: int) -> Floats:
        if part in self._kept:
            return self._kept[part]
        ends = self.groups.table[self.groups.first_group]
        table = np.empty(int(ends[last] - ends[first]))
        step = max(1, (last - first) // 64)
        chunks = [(at, min(at + step, last)) for at in range(first, last, step)]
        show = None if len(table) >= MANY_TABLES else False
        fill = fill_cover_tables if self.covers else fill_tables
        for at, end in track(chunks, "tabulating trees", show):
            own = table[ends[at] - ends[first] : ends[end] - ends[first]]
            fill(self.nodes, self.groups, self.game, own, at, end)
        if last - first == len(ends) - 1:
            self._kept[part] = table
        return table


def pattern_tables(
    ensemble: TreeEnsemble,
    background: Floats,
    *,
    weights: Floats | None = None,
    owner: NDArray[Any] | None = None,
    features: int | None = None,
) -> PatternTables:
    """Prepare the Shapley values of an ensemble against background rows.

    Parameters
    ----------
    background
        (background rows, inputs), as the trees see them: behind the transformers.
    weights
        (background rows,), by default equal.
    owner
        (inputs,), the raw feature each input is made from; by default each is a feature of its own.
    features
        Number of raw features.
    """
    weights = np.ones(len(background)) if weights is None else np.asarray(weights, dtype=np.float64)
    cells = columns_of(ensemble, np.asarray(background, dtype=np.float64))
    game = Game(cells, weights / weights.sum(), *_coefficients(), *_quadrature())
    return _prepared(ensemble, game, owner, features)


def cover_tables(
    ensemble: TreeEnsemble, *, owner: NDArray[Any] | None = None, features: int | None = None
) -> PatternTables:
    """Prepare the path-dependent Shapley values of an ensemble, from its own covers."""
    if ensemble.cover is None:
        raise Unsupported("its trees do not hold how many training rows reached each node.")
    game = Game(np.empty((ensemble.columns, 0)), np.empty(0), *_coefficients(), *_quadrature())
    return replace(_prepared(ensemble, game, owner, features), covers=True)


def cover_expectation(ensemble: TreeEnsemble) -> Floats:
    """The mean of the raw sums by covers, (raw outputs,): the path-dependent base value."""
    leaf = (ensemble.kind & LEAF) != 0
    right = ensemble.right.astype(np.int64)
    ratio, reach = _cover_ratios(ensemble), np.ones(len(leaf))
    for inner in depth_levels(right, leaf, ensemble.roots):
        for child in (inner + 1, right[inner]):
            reach[child] = reach[inner] * ratio[child]
    total, width = ensemble.base.copy(), ensemble.value.shape[1]
    found = reach[leaf, None] * ensemble.value[right[leaf]]  # (leaves, width)
    tree = np.searchsorted(ensemble.roots, np.flatnonzero(leaf), side="right") - 1
    for k in range(width):
        np.add.at(total, ensemble.output[tree].astype(np.int64) + k, found[:, k])
    return total


def columns_of(ensemble: TreeEnsemble, inputs: Floats) -> Floats:
    """Inputs as the library compares them, virtual columns appended, (columns, rows)."""
    return np.ascontiguousarray(compared(ensemble, ensemble.widen(inputs)).T)


def _prepared(
    ensemble: TreeEnsemble, game: Game, owner: NDArray[Any] | None, features: int | None
) -> PatternTables:
    owner = np.arange(ensemble.features) if owner is None else np.asarray(owner)
    nodes = _nodes(ensemble, owner)
    groups, fits = _groups(nodes)
    if not fits:
        raise Unsupported(f"a path of its trees has more than {MAX_FEATURES} distinct features.")
    return PatternTables(ensemble, nodes, groups, game, features or int(owner.max(initial=0)) + 1)


def _nodes(ensemble: TreeEnsemble, owner: NDArray[Any]) -> Nodes:
    virtual = [owner[feature] for feature, _ in ensemble.categories]
    owner = np.concatenate([owner, virtual]).astype(np.int64)
    leaf = (ensemble.kind & LEAF) != 0
    right, roots = ensemble.right.astype(np.int64), ensemble.roots.astype(np.int64)
    inner = np.flatnonzero(~leaf)
    parent = np.full(len(leaf), -1)
    parent[inner + 1] = parent[right[inner]] = inner
    return Nodes(
        kind=ensemble.kind,
        column=ensemble.column.astype(np.int64),
        feature=np.where(leaf, -1, owner[ensemble.column.astype(np.int64)]),
        threshold=ensemble.threshold,
        right=right,
        parent=parent,
        end=subtree_ends(right, leaf, roots),
        ratio=_cover_ratios(ensemble),
        roots=np.append(roots, len(leaf)),
        output=ensemble.output.astype(np.int64),
        value=ensemble.value,
        depth=int(ensemble.depth),
    )


def _cover_ratios(ensemble: TreeEnsemble) -> Floats:
    """Every node's cover over its parent's, (nodes,); 0 where the parent has none, 1 at roots."""
    ratio = np.ones(len(ensemble.kind))
    if ensemble.cover is None:
        return ratio
    inner = np.flatnonzero((ensemble.kind & LEAF) == 0)
    whole = np.maximum(ensemble.cover[inner], np.finfo(float).tiny)
    for child in (inner + 1, ensemble.right[inner].astype(np.int64)):
        ratio[child] = ensemble.cover[child] / whole
    return ratio


def _groups(nodes: Nodes) -> tuple[Groups, bool]:
    """Cut the trees into groups: arrays as large as they may have to be, then as large as they are."""
    sizes = np.diff(nodes.roots)
    leaves = int(((sizes + 1) // 2)[sizes < 2 * MAX_LEAVES].sum())
    deepest = min(nodes.depth, 2 * MAX_LEAVES)

    def zeros(count: int) -> Integers:
        return np.zeros(count, np.int64)

    groups = Groups(
        first_group=zeros(len(sizes) + 1),
        first_bit=zeros(leaves + 1),
        first_literal=zeros(leaves * MAX_BITS + 1),
        literal=zeros(leaves * (deepest + MAX_BITS)),
        first_feature=zeros(leaves + 1),
        feature=zeros(leaves * MAX_BITS),
        first_leaf=zeros(leaves + 1),
        leaf=zeros(leaves),
        first_condition=zeros(leaves + 1),
        condition=np.zeros((leaves * MAX_BITS, 3), np.int64),
        table=zeros(leaves + 1),
        deep=np.zeros(len(nodes.kind), np.bool_),
    )
    counts = zeros(6)
    fits = cut_into_groups(nodes, counts, groups)
    count, bits, literals, features, held, conditions = (int(n) for n in counts)
    trimmed = {
        "first_bit": count + 1,
        "first_literal": bits + 1,
        "literal": literals,
        "first_feature": count + 1,
        "feature": features,
        "first_leaf": count + 1,
        "leaf": held,
        "first_condition": held + 1,
        "condition": conditions,
        "table": count + 1,
    }
    return groups._replace(**{name: getattr(groups, name)[:n].copy() for name, n in trimmed.items()}), fits


@cache
def _coefficients() -> tuple[Floats, Floats]:
    """(p-1)! q! / (p+q)! and p! (q-1)! / (p+q)!, by q and p, 0 where they do not exist."""
    count = MAX_FEATURES + 2
    gain = np.zeros((count, count))
    for q in range(count):
        for p in range(1, count):
            gain[q, p] = np.exp(lgamma(p) + lgamma(q + 1) - lgamma(p + q + 1))
    exact = min(count, 18)  # factorials that doubles hold
    factorial = np.cumprod(np.append(1.0, np.arange(1.0, 2 * exact)))
    for q in range(exact):
        for p in range(1, exact):
            gain[q, p] = factorial[p - 1] * factorial[q] / factorial[p + q]
    return gain, np.ascontiguousarray(gain.T)


@cache
def _quadrature() -> tuple[Floats, Floats, Floats, Floats]:
    """Places and weights on [0, 1] that integrate the products of d features exactly, by d; see `Game`."""
    count = MAX_FEATURES + 2
    place, mass = np.full((count, count // 2 + 1), 0.5), np.zeros((count, count // 2 + 1))
    for d in range(1, count):
        nodes, weights = np.polynomial.legendre.leggauss((d + 1) // 2)
        place[d, : len(nodes)], mass[d, : len(nodes)] = (nodes + 1) / 2, weights / 2
    few = 2 * LANES + 1
    t, powers = place[:few, None, :LANES], np.arange(few)[:, None]
    gains = mass[:few, None, :LANES] * (1 - t) ** powers / t
    losses = mass[:few, None, :LANES] * (1 - t) ** np.maximum(powers - 1, 0) * (powers > 0)
    return place, mass, gains, losses

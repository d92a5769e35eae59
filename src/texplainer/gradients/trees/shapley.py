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

Behind transformers: every column the trees see must be made from one raw column
(imputers, scalers, encoders, binning, column selection). Then a condition on it belongs to that raw column,
and the values follow from the transformed rows alone. Which column comes from which is found by changing one
raw column at a time, and proven on mixtures of background rows: a mixture must transform to the mixture.

References: Lundberg et al. 2020 (the game); Laberge & Pequignot 2022 (a leaf's values by p and q).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import Unsupported
from texplainer.gradients.machine_code import in_threads
from texplainer.gradients.maps import LINKS, Map, constant_slope, jacobian
from texplainer.gradients.trees.engine import TreeModel, check, link
from texplainer.gradients.trees.ensemble import (
    LEAF,
    Floats,
    TreeEnsemble,
    compared,
    depth_levels,
    subtree_ends,
)
from texplainer.gradients.trees.groups import cut_into_groups
from texplainer.gradients.trees.inputs import inputs_of, owners_by_row, owners_of
from texplainer.gradients.trees.kernels.classes import add_deep_values
from texplainer.gradients.trees.kernels.covers import add_deep_cover_values, fill_cover_tables
from texplainer.gradients.trees.kernels.pairs import add_pairs
from texplainer.gradients.trees.kernels.patterns import (
    LANES,
    MAX_FEATURES,
    Game,
    Groups,
    Nodes,
    add_values,
    fill_tables,
)
from texplainer.gradients.trees.readers.table import find, load, split_pipeline
from texplainer.models.predictor import Predictor
from texplainer.support.progress import track
from texplainer.types import Array

MEMORY = 2**25  # table entries held at a time: 256 MB
MANY_TABLES = 2**22  # entries from which a progress bar is shown while tables are filled
MANY_NODES = 2**27  # of all rows' trees, from which one is shown while values are added up
STEPS = 64  # of a progress bar
FEW_ROWS = 256  # a thread takes at least as many


@dataclass(frozen=True)
class TreeShapley:
    """Shapley values of the explained outputs against a background."""

    ensemble: TreeEnsemble
    inputs: Callable[[Array], Array]  # rows -> what the trees see
    owner: np.ndarray  # (inputs,) raw feature of each input; -1 where the background does not tell
    features: int
    after: Map  # raw sums -> all outputs
    outputs: list[int]  # those explained
    background: Array  # (background rows, inputs)
    probe: Callable[[Array, np.ndarray], np.ndarray]  # a row, inputs -> their features
    _tables: dict[tuple[bytes, bool], PatternTables] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, rows: Array) -> Array:
        """Shapley values, (rows, features, outputs)."""
        return self._computed(rows, False, PatternTables.__call__)

    def path_values(self, rows: Array) -> Array:
        """Path-dependent Shapley values, (rows, features, outputs)."""
        self._check_owners()
        return self._computed(rows, True, PatternTables.__call__)

    def pairs(self, rows: Array, path: bool = False) -> Array:
        """Shapley interaction values, (rows, features, features, outputs); of the path-dependent values too."""
        if path:
            self._check_owners()
        return self._computed(rows, path, PatternTables.pairs)

    def _check_owners(self) -> None:
        """Refuse inputs of an unknown feature where no background tells that they do not matter."""
        split = np.unique(self.ensemble.column[self.ensemble.kind & LEAF == 0].astype(np.int64))
        used = [c if c < len(self.owner) else self.ensemble.categories[c - len(self.owner)][0] for c in split]
        if (self.owner[used] < 0).any():
            raise Unsupported(
                "a column its trees see is constant in the background: it belongs to no feature."
            )

    def together(self) -> np.ndarray:
        """Which pairs of features occur in one tree, (features, features): no other pair can interact."""
        trees = self.ensemble
        inner = np.flatnonzero(trees.kind & LEAF == 0)
        column = trees.column[inner].astype(np.int64)
        feature = np.array([f for f, _ in trees.categories], dtype=np.int64)
        own = column < trees.features
        column[~own] = feature[column[~own] - trees.features]
        tree = np.searchsorted(trees.roots.astype(np.int64), inner, side="right") - 1
        occurs = np.zeros((len(trees.roots), self.features), dtype=np.float32)
        owner = self.owner[column]
        occurs[tree[owner >= 0], owner[owner >= 0]] = 1.0
        occurs[tree[owner < 0]] = 1.0  # an unknown feature may be any
        return occurs.T @ occurs > 0

    def path_base(self) -> Array:
        """The mean prediction by the trees' own covers, (outputs,)."""
        return self.after(cover_expectation(self.ensemble)[None])[0][0, self.outputs]

    def _computed(self, rows: Array, covers: bool, compute: Callable[[PatternTables, Array], Array]) -> Array:
        """What the tables compute of rows, the raw sums last, as outputs."""
        inputs = self.inputs(rows)
        slope = jacobian(self.after, self.ensemble.base[None])[0, self.outputs]  # (outputs, raw sums)
        axes = (self.features,) * (1 if compute is PatternTables.__call__ else 2)
        values = np.empty((len(rows), *axes, len(slope)))
        for owner, here in self._by_owner(rows, inputs):
            values[here] = compute(self._of(owner, covers), inputs[here]) @ slope.T
        return values

    def _by_owner(self, rows: Array, inputs: Array) -> list[tuple[np.ndarray, np.ndarray]]:
        """The owners of the inputs, and the rows for which they are these."""
        unknown = np.flatnonzero(self.owner < 0)
        constant = self.background[0, unknown]
        differs = (inputs[:, unknown] != constant) & ~(np.isnan(inputs[:, unknown]) & np.isnan(constant))
        odd = np.flatnonzero(differs.any(axis=1))
        if not len(odd):
            return [(self.owner, np.arange(len(rows)))]
        owners = np.repeat(self.owner[None], len(odd), axis=0)
        for i, row in enumerate(odd):
            columns = unknown[differs[row]]
            owners[i, columns] = self.probe(rows[row], columns)
        usual = [(self.owner, np.setdiff1d(np.arange(len(rows)), odd))]
        return usual + [(owner, odd[(owners == owner).all(axis=1)]) for owner in np.unique(owners, axis=0)]

    def _of(self, owner: np.ndarray, covers: bool) -> PatternTables:
        """The tables for inputs of these features; where it is unknown any feature will do."""
        key = (owner.tobytes(), covers)
        if key not in self._tables:
            make = cover_tables if covers else partial(pattern_tables, background=self.background)
            self._tables[key] = make(self.ensemble, owner=np.maximum(owner, 0), features=self.features)
        return self._tables[key]


def _exact_scale(ensemble: TreeEnsemble) -> str | None:
    """A scale on which a classifier is a sum of its trees."""
    for scale, kind in (("log-odds", "log-odds"), ("probability", "probability"), ("raw", "scores")):
        after = LINKS.get((ensemble.link, kind))
        if after is not None and constant_slope(after, len(ensemble.base)) is not None:
            return scale
    return None


def tree_shapley(predictor: Predictor, background: Array, owner: np.ndarray | None = None) -> TreeShapley:
    """Prepare a model's Shapley values, or raise `Unsupported` with the reason.

    `owner` is the raw feature of each of the trees' inputs where it has been found already.
    """
    transformers, final = split_pipeline(predictor.model)
    if find(final) is None:
        raise Unsupported("the model is not a tree ensemble.")
    ensemble = load(final)
    after = link(ensemble, predictor.scale, predictor.task)
    if constant_slope(after, len(ensemble.base)) is None:
        other = _exact_scale(ensemble) if predictor.task != "regression" else None
        remedy = f"; scale={other!r} gives exact values" if other else ""
        raise Unsupported(f"on the {predictor.scale} scale the model is not a sum of trees{remedy}.")

    def inputs(rows: Array) -> Array:
        return ensemble.marked(inputs_of(predictor, transformers, rows, ensemble.codes))

    seen = inputs(background)
    if seen.shape[1] != ensemble.features:
        raise Unsupported(f"its trees were fitted on {ensemble.features} columns and get {seen.shape[1]}.")
    check(TreeModel(predictor, ensemble, after, inputs), background)
    if owner is None and (transformers or predictor.schema.groups):
        owner = owners_of(inputs, background, predictor)
    return TreeShapley(
        ensemble,
        inputs,
        np.arange(ensemble.features) if owner is None else owner,
        background.shape[1],
        after,
        list(predictor.outputs),
        seen,
        partial(owners_by_row, inputs, background[0]),
    )


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
        long = len(inputs) * len(self.ensemble.kind) >= MANY_NODES
        add_deep = add_deep_cover_values if self.covers else add_deep_values

        def tables(start: int, stop: int, at: int, end: int, own: Floats) -> None:
            add_values(self.nodes, self.groups, self.game, own, cells, values, at, end, start, stop)

        def patterns(start: int, stop: int, at: int, end: int) -> None:
            add_deep(self.nodes, self.groups, self.game, cells, values, at, end, start, stop)

        ends = self.groups.table[self.groups.first_group]
        for part, (first, last) in enumerate(self._parts()):
            table = self._table(part, first, last)
            steps = _steps(first, last) if long else [(first, last)]
            # the tables of all trees before the deep leaves of any: steps do not change the order of sums
            for at, end in track(steps if len(table) else [], "adding up trees"):
                own = table[ends[at] - ends[first] : ends[end] - ends[first]]
                in_threads(partial(tables, at=at, end=end, own=own), len(inputs), FEW_ROWS, threads)
            for at, end in track(steps if self.groups.deep.any() else [], "adding up deep leaves"):
                in_threads(partial(patterns, at=at, end=end), len(inputs), FEW_ROWS, threads)
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
        chunks = _steps(first, last) if len(table) else []  # nothing to fill: the kernel is not even compiled
        show = None if len(table) >= MANY_TABLES else False
        fill = fill_cover_tables if self.covers else fill_tables
        for at, end in track(chunks, "tabulating trees", show):
            own = table[ends[at] - ends[first] : ends[end] - ends[first]]
            fill(self.nodes, self.groups, self.game, own, at, end)
        if last - first == len(ends) - 1:
            self._kept[part] = table
        return table


def _steps(first: int, last: int) -> list[tuple[int, int]]:
    """Ranges of trees between which a progress bar moves."""
    step = max(1, (last - first) // STEPS)
    return [(at, min(at + step, last)) for at in range(first, last, step)]


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
    return PatternTables(
        ensemble, nodes, cut_into_groups(nodes, MEMORY), game, features or int(owner.max(initial=0)) + 1
    )


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

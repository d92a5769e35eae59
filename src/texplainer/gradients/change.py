"""How much slopes change as all features of a row move a little, from second derivatives.

A move z changes the slope of feature j by about sum_k h_jk z_k. The second derivatives of a feature follow from nodes
at which f is known. Those of a pair need one more prediction, with both features at such a node; up to four, one for
each corner, where the budget allows. Where it does not allow all pairs, some stand for all: every feature is in as
many of them, and the squares of the others are taken to be as large on the average.

A few joint moves would cost as much and tell less: of a matrix of n² numbers each gives n sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from texplainer.models.predictor import Predictor
from texplainer.types import Array

MIDDLE = 0.65  # of the outer node's move, for pairs: nearer ones see a bend of f as too sharp, farther ones miss it
INNER = 0.4  # of it, for second derivatives from one side
NEAR = 0.25  # of the move to the other side: a smaller one gives no second derivative
CORNERS = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])  # sides of two features; up is 0


@dataclass(frozen=True)
class Nodes:
    """A node on either side of every cell: signed moves (rows, features, 2), and what f gains (..., outputs)."""

    move: Array
    gain: Array

    def on(self, side: np.ndarray) -> tuple[Array, Array]:
        """Moves and gains of the nodes on one side of each cell (rows, features)."""
        return (
            np.take_along_axis(self.move, side[:, :, None], axis=2)[:, :, 0],
            np.take_along_axis(self.gain, side[:, :, None, None], axis=2)[:, :, 0],
        )

    def far_enough(self) -> Nodes:
        """The same, with the node of the other side in place of one that is near."""
        size = np.abs(self.move)
        near = size < NEAR * size[:, :, ::-1]
        return Nodes(
            np.where(near, self.move[:, :, ::-1], self.move),
            np.where(near[..., None], self.gain[:, :, ::-1], self.gain),
        )


def nodes_at(move: Array, gain: Array, part: float) -> Nodes:
    """The nodes nearest to so much of the outer moves; `move` (rows, features, 2, nodes) is 0 at unknown nodes."""
    size = np.abs(move)
    away = np.where(size > 0, np.abs(size - part * size.max(axis=3, keepdims=True)), np.inf)
    which = away.argmin(axis=3)[..., None]
    return Nodes(
        np.take_along_axis(move, which, axis=3)[..., 0],
        np.take_along_axis(gain, which[..., None], axis=3)[:, :, :, 0],
    )


def curvature(outer: Nodes, inner: Nodes) -> Array:
    """Second derivatives (rows, features, outputs), from the outer nodes or, at an edge, from two on one side."""
    longer = np.abs(outer.move).argmax(axis=2)
    (a, gain_a), (b, gain_b), (c, gain_c) = outer.on(longer), outer.on(1 - longer), inner.on(longer)
    near = np.abs(b) < NEAR * np.abs(a)
    b, gain_b = np.where(near, c, b), np.where(near[:, :, None], gain_c, gain_b)
    known = (a != 0) & (b != 0) & (a != b)
    a, b = np.where(known, a, np.inf)[:, :, None], np.where(known, b, -np.inf)[:, :, None]
    return 2 * (gain_a / a - gain_b / b) / (a - b)


@lru_cache(maxsize=64)
def pairs_of(features: int, count: int) -> np.ndarray:
    """At most `count` different pairs of features, (pairs, 2), with every feature in as many.

    Pairs of neighbours, of second neighbours, ... in a circle; its order is random, for that of columns has a meaning.
    """
    circle, found = np.random.default_rng(features).permutation(features), [np.zeros((0, 2), dtype=int)]
    for apart in range(1, features // 2 + 1):
        part = features // 2 if 2 * apart == features else features
        found.append(np.stack([circle, np.roll(circle, -apart)], axis=1)[:part])
        if apart * features >= count:
            break
    return np.concatenate(found)[:count]


def mixed_derivatives(
    predictor: Predictor,
    rows: Array,
    predictions: Array,
    nodes: Nodes,
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray],
    corners: int,
) -> Array:
    """Second derivatives of pairs (row, first feature, second feature), (pairs, outputs)."""
    row, first, second = pairs
    out = np.zeros((len(row), predictions.shape[1]))
    size = predictor.piece(rows.shape[1])
    for start in range(0, len(row), size):
        part = slice(start, start + size)
        r, j, k = row[part], first[part], second[part]
        for corner in range(corners):  # of two corners, the opposite ones
            side, other = CORNERS[(3 * j + k) % len(CORNERS) ^ corner].T
            a, b = nodes.move[r, j, side], nodes.move[r, k, other]
            points, each = rows[r], np.arange(len(r))
            points[each, j] += a
            points[each, k] += b
            gain = predictor(points) - predictions[r] - nodes.gain[r, j, side] - nodes.gain[r, k, other]
            out[part] += gain / (corners * a * b)[:, None]
    return out


def change_of_slopes(
    predictor: Predictor,
    rows: Array,
    predictions: Array,
    known: tuple[Array, Array],
    columns: np.ndarray,
    sd: Array,
    mean_square: Array,
    budget: int,
) -> tuple[Array, np.ndarray]:
    """The length of the change of sd times the slopes, (rows, outputs), and the evaluations it took, (rows,).

    `known` are moves (rows, features, 2, nodes), 0 for cells that stay, and what f gains there; `columns`
    are those that move in any row, `mean_square` (rows, features) the mean squares of the moves that change the
    slopes, and `budget` is that of a row.
    """
    outer, middle, inner = (nodes_at(*known, part) for part in (1.0, MIDDLE, INNER))
    own, among = np.zeros(predictions.shape), np.zeros(predictions.shape)
    moving = (outer.move != 0).any(axis=2)
    row, column = np.nonzero(moving)
    curved = curvature(outer, inner)[row, column] * sd[column, None]
    np.add.at(own, row, curved**2 * mean_square[row, column, None])
    pairs = columns[pairs_of(len(columns), budget)]
    row, pair = np.nonzero(moving[:, pairs[:, 0]] & moving[:, pairs[:, 1]])
    asked, count = np.bincount(row, minlength=len(rows)), moving.sum(axis=1)
    if not len(row):
        return np.sqrt(own), asked
    corners = min(len(CORNERS), budget // len(pairs))
    (first, second), nodes = pairs[pair].T, middle.far_enough()
    mixed = mixed_derivatives(predictor, rows, predictions, nodes, (row, first, second), corners)
    both = sd[first] ** 2 * mean_square[row, second] + sd[second] ** 2 * mean_square[row, first]
    np.add.at(among, row, mixed**2 * both[:, None])
    among *= (count * (count - 1) / 2 / np.maximum(1, asked))[:, None]
    return np.sqrt(own + among), corners * asked

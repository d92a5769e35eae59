"""Second derivatives of a black box, by a designed experiment of resolution V.

f is evaluated at x + w sigma z with signs z whose pairwise products are orthogonal (`resolution`), in a few
blocks of other magnitudes. Within a block a feature takes two values, also where the range cuts them short,
2 delta_j apart: the mean of f times sign_i sign_j is then delta_i delta_j d2f/dx_i dx_j of a quadratic f, and
0 of an additive one. Over blocks b, with c_b these means,

    d2f/dx_i dx_j = sum_b delta_ib delta_jb c_b / sum_b (delta_ib delta_jb)^2.

Two values tell nothing of a feature's own curvature: it is taken from three values of it at a few points of
the neighbourhood. The error bound is a t-quantile of what constant, slopes and products leave unexplained,
with how far the blocks differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import stdtrit

from texplainer.gradients.points import magnitudes, points, shuffle
from texplainer.gradients.smoothing import limits
from texplainer.interactions import resolution
from texplainer.interactions.second_order import SecondOrder, joined_blocks
from texplainer.models.predictor import Predictor
from texplainer.types import Array

RUNS, FEWEST, MOST = 1024, 2, 16  # runs wanted in all, and how many blocks they may be
STARS = 8  # points of the neighbourhood at which a feature's own curvature is taken
CELLS = 2**20  # of the points at hand at a time
CONFIDENCE = 0.995  # one-sided, of the error bound
CANCELLED = 1e-12  # of the squares: what their difference cannot tell from nothing
# Chosen on networks, to cover 98% of the averages over very many points:
BIAS = 1.3  # of the scatter's bound: few magnitudes cannot stand for a normal distribution
BETWEEN = 4.5  # errors in units of the blocks' scatter


def designed(
    predictor: Predictor, sigma: Array, width: float, bounds: tuple[Array, Array] | None, rows: Array
) -> SecondOrder:
    """Interactions and curvatures of rows from designed points; `width` is the bandwidth in SDs, 0 for the point."""
    if not width:  # the point itself: the step that balances curvature and rounding
        width = predictor.unit**0.25
    found = [_Design(predictor, sigma, width, bounds, rows[i : i + 1]).found() for i in range(len(rows))]
    size = (0, len(sigma), len(sigma), len(predictor.outputs))
    return joined_blocks(found or [SecondOrder(np.zeros(size), np.zeros(size), np.zeros(0, dtype=np.int64))])


class _Design:
    """The designed points around one row; at most a part of them is in memory at a time."""

    def __init__(
        self,
        predictor: Predictor,
        sigma: Array,
        width: float,
        bounds: tuple[Array, Array] | None,
        row: Array,
    ) -> None:
        self.predictor, self.row = predictor, row[0]
        self.low, self.high = (limit[0] for limit in limits(row, bounds))
        self.sigma, self.width = sigma, width
        self.move = np.where(predictor.schema.numeric, width * sigma, 0.0)
        self.columns = np.flatnonzero((self.move > 0) & np.isfinite(self.row))
        self.f0 = predictor(row)[0]
        self.loud = np.abs(self.f0)
        self.cost = 1

    def found(self) -> SecondOrder:
        """The symmetric matrix of this row."""
        n, outputs = len(self.row), len(self.f0)
        values, error = np.zeros((2, n, n, outputs))
        count = len(self.columns)
        if count:
            at = np.ix_(self.columns, self.columns)
            values[at], error[at] = self._pairs()
            diagonal = (self.columns, self.columns)
            values[diagonal], error[diagonal] = self._own()
        values[np.abs(values) <= self._floor()] = 0.0
        return SecondOrder(values[None], error[None], np.array([self.cost]))

    def _pairs(self) -> tuple[Array, Array]:
        """Products of two features, (columns, columns, outputs) and their bounds."""
        count, runs = len(self.columns), resolution.runs(len(self.columns))
        sizes = _magnitudes(count, runs)  # (blocks, columns)
        sums = [_Sums(count, len(self.f0)) for _ in sizes]
        reach = [self._reach(size) for size in sizes]
        for block, z, f in self._runs(runs, reach):
            sums[block].add(z, f)
        top, squared, left, apart = 0.0, 0.0, 0.0, []
        for (delta, _), block in zip(reach, sums, strict=True):
            product, contrasts = np.outer(delta, delta)[:, :, None], block.contrasts(runs)
            top, squared = top + product * contrasts, squared + product**2
            apart.append((contrasts, product))
            left = left + block.unexplained(runs)
        free = runs - 1 - count - count * (count - 1) // 2
        value = top / squared
        residual = np.sqrt(left / max(1, free * len(sizes)))
        quantile = BIAS * stdtrit(max(1, free * len(sizes)), CONFIDENCE)
        scatter = quantile * residual / np.sqrt(runs * squared)
        between = np.sqrt(sum((c - p * value) ** 2 for c, p in apart) / squared / max(1, len(sizes) - 1))
        unit = np.outer(self.sigma[self.columns], self.sigma[self.columns])[:, :, None]
        rounding = 4 * self.predictor.unit * self.loud * len(sizes) ** 0.5 / np.sqrt(squared)
        return unit * value, unit * (np.hypot(scatter, BETWEEN * between) + rounding)

    def _reach(self, size: Array) -> tuple[Array, Array]:
        """Half the distance of a feature's two values within the range, and their middle."""
        here, far = self.row[self.columns], self.move[self.columns] * size
        up = np.minimum(here + far, self.high[self.columns])
        down = np.maximum(here - far, self.low[self.columns])
        return (up - down) / 2, (up + down) / 2

    def _runs(self, runs: int, reach: list[tuple[Array, Array]]) -> Iterator[tuple[int, Array, Array]]:
        """Parts of the blocks, their signs and f there; as many in a call of the model as memory allows."""
        size = max(1, CELLS // len(self.row))
        waiting: list[tuple[int, Array, Array]] = []
        for block, (delta, centre) in enumerate(reach):
            for first in range(0, runs, size):
                z = resolution.contrast_signs(len(self.columns), first, min(runs, first + size), 7 * block)
                if sum(len(other) for _, other, _ in waiting) + len(z) > size:
                    yield from self._together(waiting)
                    waiting = []
                waiting.append((block, z, centre + z * delta))
        yield from self._together(waiting)

    def _together(self, parts: list[tuple[int, Array, Array]]) -> Iterator[tuple[int, Array, Array]]:
        found = self._ask(np.concatenate([cells for _, _, cells in parts]))
        ends = np.cumsum([len(z) for _, z, _ in parts])[:-1]
        for (block, z, _), f in zip(parts, np.split(found, ends), strict=True):
            yield block, z, f

    def _own(self) -> tuple[Array, Array]:
        """A feature's own curvature, (columns, outputs), with its bound."""
        z = points(STARS, len(self.columns))
        # the three points of Gauss and Hermite: exact for the normal average up to the fifth degree
        delta, centre = self._reach(np.full(len(self.columns), np.sqrt(3.0)))
        cells = np.clip(
            self.row[self.columns] + self.move[self.columns] * np.concatenate([z, -z]),
            self.low[self.columns],
            self.high[self.columns],
        )  # (stars, columns)
        own = np.arange(len(self.columns))
        at = np.repeat(cells[:, None, None], 3, axis=1).repeat(
            len(own), axis=2
        )  # (stars, 3, columns, columns)
        at[:, :, own, own] = centre + np.array([[-1.0], [0.0], [1.0]]) * delta
        found = self._ask(at.reshape(-1, len(own))).reshape(*at.shape[:3], -1)
        second = (found[:, 0] + found[:, 2] - 2 * found[:, 1]) / delta[:, None] ** 2
        unit = self.sigma[self.columns, None] ** 2
        quantile = stdtrit(len(cells) - 1, CONFIDENCE)
        scatter = quantile * second.std(axis=0, ddof=1) / np.sqrt(len(cells))
        rounding = 4 * self.predictor.unit * self.loud / delta[:, None] ** 2
        return unit * second.mean(axis=0), unit * (scatter + rounding)

    def _ask(self, cells: Array) -> Array:
        """F less f(x) with these cells in the moving columns, (points, outputs)."""
        at = np.repeat(self.row[None], len(cells), axis=0)
        at[:, self.columns] = cells
        found = self.predictor(at)
        self.cost += len(cells)
        self.loud = np.maximum(self.loud, np.abs(found).max(axis=0))
        return found - self.f0

    def _floor(self) -> Array:
        """What rounding alone may make of a second difference, (outputs,)."""
        return 8 * self.predictor.unit * self.loud / self.width**2


class _Sums:
    """What is summed up over the runs of a block."""

    def __init__(self, count: int, outputs: int) -> None:
        self.products, self.mains = np.zeros((outputs, count, count)), np.zeros((outputs, count))
        self.total, self.squares = np.zeros(outputs), np.zeros(outputs)

    def add(self, z: Array, f: Array) -> None:
        """Some runs: their signs (runs, columns) and f (runs, outputs)."""
        self.products += np.matmul(z.T * f.T[:, None], z)
        self.mains += f.T @ z
        self.total += f.sum(axis=0)
        self.squares += (f**2).sum(axis=0)

    def contrasts(self, runs: int) -> Array:
        """Means of f times two signs, (columns, columns, outputs)."""
        return self.products.transpose(1, 2, 0) / runs

    def unexplained(self, runs: int) -> Array:
        """The squares that constant, slopes and products leave, (outputs,)."""
        upper = np.triu(np.ones(self.products.shape[1:], bool), 1)
        fit = self.total**2 + (self.mains**2).sum(axis=1) + (self.products[:, upper] ** 2).sum(axis=1)
        left = self.squares - fit / runs
        return np.where(left > CANCELLED * self.squares, left, 0.0)


def _magnitudes(features: int, runs: int) -> Array:
    """(blocks, features), half-normal sizes in another order for every feature; mean square 1."""
    count = int(np.clip(-(-RUNS // runs), FEWEST, MOST))
    return magnitudes(count)[shuffle(count, np.arange(features))]

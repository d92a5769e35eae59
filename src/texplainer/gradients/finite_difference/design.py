"""The slopes of a black box over a neighbourhood, by a designed experiment.

f is evaluated at pairs of points x + w sigma z_k and x - w sigma z_k that lie balanced around the row
(`points.Blocks`), and the slopes are read off the halved differences within the pairs by least squares:
exact for a linear f and free of all even terms. Columns of signs are orthogonal, so the fit is a sum.

Near a bound a point is clipped, feature by feature. Within a block of the design every pair then still
differs by the same length in a feature, only a shorter one: with up and down the ways to the two clipped
values, delta = (up + down) / 2, the halved difference of a linear f is sum_j sign_j delta_j slope_j. So
the columns stay orthogonal for every row, and with c_jb the sum of sign times difference over the H pairs
of block b

    slope_j = sum_b delta_jb c_jb / (H sum_b delta_jb^2).

Missing cells and categories do not move and have delta = 0. Neither do features the model shows no use
for on background rows, unless moving them changes the prediction of the row at hand, each alone or, where
none does, all together: so an unused feature gets exactly 0.

About 2n + 32 pairs are taken, 4n + 64 points, in whole blocks. Each block has its own magnitude in a column.
Columns of whole numbers are moved to whole numbers.

The error bound has three parts: what the fit leaves unexplained, how much the slopes of a feature differ
between the blocks, that is between magnitudes, for few of them cannot stand for a normal distribution, and
what the row's features have of that in common. A model with steps is known by what a trial on background
rows leaves unexplained (`roughness`).

How much the slopes change when the row moves follows, for smooth models, from the curvature h: the even
terms z^T h z / 2 scatter, as signs vary, by half the sum of the squared off-diagonal h_jl, and their mean
is half the trace. Rough models change because points cross steps: a squared difference of f grows like the
distance, as that of a random walk, so a move of MOVE SDs changes a value by the part sqrt(MOVE / w) of
what the fit leaves unexplained at the width w.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from texplainer.errors import InputError
from texplainer.gradients.engine import MOVE, Engine, Gradient, Settings
from texplainer.gradients.points import Blocks
from texplainer.models.predictor import Predictor
from texplainer.types import Array

ROUGH = 0.2  # relative standard error of the slopes of a trial from which the model is taken to have steps
EXTRA_PAIRS = 32
TRIAL_ROWS, TRIAL_PREDICTIONS = 12, 500
CELLS = 2**18  # of the points at hand at a time
# Chosen on networks, boosted trees, forests and Gaussian processes, to cover 99% of the exact slopes:
FACTOR = 2.8  # of the three parts' root sum of squares
PEAK = 4.0  # standard deviations: a larger residual says that few points tell all
UNSEEN = 0.3  # of a typical row's residual, where the model has steps: all points may have missed one
NORM = 0.85  # expected norm over root mean square of H z: 0.80 (h of rank one) to 1 (of high rank)
CROSSING = 1.8  # measured on boosted trees: change over what the random walk says


@dataclass(frozen=True)
class DesignedExperiment:
    """A design for one model: how far it moves each feature, and what was learnt of the model before.

    `move` is (features,), the width times the SD, 0 for what cannot move; `unused` marks the features
    that changed no prediction of the background, `integers` those that hold whole numbers. `typical`
    (outputs,) is what the fit leaves unexplained of a typical background row.
    """

    predictor: Predictor
    move: Array
    width: float
    bounds: tuple[Array, Array] | None
    roughness: float
    unused: np.ndarray
    integers: np.ndarray | None = None
    typical: Array | float = 0.0
    magnitudes: int | None = None

    @property
    def design(self) -> Blocks:
        """The points."""
        return blocks(len(self.move), self.magnitudes)

    def gradient(self, rows: Array) -> Gradient:
        """The neighbourhood slopes of some rows; memory is bounded, whatever their number."""
        together = max(1, CELLS // (2 * self.design.pairs * max(1, rows.shape[1])))
        f0 = self.predictor(rows)
        groups = [
            (move, chosen[i : i + together])
            for move, chosen in self._moves(rows, f0)
            for i in range(0, len(chosen), together)
        ] or [(self.move, np.arange(0))]
        parts = [self._fit(move, rows[chosen], f0[chosen]) for move, chosen in groups]
        return _joined(parts, np.argsort(np.concatenate([chosen for _, chosen in groups])))

    def _moves(self, rows: Array, f0: Array) -> list[tuple[Array, np.ndarray]]:
        """How far features move, for which rows: those without use on the background only where they act."""
        if not self.unused.any():
            return [(self.move, np.arange(len(rows)))]
        act = np.zeros(rows.shape, bool)
        stirred = np.flatnonzero(responds(self.predictor, rows, f0, np.where(self.unused, self.move, 0.0)))
        for feature in np.flatnonzero(self.unused) if len(stirred) else ():
            alone = np.zeros(len(self.move))
            alone[feature] = self.move[feature]
            act[stirred, feature] = responds(self.predictor, rows[stirred], f0[stirred], alone)
        only_together = stirred[~act[stirred].any(axis=1)]
        act[np.ix_(only_together, self.unused)] = True
        kinds, kind = np.unique(act, axis=0, return_inverse=True)
        return [
            (np.where(self.unused & ~mask, 0.0, self.move), np.flatnonzero(kind.ravel() == i))
            for i, mask in enumerate(kinds)
        ]

    def _fit(self, move: Array, rows: Array, f0: Array) -> Gradient:
        fit = _Fit(self.predictor, self.design, move, self.bounds, rows, self.integers)
        change = fit.crossing(self.width) if self.roughness >= ROUGH else fit.bending(self.width, f0)
        found = fit.gradient(change, UNSEEN * self.typical if self.roughness >= ROUGH else 0.0)
        at_rest = self.unused & (move == 0)  # a trial of few rows does not prove it
        moving = move > 0
        if at_rest.any() and moving.any():
            per_move = np.median(found.error[:, moving] * move[moving, None], axis=1, keepdims=True)
            found.error[:, at_rest] = per_move / self.move[at_rest, None]
        return found


def designed_engine(
    point: Engine, predictor: Predictor, background: Array, sigma: Array, width: float, settings: Settings
) -> Engine:
    """The design's engine; `point` is the one that differentiates at the row itself."""
    move = np.where(predictor.schema.numeric, width * sigma, 0.0)
    integers = np.zeros(len(move), bool)
    integers[list(settings.discrete.integers)] = True
    rough, typical = roughness(predictor, background, move, settings.bounds, integers)
    unused = (move > 0) & ~used_features(predictor, background)
    count = affordable_blocks(len(move), settings.max_evals)
    found = DesignedExperiment(
        predictor, move, width, settings.bounds, rough, unused, integers, typical, count
    )
    why = f"a designed experiment of {2 * found.design.pairs} points over {width:.3g} SD"
    return Engine("finite-difference", why, found.gradient, exact=False, width=width, point=point)


def blocks(features: int, magnitudes: int | None = None) -> Blocks:
    """The design for so many features; about 4n + 64 points unless the number of magnitudes is given."""
    usual = -(-(2 * features + EXTRA_PAIRS) // Blocks(features, 1).order)
    return Blocks(features, max(2, magnitudes or usual))


def affordable_blocks(features: int, max_evals: int | None) -> int | None:
    """The blocks that `max_evals` evaluations a row allow; None for the usual number."""
    if max_evals is None:
        return None
    least = least_evals(features)
    if max_evals < least:
        raise InputError(
            f"max_evals={max_evals} is too small for {features} features; expected at least {least}. "
            "Raise it, or leave it at None."
        )
    return (max_evals - 1) // (2 * Blocks(features, 1).order)


def least_evals(features: int) -> int:
    """The smallest `max_evals`: two blocks of pairs, or four walks."""
    return 4 * (Blocks(features, 1).order + 1)


def roughness(
    predictor: Predictor,
    background: Array,
    move: Array,
    bounds: tuple[Array, Array] | None,
    integers: np.ndarray | None = None,
) -> tuple[float, Array]:
    """Standard error of the slopes over their length, and the residual (outputs,), in the median row."""
    design = blocks(len(move))
    rows = _trial_rows(background, 2 * design.pairs)
    fit = _Fit(predictor, design, move, bounds, rows, integers)
    length = np.sqrt(np.einsum("rjo,rj->ro", fit.slope**2, np.mean(fit.delta**2, axis=1)))
    unsure = np.sqrt(fit.moving)[:, None] * fit.residual / np.sqrt(fit.design.pairs)
    typical = np.nan_to_num(np.median(fit.residual, axis=0))
    heard = length > 16 * predictor.unit * np.median(np.abs(fit.even))  # False for NaN too
    if not heard.any():
        return np.inf, typical  # no response at all: as of a step function far from its steps
    return float(np.median(unsure[heard] / length[heard])), typical


def used_features(predictor: Predictor, background: Array) -> np.ndarray:
    """Mask of the numeric features that change a prediction if their value is copied from another row."""
    rows = _trial_rows(background, background.shape[1])
    others = _trial_rows(np.roll(background, len(background) // 2, axis=0), background.shape[1])
    used, numeric = np.zeros(rows.shape[1], bool), np.flatnonzero(predictor.schema.numeric)
    size = max(1, CELLS // (len(rows) * rows.shape[1]))
    f0 = predictor(rows)
    for first in range(0, len(numeric), size):
        columns = numeric[first : first + size]
        moved = np.repeat(rows[None], len(columns), axis=0)
        moved[np.arange(len(columns)), :, columns] = others[:, columns].T
        found = predictor(moved.reshape(-1, rows.shape[1])).reshape(len(columns), *f0.shape)
        used[columns] = _differs(predictor, found, f0).any(axis=1)
    return used


def _trial_rows(background: Array, cost: int) -> Array:
    """Some evenly spaced rows, fewer where each costs many predictions."""
    count = int(np.clip(TRIAL_PREDICTIONS // max(1, cost), 1, TRIAL_ROWS))
    return background[:: max(1, len(background) // count)][:count]


def responds(predictor: Predictor, rows: Array, f0: Array, move: Array) -> np.ndarray:
    """Mask of the rows whose prediction changes as these features move together, in four ways."""
    signs = np.where(np.arange(len(move)) % 2, -1.0, 1.0)
    moved = np.stack([rows + move, rows - move, rows + signs * move, rows - signs * move])
    found = predictor(moved.reshape(-1, rows.shape[1])).reshape(4, len(rows), -1)
    return np.asarray(_differs(predictor, found, f0).any(axis=0))


def _differs(predictor: Predictor, found: Array, f0: Array) -> np.ndarray:
    """Whether predictions (..., rows, outputs) differ by more than a rounding, (..., rows)."""
    rounding = 4 * predictor.unit * np.abs(f0).max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(np.any(~(np.abs(found - f0) <= rounding), axis=-1))


def _joined(parts: list[Gradient], order: np.ndarray) -> Gradient:
    """Gradients of several groups of rows as one, in an order."""

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    values, error, step = column("values"), column("error"), column("step")
    return Gradient(values, error, step, column("flags"), column("evaluations"), change=column("change"))


class _Fit:
    """The least-squares fit around some rows.

    Attributes
    ----------
    delta
        (rows, blocks, features), half the distance of a pair's points in a feature.
    slope
        (rows, features, outputs).
    residual
        (rows, outputs), the standard deviation of what the fit leaves of the halved differences.
    """

    def __init__(
        self,
        predictor: Predictor,
        design: Blocks,
        move: Array,
        bounds: tuple[Array, Array] | None,
        rows: Array,
        integers: np.ndarray | None = None,
    ) -> None:
        self.predictor, self.design, self.move, self.rows = predictor, design, move, rows
        self.integers = np.flatnonzero(integers) if integers is not None else np.arange(0)
        self.low = self.high = None
        if bounds is not None:
            self.low, self.high = np.minimum(bounds[0], rows), np.maximum(bounds[1], rows)
        reach = move * design.sizes  # (blocks, features)
        up, down = self._inside(rows[:, None] + reach), self._inside(rows[:, None] - reach)
        self.delta = np.nan_to_num((up - down) / 2)
        self.shift = np.nan_to_num(((up + down) / 2 - rows[:, None]).mean(axis=1))  # of the clipped pairs
        # block by block, here and below: bit-identical for any number of rows
        self._squared = np.zeros(rows.shape)
        for b in range(design.blocks):
            self._squared += self.delta[:, b] ** 2
        self.moving = np.sum(self.delta.any(axis=1), axis=1)  # (rows,)
        self._evaluate()
        norm = design.order * self._squared[:, :, None]
        contrasts = np.zeros((*rows.shape, len(predictor.outputs)))
        for b in range(design.blocks):
            contrasts += self.delta[:, b, :, None] * self.contrasts[:, b]
        self.slope = np.divide(contrasts, norm, out=np.zeros_like(contrasts), where=norm > 0)
        self.residual, self.peak = self._unexplained()

    def _inside(self, points: Array) -> Array:
        """Clip points (rows, ..., features) at the bounds; whole numbers stay whole."""
        if len(self.integers):
            points[..., self.integers] = np.round(points[..., self.integers])
        if self.low is None or self.high is None:
            return points
        shape = (len(self.rows), *(1,) * (points.ndim - 2), self.rows.shape[1])
        return np.clip(points, self.low.reshape(shape), self.high.reshape(shape), out=points)

    def _chunks(self) -> Iterator[tuple[int, slice, Array]]:
        """Parts of the design, the same for any number of rows: block, its pairs among all, their signs."""
        order = self.design.order
        size = max(1, CELLS // (2 * max(1, self.rows.shape[1])))
        for block in range(self.design.blocks):
            for first in range(0, order, size):
                last = min(order, first + size)
                yield (
                    block,
                    slice(block * order + first, block * order + last),
                    self.design.signs(block, first, last),
                )

    def _evaluate(self) -> None:
        """Halved differences and means of all pairs, and the differences' sums with every feature's signs."""
        rows, outputs = self.rows, len(self.predictor.outputs)
        shape = (len(rows), self.design.pairs, outputs)
        self.odd, self.even = np.empty(shape), np.empty(shape)
        self.contrasts = np.zeros((len(rows), self.design.blocks, rows.shape[1], outputs))
        waiting: list[tuple[int, slice, Array]] = []
        for chunk in self._chunks():
            waiting.append(chunk)
            held = sum(part.stop - part.start for _, part, _ in waiting)
            if held * rows.shape[1] * 2 >= CELLS or chunk[1].stop == self.design.pairs:
                self._predict(waiting)
                waiting = []

    def _predict(self, chunks: list[tuple[int, slice, Array]]) -> None:
        """One call of the model for several parts of the design."""
        rows = self.rows
        moves = np.concatenate([signs * (self.design.sizes[b] * self.move) for b, _, signs in chunks])
        points = np.empty((len(rows), 2, len(moves), rows.shape[1]))
        np.add(rows[:, None], moves, out=points[:, 0])
        np.subtract(rows[:, None], moves, out=points[:, 1])
        found = self.predictor(self._inside(points).reshape(-1, rows.shape[1]))
        ahead, behind = np.moveaxis(found.reshape(len(rows), 2, len(moves), found.shape[1]), 1, 0)
        everything = slice(chunks[0][1].start, chunks[-1][1].stop)
        self.odd[:, everything], self.even[:, everything] = (ahead - behind) / 2, (ahead + behind) / 2
        for block, part, signs in chunks:  # matrix by matrix: bit-identical for any number of rows
            self.contrasts[:, block] += signs.T @ self.odd[:, part]

    def _unexplained(self) -> tuple[Array, Array]:
        """Standard deviation of the residuals, and their largest in units of it, both (rows, outputs)."""
        largest, squares = 0.0, 0.0
        for block, part, signs in self._chunks():
            rest = self.odd[:, part] - signs @ (self.delta[:, block, :, None] * self.slope)
            squares = squares + np.sum(rest**2, axis=1)
            largest = np.maximum(largest, np.abs(rest).max(axis=1))
        deviation = np.sqrt(squares / np.maximum(1, self.design.pairs - self.moving)[:, None])
        return deviation, largest / np.maximum(deviation, np.finfo(float).tiny)

    def gradient(self, change: Array, least: Array | float = 0.0) -> Gradient:
        """The slopes with their error bound, and how much they change; `least` is the least residual."""
        length = np.sqrt(self._squared * self.design.order)[:, :, None]  # (rows, features, 1)
        safe = np.where(length > 0, length, np.inf)
        residual = np.maximum(self.residual, least) * np.maximum(1.0, self.peak / PEAK)
        between = self._between() * length / np.sqrt(self.design.blocks)  # in the residual's unit
        common = np.sum(between**2, axis=1) / np.maximum(1, self.moving)[:, None]
        parts = residual[:, None] ** 2 + common[:, None] + between**2
        error = FACTOR * np.sqrt(parts) / safe + self._rounding(safe)
        step = np.where(length[:, :, 0] > 0, self.delta.max(axis=1), np.nan)
        flags = np.zeros(self.rows.shape, np.uint8)
        cost = np.full(len(self.rows), 2 * self.design.pairs + 1, dtype=np.int64)
        return Gradient(self.slope, error, step, flags, cost, change=change)

    def _between(self) -> Array:
        """Standard deviation of a feature's slope between the blocks, weighted as they are, (rows, ...)."""
        apart = 0.0
        for b in range(self.design.blocks):
            delta = self.delta[:, b, :, None]
            apart = apart + (self.contrasts[:, b] / self.design.order - delta * self.slope) ** 2
        squared = self._squared[:, :, None]
        return np.sqrt(apart / np.where(squared > 0, squared, np.inf))

    def crossing(self, width: float) -> Array:
        """Change of sigma * slopes as points cross the steps of a rough model, (rows, outputs)."""
        share = np.sqrt(self.moving / self.design.pairs * MOVE / width) / width
        return CROSSING * share[:, None] * self.residual

    def bending(self, width: float, f0: Array) -> Array:
        """Change of sigma * slopes by the curvature, (rows, outputs)."""
        shape = (len(self.rows), self.design.blocks, self.design.order, self.even.shape[2])
        off_diagonal = 2 * self.even.reshape(shape).var(axis=2, ddof=1).mean(axis=1)
        level = f0 + np.einsum("rj,rjo->ro", self.shift, self.slope)
        trace = 2 * (self.even.mean(axis=1) - level)
        count = np.maximum(1, self.moving)[:, None]
        diagonal = trace**2 / count  # the least it can be
        # clipped pairs are nearer to each other than the width says
        relative = np.divide(self._squared, self.move**2, out=np.zeros(self.rows.shape), where=self.move > 0)
        nearer = relative.sum(axis=1)[:, None] / (count * self.design.blocks)
        return NORM * MOVE / width**2 * np.sqrt(off_diagonal + diagonal) / np.where(nearer > 0, nearer, 1.0)

    def _rounding(self, length: Array) -> Array:
        """Bound of what the float width of the model does to the values and to the displacements."""
        unit = self.predictor.unit
        loud = np.abs(self.even).max(axis=1)[:, None] * np.sqrt(self.design.pairs)
        shaky = np.abs(np.nan_to_num(self.rows))[:, :, None] * np.abs(self.slope) * np.sqrt(self.design.pairs)
        return 2 * unit * (loud + shaky) / length

"""What an attribution is: a question, what is needed to answer it, and what an answer holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from texplainer.background.summary import Background
from texplainer.categories.swaps import Swap
from texplainer.gradients.engine import MOVE, Engine
from texplainer.gradients.moves import directions, normal_moves
from texplainer.models.predictor import Predictor
from texplainer.types import Array

MOVES = 2
Moves = Callable[[int, int], Array]  # (features, count) -> moves in standard coordinates
FLOOR = 0.01  # values below this share of the output's SD are as good as none


@dataclass(frozen=True)
class ExplainContext:
    """All that an attribution may use: rows, their predictions, the background, the model and its engine."""

    rows: Array  # (rows, features)
    predictions: Array  # (rows, outputs)
    background: Background
    predictor: Predictor
    engine: Engine
    bounds: tuple[Array, Array] | None = None
    max_evals: int | None = None  # model evaluations a row may cost, where they are a choice


@dataclass(frozen=True)
class AttributionResult:
    """An answer, with its error and its cost.

    Attributes
    ----------
    values
        (rows, features, outputs).
    error
        Same shape and unit as the values: a bound on the errors of engine, integration and formula.
    relative_change
        (rows, outputs), the expected relative change of the values had every number of the row been
        measured 5% of its SD differently; NaN where unknown.
    evaluations
        (rows,), model evaluations spent on each row.
    gradient
        (rows, features, outputs), the slopes of the local model; None where the attribution has none.
    arrays
        Further arrays, rows first (step, flags, Algorithm 1's trace).
    """

    values: Array
    error: Array
    relative_change: Array
    evaluations: np.ndarray
    gradient: Array | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Attribution:
    """One entry of `ATTRIBUTIONS`: how an attribution is computed, and how it is shown.

    Attributes
    ----------
    question
        What the numbers answer, in the words of the person who asks.
    compute
        The function from an ExplainContext to an AttributionResult.
    unit
        "sd" (output per SD), "slope" (output per unit of the feature) or "share"
        (output between the background and x).
    signed
        Whether the sign means something; unsigned values are sizes.
    adds_up
        Whether base value + values = f(x).
    axis, level_axis
        Words on an axis, for numeric features and for categories; "{what}" is the explained quantity.
    feature_unit, level_unit
        The unit of a value in at most three words, for `explanation.units`.
    category
        The value of a categorical feature, computed from the predictions with its other categories; None if
        `compute` already returns values of categorical features.
    neighbourhood
        Whether it uses slopes averaged over a neighbourhood, so that it depends on the bandwidth.
    head
        The head of its column where a row is shown; "" for its name.
    beside
        The attribution a report shows with it.
    base
        Its base value by engine, (outputs,); None for the mean prediction of the background. An attribution
        with its own cannot be kept with others in one result.
    trees_only
        Whether only tree ensembles have it.
    how
        A function from the engine to a description of how values are computed; None if they are computed from
        the engine's slopes.
    """

    question: str
    compute: Callable[[ExplainContext], AttributionResult]
    unit: str
    signed: bool
    adds_up: bool
    axis: str
    level_axis: str
    feature_unit: str
    level_unit: str
    category: Callable[[Swap], Array] | None
    neighbourhood: bool = False
    head: str = ""
    beside: str = "shapley"
    how: Callable[[Engine], str] | None = None
    base: Callable[[Engine], Array] | None = None
    trees_only: bool = False

    def comparable(self, context: ExplainContext) -> Array:
        """Factors that make the values of different features comparable in size, (features,)."""
        per_unit = context.predictor.schema.numeric & (self.unit == "slope")
        return np.where(per_unit, context.background.sigma, 1.0)

    def computed(self, engine: Engine) -> str:
        """How the values are computed."""
        return engine.how if self.how is None else self.how(engine)


# ---------------------------------------------------------------- the relative change
#
# How much a row's values would change had it been measured a little differently: |values' - values| / |values| over
# the features, expected when every continuous number of the row moves by 5% of its SD (a normal deviate of that size
# each). Discrete columns are known exactly and stay. Slopes and exact Shapley values of trees are taken again at
# three moved rows, other attributions at two; how slopes from predictions change follows from second
# derivatives (`gradients/change`).


def moved(context: ExplainContext, count: int = MOVES, moves_of: Moves = directions) -> list[Array]:
    """The rows, moved by 5% of an SD each; a move that would leave the bounds goes the other way."""
    moves = context.predictor.schema.numeric & ~context.background.discrete.mask(context.rows.shape[1])
    step = np.where(moves, MOVE * context.background.unit, 0.0)
    out = []
    for z in moves_of(context.rows.shape[1], count):
        there = context.rows + step * z
        if context.bounds is not None:
            low, high = context.bounds
            outside = (there < np.minimum(low, context.rows)) | (there > np.maximum(high, context.rows))
            there = np.where(outside, context.rows - step * z, there)
        out.append(there)
    return out


def normally_moved(context: ExplainContext, count: int) -> list[Array]:
    """The rows, moved by normal deviates of 5% of an SD and clipped to the bounds."""
    moves = moved(replace(context, bounds=None), count, normal_moves)
    if context.bounds is None:
        return moves
    low, high = np.minimum(context.bounds[0], context.rows), np.maximum(context.bounds[1], context.rows)
    return [np.clip(rows, low, high) for rows in moves]


def expected_change(changes: Sequence[Array], size: Array, output_sd: Array) -> Array:
    """Root mean square over moves of |change|, (rows, features, outputs), over `size` (rows, outputs)."""
    squares = np.mean([(change**2).sum(axis=1) for change in changes], axis=0)
    return relative(np.sqrt(squares), size, output_sd)


def relative(change: Array, size: Array, output_sd: Array) -> Array:
    """A change (rows, outputs) divided by the values' size, which counts as at least 1% of the output's SD."""
    least = np.maximum(FLOOR * output_sd, np.finfo(float).tiny)
    return change / np.maximum(size, least)

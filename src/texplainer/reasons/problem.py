"""What recourse is asked for: the target, the values that each feature may take, and what a change costs.

A target is turned into a score that is positive where it is met. On the log-odds scale scores are differences of
log-odds, so that they keep their slope where probabilities are nearly 0 or 1. Targets and margins of
classifiers are probabilities.

A change of a number costs its size in SDs, a switch of a category 1. Numbers stay inside the background's range.
A discrete column (few values) takes observed values only; other numbers keep as many decimals as their column has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from texplainer.attributions.table import quantity
from texplainer.errors import InputError
from texplainer.explanation.text import output_text
from texplainer.models.predictor import Predictor
from texplainer.reasons.columns import by_name, known_names
from texplainer.types import Array

OPERATORS = {">=": 1.0, ">": 1.0, "<=": -1.0, "<": -1.0}


@dataclass(frozen=True)
class Goal:
    """A target: `measure` gives (scores, shown predictions) of rows, both (rows,).

    `strict` asks for a score above 0 instead of at least 0. `output` is the explained output whose slope
    the score has, times `factor`; None where it is not a single one.
    """

    measure: Callable[[Array], tuple[np.ndarray, np.ndarray]]
    words: str
    shown: str
    strict: bool
    output: int | None
    factor: float

    def met(self, scores: np.ndarray) -> np.ndarray:
        """Which scores reach the target."""
        return scores > 0 if self.strict else scores >= 0


def goal_of(predictor: Predictor, target: Any, margin: float, start: Array) -> Goal:
    """Read a target; a plain number is reached from the side that `start`, the row, is on."""
    if isinstance(margin, bool) or not isinstance(margin, (int, float, np.number)) or not margin >= 0:
        raise InputError(f"margin={margin!r} is not a distance; expected a number of at least 0.")
    if isinstance(target, (tuple, list)):
        return _threshold(predictor, *_pair(target), float(margin))
    if predictor.task == "classification" and str(target) in predictor.all_names:
        return _label(predictor, str(target), float(margin))
    if isinstance(target, (int, float, np.number)) and not isinstance(target, bool):
        value = float(target)
        below = _threshold(predictor, ">=", value, 0.0).measure(start)[0][0] < 0
        return _threshold(predictor, ">=" if below else "<=", value, float(margin))
    labels = predictor.all_names[:8] if predictor.task == "classification" else ()
    known = f"a class label ({', '.join(labels)}), " if labels else ""
    raise InputError(f"target={target!r} is not a target; expected {known}a number, or ('>=', number).")


def _pair(target: Any) -> tuple[str, float]:
    if len(target) != 2 or target[0] not in OPERATORS:
        raise InputError(
            f"target={target!r} is not a target; expected an operator, one of >=, >, <= and <, and a number."
        )
    try:
        return target[0], float(target[1])
    except (TypeError, ValueError):
        raise InputError(
            f"target={target!r} has the value {target[1]!r}; expected a number, such as ('<=', 0.3)."
        ) from None


def _threshold(predictor: Predictor, operator: str, value: float, margin: float) -> Goal:
    """The explained output on one side of a value."""
    if predictor.predicted or len(predictor.outputs) != 1:
        raise InputError(
            f"a numeric target needs one explained output; this explainer has "
            f"{', '.join(predictor.output_names[:6])}. Build it with output=..., or pass a class label."
        )
    sign = OPERATORS[operator]
    name, limit = predictor.output_names[0], value + sign * margin
    chance = predictor.scale in ("log-odds", "probability")
    if not np.isfinite(value) or (chance and not 0 < limit < 1):
        expected = "a probability between 0 and 1" if chance else "a finite number"
        raise InputError(
            f"the target {operator} {value:g} with margin {margin:g} cannot be reached; expected {expected}."
        )
    on_scale = float(logit(limit)) if predictor.scale == "log-odds" else limit

    def measure(rows: Array) -> tuple[np.ndarray, np.ndarray]:
        found = predictor(rows)[:, 0]
        return sign * (found - on_scale), expit(found) if predictor.scale == "log-odds" else found

    words = f"{output_text(name)} {operator} {value:g}"
    if chance:
        words = f"{quantity('probability', name)} {operator} {100 * value:.4g}%"
    beyond = f" with a margin of {margin:g}" if margin else ""
    strict = operator in ("<", ">")
    return Goal(measure, words + beyond, "probability" if chance else "raw", strict, 0, sign)


def _label(predictor: Predictor, label: str, margin: float) -> Goal:
    """The class of the highest probability; a margin is the distance to the probability of the next one."""
    at = predictor.all_names.index(label)
    if margin >= 1:
        raise InputError(f"margin={margin:g} is not a distance of probabilities; expected less than 1.")
    others = [j for j in range(len(predictor.all_names)) if j != at]
    log_odds, chance = predictor.scale == "log-odds", predictor.scale in ("log-odds", "probability")

    def measure(rows: Array) -> tuple[np.ndarray, np.ndarray]:
        found = predictor.everything(rows)  # (rows, classes)
        shares = expit(found) if log_odds else found
        ahead = shares[:, at] - shares[:, others].max(axis=1) - margin
        if log_odds and not margin:  # the same sign, and a slope where shares have none
            ahead = found[:, at] - found[:, others].max(axis=1)
        return ahead, shares[:, at]

    single = len(others) == 1 and len(predictor.outputs) == 1
    sign = (2.0 if predictor.outputs[0] == at else -2.0) if single else 0.0  # both classes move
    beyond = f" with a margin of {margin:g}" if margin else ""
    shown = "probability" if chance else "raw"
    return Goal(measure, f"class {label}{beyond}", shown, True, 0 if single else None, sign)


FEW = 20  # different values at most, of a discrete column
STEPS, FEWEST = 24, 4  # values of a continuous column that are tried first
SCAN = 6000  # of them in all, as far as there are at least the fewest of each
_DIRECTIONS = {"up": 1, "down": -1, 1: 1, -1: -1, "increase": 1, "decrease": -1}


@dataclass(frozen=True)
class Moves:
    """Where one feature may go: `values` are tried first, in rising order, without the row's own.

    `decimals` is the number of decimals of a continuous column, None for discrete columns and categories, whose
    `values` are all there are. `sd` is what costs 1; of a category it is NaN.
    """

    feature: int
    start: float
    values: np.ndarray
    low: float
    high: float
    sd: float
    decimals: int | None

    @property
    def continuous(self) -> bool:
        """Whether values between the listed ones are allowed."""
        return self.decimals is not None

    def cost(self, values: np.ndarray) -> np.ndarray:
        """What taking these values costs."""
        moved = np.asarray(values) != self.start
        return moved * 1.0 if np.isnan(self.sd) else np.abs(np.asarray(values) - self.start) / self.sd

    def rounded(self, value: float) -> float:
        """A value with the column's decimals, away from the row's own value and inside the limits."""
        if self.decimals is None:
            return float(value)
        scale = 10.0**self.decimals
        up = value > self.start
        out = (np.ceil(value * scale - 1e-6) if up else np.floor(value * scale + 1e-6)) / scale
        return float(np.clip(out, self.low, self.high))


def moves_of(explainer: Any, row: Array, limits: Any) -> list[Moves]:
    """The features that may change, in the table's order; an error where none is left."""
    names = explainer.schema.names
    free = names if limits.actionable is None else known_names("actionable", limits.actionable, names)
    fixed = known_names("fixed", limits.fixed, names)
    ranges, monotone = by_name("ranges", limits.ranges), by_name("monotone", limits.monotone)
    for argument, given in (("ranges", ranges), ("monotone", monotone)):
        for name in known_names(argument, given, names):
            if name in fixed or name not in free:
                raise InputError(
                    f"{argument} limits the feature {name!r}, which is "
                    f"{'fixed' if name in fixed else 'not actionable'}; leave it out of one of them."
                )
    steps = max(FEWEST, min(STEPS, SCAN // max(1, len(free))))
    out, stuck = [], []
    for name in free:
        if name in fixed:
            continue
        direction = _direction(name, monotone)
        made = _moves(explainer, row, names.index(name), ranges.get(name), direction, steps)
        missing = "" if np.isfinite(made.start) else " (missing in this row)"
        (out.append(made) if len(made.values) else stuck.append(name + missing))
    if not out:
        why = f"no other value is allowed for {', '.join(stuck[:6])}" if stuck else "every feature is fixed"
        raise InputError(f"nothing is actionable: {why}. Allow at least one feature to change.")
    return sorted(out, key=lambda moves: moves.feature)


def _direction(name: str, monotone: Mapping[str, Any]) -> int:
    if name not in monotone:
        return 0
    given = monotone[name]
    if isinstance(given, bool) or given not in _DIRECTIONS:
        raise InputError(f"monotone[{name!r}] is {given!r}; expected 'up' or 'down'.")
    return _DIRECTIONS[given]


def _moves(explainer: Any, row: Array, j: int, limit: Any, direction: int, steps: int) -> Moves:
    column = explainer.background.rows[:, j]
    observed = np.unique(column[np.isfinite(column)])
    start, name = float(row[j]), explainer.schema.names[j]
    nothing = Moves(j, start, np.empty(0), np.nan, np.nan, np.nan, None)
    if j in explainer.schema.levels:
        codes = _allowed_codes(explainer.schema, j, observed, limit)
        if direction and j not in explainer.schema.ordinal:
            raise InputError(f"monotone names {name!r}, whose categories have no order; use ranges instead.")
        keep = (
            codes[(codes != start) & (direction * (codes - start) >= 0)] if np.isfinite(start) else codes[:0]
        )
        return Moves(j, start, keep, -np.inf, np.inf, np.nan, None)
    if len(observed) < 2:
        return nothing
    low, high = _limits(name, limit, observed)
    if not np.isfinite(start):
        return nothing
    if direction:
        low, high = (max(low, start), high) if direction > 0 else (low, min(high, start))
    discrete = len(observed) <= FEW
    decimals = None if discrete else _decimals(observed)
    if decimals is not None and _have(observed, decimals):
        scale = 10.0**decimals  # no limits such as 9000.5 of a column of whole numbers
        low, high = np.ceil(low * scale - 1e-6) / scale, np.floor(high * scale + 1e-6) / scale
    if low > high:
        return nothing
    values = observed if discrete else _tried(observed, low, high, steps)
    values = values[(values >= low) & (values <= high) & (values != start)]
    return Moves(j, start, values, low, high, float(explainer.background.sigma[j]), decimals)


def _allowed_codes(schema: Any, j: int, observed: np.ndarray, limit: Any) -> np.ndarray:
    """The codes of the observed categories, or of those the user allows."""
    if limit is None:
        return observed
    levels = list(schema.levels[j])
    listed: Sequence[Any] = [limit] if isinstance(limit, str) else list(limit)
    unknown = [value for value in listed if value not in levels]
    if unknown:
        raise InputError(
            f"ranges[{schema.names[j]!r}] has the category {unknown[0]!r}; expected some of "
            f"{', '.join(map(str, levels[:8]))}."
        )
    return np.array(sorted({float(levels.index(value)) for value in listed} & set(observed.tolist())))


def _limits(name: str, limit: Any, observed: np.ndarray) -> tuple[float, float]:
    """The range a number must stay in: the background's, and the user's."""
    low, high = float(observed[0]), float(observed[-1])
    if limit is None:
        return low, high
    try:
        first, last = limit
        first = -np.inf if first is None else float(first)
        last = np.inf if last is None else float(last)
        if np.isnan(first) or np.isnan(last):
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            f"ranges[{name!r}] is {limit!r}; expected (low, high), with None for no limit."
        ) from None
    if not first <= last:
        raise InputError(f"ranges[{name!r}] is empty: low {first:g} is above high {last:g}; swap them.")
    if first > high or last < low:
        raise InputError(
            f"ranges[{name!r}], {first:g} to {last:g}, lies outside the data's range, {low:g} to {high:g}; "
            "no value is left. Widen it, or pass a background that has such values."
        )
    return max(low, first), min(high, last)


def _tried(observed: np.ndarray, low: float, high: float, steps: int) -> np.ndarray:
    """Quantiles of the observed values between two limits, and the limits."""
    inside = observed[(observed >= low) & (observed <= high)]
    if not len(inside):
        return np.unique([low, high])
    picks = np.unique(np.linspace(0, len(inside) - 1, min(steps, len(inside))).round().astype(int))
    return np.unique(np.concatenate([[low], inside[picks], [high]]))


def _decimals(observed: np.ndarray) -> int:
    """How many decimals the values of a column have; where they have many, enough for a thousandth of its range."""
    for digits in range(7):
        if _have(observed, digits):
            return digits
    return max(0, int(np.ceil(4 - np.log10(np.ptp(observed)))))


def _have(observed: np.ndarray, digits: int) -> bool:
    """Whether all values have at most so many decimals."""
    return np.allclose(observed, np.round(observed, digits), rtol=0, atol=1e-9 * float(np.ptp(observed)))

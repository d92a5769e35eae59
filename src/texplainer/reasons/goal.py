"""What a prediction shall become: a target turned into a score that is positive where it is met.

On the log-odds scale scores are differences of log-odds, so that they keep their slope where probabilities are
nearly 0 or 1. Targets and margins of classifiers are probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from texplainer.errors import InputError
from texplainer.models.predictor import Predictor
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
    """Read a target; `start` is the row, whose side a plain number depends on."""
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
            f"a number as the target needs one explained output; this explainer has "
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

    words = f"{'probability of ' if chance else ''}{name} {operator} {value:g}"
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

"""What a plot shows of an Explanation: the row, the output, the greatest features, the doubts.

Plots draw plain arrays; this file takes them out of the Explanation and refuses, with a word, what
cannot be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation import Explanation
from texplainer.plots.style import GREY, NEGATIVE, POSITIVE, number, shorten
from texplainer.report.explanations import shares

#: attributions that are the gradient times something known, so that its error bound carries over
LINEAR = ("sensitivity", "scaled", "contribution")
WORDS = {
    "sensitivity": "change of {what} per unit of the feature",
    "scaled": "change of {what} per spread of the feature",
    "contribution": "share of {what} above its mean",
    "integrated": "share of {what} above its mean",
    "additive": "share of {what} above its mean",
    "effect": "effect of the feature's other values on {what}",
}


@dataclass(frozen=True)
class Bars:
    """Features as bars, the greatest first; all arrays are (bars,)."""

    names: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray  # NaN where no bound is known
    doubtful: np.ndarray  # the model has a kink, a jump or noise there
    details: tuple[str, ...] = ()  # behind the names: the row's own values
    folded: int = 0  # features summed up in the last of them
    left_over: bool = False  # one more bar stands for what the features do not explain

    @property
    def colours(self) -> list[str]:
        """One colour per bar, by sign; grey for what is left over."""
        signs = [POSITIVE if value >= 0 else NEGATIVE for value in self.values]
        return [*signs[:-1], GREY] if self.left_over else signs


def one_output(explanation: Explanation) -> Explanation:
    """Refuse several outputs: a picture is of one."""
    if len(explanation.output_names) > 1:
        first = explanation.output_names[0]
        raise InputError(
            f"the explanation holds {len(explanation.output_names)} outputs "
            f"({', '.join(explanation.output_names[:6])}); a plot shows one. "
            f"Pick it with explanation[..., {first!r}]."
        )
    return explanation


def one_row(explanation: Explanation) -> Explanation:
    """Refuse several rows or outputs: a local picture is of one of each."""
    one_output(explanation)
    if len(explanation) != 1:
        raise InputError(
            f"the explanation holds {len(explanation)} rows; this plot shows one. "
            "Pick it with explanation[0]."
        )
    return explanation


def value_errors(explanation: Explanation) -> np.ndarray:
    """Error bounds of the values, (rows, features, outputs); NaN where none is known."""
    values, error = explanation.arrays["values"], explanation.arrays.get("error")
    if error is None or explanation.attribution not in LINEAR:
        return np.full(values.shape, np.nan)
    if explanation.attribution == "sensitivity":
        return error
    gradient = explanation.arrays["gradient"]
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.abs(values / gradient)
    return np.where(gradient == 0, np.nan, error * factor)


def doubtful(explanation: Explanation) -> np.ndarray:
    """Entries with a kink, a jump or noise, (rows, features)."""
    flags = explanation.arrays.get("flags")
    return np.zeros(explanation.arrays["values"].shape[:2], dtype=bool) if flags is None else flags != 0


def doubted_rows(explanation: Explanation) -> np.ndarray:
    """Rows whose verdict is fragile, (rows,)."""
    verdict = explanation.arrays.get("verdict")
    return np.zeros(len(explanation), dtype=bool) if verdict is None else verdict == "fragile"


def row_bars(explanation: Explanation, most: int) -> Bars:
    """The bars of one row, the smallest folded into one."""
    explanation = one_row(explanation)
    data = explanation.arrays["data"][0]
    bars = Bars(
        explanation.feature_names,
        explanation.arrays["values"][0, :, 0],
        value_errors(explanation)[0, :, 0],
        doubtful(explanation)[0],
        tuple(f" = {number(value)}" for value in data),
    )
    return fold(bars, most)


def with_left_over(explanation: Explanation, bars: Bars) -> Bars:
    """Add what an attribution that shares out f(x) - E f leaves over, as a last bar, if it can be seen."""
    base, prediction = explanation.arrays["base_values"][0], explanation.arrays["predictions"][0, 0]
    left = prediction - np.nan_to_num(base) - bars.values.sum()
    seen = np.isfinite(left) and abs(left) > 1e-3 * np.abs(bars.values).max()
    if not shares(explanation.attribution) or not seen:
        return bars
    return replace(
        bars,
        names=(*bars.names, "left over by the sum"),
        details=(*bars.details, ""),
        values=np.append(bars.values, left),
        errors=np.append(bars.errors, np.nan),
        doubtful=np.append(bars.doubtful, False),
        left_over=True,
    )


def fold(bars: Bars, most: int) -> Bars:
    """The greatest bars; those beyond `most` summed up in a last one, "the other 480"."""
    if most < 1:
        raise InputError(f"most={most} leaves nothing to draw; expected at least 1.")
    order = np.argsort(-np.abs(bars.values), kind="stable")
    if len(order) <= most:
        return Bars(
            tuple(bars.names[i] for i in order),
            bars.values[order],
            bars.errors[order],
            bars.doubtful[order],
            tuple(bars.details[i] for i in order) if bars.details else (),
        )
    kept, rest = order[: most - 1], order[most - 1 :]
    size = np.abs(bars.values[rest])
    return Bars(
        (*(bars.names[i] for i in kept), f"the other {len(rest):,}"),
        np.append(bars.values[kept], bars.values[rest].sum()),
        np.append(bars.errors[kept], bars.errors[rest].sum()),
        np.append(bars.doubtful[kept], size[bars.doubtful[rest]].sum() > size.sum() / 2),
        (*(bars.details[i] for i in kept), "") if bars.details else (),
        len(rest),
    )


def explained(explanation: Explanation) -> np.ndarray:
    """Indices of the rows that have values at all, (rows,)."""
    return np.nonzero(np.all(np.isfinite(explanation.arrays["values"]), axis=(1, 2)))[0]


def what(explanation: Explanation) -> str:
    """The explained quantity in words: "probability of benign"."""
    output = shorten(explanation.output_names[0])
    output = f"class {output}" if output.isdigit() else output
    if explanation.scale in ("probability", "margin"):
        return f"{explanation.scale} of {output}"
    return output


def meaning(explanation: Explanation) -> str:
    """What a value of this attribution means, for an axis."""
    words = WORDS.get(explanation.attribution, f"{explanation.attribution} of {{what}}")
    return words.format(what=what(explanation))


def doubt(explanation: Explanation) -> str:
    """Why one row is fragile or undefined; empty for a stable one."""
    verdict = explanation.arrays.get("verdict")
    if verdict is None or verdict[0] == "stable":
        return ""
    reason = explanation.arrays.get("reason")
    return f"{verdict[0]}: {reason[0]}" if reason is not None and reason[0] else str(verdict[0])

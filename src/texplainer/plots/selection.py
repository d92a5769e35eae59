"""What a plot shows of an Explanation: the row, the output, the largest features, unstable values.

Plots draw plain arrays; this file takes them out of the Explanation and rejects, with an error, what cannot
be drawn. `SUBJECTS` says which argument each plot accepts; for any other, the error names what was expected and how to
get it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.from_shap import from_shap, is_shap
from texplainer.plots.style import AMOUNT, GREY, NEGATIVE, POSITIVE, heading, number, shorten
from texplainer.support.messages import describe, refuse_keywords, suggest

LEVEL = "◆"  # before a feature whose value is of another unit than the numbers'


@dataclass(frozen=True)
class Bars:
    """Features as bars, the largest first; all arrays are (bars,)."""

    names: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray  # NaN where no bound is known
    doubtful: np.ndarray  # the model has a kink, a jump or noise there
    details: tuple[str, ...] = ()  # behind the names: the row's own values
    folded: int = 0  # features summed up in the last of them
    hidden: int = 0  # smaller features omitted
    adds_up: bool = True  # whether a sum of values means anything
    left_over: bool = False  # one more bar stands for what the features do not explain
    signed: bool = True  # sizes have one colour

    @property
    def colours(self) -> list[str]:
        """One colour per bar, by sign; another for sizes, grey for what is left over."""
        if not self.signed:
            return [AMOUNT] * len(self.values)
        signs = [POSITIVE if value >= 0 else NEGATIVE for value in self.values]
        return [*signs[:-1], GREY] if self.left_over else signs


def one_output(explanation: Explanation) -> Explanation:
    """Reject several outputs: a plot shows one."""
    if len(explanation.output_names) > 1:
        first = explanation.output_names[0]
        raise InputError(
            f"the explanation holds {len(explanation.output_names)} outputs "
            f"({', '.join(explanation.output_names[:6])}); a plot shows one. "
            f"Pick it with explanation[..., {first!r}]."
        )
    return explanation


def one_row(explanation: Explanation) -> Explanation:
    """Reject several rows or outputs: a plot of one row shows one of each."""
    return single_row(one_output(explanation))


def single_row(explanation: Explanation) -> Explanation:
    """Reject several rows."""
    if len(explanation) != 1:
        raise InputError(
            f"the explanation holds {len(explanation)} rows; this plot shows one. "
            "Pick it with explanation[0]."
        )
    return explanation


def with_features(explanation: Explanation, chosen: list[int]) -> Explanation:
    """An explanation of some features, in the order given."""
    return explanation[np.array(chosen)] if "r" in explanation.dropped else explanation[:, np.array(chosen)]


def stacked(explanation: Explanation) -> tuple[Explanation, str]:
    """Return Shapley values, which add up from E f(X) to f(x), and a note if another attribution was given.

    For a loaded explanation without Shapley values, the error explains how to compute them.
    """
    if table.adds_up(explanation.attribution):
        return explanation, ""
    return explanation.with_attribution("shapley"), "Shapley values of this row" if len(
        explanation
    ) == 1 else "Shapley values of these rows"


def value_errors(explanation: Explanation) -> np.ndarray:
    """Error bounds of the values, (rows, features, outputs); NaN where none is known."""
    error = explanation.arrays.get("error")
    return np.full(explanation.arrays["values"].shape, np.nan) if error is None else error


def doubtful(explanation: Explanation) -> np.ndarray:
    """Entries with a kink, a jump or noise, (rows, features)."""
    flags = explanation.arrays.get("flags")
    return np.zeros(explanation.arrays["values"].shape[:2], dtype=bool) if flags is None else flags != 0


def doubted_rows(explanation: Explanation) -> np.ndarray:
    """Rows whose stability is unstable, (rows,)."""
    stability = explanation.arrays.get("stability")
    return np.zeros(len(explanation), dtype=bool) if stability is None else stability == "unstable"


def row_bars(explanation: Explanation, max_display: int, *, sort: bool = True) -> Bars:
    """The bars of one row, the smallest folded into one."""
    explanation = one_row(explanation)
    data = explanation.arrays["data"][0]
    bars = Bars(
        marked_names(explanation),
        explanation.arrays["values"][0, :, 0],
        value_errors(explanation)[0, :, 0],
        doubtful(explanation)[0],
        tuple(f" = {number(value)}" for value in data),
        signed=table.signed(explanation.attribution),
        adds_up=table.adds_up(explanation.attribution),
    )
    return fold(bars, max_display, sort=sort)


def with_left_over(explanation: Explanation, bars: Bars) -> Bars:
    """Add the difference between f(x) - E f(X) and the sum of the values as a last bar, if it is visible."""
    base, prediction = explanation.arrays["base_values"][0], explanation.arrays["predictions"][0, 0]
    left = prediction - np.nan_to_num(base) - bars.values.sum()
    seen = np.isfinite(left) and abs(left) > 1e-3 * np.abs(bars.values).max()
    if not seen:
        return bars
    return replace(
        bars,
        names=(*bars.names, "remaining difference"),
        details=(*bars.details, ""),
        values=np.append(bars.values, left),
        errors=np.append(bars.errors, np.nan),
        doubtful=np.append(bars.doubtful, False),
        left_over=True,
    )


def fold(bars: Bars, max_display: int, *, sort: bool = True) -> Bars:
    """Keep the largest bars (without `sort`, the first); the others are summed in a last bar, "the other 480".

    Values that do not add up are not summed: the other bars are omitted and counted.
    """
    if max_display < 1:
        raise InputError(f"max_display={max_display} leaves nothing to draw; expected at least 1.")
    order = np.argsort(-np.abs(bars.values), kind="stable") if sort else np.arange(len(bars.values))
    if not bars.adds_up:
        kept, rest, hidden = order[:max_display], order[:0], max(0, len(order) - max_display)
    else:
        hidden, named = 0, len(order) if len(order) <= max_display else max_display - 1
        kept, rest = order[:named], order[named:]
    names, details = [bars.names[i] for i in kept], [bars.details[i] for i in kept] if bars.details else []
    values, errors, doubted = bars.values[kept], bars.errors[kept], bars.doubtful[kept]
    if len(rest):
        size = np.abs(bars.values[rest])
        names, details = [*names, f"the other {len(rest):,}"], [*details, ""] if details else []
        values = np.append(values, bars.values[rest].sum())
        # not their sum: the sum of all shares is exact, so that they do not err the same way
        errors = np.append(errors, np.linalg.norm(bars.errors[rest]))
        doubted = np.append(doubted, size[bars.doubtful[rest]].sum() > size.sum() / 2)
    return replace(
        bars,
        names=tuple(names),
        details=tuple(details),
        values=values,
        errors=errors,
        doubtful=doubted,
        folded=len(rest),
        hidden=hidden,
    )


def lines(
    explanation: Explanation, values: np.ndarray, max_display: int, chosen: list[int] | None = None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The lines of a picture of many rows: names, values (rows, lines) and features (lines,).

    The greatest features first; the others are summed up in a last line, feature -1, or left out where a sum
    of values means nothing. Or those chosen, in their order, and no others.
    """
    if chosen is not None:
        names = marked_names(explanation)
        return [names[j] for j in chosen], values[:, chosen], np.array(chosen, dtype=int)
    names, order = marked_names(explanation), np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    summed = table.adds_up(explanation.attribution) and len(order) > max_display
    kept, rest = order[: max_display - summed], order[max_display - summed :]
    found, columns = [names[j] for j in kept], values[:, kept]
    if not summed:
        return found, columns, kept
    columns = np.column_stack([columns, values[:, rest].sum(axis=1)])
    return [*found, f"the other {len(rest):,}"], columns, np.append(kept, -1)


def left_out(count: int) -> str:
    """Return how many features a plot omits, as text."""
    return f"{count:,} smaller features omitted" if count > 0 else ""


def explained(explanation: Explanation) -> np.ndarray:
    """Indices of the rows that have values at all, (rows,)."""
    return np.nonzero(np.all(np.isfinite(explanation.arrays["values"]), axis=(1, 2)))[0]


def what(explanation: Explanation) -> str:
    """The name of the explained quantity: "log-odds of benign"."""
    return table.quantity(explanation.scale, shorten(explanation.output_names[0]))


def meaning(explanation: Explanation) -> str:
    """The axis label of an attribution, and the one for categories if it differs."""
    name, scale = explanation.attribution, explanation.scale
    words = table.axis_words(name, what(explanation), scale)
    if not level_units(explanation).any():
        return words
    return f"{words}\n{LEVEL}: {table.axis_words(name, what(explanation), scale, level=True)}"


def meaning_of(explanation: Explanation, feature: int) -> str:
    """What a value of one feature means."""
    level = bool(level_units(explanation)[feature])
    return table.axis_words(explanation.attribution, what(explanation), explanation.scale, level=level)


def level_units(explanation: Explanation) -> np.ndarray:
    """Mask of the features whose value has the categorical unit while numbers have another, (features,)."""
    spec = table.ATTRIBUTIONS.get(explanation.attribution)
    if spec is None or spec.level_unit == spec.feature_unit or not explanation.units:
        return np.zeros(len(explanation.feature_names), dtype=bool)
    return np.array([unit == spec.level_unit for unit in explanation.units])


def marked_names(explanation: Explanation) -> tuple[str, ...]:
    """The features' names, with a mark before those whose value is of another unit than the numbers'."""
    return tuple(
        f"{LEVEL} {name}" if level else name
        for name, level in zip(explanation.feature_names, level_units(explanation), strict=True)
    )


def categorical(explanation: Explanation) -> np.ndarray:
    """Mask of the categorical features, (features,)."""
    data = explanation.arrays["data"]
    return np.array(
        [
            name in explanation.categories or not _numbers(data[:, j])
            for j, name in enumerate(explanation.feature_names)
        ]
    )


def _numbers(column: np.ndarray) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def say_doubt(ax: Axes, explanation: Explanation, note: str = "") -> None:
    """Write what is drawn, and the reason if the row is unstable, above the plot."""
    words = doubt(explanation)
    if note or words:
        heading(ax, "; ".join(filter(None, [note, words])), warn=bool(words))


def doubt(explanation: Explanation) -> str:
    """Why one row is unstable or undefined; empty for a stable one."""
    stability = explanation.arrays.get("stability")
    if stability is None or stability[0] == "stable":
        return ""
    reason = explanation.arrays.get("reason")
    return f"{stability[0]}: {reason[0]}" if reason is not None and reason[0] else str(stability[0])


def only_feature(explanation: Explanation, plot: str) -> int:
    """The position of the feature of an explanation that was cut to one."""
    if len(explanation.feature_names) != 1:
        raise InputError(
            f"plots.{plot} got {len(explanation.feature_names)} features and draws one; pass its name, or "
            f"explanation[:, {explanation.feature_names[0]!r}]."
        )
    return 0


Draw = TypeVar("Draw", bound=Callable[..., Any])


def is_explanation(subject: Any) -> bool:
    """Whether it holds what an Explanation holds."""
    return hasattr(subject, "arrays") and hasattr(subject, "feature_names")


def _explanations(subject: Any) -> bool:
    return isinstance(subject, Mapping) and all(is_explanation(one) for one in subject.values())


def _either(subject: Any) -> bool:
    return is_explanation(subject) or _explanations(subject)


def _scores(subject: Any) -> bool:
    return isinstance(subject, Mapping) or hasattr(subject, "per_row")


def _compared(subject: Any) -> bool:
    return hasattr(subject, "agreement") or (_explanations(subject) and len(subject) > 0)


EXPLAINED = "an Explanation. Pass what explainer(X) returns, or Explanation.build(values, data=X)"
EVALUATED = "an Evaluation, or scores by explainer's name. Pass what texplainer.evaluate returns"
TIMES = "seconds by explainer and number of rows, {'T-Explainer': {10: 0.02}}. Measure and pass them"
#: plot -> whether a subject will do, and what is expected; the others draw one Explanation
SUBJECTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "agreement": (
        _compared,
        "an Evaluation, or Explanations of the same rows by explainer's name. Pass these",
    ),
    "bar": (_either, EXPLAINED),
    "ice": (
        lambda subject: hasattr(subject, "predictor") and hasattr(subject, "background"),
        "a TExplainer. Pass the explainer itself, a row and a feature",
    ),
    "interactions": (
        lambda subject: hasattr(subject, "strongest"),
        "Interactions. Pass what explainer.interactions(X) returns",
    ),
    "stability_boxplot": (_scores, EVALUATED),
    "stability_faithfulness": (_scores, EVALUATED),
    "timing": (lambda subject: isinstance(subject, Mapping), TIMES),
}


def checked(draw: Draw) -> Draw:
    """Check a plot's argument before drawing, and give it the keyword `show`, as shap's plots have."""
    name = draw.__name__
    fine, expected = SUBJECTS.get(name, (is_explanation, EXPLAINED))
    own = signature(draw)
    known = [*own.parameters, "show"]

    @wraps(draw)
    def plot(*given: Any, show: bool = False, **words: Any) -> Any:
        if given and is_shap(given[0]):
            given = (from_shap(given[0]), *given[1:])
        subjects = given or [
            words[key] for key in ("explanation", "subject", "interactions", "explainer") if key in words
        ]
        if len(subjects) and not fine(subjects[0]):
            raise InputError(f"plots.{name} got {describe(subjects[0])}; expected {expected}.")
        refuse_keywords(f"plots.{name}", {key: words[key] for key in words if key not in known}, known)
        ax = draw(*given, **words)
        if show:
            import matplotlib.pyplot as plt

            plt.show()
        return ax

    keyword = Parameter("show", Parameter.KEYWORD_ONLY, default=False, annotation=bool)
    plot.__signature__ = own.replace(parameters=[*own.parameters.values(), keyword])  # type: ignore[attr-defined]
    return plot  # type: ignore[return-value]


def feature_position(explanation: Explanation, feature: Any) -> int:
    """The position of a feature given by name or position."""
    names = explanation.feature_names
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    if feature not in names:
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        raise InputError(
            f"feature={feature!r} is not in the explanation; it has {', '.join(names[:12])}{more}."
            f"{suggest(feature, names)}"
        )
    return names.index(feature)


def positions(explanation: Explanation, features: Sequence[Any] | None) -> list[int] | None:
    """The positions of some features, in their order; None where none were chosen."""
    if features is None:
        return None
    found = [
        feature_position(explanation, one) for one in ([features] if isinstance(features, str) else features)
    ]
    if not found:
        raise InputError("features is empty; expected names or positions, or None for the largest.")
    return found

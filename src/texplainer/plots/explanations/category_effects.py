"""Category effects: what each category of a feature would do to the prediction."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import CategoryEffects
from texplainer.plots import selection, style
from texplainer.plots.selection import checked


@checked
def category_effects(
    explanation: Explanation, feature: str | None = None, *, ax: Axes | None = None, max_display: int = 12
) -> Axes:
    """Draw f(x with the category) - f(x) for the categories of one feature.

    One row: a bar per category; the row's own category is marked. Many rows: the median as a dot, the
    interquartile range as a thick line and the 5% to 95% range as a thin one. The frequency in the background
    follows each name.

    Parameters
    ----------
    explanation
        Of one output, with categorical features.
    feature
        Which one; the only one by default.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of categories; the most frequent are shown.
    """
    selection.one_output(explanation)
    name = _choose(explanation, feature)
    category = explanation.categories[name]
    order = np.argsort(-category.frequencies, kind="stable")[:max_display]
    effects = category.effects[:, order, 0]  # (rows, levels)
    by = np.argsort(-np.nan_to_num(np.nanmedian(effects, axis=0)), kind="stable")
    order, effects = order[by], effects[:, by]
    ax = style.canvas(ax, height=style.tall(len(order)))
    if not np.isfinite(effects).any():
        return style.empty(ax, "no category could be evaluated")
    style.name_lines(ax, [_words(category, level) for level in order])
    at = np.arange(len(order))[::-1]
    if len(explanation) == 1:
        own = np.array([str(category.levels[i]) for i in order]) == str(_own(explanation, name))
        _bars(ax, at, effects[0], own)
    else:
        _ranges(ax, at, effects)
    ax.axvline(0, color=style.GREY, lw=0.8, zorder=1)
    hidden = len(category.levels) - len(order)
    style.heading(ax, style.shorten(name) + (f", without {hidden} rarer categories" if hidden else ""))
    style.label_axes(ax, f"change of {selection.what(explanation)} with this category")
    return ax


def _choose(explanation: Explanation, feature: str | None) -> str:
    names = list(explanation.categories)
    if feature is None and len(names) == 1:
        return names[0]
    if feature not in explanation.categories:
        known = ", ".join(names) or "none"
        raise InputError(f"feature={feature!r} does not have category effects; expected one of: {known}.")
    return str(feature)


def _words(category: CategoryEffects, level: int) -> str:
    return f"{style.shorten(str(category.levels[level]), 20)} ({category.frequencies[level]:.0%})"


def _own(explanation: Explanation, name: str) -> object:
    return explanation.arrays["data"][0, explanation.feature_names.index(name)]


def _bars(ax: Axes, at: np.ndarray, effects: np.ndarray, own: np.ndarray) -> None:
    ax.barh(at, np.nan_to_num(effects), height=0.62, color=style.sign_colours(effects), zorder=2)
    ax.plot(np.zeros(own.sum()), at[own], "D", color=style.INK, ms=5, zorder=3)
    low, high = min(0.0, np.nanmin(effects)), max(0.0, np.nanmax(effects))
    room = style.room(ax, 1 + (low < 0)) * max(high - low, 1e-12)
    ax.set_xlim(low - room * (low < 0), high + room)
    for y, value, here in zip(at, effects, own, strict=True):
        words = "its own category" if here else "not evaluated" if np.isnan(value) else style.amount(value)
        right = here or not value < 0
        x = 0.0 if here else float(np.nan_to_num(value))
        ax.annotate(
            words,
            (x, y),
            (6 if right else -6, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize=style.SIZE - 0.5,
            color=style.INK,
        )


def _ranges(ax: Axes, at: np.ndarray, effects: np.ndarray) -> None:
    p5, p25, p50, p75, p95 = np.nanquantile(effects, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    colours = style.sign_colours(p50)
    ax.hlines(at, p5, p95, color=colours, lw=1)
    ax.hlines(at, p25, p75, color=colours, lw=5, alpha=0.55)
    ax.scatter(p50, at, s=26, color=colours, zorder=3)

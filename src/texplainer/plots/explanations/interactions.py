"""Interactions: a map of features by features, and the strongest pairs with their error bounds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.attributions import table
from texplainer.errors import InputError
from texplainer.explanation.interactions import Interactions
from texplainer.plots import style
from texplainer.plots.selection import checked

NAMED, LISTED = 14, 24  # letters of a name beside the map, and of one in the list of pairs
#: up to so many names -> points by which their letters are smaller, so that they do not touch
SMALLER = ((15, 0.5), (30, 2.5), (float("inf"), 4.0))
TALLEST = 6.4  # inches
FEW = 4  # pairs in the lower part of somebody else's axes


@checked
def interactions(
    interactions: Interactions,
    *,
    ax: Axes | None = None,
    max_display: int = 10,
    pairs: int = 8,
    own: bool = False,
) -> Axes:
    """Draw how strongly pairs of features interact.

    Left: a map of the features with the strongest interactions. Right: the strongest pairs with error bounds.
    For one row the signs are shown: vermilion if one feature increases the slope of the other. For many rows
    the mean absolute value is shown. The diagonal, a feature's own curvature, is excluded by default.

    Parameters
    ----------
    interactions
        Of one output, `explainer.interactions(X)[..., "benign"]`.
    ax
        Where to draw the map; fresh axes with the pairs beside it by default, below it where `ax` is given.
    max_display
        The most features in the map.
    pairs
        The most pairs.
    own
        Whether a feature's own curvature is drawn on the diagonal and counted among the pairs.
    """
    names = list(interactions.output_names)
    if len(names) > 1:
        raise InputError(
            f"the interactions hold {len(names)} outputs; a plot shows one. "
            f"Pick it with interactions[..., {names[0]!r}]."
        )
    known = np.isfinite(interactions.arrays["values"]).all(axis=(1, 2, 3))
    shown = min(len(interactions.feature_names), max_display)
    fresh = ax is None
    ax = style.canvas(ax, width=9.2, height=float(np.clip(style.tall(shown, 1.7), 3.2, TALLEST)))
    if not known.any():
        return style.empty(ax, "no row could be explained")
    values = interactions.arrays["values"][known, :, :, 0]
    signed = len(values) == 1
    matrix = values[0] if signed else np.abs(values).mean(axis=0)
    order = _order(matrix, max_display, own)
    beside = _split(ax, fresh)
    _map(ax, matrix[np.ix_(order, order)], [interactions.feature_names[j] for j in order], signed, own)
    listed = pairs if fresh else min(pairs, FEW)
    found = [pair for pair in interactions.strongest(listed, own=own) if pair[2]]
    _pairs(beside, found, signed)
    quantity = table.quantity(interactions.scale, style.shorten(names[0]))
    hidden = len(interactions.feature_names) - len(order)
    words = [f"{len(values):,} rows" if not signed else "", f"{hidden:,} more features" if hidden else ""]
    style.heading(ax, ", ".join(filter(None, words)) or "one row")
    size = "change" if signed else "mean size of the change"
    what = f"{size} of {quantity}, per SD of both"
    if interactions.attribution != "slope":
        what = f"{'' if signed else 'mean size of the '}contribution of both together to {quantity} (half)"
    style.label_axes(beside, what)
    return ax


def _order(matrix: np.ndarray, max_display: int, own: bool) -> np.ndarray:
    """The features that take part most, those with the strongest pair first."""
    size = np.abs(matrix) * (1.0 if own else 1.0 - np.eye(len(matrix)))
    return np.argsort(-size.sum(axis=1), kind="stable")[:max_display]


def _split(ax: Axes, fresh: bool) -> Axes:
    """Room for the pairs: a second panel of a figure of our own, the lower part of somebody else's axes."""
    box = ax.get_subplotspec()
    if fresh and box is not None:
        left, right = box.subgridspec(1, 2, width_ratios=(1.15, 1.0), wspace=0.05)
        ax.set_subplotspec(left)
        return style.canvas(ax.figure.add_subplot(right))
    if box is not None:
        top, bottom = box.subgridspec(2, 1, height_ratios=(1.4, 1.0))
        ax.set_subplotspec(top)
        return style.canvas(ax.figure.add_subplot(bottom))
    return style.canvas(ax.inset_axes((0.0, -0.9, 1.0, 0.6)))


def _map(ax: Axes, matrix: np.ndarray, names: list[str], signed: bool, own: bool) -> None:
    shown = matrix if own else np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)
    limit = float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
    image = ax.imshow(
        shown,
        cmap=style.DIVERGING if signed else style.AMOUNTS,
        vmin=-limit if signed else 0.0,
        vmax=limit,
        aspect="auto",
    )
    ax.set_facecolor(style.FAINT)
    letters = max(6, min(NAMED, style.letters(ax, 0.3)))
    words = style.told_apart(names, [letters] * len(names))
    ax.set_xticks(range(len(names)), words, rotation=90 if len(names) > 4 else 0)
    ax.set_yticks(range(len(names)), words)
    smaller = next(points for most, points in SMALLER if len(names) <= most)
    ax.tick_params(length=0, labelsize=style.SIZE - smaller)
    style.literal([*ax.get_xticklabels(), *ax.get_yticklabels()])
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, aspect=25)
    bar.ax.tick_params(labelsize=style.SIZE - 1, length=0)
    bar.outline.set_visible(False)  # type: ignore[operator]


def _pairs(ax: Axes, found: list[tuple[str, str, float, float]], signed: bool) -> None:
    """One bar a pair, with its error bound."""
    if not found:
        style.empty(ax, "no two features interact")
        return
    values, errors = np.array([pair[2] for pair in found]), np.array([pair[3] for pair in found])
    colours = style.sign_colours(values) if signed else [style.AMOUNT] * len(values)
    ax.barh(np.arange(len(values))[::-1], values, height=0.62, color=colours, zorder=2)
    style.whiskers(ax, values, errors, float(np.ptp(np.append(values, 0.0))))
    ax.axvline(0, color=style.GREY, lw=0.8)
    most = min(LISTED, max(10, style.letters(ax, 0.4)))
    long = max(len(name) for pair in found for name in pair[:2]) > most // 2
    between, most = ("\n× ", most) if long and len(found) > FEW else (" × ", max(7, most // 2))
    names = sorted({name for pair in found for name in pair[:2]})
    short = dict(zip(names, style.told_apart(names, [most] * len(names)), strict=True))
    words = [f"{short[a]}{between}{short[b]}" for a, b, _, _ in found]
    if len(found) < FEW:  # slender bars, as of many pairs
        ax.set_ylim(len(found) - FEW - 0.3, len(found) - 0.3)
    ax.set_yticks(np.arange(len(words))[::-1], words, fontsize=style.SIZE - (1.0 if long else 0.0))
    style.literal(ax.get_yticklabels())
    ax.locator_params(axis="x", nbins=4)

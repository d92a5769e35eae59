"""Heat map: rows from left to right, features from top to bottom, attributions as colours."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

COLUMNS = 1000  # the most rows a picture can tell apart


@checked
def heatmap(
    explanation: Explanation,
    *,
    ax: Axes | None = None,
    max_display: int = 10,
    features: Sequence[str | int] | None = None,
    colours: Any = None,
) -> Axes:
    """Draw attributions as colours, rows in the order of their predictions.

    The line on top is the prediction; ticks under the map mark unstable rows. The colours saturate at the
    99th percentile of |value|. Above 1,000 rows, evenly spaced ones are shown.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    max_display
        Maximal number of features; the last line is then the sum of the others, if the attribution is
        additive.
    features
        Which features, in this order from the top; by default the largest first.
    colours
        From the lowest to the highest value: a name or map of matplotlib's, or a list of colours.
    """
    selection.one_output(explanation)
    rows = selection.explained(explanation)
    chosen = selection.positions(explanation, features)
    shown = min(len(explanation.feature_names), max_display) if chosen is None else len(chosen)
    ax = style.canvas(ax, height=style.tall(shown, 1.6))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    predictions = explanation.arrays["predictions"][rows, 0]
    rows = rows[np.argsort(predictions, kind="stable")]
    rows = rows[evenly(len(rows), COLUMNS)]
    names, values, kept = selection.lines(
        explanation, explanation.arrays["values"][rows, :, 0], max_display, chosen
    )
    limit = float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
    signed = table.signed(explanation.attribution)
    image = ax.imshow(
        values.T,
        aspect="auto",
        cmap=style.colormap(colours, style.DIVERGING if signed else style.AMOUNTS),
        vmin=-limit if signed else 0.0,
        vmax=limit,
        interpolation="nearest",
        extent=(-0.5, len(rows) - 0.5, -0.5, len(names) - 0.5),
    )
    style.name_lines(ax, names)
    ax.set_ylim(-0.5, len(names) - 0.5)
    unstable = np.nonzero(selection.doubted_rows(explanation)[rows])[0]
    ax.plot(unstable, np.full(len(unstable), -0.5), "|", color=style.INK, ms=5, clip_on=False, gid="unstable")
    _line(ax, explanation.arrays["predictions"][rows, 0], selection.what(explanation))
    marked = " (| marks unstable ones)" if len(unstable) else ""
    words = selection.left_out(0 if -1 in kept else len(explanation.feature_names) - len(kept))
    style.label_axes(ax, ", ".join(filter(None, [f"{len(rows):,} rows by prediction{marked}", words])))
    _key(ax, image, selection.meaning(explanation))
    return ax


def _key(ax: Axes, image: AxesImage, meaning: str) -> None:
    """The colours' scale, with what they mean where there is room."""
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=style.SIZE - 0.5, length=0)
    bar.outline.set_visible(False)  # type: ignore[operator]
    if style.letters(ax, 1.0) > 50:  # a phone has no room for it
        words = fill(meaning, max(24, style.letters(ax, 0.5)))
        bar.set_label(words, fontsize=style.SIZE)
        style.literal([bar.ax.yaxis.label])


def _line(ax: Axes, predictions: np.ndarray, words: str) -> None:
    """The prediction of every row, above the map."""
    top = ax.inset_axes((0, 1.03, 1, 0.16))
    top.plot(np.arange(len(predictions)), predictions, color=style.INK, lw=1)
    top.set_xlim(-0.5, len(predictions) - 0.5)
    top.set_xticks([])
    top.spines[:].set_visible(False)
    top.tick_params(labelsize=style.SIZE - 1.5, length=0, labelcolor=style.GREY)
    top.locator_params(axis="y", nbins=2)
    style.literal([top.set_title(words, fontsize=style.SIZE, color=style.INK, loc="left")])

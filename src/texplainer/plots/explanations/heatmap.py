"""Heat map: rows from left to right, features from top to bottom, attributions as colours."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from texplainer.explanation import Explanation
from texplainer.plots import pick, style

COLUMNS = 1000  # the most rows a picture can tell apart


def heatmap(explanation: Explanation, *, ax: Axes | None = None, most: int = 10) -> Axes:
    """Draw attributions as colours, rows in the order of their predictions.

    The line on top is the prediction; ticks under the map mark fragile rows. The colours saturate at
    the 99th percentile of |value|. Beyond 1,000 rows, evenly spaced ones are shown.

    Parameters
    ----------
    explanation
        Of one output: `explanation[..., "benign"]`.
    ax
        Where to draw; fresh axes by default.
    most
        The most features; the last line then stands for the sum of the others.
    """
    pick.one_output(explanation)
    rows = pick.explained(explanation)
    ax = style.canvas(ax, height=style.tall(min(len(explanation.feature_names), most), 1.6))
    if not len(rows):
        return style.empty(ax, "no row could be explained")
    predictions = explanation.arrays["predictions"][rows, 0]
    rows = rows[np.argsort(predictions, kind="stable")]
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), COLUMNS)).astype(int))]
    names, values = _folded(explanation, rows, most)
    limit = float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
    image = ax.imshow(
        values.T,
        aspect="auto",
        cmap=style.DIVERGING,
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
        extent=(-0.5, len(rows) - 0.5, -0.5, len(names) - 0.5),
    )
    style.lines_of(ax, names)
    ax.set_ylim(-0.5, len(names) - 0.5)
    fragile = np.nonzero(pick.doubted_rows(explanation)[rows])[0]
    ax.plot(fragile, np.full(len(fragile), -0.5), "|", color=style.INK, ms=5, clip_on=False, gid="fragile")
    _line(ax, explanation.arrays["predictions"][rows, 0], pick.what(explanation))
    marked = " (| marks fragile ones)" if len(fragile) else ""
    style.label_axes(ax, f"{len(rows):,} rows by prediction{marked}")
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=style.SIZE - 0.5, length=0)
    bar.outline.set_visible(False)  # type: ignore[operator]
    if style.letters(ax, 1.0) > 50:  # a phone has no room for it
        bar.set_label("attribution", fontsize=style.SIZE)
    return ax


def _folded(explanation: Explanation, rows: np.ndarray, most: int) -> tuple[list[str], np.ndarray]:
    """Names and values (rows, lines) of the greatest features and the sum of the others."""
    values = explanation.arrays["values"][rows, :, 0]
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")
    if len(order) <= most:
        return [explanation.feature_names[j] for j in order], values[:, order]
    kept, rest = order[: most - 1], order[most - 1 :]
    names = [explanation.feature_names[j] for j in kept] + [f"the other {len(rest):,}"]
    return names, np.column_stack([values[:, kept], values[:, rest].sum(axis=1)])


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

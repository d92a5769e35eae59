"""Image: what the model saw, and beside it the segments it reacts to."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.plots import selection, style
from texplainer.plots.selection import checked

PANELS = 6  # the most outputs side by side
FAINT, BOLD = 0.1, 0.75  # how much of the picture colours cover, at 0 and at the greatest value
BYTES = 64  # a greatest value from here on is one of 255; a smaller one is that of a scale of its own
LINE = 0.2  # inches of a line of the list


@checked
def image(explanation: Explanation, *, ax: Axes | None = None, max_display: int = 5) -> Axes:
    """Draw one image and, for every output, its segments coloured by their values.

    Colours are the same for all outputs, centred at 0. The strongest segments are outlined and numbered; the
    list below gives their values with their error bounds.

    Parameters
    ----------
    explanation
        Of one image, by an ImageExplainer: `explanation[0]`; of one output or several.
    ax
        Where to draw; fresh axes by default.
    max_display
        The most segments to outline.
    """
    explanation = selection.single_row(explanation)
    pixels = _values_by_pixel(explanation)  # (height, width, outputs)
    outputs, picture = pixels.shape[-1], shown(explanation.arrays["image"][0])
    tall = picture.shape[0] / picture.shape[1]
    below = LINE * (max_display + 2)
    height = 0.5 + 2.4 * min(tall, 1.6) + below
    ax = style.canvas(ax, width=2.6 * (outputs + 1), height=height)
    ax.set_axis_off()
    if selection.doubt(explanation):
        style.heading(ax, selection.doubt(explanation), warn=True)
    if not np.isfinite(explanation.arrays["values"]).all():
        return style.empty(ax, "no attributions to draw")
    limit = float(np.nanmax(np.abs(pixels), initial=0.0)) or 1.0
    _picture(_panel(ax, 0, outputs + 1, below / height), picture, "the image")
    for k in range(outputs):
        panel = _panel(ax, k + 1, outputs + 1, below / height)
        words = selection.what(explanation[..., explanation.output_names[k]] if outputs > 1 else explanation)
        _picture(panel, _pale(picture), _own(explanation, words))
        _overlay(panel, pixels[..., k], limit)
        chosen = _strongest(explanation, k, max_display)
        _outline(panel, explanation, chosen)
        _list(panel, explanation, k, chosen)
    style.literal(
        [ax.text(0, 0, _scale_words(explanation, limit), fontsize=style.SIZE - 1, color=style.GREY)]
    )
    return ax


def shown(pixels: np.ndarray) -> np.ndarray:
    """An image (height, width, channels) as colours in [0, 1], (height, width, 3)."""
    pixels = np.asarray(pixels, dtype=float)
    low, high = float(pixels.min()), float(pixels.max())
    if low >= 0 and BYTES <= high <= 255:
        pixels = pixels / 255
    elif low < 0 or high > 1:
        pixels = (pixels - low) / (high - low)
    if pixels.shape[-1] in (3, 4):
        return pixels[..., :3]
    return np.repeat(pixels.mean(axis=-1, keepdims=True), 3, axis=-1)


def _pale(picture: np.ndarray) -> np.ndarray:
    """Light greys, on which colours are seen."""
    return np.repeat(0.4 + 0.6 * picture.mean(axis=-1, keepdims=True), 3, axis=-1)


def edges(mask: np.ndarray) -> list[list[tuple[float, float]]]:
    """The lines between pixels that are in a mask (height, width) and those that are not."""
    padded = np.pad(mask, 1)
    across, down = np.nonzero(padded[1:] != padded[:-1]), np.nonzero(padded[:, 1:] != padded[:, :-1])
    flat = [[(x - 1.5, y - 0.5), (x - 0.5, y - 0.5)] for y, x in zip(*across, strict=True)]
    steep = [[(x - 0.5, y - 1.5), (x - 0.5, y - 0.5)] for y, x in zip(*down, strict=True)]
    return flat + steep


def _values_by_pixel(explanation: Explanation) -> np.ndarray:
    if len(explanation.output_names) > PANELS:
        raise InputError(
            f"the explanation holds {len(explanation.output_names)} outputs; at most {PANELS} fit side by "
            f"side. Pick some with explanation[..., {list(explanation.output_names[:2])}]."
        )
    found = explanation.to_pixels()
    return found.reshape(*explanation.arrays["segments"].shape[1:], -1)


def _panel(ax: Axes, position: int, count: int, below: float) -> Axes:
    """One of several pictures side by side, with room for a list below."""
    panel = ax.inset_axes((position / count + 0.01, below, 1 / count - 0.02, 1 - below))
    panel.set_anchor("S")
    panel.set_axis_off()
    return panel


def _picture(panel: Axes, picture: np.ndarray, words: str) -> None:
    panel.imshow(np.clip(picture, 0, 1), interpolation="nearest")
    style.literal([panel.set_title(style.shorten(words), fontsize=style.SIZE, color=style.INK)])


def _overlay(panel: Axes, values: np.ndarray, limit: float) -> None:
    """Colours over the picture, the stronger the less of it is seen."""
    known = np.nan_to_num(values) / limit
    colours = style.DIVERGING((known + 1) / 2)
    colours[..., 3] = np.where(np.isfinite(values), FAINT + (BOLD - FAINT) * np.sqrt(np.abs(known)), 0.0)
    panel.imshow(colours, interpolation="nearest")


def _strongest(explanation: Explanation, output: int, max_display: int) -> np.ndarray:
    """Features of the greatest values, none of 0."""
    size = np.abs(explanation.arrays["values"][0, :, output])
    return np.array(
        [j for j in np.argsort(-size, kind="stable")[: max(max_display, 0)] if size[j] > 0], dtype=int
    )


def _outline(panel: Axes, explanation: Explanation, chosen: np.ndarray) -> None:
    maps, numbers = explanation.arrays["segments"][0], explanation.arrays["segment"][0]
    for place, feature in reversed(list(enumerate(chosen, 1))):
        mask = maps == numbers[feature]
        panel.add_collection(LineCollection(edges(mask), colors="white", linewidths=2.2, zorder=3))
        panel.add_collection(LineCollection(edges(mask), colors=style.INK, linewidths=1.1, zorder=4))
        y, x = np.argwhere(mask)[len(np.argwhere(mask)) // 2] if not _centre_inside(mask) else _centre(mask)
        text = panel.text(
            x, y, str(place), ha="center", va="center", fontsize=style.SIZE - 0.5, color="white", zorder=5,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": style.INK, "edgecolor": "none", "alpha": 0.75},
        )  # fmt: skip
        style.literal([text])


def _centre(mask: np.ndarray) -> np.ndarray:
    return np.argwhere(mask).mean(axis=0)


def _centre_inside(mask: np.ndarray) -> bool:
    """Whether a segment's centre lies in it; that of a crescent does not."""
    y, x = np.round(_centre(mask)).astype(int)
    return bool(mask[y, x])


def _list(panel: Axes, explanation: Explanation, output: int, chosen: np.ndarray) -> None:
    """The values of the outlined segments, with their error bounds, below the picture."""
    values, errors = (
        explanation.arrays["values"][0, :, output],
        selection.value_errors(explanation)[0, :, output],
    )
    spec = ATTRIBUTIONS.get(explanation.attribution)
    signed = spec is None or spec.signed
    for line, feature in enumerate(chosen):
        value, error = float(values[feature]), float(errors[feature])
        told = np.isfinite(error) and error > 1e-3 * np.abs(values).max()  # round-off is not worth a number
        bound = f" ± {style.amount(error, sign=False)}" if told else ""
        text = panel.annotate(
            f"{line + 1}   {style.amount(value, signed)}{bound}",
            (0, 0), xycoords="axes fraction", xytext=(2, -10 - 72 * LINE * line), textcoords="offset points",
            va="top", fontsize=style.SIZE, color=style.POSITIVE if value >= 0 else style.NEGATIVE,
        )  # fmt: skip
        text.set_in_layout(False)
        style.literal([text])


def _own(explanation: Explanation, words: str) -> str:
    """The title of an output's picture; of a predicted class, which that is."""
    predicted = explanation.arrays.get("predicted_class")
    if predicted is None or explanation.output_names != ("predicted",):
        return words
    return words.replace("predicted", f"class {int(predicted[0])}, predicted")


def _scale_words(explanation: Explanation, limit: float) -> str:
    signed = "orange raises, blue lowers; " if np.any(explanation.arrays["values"] < 0) else ""
    return f"{explanation.attribution}: {signed}full colour at {style.amount(limit, sign=False)}"

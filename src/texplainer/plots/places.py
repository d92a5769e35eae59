"""Where points stand in pictures of one feature: along x, in fixed limits, with slopes through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.plots import style
from texplainer.support.messages import suggest

LENGTH = 0.03  # of half a slope line, as a share of the picture's width


def feature_position(explanation: Explanation, feature: Any) -> int:
    """The position of a feature given by name or position."""
    names = explanation.feature_names
    if isinstance(feature, (int, np.integer)) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    if feature not in names:
        raise InputError(
            f"feature={feature!r} is not in the explanation; it has {', '.join(names[:12])}."
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


def along_x(data: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Positions along x, and the levels they stand for if the column holds text."""
    try:
        return np.asarray(data, dtype=float), []
    except (TypeError, ValueError):
        levels, codes = np.unique([style.number(v) for v in data], return_inverse=True)
        return codes.astype(float), list(levels)


def frame(ax: Axes, x: np.ndarray, y: np.ndarray, levels: list[str], *, floor: float | None = None) -> None:
    """Fixed limits, so that the slopes' angles are known before drawing; `floor` is a height to be seen."""
    seen = y if floor is None else np.append(y, floor)
    for values, set_limits in ((x, ax.set_xlim), (seen, ax.set_ylim)):
        span = float(np.ptp(values)) or max(1.0, abs(float(values[0])))
        set_limits(values.min() - 0.06 * span, values.max() + 0.06 * span)
    if levels:
        words = [style.shorten(level, 14) for level in levels]
        crowded = len(words) * (max(map(len, words)) + 1) > style.letters(ax, 0.85)
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        ax.set_xticks(range(len(levels)), words, **turned)
        style.literal(ax.get_xticklabels())
    ax.grid(axis="y", color=style.FAINT, lw=0.6)
    ax.spines["left"].set_visible(False)


def slope_strokes(ax: Axes, x: np.ndarray, y: np.ndarray, gradient: np.ndarray, colours: list[Any]) -> None:
    """Short lines of one length on the page, whatever their steepness."""
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    steep = gradient * (x1 - x0) / (y1 - y0) * (ax.bbox.height / ax.bbox.width)  # rise over run on the page
    run = LENGTH / np.hypot(1.0, steep)
    dx = run * (x1 - x0)
    ends = np.stack(
        [np.stack([x - dx, y - gradient * dx], 1), np.stack([x + dx, y + gradient * dx], 1)], axis=1
    )
    lines = LineCollection(list(ends), colors=colours, linewidths=1, alpha=0.6, zorder=2)
    lines.set_gid("slopes")
    ax.add_collection(lines, autolim=False)


def jitter(count: int) -> np.ndarray:
    """Shifts in [-0.25, 0.25] that keep the points of a level apart, the same ones every time, (count,)."""
    return 0.5 * (np.arange(count) * 0.6180339887 % 1 - 0.5)

"""The look shared by all plots: colours, canvas, numbers and names.

The two signs are vermilion and blue of Okabe and Ito's palette, which people with any colour vision tell
apart; hatching and words repeat what colour says. Nothing here touches matplotlib's global settings, and
names are drawn as they are: a "$" in one starts no formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.text import Text
from scipy.special import logit

from texplainer.explanation.text import cell_text, signed
from texplainer.explanation.text import number as unsigned

POSITIVE, NEGATIVE = "#D55E00", "#0072B2"
GREY, FAINT, INK = "#7A808A", "#D9DCE1", "#22262B"
AMOUNT = "#2A8C82"  # sizes without a sign
WARNING = "#8A5A00"
#: for explainers side by side (Okabe and Ito 2008, without the yellow that vanishes on white)
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D", "#8C6BB1")
MARKERS = "osD^vPX*"
WIDE = 24  # letters of a name that leaves little room beside it
SIZE = 9.0  # points; 12 pixels in a picture of 400
NAME_LENGTH = 32
#: probabilities for an axis of log-odds, the ones to keep first where room is scarce
PROBABILITIES = (
    *(0.5, 0.01, 0.99, 0.1, 0.9, 1e-4, 0.9999, 1e-6, 0.999999, 1e-3, 0.999, 1e-9, 1e-12, 0.25, 0.75),
    *(round(0.05 * i, 2) for i in range(1, 20)),
    *(round(0.01 * i, 2) for i in range(1, 100)),
)
HATCH = "////"
#: low to high values of a feature, and negative to positive attributions
LOW_HIGH = LinearSegmentedColormap.from_list("low-high", [NEGATIVE, "#A58FB0", POSITIVE])
DIVERGING = LinearSegmentedColormap.from_list("diverging", [NEGATIVE, "#F7F7F7", POSITIVE])
AMOUNTS = LinearSegmentedColormap.from_list("amounts", ["#F7F7F7", AMOUNT])


def canvas(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return the given axes, or new ones on a new figure, without frame."""
    if ax is None:
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(GREY)
    ax.tick_params(labelsize=SIZE, color=GREY, labelcolor=INK, left=False)
    ax.set_axisbelow(True)
    return ax


def tall(lines: int, around: float = 1.1) -> float:
    """Height in inches of a picture with one feature a line."""
    return around + 0.3 * max(lines, 2)


def letters(ax: Axes, share: float) -> int:
    """How many letters fit into a share of the width of the axes (before names take their part of it)."""
    return int(share * ax.bbox.width / (0.6 * SIZE * ax.figure.dpi / 72))


def room(ax: Axes, sides: int) -> float:
    """Room for a number beside the bars, on one side or both, as a share of the bars' own range."""
    number, inner = 7.0, 0.62 * letters(ax, 1.0)
    return number / max(number, inner - sides * number)


def label_axes(ax: Axes, x: str = "", y: str = "") -> None:
    """Name the axes in small dark letters, literally, on as many lines as they need."""
    tall = int(0.95 * letters(ax, 1.0) * ax.bbox.height / ax.bbox.width)
    for words, set_label, width in ((x, ax.set_xlabel, letters(ax, 0.75)), (y, ax.set_ylabel, tall)):
        if words:
            lines = [fill(line, max(16, width)) for line in words.split("\n")]
            literal([set_label("\n".join(lines), fontsize=SIZE, color=INK)])


def probability_axis(ax: Axes) -> None:
    """Above an axis of log-odds the probabilities they stand for, as many as have room."""
    low, high = ax.get_xlim()
    least = 8.0 / max(letters(ax, 0.62), 1)  # eight letters apart, names take their part of the width
    shown, taken = [], []
    for p in PROBABILITIES:
        at = (float(logit(p)) - low) / (high - low)
        if 0.02 <= at <= 0.98 and all(abs(at - other) >= least for other in taken):
            shown, taken = [*shown, p], [*taken, at]
    top = ax.secondary_xaxis("top")
    top.set_xticks([float(logit(p)) for p in shown], [_share(p) for p in shown])
    top.tick_params(labelsize=SIZE - 1, color=GREY, labelcolor=GREY)
    top.spines["top"].set_color(FAINT)
    top.set_xlabel("probability", fontsize=SIZE - 1, color=GREY, loc="right", labelpad=2)


def _share(p: float) -> str:
    """A probability without digits that say nothing: 50%, 99.9%, 0.01%."""
    return f"{100 * p:.10g}%"


def name_lines(ax: Axes, names: Sequence[str], details: Sequence[str] = ()) -> None:
    """One name a line, the first at the top; names are shortened, the details behind them are not."""
    most = min(NAME_LENGTH, max(14, letters(ax, 0.46)))
    details = details or [""] * len(names)
    short = told_apart(names, [max(8, most - len(detail)) for detail in details])
    words = [name + detail for name, detail in zip(short, details, strict=True)]
    ax.set_yticks(np.arange(len(names))[::-1], words)
    if max(map(len, words), default=0) > WIDE:  # they take room from the numbers below
        ax.locator_params(axis="x", nbins=5)
    literal(ax.get_yticklabels())
    ax.set_ylim(-0.7, len(names) - 0.3)


def heading(ax: Axes, words: str, warn: bool = False) -> None:
    """A line above the picture."""
    words = fill(words, max(20, letters(ax, 0.75)))
    literal([ax.set_title(words, fontsize=SIZE, color=WARNING if warn else INK, loc="left")])


def legend(ax: Axes, colours: Sequence[tuple[str, str]], title: str = "") -> None:
    """Names beside their colours, right of the picture."""
    marks = [Line2D([], [], marker="s", ls="", color=colour, ms=7) for _, colour in colours]
    made = ax.legend(
        marks,
        [name for name, _ in colours],
        title=title or None,
        fontsize=SIZE - 0.5,
        title_fontsize=SIZE - 0.5,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        handletextpad=0.3,
        borderaxespad=0.2,
    )
    literal([*made.get_texts(), made.get_title()])


def palette(colours: Any, usual: Sequence[str]) -> list[str]:
    """Some colours: those asked for first, the usual ones after them."""
    asked = [] if colours is None else [colours] if isinstance(colours, str) else list(colours)
    return [*asked, *usual[len(asked) :]]


def colormap(colours: Any, usual: Colormap) -> Colormap:
    """The colours asked for, by matplotlib's name, as a map or as some colours to lead through."""
    if colours is None:
        return usual
    if isinstance(colours, (list, tuple)):
        return LinearSegmentedColormap.from_list("chosen", list(colours))
    return plt.get_cmap(colours)


def rgba(colours: Sequence[str]) -> np.ndarray:
    """Colours as numbers, (colours, 4)."""
    return to_rgba_array(list(colours))


def empty(ax: Axes, words: str) -> Axes:
    """Write why the plot is empty."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    text = ax.text(
        0.5,
        0.5,
        words,
        ha="center",
        va="center",
        transform=ax.transAxes,
        fontsize=SIZE,
        color=GREY,
        wrap=True,
    )
    literal([text])
    return ax


def literal(texts: Iterable[Text | Any]) -> None:
    """Draw texts literally, without parsing formulas."""
    for text in texts:
        text.set_parse_math(False)


def shorten(name: str, length: int = NAME_LENGTH) -> str:
    """Shorten a long name in the middle."""
    name = " ".join(str(name).split())
    if len(name) <= length:
        return name
    head = (length - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (length - 1 - head) :].lstrip()}"


def told_apart(names: Sequence[str], lengths: Sequence[int]) -> list[str]:
    """Shorten names, each to a length of its own; those that would look alike show where they differ."""
    names = [" ".join(str(name).split()) for name in names]
    short = [shorten(name, length) for name, length in zip(names, lengths, strict=True)]
    for word in {word for word in short if short.count(word) > 1}:
        alike = [i for i, other in enumerate(short) if other == word]
        for i in alike:
            same = max(_alike(names[i], names[k]) for k in alike if k != i)
            short[i] = _around(names[i], same, lengths[i])
    return short


def _alike(one: str, other: str) -> int:
    """How many letters two names begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _around(name: str, at: int, length: int) -> str:
    """So much of a name as fits around one of its letters."""
    if len(name) <= length:
        return name
    room = length - 2  # an ellipsis on either side
    start = min(max(at - room // 2, 0), len(name) - room)
    head = f"…{name[start:]}" if start else name
    return head if len(head) <= length else f"{head[: length - 1].rstrip()}…"


def number(value: Any) -> str:
    """A cell of the user's table, as the printed tables show it, with a true minus; a long text is shortened."""
    words = cell_text(value)
    return _typeset(words) if isinstance(value, (int, float, np.number)) else shorten(words, 16)


def amount(value: float, sign: bool = True) -> str:
    """A computed value, as the printed tables show it, with a true minus: +0.280, −1.00."""
    return _typeset(signed(value) if sign else unsigned(value))


def _typeset(words: str) -> str:
    """A number with a true minus, and an exponent without a leading 0."""
    return words.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e").replace("-", "−")


def sign_colours(values: np.ndarray) -> list[str]:
    """One colour per value, by its sign."""
    return [POSITIVE if value >= 0 else NEGATIVE for value in values]


def dress(drawn: Any, bars: Any) -> None:
    """Hatch the doubtful bars and fade the one that stands for many features."""
    for one, doubted in zip(drawn, bars.doubtful, strict=True):
        if doubted:
            one.set(hatch=HATCH, edgecolor="white", linewidth=0)
    if bars.folded:
        drawn[len(bars.values) - 1 - bars.left_over].set_alpha(0.45)


def whiskers(ax: Axes, ends: np.ndarray, errors: np.ndarray, span: float) -> None:
    """Error bounds at the heads of bars, one a line from the top; those thinner than a line are left out."""
    at = np.arange(len(ends))[::-1]
    seen = np.isfinite(errors) & (errors > 0.004 * span)
    if seen.any():
        ax.errorbar(
            ends[seen], at[seen], xerr=errors[seen], fmt="none", ecolor=INK, elinewidth=1, capsize=2, zorder=3
        )


LENGTH = 0.03  # of half a slope line, as a share of the picture's width


def along_x(data: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Positions along x, and the levels they stand for if the column holds text."""
    try:
        return np.asarray(data, dtype=float), []
    except (TypeError, ValueError):
        levels, codes = np.unique([number(v) for v in data], return_inverse=True)
        return codes.astype(float), list(levels)


def frame(ax: Axes, x: np.ndarray, y: np.ndarray, levels: list[str], *, floor: float | None = None) -> None:
    """Fixed limits, so that the slopes' angles are known before drawing; `floor` is a height to be seen."""
    seen = y if floor is None else np.append(y, floor)
    for values, set_limits in ((x, ax.set_xlim), (seen, ax.set_ylim)):
        span = float(np.ptp(values)) or max(1.0, abs(float(values[0])))
        set_limits(values.min() - 0.06 * span, values.max() + 0.06 * span)
    if levels:
        words = [shorten(level, 14) for level in levels]
        crowded = len(words) * (max(map(len, words)) + 1) > letters(ax, 0.85)
        turned = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        ax.set_xticks(range(len(levels)), words, **turned)
        literal(ax.get_xticklabels())
    ax.grid(axis="y", color=FAINT, lw=0.6)
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

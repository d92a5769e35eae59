"""One explained row as bars in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation

HALF = 18  # characters a bar may take on either side of its axis
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STYLES = {"stable": "green", "unstable": "yellow", "undefined": "red"}


def draw(explanation: Explanation, row: int, top: int, console: Console | None = None) -> None:
    """Draw the first row of an explanation, named `row`, one picture per output."""
    console = console or Console()
    name, scale = explanation.attribution, explanation.scale
    base = np.broadcast_to(explanation.arrays["base_values"], explanation.arrays["predictions"].shape)[0]
    for o, output in enumerate(explanation.output_names):
        what = table.quantity(scale, str(output))
        title = Text.assemble((f"row {row}", "bold"), f"  {what}  ")
        title.append(f"f(x) = {explanation.arrays['predictions'][0, o]:.6g}", style="bold")
        title.append(f", mean {base[o]:.6g}")
        console.print(title, soft_wrap=True)
        question = f"{table.ATTRIBUTIONS[name].question} " if name in table.ATTRIBUTIONS else ""
        console.print(Text(f"{question}{name}: {table.axis_words(name, what, scale)}", "dim"))
        console.print(_bars(explanation, explanation.arrays["values"][0, :, o], o, top, console.width))
    console.print(_stability(explanation))


def _stability(explanation: Explanation) -> Text:
    """How far to trust the values, in a line."""
    arrays = explanation.arrays
    stability, reason = str(arrays["stability"][0]), str(arrays["reason"][0])
    relative_change = arrays.get("relative_change", np.full((1, 1), np.nan))[0]
    known = (
        f", relative change {np.nanmax(relative_change):.1%}" if np.isfinite(relative_change).any() else ""
    )
    return Text(stability + known + (f": {reason}" if reason else ""), style=_STYLES.get(stability, ""))


def _bars(explanation: Explanation, values: np.ndarray, output: int, top: int, width: int) -> Table:
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    error, signed = explanation.arrays.get("error"), table.signed(explanation.attribution)
    sign, units = "+" if signed else "", explanation.units
    lines = []
    for j in order[:top]:
        bound = float(error[0, j, output]) if error is not None else np.nan
        name, cell = explanation.feature_names[j], _cell(explanation.arrays["data"][0, j])
        words = f"± {bound:.1e}" if np.isfinite(bound) and bound else ""
        words += f"  {units[j]}" if len(set(units)) > 1 else ""  # numbers and levels side by side
        lines.append((_cut(name), _cut(cell), float(values[j]), f"{values[j]:{sign}.4g}", words.strip()))
    if len(order) > top:
        adds_up = table.adds_up(explanation.attribution)  # what does not add up has no sum
        rest = f"{np.nansum(values[order[top:]]):+.4g}" if adds_up else ""
        lines.append((f"{len(order) - top} others", "", np.nan, rest, ""))
    taken = sum(max(len(line[k]) for line in lines) + 2 for k in (0, 1, 3, 4))
    half = int(np.clip((width - taken - 1) // 2, 4, HALF))
    longest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 0.0
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "right", "right"):
        grid.add_column(justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for name, cell, value, number, words in lines:
        bar = _bar(value, longest, half, signed)
        grid.add_row(Text(name), Text(cell, "dim"), bar, number, Text(words, "dim"))
    return grid


def _bar(value: float, longest: float, half: int, signed: bool) -> Text:
    """A bar to the right of the axis for a positive value, to the left for a negative one.

    Sizes without a sign have one colour and the whole width.
    """
    if not signed:
        length = 2 * half
        full, part = divmod(round(np.nan_to_num(value) / (longest or 1.0) * length * 8), 8)
        return Text.assemble("│", (("█" * full + (_EIGHTHS[part] if part else "")).ljust(length), "cyan"))
    if not np.isfinite(value) or longest == 0:
        return Text(" " * half + "│" + " " * half)
    full, part = divmod(round(abs(value) / longest * half * 8), 8)
    if value >= 0:
        bar = "█" * full + (_EIGHTHS[part] if part else "")
        return Text.assemble(" " * half, "│", (bar.ljust(half), "red"))
    # blocks of eighths only grow rightwards: round the tip
    bar = "█" * (full + (part >= 4))
    return Text.assemble((bar.rjust(half), "blue"), "│", " " * half)


def _cut(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)

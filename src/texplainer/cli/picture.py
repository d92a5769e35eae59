"""One explained row as bars in the terminal."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.text import RowTable, row_tables

HALF = 18  # characters a bar may take on either side of its axis
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STYLES = {"stable": "green", "unstable": "yellow", "undefined": "red"}


def draw(explanation: Explanation, row: int, top: int, console: Console | None = None) -> None:
    """Draw the first row of an explanation, named `row`: bars of its contributions, and its slopes beside."""
    console = console or Console()
    label = f"row {row} ({explanation.index[0]})" if "index" in explanation.arrays else f"row {row}"
    for one in row_tables(explanation):
        title = Text.assemble((label, "bold"), f"  {one.prediction}")
        console.print(title, soft_wrap=True)
        console.print(_bars(one, top, console.width))
        for note in one.notes():
            style = next((style for word, style in _STYLES.items() if f": {word}" in note), "dim")
            console.print(Text(note, style=style), soft_wrap=True)


def _bars(row: RowTable, top: int, width: int) -> Table:
    first = row.columns[0]
    lines, taken = row.lines(top), width
    for most in range(24, 7, -1):  # names and values give way to the bars
        lines = [[_cut(line[0], most), _cut(line[1], most), *line[2:]] for line in lines]
        taken = sum(max(len(line[k]) for line in lines) + 2 for k in range(len(lines[0])))
        if taken + 2 * 4 + 1 <= width:
            break
    half = int(np.clip((width - taken - 1) // 2, 2, HALF))
    longest = np.nanmax(np.abs(first.values)) if np.isfinite(first.values).any() else 0.0
    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", *["right"] * len(row.columns)):
        grid.add_column(justify=justify, no_wrap=True)  # type: ignore[arg-type]
    head, *rest = lines
    grid.add_row(*(Text(cell, "dim") for cell in (*head[:2], "", *head[2:])))
    for line, j in zip_longest(rest, row.order[:top]):  # the last line may be the sum of the others
        bar = _bar(np.nan if j is None else float(first.values[j]), longest, half, first.signed)
        grid.add_row(Text(line[0]), Text(line[1], "dim"), bar, *line[2:])
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


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

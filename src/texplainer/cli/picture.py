"""One explained row as bars in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from texplainer.explanation import Explanation

HALF = 18  # characters a bar may take on either side of its axis
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STYLES = {"stable": "green", "fragile": "yellow", "undefined": "red"}


def draw(explanation: Explanation, row: int, top: int, console: Console | None = None) -> None:
    """Draw the first row of an explanation, named `row`, one picture per output."""
    console = console or Console()
    values = explanation.arrays["values"][0]  # (features, outputs)
    verdict, reason = str(explanation.arrays["verdict"][0]), str(explanation.arrays["reason"][0])
    base = np.broadcast_to(explanation.arrays["base_values"], explanation.arrays["predictions"].shape)[0]
    for o, output in enumerate(explanation.output_names):
        title = Text.assemble((f"row {row}", "bold"), f"  output {output} on the {explanation.scale} scale  ")
        title.append(f"f(x) = {explanation.arrays['predictions'][0, o]:.6g}", style="bold")
        title.append(f", mean {base[o]:.6g}, {explanation.attribution}")
        console.print(title, soft_wrap=True)
        console.print(_bars(explanation, values[:, o], o, top, console.width))
    console.print(Text(verdict + (f": {reason}" if reason else ""), style=_STYLES.get(verdict, "")))


def _bars(explanation: Explanation, values: np.ndarray, output: int, top: int, width: int) -> Table:
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    error = explanation.arrays.get("error")
    lines = []
    for j in order[:top]:
        bound = float(error[0, j, output]) if error is not None else np.nan
        name, cell = explanation.feature_names[j], _cell(explanation.arrays["data"][0, j])
        words = f"± {bound:.1e}" if np.isfinite(bound) and bound else ""
        lines.append((_cut(name), _cut(cell), float(values[j]), f"{values[j]:+.4g}", words))
    if len(order) > top:
        rest = float(np.nansum(values[order[top:]]))
        lines.append((f"{len(order) - top} others", "", np.nan, f"{rest:+.4g}", ""))
    taken = sum(max(len(line[k]) for line in lines) + 2 for k in (0, 1, 3, 4))
    half = int(np.clip((width - taken - 1) // 2, 4, HALF))
    longest = np.nanmax(np.abs(values)) if np.isfinite(values).any() else 0.0
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for name, cell, value, number, words in lines:
        table.add_row(Text(name), Text(cell, "dim"), _bar(value, longest, half), number, Text(words, "dim"))
    return table


def _bar(value: float, longest: float, half: int) -> Text:
    """A bar to the right of the axis for a positive value, to the left for a negative one."""
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

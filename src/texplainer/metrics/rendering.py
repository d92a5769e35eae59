"""An Evaluation as a table: the best in bold, controls below a line, what is missing explained.

Numbers follow the paper: scientific above 1e5, zero below 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.types import Array

if TYPE_CHECKING:
    from texplainer.metrics.evaluation import Evaluation

WORTHLESS = (
    "Below the line: controls. They do not use the model. A constant explanation is perfectly stable but "
    "useless: read stability together with faithfulness."
)
MISSING = "–"
WIDEST = 9  # columns a block
TableLine = list[tuple[str, bool]]  # (text, whether it is the best)


@dataclass(frozen=True)
class TableBlock:
    """The columns of one family, with the explainers above the line and the controls below."""

    heads: list[str]
    ranked: list[TableLine]
    controls: list[TableLine]


def render(evaluation: Evaluation, columns: list[int] | None, style: str) -> Any:
    """Render in one of `STYLES`: a block of columns per family of metrics, one below the other."""
    if style not in STYLES:
        raise InputError(f"style={style!r} is unknown; expected one of {', '.join(STYLES)}.")
    chosen = list(range(len(evaluation.columns))) if columns is None else columns
    blocks, numbers = [], (evaluation.summary(), evaluation.best())
    for family in dict.fromkeys(evaluation.columns[j].family for j in chosen):
        own = [j for j in chosen if evaluation.columns[j].family == family]
        blocks += [_block(evaluation, own[i : i + WIDEST], *numbers) for i in range(0, len(own), WIDEST)]
    return STYLES[style](blocks, footnotes(evaluation))


def _block(evaluation: Evaluation, chosen: list[int], summary: Array, best: NDArray[np.bool_]) -> TableBlock:
    ranked, controls = [], []
    for i, name in enumerate(evaluation.explainers):
        cells = [(printed_number(summary[i, j]), bool(best[i, j])) for j in chosen]
        line = [(name, False), *cells, (printed_number(evaluation.seconds[i]), False)]
        (controls if name in evaluation.controls else ranked).append(line)
    family = evaluation.columns[chosen[0]].family
    return TableBlock([family, *(_head(evaluation, j) for j in chosen), "seconds"], ranked, controls)


def _head(evaluation: Evaluation, j: int) -> str:
    column = evaluation.columns[j]
    arrow = "↓" if column.better == "low" else "↑"
    return f"{column.label} {column.part}".strip() + f" {arrow}"


def printed_number(value: float | None) -> str:
    """Write a number as the paper does."""
    if value is None or not np.isfinite(value):
        return MISSING
    size = abs(value)
    if size < 1e-10:
        return "0"
    if size >= 1e5 or size < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def footnotes(evaluation: Evaluation) -> list[str]:
    """List notes on controls, missing neighbours, skipped explainers and undefined rows."""
    notes = [WORTHLESS] if evaluation.controls else []
    wanted = evaluation.settings.get("neighbours", 0)
    short = int(np.sum(evaluation.neighbours < wanted))
    if short:
        none = int(np.sum(evaluation.neighbours == 0))
        notes.append(
            f"{short} rows found fewer than {wanted} neighbours of their class, {none} of them none."
        )
    return [*notes, *(f"{who}: {why}" for who, why in evaluation.notes.items())]


def _plain(blocks: list[TableBlock], notes: list[str]) -> str:
    return "\n\n".join([*map(_plain_block, blocks), "\n".join(["* best", *notes])])


def _plain_block(block: TableBlock) -> str:
    star = [[f"{text}*" if bold else text for text, bold in line] for line in block.ranked]
    below = [[text for text, _ in line] for line in block.controls]
    widths = [max(len(row[j]) for row in [block.heads, *star, *below]) for j in range(len(block.heads))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    foot = [rule, *map(line, below)] if below else []
    return "\n".join([line(block.heads), rule, *map(line, star), *foot])


def _markdown(blocks: list[TableBlock], notes: list[str]) -> str:
    return "\n\n".join([*map(_markdown_block, blocks), "\n".join(f"- {note}" for note in notes)]).rstrip()


def _markdown_block(block: TableBlock) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    bold = [[f"**{text}**" if best else text for text, best in one] for one in block.ranked]
    below = [[f"*{one[0][0]}*", *(text for text, _ in one[1:])] for one in block.controls]
    rule = [line([MISSING * 3] * len(block.heads))] if below else []
    align = "|---|" + "---:|" * (len(block.heads) - 1)
    return "\n".join([line(block.heads), align, *map(line, bold), *rule, *map(line, below)])


def _rich(blocks: list[TableBlock], notes: list[str]) -> Any:
    from rich.console import Group
    from rich.text import Text

    return Group(*map(_rich_block, blocks), *(Text(note, style="dim") for note in notes))


def _rich_block(block: TableBlock) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for j, head in enumerate(block.heads):
        table.add_column(head, justify="left" if j == 0 else "right")
    for place, line in enumerate(block.ranked):
        cells = [f"[bold]{escape(text)}[/bold]" if bold else escape(text) for text, bold in line]
        table.add_row(*cells, end_section=place == len(block.ranked) - 1)
    for line in block.controls:
        table.add_row(*(escape(text) for text, _ in line), style="dim")
    return table


STYLES: dict[str, Callable[[list[TableBlock], list[str]], Any]] = {
    "plain": _plain,
    "markdown": _markdown,
    "rich": _rich,
}

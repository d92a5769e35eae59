"""Tables of results with the paper's figures beside ours, cell by cell.

A `Grid` is a table before it is drawn: named columns, one line per explainer, our number and the paper's in
each cell. Markdown and HTML are two ways to write the same grid.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from .plan import CONTROLS, EXPERIMENTS, Experiment
from .results import Result

#: our line -> the line of the paper's tables it stands beside
PAPER_NAMES = {"T-Explainer (paper)": "T-Explainer"}
FOLDS: dict[str, Callable[..., Any]] = {"max": np.nanmax, "mean": np.nanmean, "median": np.nanmedian}


@dataclass(frozen=True)
class Column:
    """A column: which scores it averages, how rows are folded, which way is better, the paper's column."""

    label: str
    scores: tuple[str, ...]
    fold: Literal["max", "mean", "median"]
    better: Literal["low", "high"]
    paper: str | None = None


@dataclass(frozen=True)
class Line:
    """One explainer's cells: our numbers and the paper's (None where the paper has none)."""

    explainer: str
    ours: tuple[float, ...]
    paper: tuple[float | None, ...]


@dataclass(frozen=True)
class Grid:
    """A table, not yet drawn."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    def best(self, place: int) -> float:
        """The best of our numbers in a column; controls do not compete."""
        numbers = [line.ours[place] for line in self.lines if line.explainer not in CONTROLS]
        known = [number for number in numbers if not math.isnan(number)]
        if not known:
            return math.nan
        return min(known) if self.columns[place].better == "low" else max(known)


def stability_columns() -> tuple[Column, ...]:
    """The paper's five columns, and the ones they must be read beside."""
    return (
        Column("RIS max", ("ris/max",), "max", "low", "RIS max"),
        Column("RIS mean", ("ris/mean",), "mean", "low", "RIS mean"),
        Column("ROS max", ("ros/max",), "max", "low", "ROS max"),
        Column("ROS mean", ("ros/mean",), "mean", "low", "ROS mean"),
        Column("RES max", ("res/max",), "max", "low", "RES max"),
        Column("RIS* median", ("ris_norm/median",), "median", "low"),
        Column("ROS* median", ("ros_norm/median",), "median", "low"),
    )


def gap_columns(k: Sequence[int], metric: str = "pgi", paper: bool = False) -> tuple[Column, ...]:
    """One column per number of removed (or kept) features."""
    return tuple(
        Column(f"Top {one}", (f"{metric}/{one}",), "mean", "high", f"PGI@{one}" if paper else None)
        for one in k
    )


def all_gaps(k: Sequence[int]) -> tuple[str, ...]:
    """Name the prediction gaps of every k and every mask: one number to rank faithfulness by."""
    return tuple(f"{metric}/{one}" for metric in ("pgi", "pgi_mean", "pgi_marginal") for one in k)


def faithfulness_columns(k: Sequence[int]) -> tuple[Column, ...]:
    """Faithfulness beyond the paper's table."""
    return (
        *gap_columns(k),
        Column("PGI, all masks", all_gaps(k), "mean", "high"),
        Column("PGU", tuple(f"pgu/{one}" for one in k), "mean", "low"),
        Column("Infidelity", ("infidelity",), "mean", "low"),
        Column("Infidelity (background)", ("infidelity_background",), "mean", "low"),
        Column("LAP", ("lap/mean",), "mean", "high"),
    )


def beside_columns(k: Sequence[int]) -> tuple[Column, ...]:
    """Faithfulness in a stability table: a constant explainer is stable and useless."""
    return (
        Column("PGI", tuple(f"pgi/{one}" for one in k), "mean", "high"),
        Column("Infidelity", ("infidelity",), "mean", "low"),
    )


def grids(result: Result) -> list[Grid]:
    """Lay out the tables of one run."""
    experiment = experiment_of(result)
    if experiment.kind == "stability":
        return [grid(result, experiment.title, (*stability_columns(), *beside_columns(experiment.k)))]
    kept = f"{experiment.title}: PGI as the paper's tables seem to compute it (convention `kept`)"
    return [
        grid(result, experiment.title, faithfulness_columns(experiment.k)),
        grid(result, kept, gap_columns(experiment.k, "pgi_kept", paper=True)),
    ]


def grid(result: Result, title: str, columns: Sequence[Column]) -> Grid:
    """Fill a grid from a result and the paper's table of the same experiment."""
    names = list(dict.fromkeys(explainer for explainer, _ in result.scores))
    printed = paper_table(experiment_of(result))
    lines = []
    for name in names:
        theirs = printed.get(PAPER_NAMES.get(name, name), {})
        ours = tuple(fold(result, name, column) for column in columns)
        lines.append(Line(name, ours, tuple(theirs.get(c.paper) if c.paper else None for c in columns)))
    return Grid(title, tuple(columns), tuple(lines))


def fold(result: Result, explainer: str, column: Column) -> float:
    """Fold an explainer's per-row scores into one number; NaN if every row is undefined."""
    parts = [result.scores[explainer, s] for s in column.scores if (explainer, s) in result.scores]
    if not parts or np.isnan(np.concatenate(parts)).all():
        return math.nan
    return float(np.mean([FOLDS[column.fold](part) for part in parts if not np.isnan(part).all()]))


@cache
def paper_figures() -> dict[str, Any]:
    """The numbers the paper prints, by table."""
    return json.loads(files("texplainer.benchmark").joinpath("paper_figures.json").read_text())


def paper_table(experiment: Experiment) -> Mapping[str, Mapping[str, float]]:
    """The paper's table as explainer -> column -> number; empty where the paper has none."""
    for tables in paper_figures().values():
        if experiment.paper in tables:
            table = tables[experiment.paper]
            return {
                name: dict(zip(table["columns"], row, strict=True)) for name, row in table["rows"].items()
            }
    return {}


def experiment_of(result: Result) -> Experiment:
    """The experiment a result belongs to."""
    return EXPERIMENTS[result.configuration["experiment"]["name"]]


def number(value: float | None) -> str:
    """Write a number as the paper does: large ones in powers of ten, tiny ones as 0."""
    if value is None or math.isnan(value):
        return "–"
    size = abs(value)
    if size < 1e-10:
        return "0"
    if size >= 1e5 or size < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def layout(grid: Grid) -> tuple[list[str], list[list[str]]]:
    """Header and cells as text, `**` around our best; a paper column only where the paper has one."""
    shown = [any(line.paper[i] is not None for line in grid.lines) for i in range(len(grid.columns))]
    header = ["Explainer"]
    for column, printed in zip(grid.columns, shown, strict=True):
        arrow = "↓" if column.better == "low" else "↑"
        header += [f"{column.label} {arrow}", "paper"] if printed else [f"{column.label} {arrow}"]
    body: list[list[str]] = []
    for line in grid.lines:
        cells = [f"*{line.explainer}*" if line.explainer in CONTROLS else line.explainer]
        for i, value in enumerate(line.ours):
            winner = line.explainer not in CONTROLS and value == grid.best(i)
            cells.append(f"**{number(value)}**" if winner else number(value))
            if shown[i]:
                cells.append(number(line.paper[i]))
        body.append(cells)
    return header, body


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, numbers to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body)) + "\n"


def to_html(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Write the same table in HTML; `**bold**` and `*control*` become elements."""

    def cell(text: str, tag: str = "td") -> str:
        for mark, element in (("**", "b"), ("*", "i")):
            if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
                return f"<{tag}><{element}>{html.escape(text.strip('*'))}</{element}></{tag}>"
        return f"<{tag}>{html.escape(text)}</{tag}>"

    head = "".join(cell(text, "th") for text in header)
    rows = "\n".join(f"<tr>{''.join(cell(text) for text in row)}</tr>" for row in body)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n"

"""Tables of results with the paper's figures beside ours, cell by cell.

A `Grid` is a table before it is drawn: named columns, one line per explainer, our number and the paper's in
each cell. Markdown and HTML are two ways to write the same grid.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from experiments.lines import AUTHORS, INDUCED, LINES, question_of
from experiments.paper import EXPERIMENTS
from experiments.plan import CONTROL_LINES, Experiment
from experiments.results import Result
from experiments.statistics import bootstrap_interval
from texplainer.metrics.evaluation import printed_number
from texplainer.metrics.table import ROW_STATISTICS

#: lines whose numbers the paper's are compared with under its authors' convention: exact zeros take no part
ZEROS_SKIPPED = (AUTHORS, INDUCED)


@dataclass(frozen=True)
class GridColumn:
    """A column: which scores it averages, how rows are folded, which way is better, the paper's column.

    `skipped` marks the columns in which exact zeros take no part, the authors' convention.
    """

    label: str
    scores: tuple[str, ...]
    fold: Literal["max", "mean", "median"]
    better: Literal["low", "high"]
    paper: str | None = None
    skipped: bool = False


@dataclass(frozen=True)
class GridLine:
    """One explainer's cells: our numbers, their intervals, and the paper's (None where it has none)."""

    explainer: str
    ours: tuple[float, ...]
    paper: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...] = ()


@dataclass(frozen=True)
class Grid:
    """A table, not yet drawn."""

    title: str
    columns: tuple[GridColumn, ...]
    lines: tuple[GridLine, ...]

    def best(self, place: int) -> float:
        """The best of our numbers in a column; controls do not compete."""
        numbers = [line.ours[place] for line in self.lines if line.explainer not in CONTROL_LINES]
        known = [number for number in numbers if not math.isnan(number)]
        if not known:
            return math.nan
        return min(known) if self.columns[place].better == "low" else max(known)


def stability_columns() -> tuple[GridColumn, ...]:
    """The paper's five columns, those with exact zeros skipped, and the norm-wise ones."""
    return (
        GridColumn("RIS max", ("ris/max",), "max", "low", "RIS max"),
        GridColumn("RIS mean", ("ris/mean",), "mean", "low", "RIS mean"),
        GridColumn("ROS max", ("ros/max",), "max", "low", "ROS max"),
        GridColumn("ROS mean", ("ros/mean",), "mean", "low", "ROS mean"),
        GridColumn("RES max", ("res/max",), "max", "low", "RES max"),
        GridColumn("RIS mean, zeros skipped", ("ris_skipped/mean",), "mean", "low", "RIS mean", True),
        GridColumn("ROS mean, zeros skipped", ("ros_skipped/mean",), "mean", "low", "ROS mean", True),
        GridColumn("RIS* median", ("ris_norm/median",), "median", "low"),
        GridColumn("ROS* median", ("ros_norm/median",), "median", "low"),
    )


def gap_columns(k: Sequence[int], metric: str = "pgi", paper: bool = False) -> tuple[GridColumn, ...]:
    """One column per number of removed (or kept) features."""
    return tuple(
        GridColumn(f"Top {one}", (f"{metric}/{one}",), "mean", "high", f"PGI@{one}" if paper else None)
        for one in k
    )


def mean_gap(k: Sequence[int], metric: str, label: str) -> GridColumn:
    """One mask's prediction gap, averaged over k."""
    better = "low" if metric.startswith("pgu") else "high"
    return GridColumn(label, tuple(f"{metric}/{one}" for one in k), "mean", better)


def faithfulness_columns(k: Sequence[int]) -> tuple[GridColumn, ...]:
    """Faithfulness beyond the paper's table; every mask has its own column."""
    return (
        *gap_columns(k),
        mean_gap(k, "pgi", "PGI zero"),
        mean_gap(k, "pgi_mean", "PGI mean"),
        mean_gap(k, "pgi_marginal", "PGI marginal"),
        mean_gap(k, "pgu", "PGU"),
        GridColumn("PGU (OpenXAI)", ("pgu_openxai",), "mean", "low"),
        GridColumn("Infidelity", ("infidelity",), "mean", "low"),
        GridColumn("Infidelity (background)", ("infidelity_background",), "mean", "low"),
        GridColumn("LAP", ("lap/mean",), "mean", "high"),
    )


def beside_columns(k: Sequence[int]) -> tuple[GridColumn, ...]:
    """Faithfulness in a stability table: a constant explainer is stable and useless."""
    return (
        GridColumn("PGI", tuple(f"pgi/{one}" for one in k), "mean", "high"),
        GridColumn("Infidelity", ("infidelity",), "mean", "low"),
    )


def grids(result: Result) -> list[Grid]:
    """Lay out the tables of one run."""
    experiment = experiment_of(result)
    if experiment.kind in ("stability", "ablation"):
        return [fill_grid(result, experiment.title, (*stability_columns(), *beside_columns(experiment.k)))]
    kept = f"{experiment.title}: PGI as the paper's tables seem to compute it (convention `kept`)"
    return [
        fill_grid(result, experiment.title, faithfulness_columns(experiment.k)),
        fill_grid(result, kept, gap_columns(experiment.k, "pgi_kept", paper=True)),
    ]


def fill_grid(result: Result, title: str, columns: Sequence[GridColumn]) -> Grid:
    """Fill a grid from a result and the paper's table of the same experiment; empty columns go."""
    names = list(dict.fromkeys(explainer for explainer, _ in result.scores))
    measured = {score for _, score in result.scores}
    columns = [column for column in columns if measured & set(column.scores)]
    printed = paper_table(experiment_of(result))
    lines = []
    for name in names:
        theirs = printed.get(LINES[name].paper, {}) if name in LINES else {}
        ours = tuple(summarise_rows(result, name, column) for column in columns)
        beside = [
            theirs.get(c.paper) if c.paper and c.skipped == (name in ZEROS_SKIPPED) else None for c in columns
        ]
        intervals = tuple(interval_of(result, name, column) for column in columns)
        lines.append(GridLine(name, ours, tuple(beside), intervals))
    return Grid(title, tuple(columns), tuple(lines))


def interval_of(result: Result, explainer: str, column: GridColumn) -> tuple[float, float] | None:
    """Bootstrap interval over rows of a cell; None for a maximum, of which the bootstrap knows nothing."""
    parts = [result.scores[explainer, s] for s in column.scores if (explainer, s) in result.scores]
    if column.fold == "max" or not parts:
        return None
    rows = np.mean(parts, axis=0)  # a row's mean over k
    return bootstrap_interval(rows, ROW_STATISTICS[column.fold])


def summarise_rows(result: Result, explainer: str, column: GridColumn) -> float:
    """Fold an explainer's per-row scores into one number; NaN if every row is undefined."""
    parts = [result.scores[explainer, s] for s in column.scores if (explainer, s) in result.scores]
    known = [part[~np.isnan(part)] for part in parts]
    folded = [ROW_STATISTICS[column.fold](part) for part in known if len(part)]
    return float(np.mean(folded)) if folded else math.nan


@cache
def paper_figures() -> dict[str, Any]:
    """The numbers the paper prints, by table."""
    return json.loads(files("experiments").joinpath("paper_figures.json").read_text())


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
    """The paper's experiment a result belongs to."""
    return EXPERIMENTS[result.configuration["experiment"]["name"]]


def grid_cells(grid: Grid) -> tuple[list[str], list[list[str]]]:
    """Header and cells as text, `**` around our best; a paper column only where the paper has one."""
    shown = [any(line.paper[i] is not None for line in grid.lines) for i in range(len(grid.columns))]
    header = ["Explainer", "answers"]
    for column, printed in zip(grid.columns, shown, strict=True):
        arrow = "↓" if column.better == "low" else "↑"
        header += [f"{column.label} {arrow}", "paper"] if printed else [f"{column.label} {arrow}"]
    body: list[list[str]] = []
    for line in grid.lines:
        control = line.explainer in CONTROL_LINES
        cells = [f"*{line.explainer}*" if control else line.explainer, question_of(line.explainer)]
        for i, value in enumerate(line.ours):
            best = not control and value == grid.best(i)
            cells.append(with_interval(value, line.intervals[i] if line.intervals else None, best))
            if shown[i]:
                cells.append(printed_number(line.paper[i]))
        body.append(cells)
    return header, body


def control_wins(grid: Grid) -> str:
    """Say which controls are as good as the best explainer, and in which columns; empty if none is."""
    found: dict[str, list[str]] = {}
    for place, column in enumerate(grid.columns):
        best, sign = grid.best(place), 1 if column.better == "low" else -1
        for line in grid.lines:
            if line.explainer in CONTROL_LINES and sign * line.ours[place] <= sign * best:
                found.setdefault(line.explainer, []).append(column.label)
    return controls_sentence(found)


def controls_sentence(found: Mapping[str, Sequence[str]]) -> str:
    """Controls and the columns they are best in, in words."""
    if not found:
        return ""
    parts = "; ".join(f"{name} in {', '.join(columns)}" for name, columns in found.items())
    return f"Controls, which know nothing of the model, are as good as the best or better: {parts}."


def with_interval(value: float, interval: tuple[float, float] | None, best: bool = False) -> str:
    """A number, `**` around the best, with its interval."""
    text = f"**{printed_number(value)}**" if best else printed_number(value)
    if interval is None or math.isnan(value) or interval[0] == interval[1]:
        return text
    return f"{text} [{printed_number(interval[0])}, {printed_number(interval[1])}]"

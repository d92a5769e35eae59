"""The figures of the pages: the paper's two redrawn, and two qualities at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.results import Result

#: matplotlib writes the same bytes each time with these
FIXED: Any = {"svg.hashsalt": "texplainer", "svg.fonttype": "none"}
COLOURS = ("#c2410c", "#f59e0b", "#1d4ed8", "#0891b2", "#6d28d9", "#15803d", "#64748b")


def boxplots(repetitions: Sequence[Result], path: Path) -> None:
    """RIS and ROS over the repetitions, maximum and mean over the rows in each, on a logarithmic scale."""
    names = list(dict.fromkeys(explainer for explainer, _ in repetitions[0].scores))
    figure, axes = new_figure(1, 4, (13.0, 3.6))
    panels = [(metric, fold) for metric in ("ris", "ros") for fold in ("max", "mean")]
    for ax, (metric, fold) in zip(axes, panels, strict=True):
        boxes = [repeated(repetitions, name, f"{metric}/{fold}", fold) for name in names]
        drawn = ax.boxplot(boxes, patch_artist=True, widths=0.6, medianprops={"color": "black"})
        for patch, colour in zip(drawn["boxes"], COLOURS, strict=False):
            patch.set_facecolor(colour)
            patch.set_alpha(0.7)
        ax.set_yscale("log")
        ax.set_title(f"{metric.upper()} {fold} (lower is better)", fontsize=9)
        ax.set_xticks(range(1, len(names) + 1), names, rotation=60, ha="right", fontsize=7)
        ax.grid(axis="y", alpha=0.3)
    write_figure(figure, path)


def repeated(repetitions: Sequence[Result], name: str, score: str, fold: str) -> np.ndarray[Any, Any]:
    """One number per repetition: the maximum or the mean over its rows."""
    fold_rows = {"max": np.nanmax, "mean": np.nanmean}[fold]
    return np.array([fold_rows(result.scores[name, score]) for result in repetitions])


def running_time(result: Result, path: Path) -> None:
    """Seconds against the number of explanations, on a logarithmic scale."""
    figure, (ax,) = new_figure(1, 1, (7.6, 4.0))
    tasks = result.record["tasks"]
    for (name, _), colour in zip(result.scores, COLOURS, strict=False):
        seconds = result.scores[name, "seconds"]
        ax.plot(tasks, seconds, marker="o", markersize=3, color=colour)
        ax.annotate(  # beside the line's end: a legend would cover lines
            name, (tasks[-1], float(seconds[-1])), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=8, color=colour, annotation_clip=False,
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_xlabel("explanations")
    ax.set_ylabel("seconds")
    ax.grid(alpha=0.3, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    write_figure(figure, path)


def two_qualities(
    points: Mapping[str, tuple[float, float]], labels: tuple[str, str], path: Path, *, logarithmic: str = ""
) -> None:
    """Every explainer at two numbers; `logarithmic` names the axes that are ("x", "y", "xy")."""
    figure, (ax,) = new_figure(1, 1, (7.2, 4.6))
    for place, (name, (x, y)) in enumerate(points.items()):
        if not (np.isfinite(x) and np.isfinite(y)):
            continue
        ax.plot(x, y, "o", color=COLOURS[place % len(COLOURS)])
        ax.annotate(name, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=7)
    if "x" in logarithmic:
        ax.set_xscale("log")
    if "y" in logarithmic:
        ax.set_yscale("log")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    write_figure(figure, path)


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """A figure of its own, without touching matplotlib's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, columns)))


def write_figure(figure: Any, path: Path) -> None:
    """Write an SVG that is the same each time it is drawn."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(FIXED):
        figure.savefig(path, format="svg", metadata={"Date": None})

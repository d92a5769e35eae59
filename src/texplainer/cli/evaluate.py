"""`texplainer evaluate`: several explainers of one model, measured on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from texplainer.cli import options

OWN = "t-explainer"
PAPER = "t-explainer-paper"


@click.command(
    epilog="""\b
Examples:
  texplainer evaluate iris.skops iris.csv --output 2 --rows 10 --explainers t-explainer,shap
  texplainer evaluate iris.skops iris.csv --output 2 --rows 5 --metrics stability -o scores.npz
"""
)
@click.argument("model")
@click.argument("data")
@click.option(
    "--explainers",
    default=f"{OWN},{PAPER},shap,lime",
    show_default=True,
    help=f"Comma-separated: {OWN}, {PAPER} and the names in texplainer.explainers.",
)
@click.option(
    "--metrics", default="default", show_default=True, help="Comma-separated names, a family, or all."
)
@click.option("--rows", type=click.IntRange(1), default=50, show_default=True, help="Rows, evenly spaced.")
@click.option(
    "--neighbours", type=click.IntRange(1), default=10, show_default=True, help="Neighbours per row."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random draws.")
@click.option(
    "-o", "--out", metavar="FILE", help="Scores: .npz, .csv, .md or .html; the table is always printed."
)
@options.model_options
@options.explainer_options
def command(
    model: str, data: str, explainers: str, metrics: str, rows: int, out: str | None, **arguments: Any
) -> None:
    """Measure how stable and faithful explanations of MODEL are on rows of DATA, side by side."""
    from texplainer.errors import InputError
    from texplainer.files import survey
    from texplainer.metrics import evaluate

    if out is not None and Path(out).suffix not in WRITERS:
        raise InputError(f"{out} has the suffix {Path(out).suffix!r}; expected one of {', '.join(WRITERS)}.")
    if out is not None:
        options.refuse_overwriting(out, data, model, arguments["background"])
    job = options.job_from(model, data, arguments)
    names = [name.strip() for name in explainers.split(",") if name.strip()]
    features = [name for name in job.columns if name in job.background]
    frame = survey.take_rows(job.table, features, survey.sample_rows(job.table, (), rows))
    wanted = [name.strip() for name in metrics.split(",")]
    found = evaluate(
        _build(job, names, options.chosen(arguments)),
        frame,
        metrics=wanted if len(wanted) > 1 else wanted[0],
        neighbours=arguments["neighbours"],
        seed=arguments["seed"],
        background=job.background,
        model=job.explainer.predictor.model,
    )
    _print(found)
    if out is not None:
        WRITERS[Path(out).suffix](found, Path(out))


def _build(job: Any, names: list[str], chosen: dict[str, Any]) -> dict[str, Any]:
    """The explainers by name, all of the same output on the same scale."""
    from texplainer import TExplainer, explainers

    model = job.explainer.predictor.model
    shared = {name: chosen[name] for name in ("output", "scale") if name in chosen}
    built: dict[str, Any] = {}
    for name in names:
        if name == OWN:
            built[name] = job.explainer
        elif name == PAPER:
            paper = {
                "engine": "finite-difference",
                "step": "paper",
                "attribution": "gradient",
                "smoothing": 0,
            }
            built[name] = TExplainer(model, job.background, **{**chosen, **paper})
        else:
            built |= explainers.suite(model, job.background, [name], **shared)
    return built


def _print(found: Any) -> None:
    from rich.console import Console

    console = Console()
    if console.is_terminal:
        console.print(found.table(style="rich"))
    else:
        click.echo(found.table(style="plain"))


def _html(found: Any, path: Path) -> None:
    from texplainer import report

    report.write(found, path)


WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    ".npz": lambda found, path: found.save(path),
    ".csv": lambda found, path: found.to_frame().to_csv(path, index=False),
    ".md": lambda found, path: path.write_text(found.table(style="markdown") + "\n", encoding="utf-8"),
    ".html": _html,
}

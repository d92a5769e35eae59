"""`texplainer serve`: the explorer in the browser."""

from __future__ import annotations

from typing import Any

import click

from texplainer.cli import options

MOST_ROWS = 2000


@click.command(
    epilog="""\b
Example:
  texplainer serve iris.skops iris.csv --no-browser
"""
)
@click.argument("model")
@click.argument("data")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port on this machine [default: a free one]."
)
@click.option("--browser/--no-browser", default=True, help="Open the page in the browser.")
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=MOST_ROWS,
    show_default=True,
    help="Maximal number of rows to choose from.",
)
@options.model_options
@options.explainer_options
def command(model: str, data: str, port: int, browser: bool, rows: int, **arguments: Any) -> None:
    """Explore explanations of MODEL on rows of DATA in the browser; stop with Ctrl-C."""
    from texplainer import app
    from texplainer.files import survey

    job = options.job_from(model, data, arguments)
    app.serve(
        job.explainer.predictor.model,
        survey.take_rows(job.table, job.columns, survey.sample_rows(job.table, (), rows)),
        background=job.background,
        port=port,
        open_browser=browser,
        title=f"{job.facts['model']['name']} on {job.facts['data']['name']}",
        say=lambda text: click.echo(text),
        **options.chosen(arguments),
    )

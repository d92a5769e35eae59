"""`texplainer report`: a saved explanation as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(
    epilog="""\b
Example:
  texplainer report result.parquet -o report.html
"""
)
@click.argument("result", nargs=-1, required=True)
@click.option(
    "-o", "--out", default="report.html", show_default=True, metavar="FILE", help="The page to write."
)
@click.option("--title", default="", help="The page's heading.")
def command(result: tuple[str, ...], out: str, title: str) -> None:
    """Write saved explanations or evaluations as one self-contained HTML page."""
    from texplainer import report
    from texplainer.cli import options
    from texplainer.errors import InputError

    options.refuse_overwriting(out, *result)
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{out} has the suffix {Path(out).suffix!r}; expected .html.")
    parts = {Path(path).name: _load(path) for path in result}
    written = report.write(parts if len(parts) > 1 else next(iter(parts.values())), out, title=title)
    click.echo(f"{written}", err=True)


def _load(path: str) -> Any:
    """An explanation; or an evaluation, which is an npz archive too."""
    from texplainer.errors import InputError
    from texplainer.files import results

    try:
        return results.load_explanation(path)
    except InputError as refusal:
        from texplainer.metrics import Evaluation

        if Path(path).suffix != ".npz":
            raise
        try:
            return Evaluation.load(path)
        except InputError:
            raise refusal from None

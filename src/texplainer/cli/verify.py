"""`texplainer verify`: recompute a saved result and say whether it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from texplainer.cli import options

RECORDED = ("drop", "separator", "decimal")


@click.command(
    epilog="""\b
Examples:
  texplainer verify result.parquet --model iris.skops --data iris.csv
  texplainer verify result.parquet --model iris.skops --data iris.csv --rows 100 -o rows.csv
  texplainer verify shards/ --model iris.skops --data iris.csv
"""
)
@click.argument("result")
@click.option("--model", required=True, help="The model file, or package.module:function.")
@click.option("--data", required=True, help="The table that was explained.")
@options.model_options
@click.option(
    "--rows", type=click.IntRange(1), default=None, help="Recompute at least this many [default: all]."
)
@click.option(
    "--tolerance",
    type=float,
    default=1e-6,
    show_default=True,
    help="Tolerance relative to the row's largest value.",
)
@click.option(
    "--public-key", metavar="KEY", default=None, help="Public key of the expected signature (Ed25519, PEM)."
)
@click.option(
    "--show", type=click.IntRange(0), default=10, show_default=True, help="Number of differing rows to list."
)
@click.option("-o", "--out", metavar="FILE", help="Write the outcome of every row as CSV.")
def command(result: str, model: str, data: str, show: int, out: str | None, **arguments: Any) -> int:
    """Recompute RESULT, a file or a folder of shards, row by row: identical, within tolerance or different.

    The model, the data and the background must be the recorded ones. Other library versions are reported, but
    do not fail. The exit code is 1 if the result is different.
    """
    from texplainer.files import models, verify
    from texplainer.support.progress import waiting

    if out is not None:
        options.refuse_overwriting(out, result, data, model, arguments["background"])
    for name in RECORDED:
        if arguments[name]:
            raise click.UsageError(f"--{name} is recorded in the result; omit it.")
    with waiting(f"recomputing {result}"):
        check = _verifier(result)(
            result,
            model,
            data,
            background=arguments["background"],
            consent=models.Consent(arguments["trust"], arguments["allow_pickle"], arguments["module"]),
            rows=arguments["rows"],
            tolerance=arguments["tolerance"],
            public_key=arguments["public_key"],
        )
    counts = ", ".join(f"{number} {word}" for word, number in check.counts.items())
    click.echo(f"{check.outcome}: {len(check.rows)} of {check.total} rows recomputed: {counts}")
    for failure in check.failures:
        click.echo(f"  failed: {failure}")
    for name, number in check.differing.items():
        click.echo(f"  differs: {name} in {number} rows")
    for note in check.notes:
        click.echo(f"  note: {note}")
    _list_rows(check, show)
    if out is not None:
        _write(check, out)
    return 1 if check.outcome == verify.DIFFERENT else 0


options.hide(command, *RECORDED)


def _verifier(result: str) -> Any:
    """One file, or a folder of shards."""
    if Path(result).is_dir():
        from texplainer.execution.verify_folder import verify_folder

        return verify_folder
    from texplainer.files.verify import verify_result

    return verify_result


def _list_rows(check: Any, show: int) -> None:
    odd = [i for i, word in enumerate(check.outcomes) if word != "identical"]
    odd.sort(key=lambda i: check.outcomes[i] != "different")  # the different ones first, in their order
    for i in odd[:show]:
        click.echo(f"  row {check.rows[i]}: {check.outcomes[i]}, by at most {check.gaps[i]:.3g}")
    if len(odd) > show:
        click.echo(f"  ... and {len(odd) - show} more; -o FILE writes all")


def _write(check: Any, out: str) -> None:
    with click.open_file(out, "w") as file:
        file.write("row,outcome,difference\n")
        for row, word, gap in zip(check.rows, check.outcomes, check.gaps, strict=True):
            file.write(f"{row},{word},{float(gap)!r}\n")

"""`texplainer reasons`: a model file and a table in, the reasons of each prediction out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from texplainer.cli import options

FORMATS = (".csv", ".jsonl", ".parquet")


@click.command(
    epilog="""\b
Examples:
  texplainer reasons iris.skops iris.csv --row 17 --output 2
  texplainer reasons iris.skops iris.csv --output 2 -o reasons.csv
"""
)
@click.argument("model")
@click.argument("data")
@click.option(
    "-k",
    "most",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Maximal number of reasons per row.",
)
@click.option(
    "--toward",
    default=None,
    help="The adverse direction: up [default], down, or the class the decision went to.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="COLUMN",
    help="Column that is never given as a reason; its contribution is still reported. May be repeated.",
)
@click.option(
    "--phrases", metavar="FILE", help="Phrases by feature: a JSON object, or a CSV file of two columns."
)
@click.option(
    "--group",
    multiple=True,
    metavar="NAME=COLUMN,COLUMN",
    help="Columns that are given as one reason. May be repeated.",
)
@click.option(
    "--reference", metavar="FILE", help="Table whose typical values are shown [default: the background]."
)
@click.option(
    "--row",
    "rows",
    type=click.IntRange(0),
    multiple=True,
    help="A row to print, counted from 0. May be repeated.",
)
@click.option("-o", "--out", metavar="OUT", help="Write the reasons of all rows: .csv, .jsonl or .parquet.")
@options.model_options
@options.explainer_options
def command(model: str, data: str, rows: tuple[int, ...], out: str | None, **arguments: Any) -> int:
    """Print why the model in the file MODEL predicts what it does for rows of the table DATA.

    The reasons of a row are the features with the largest contributions (attribution shapley) in the adverse
    direction. Without -o the first row is printed, or those of --row.
    """
    import numpy as np

    from texplainer.errors import InputError
    from texplainer.files import survey

    if arguments["attribution"] not in ("auto", "shapley"):
        raise click.UsageError("reasons are contributions; leave --attribution out.")
    if out is not None and rows:
        raise click.UsageError("--row prints rows and -o writes all of them; leave one of them out.")
    if out is not None and Path(out).suffix not in FORMATS:
        raise click.UsageError(f"-o {out}: expected a file named {', '.join(FORMATS)}.")
    words = _words(arguments)
    job = options.job_from(model, data, arguments | {"attribution": "shapley"})
    if out is not None:
        options.refuse_overwriting(out, data, model, arguments["background"], arguments["reference"])
        return _write(job, out, words)
    for row in rows or (0,):
        if row >= job.table.rows:
            raise InputError(f"--row {row}: {data} has {job.table.rows} rows, counted from 0.")
    picks = sorted(set(rows or (0,)))
    explanation = _explained(job, survey.take_rows(job.table, job.columns, picks), picks)
    if "id_column" in job.facts["configuration"]:
        named = [f"{i} ({label})" for i, label in zip(picks, explanation.index, strict=True)]
        explanation = explanation.with_index(np.array(named, dtype=object))
    click.echo(repr(explanation.reasons(**words)))
    return 0


options.hide(command, "attribution")


def _explained(job: Any, frame: Any, labels: list[int]) -> Any:
    """The explanation of some rows, labelled by the identifier column, or by their positions in the file."""
    import numpy as np

    found = job.explainer(frame, progress=False)
    return found if "id_column" in job.facts["configuration"] else found.with_index(np.array(labels))


def _write(job: Any, out: str, words: dict[str, Any]) -> int:
    """Explain the table piece by piece and write one line a reason."""
    import pandas as pd

    from texplainer.files import survey

    tables, start = [], 0
    for frame in survey.pieces(job.table, job.columns, job.block):
        labels = list(range(start, start + len(frame)))
        tables.append(_explained(job, frame, labels).reasons(**words).to_frame())
        start += len(frame)
    whole = pd.concat(tables, ignore_index=True)
    if Path(out).suffix == ".csv":
        whole.to_csv(out, index=False)
    elif Path(out).suffix == ".jsonl":
        whole.to_json(out, orient="records", lines=True, force_ascii=False)
    else:
        whole.assign(value=whole["value"].map(str)).to_parquet(out, index=False)
    click.echo(f"{out}: {len(whole)} reasons of {start} rows", err=True)
    return 0


def _words(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Explanation.reasons`."""
    group = {}
    for given in arguments.pop("group"):
        name, equals, columns = given.partition("=")
        if not equals or not name or not columns:
            raise click.UsageError(f"--group {given!r}: expected NAME=COLUMN,COLUMN.")
        group[name] = columns.split(",")
    reference = arguments["reference"]
    return {
        "k": arguments.pop("most"),
        "toward": arguments.pop("toward"),
        "exclude": arguments.pop("exclude"),
        "phrases": _phrases(arguments.pop("phrases")),
        "group": group,
        "reference": None if reference is None else _table(reference, arguments),
    }


def _table(path: str, arguments: dict[str, Any]) -> Any:
    from texplainer.files import survey

    table = survey.survey(path, options.dialect_of(arguments))
    return survey.take_rows(table, survey.columns_for(table, None), range(table.rows))


def _phrases(path: str | None) -> dict[str, str]:
    """A table of phrases from a file."""
    from texplainer.errors import InputError

    if path is None:
        return {}
    text = Path(path).read_text(encoding="utf-8")
    if path.lower().endswith(".json"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InputError(f"--phrases {path} is not JSON ({error}).") from None
        if not isinstance(found, dict):
            raise InputError(
                f"--phrases {path} holds a {type(found).__name__}; expected an object from features to phrases."
            )
        return found
    import csv

    lines = [line for line in csv.reader(text.splitlines()) if line]
    wrong = next((line for line in lines if len(line) != 2), None)
    if wrong is not None:
        raise InputError(
            f"--phrases {path} has the line {wrong!r}; expected two columns, feature and phrase."
        )
    return dict(line for line in lines if line != ["feature", "phrase"])

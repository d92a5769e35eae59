"""The options several commands share, named as TExplainer's arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.gradients.choose import ENGINES


class Number(click.ParamType):
    """One of some words, or a number."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.name = "|".join([*words, "number"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Turn the text into a word or a float."""
        if value in self.words or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither {' nor '.join(self.words)} nor a number", param, ctx)


class Attributions(click.Choice):
    """The name of an attribution, or several separated by commas."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check every name."""
        return ",".join(super(Attributions, self).convert(name, param, ctx) for name in str(value).split(","))


def _output(_: Any, __: Any, values: tuple[str, ...]) -> Any:
    """A label may be a number; several make a list."""
    parsed: list[Any] = [int(v) if v.lstrip("-").isdigit() else v for v in values]
    return None if not parsed else parsed[0] if len(parsed) == 1 else parsed


def _categorical(_: Any, __: Any, values: tuple[str, ...]) -> Any:
    """NAME for a column of categories, NAME=a,b,c for a group of one-hot columns, NAME=ordinal ..."""
    if not any("=" in value for value in values):
        return list(values) or None
    out: dict[str, Any] = {}
    for value in values:
        name, _equals, rest = value.partition("=")
        columns = rest.split(",")
        out[name] = columns if len(columns) > 1 else rest or "nominal"
    return out


def _separator(ctx: Any, param: Any, value: str | None) -> str | None:
    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and len(value) != 1:
        raise click.BadParameter(f"{value!r} is not a single character", ctx, param)
    return value


def _bounds(ctx: Any, param: Any, value: str) -> Any:
    if value in ("background", "none"):
        return None if value == "none" else value
    try:
        low, high = (float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not background, none or LOW,HIGH", ctx, param) from None
    return (low, high)


_EXPLAINER = (
    click.option(
        "--output", multiple=True, callback=_output, help="Class, output name or index; predicted; all."
    ),
    click.option(
        "--scale",
        type=click.Choice(["auto", "probability", "log-odds", "raw"]),
        default="auto",
        help="Unit of the prediction. auto: log-odds if the model computes them, otherwise probability or value.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["auto", *ENGINES]),
        default="auto",
        help="How the gradient is computed.",
    ),
    click.option(
        "--step", type=Number("auto", "paper"), default="auto", help="Displacement h of finite differences."
    ),
    click.option("--smoothing", type=float, help="Bandwidth of slopes, in SDs.  [default: 0.25]"),
    click.option(
        "--attribution",
        type=Attributions(["auto", *ATTRIBUTIONS]),
        default="auto",
        help=" ".join(f"{name}: {spec.question}" for name, spec in ATTRIBUTIONS.items()),
    ),
    click.option(
        "--categorical",
        multiple=True,
        callback=_categorical,
        help="NAME of a column with categories, or NAME=COLUMN,COLUMN for one-hot columns; may be repeated.",
    ),
    click.option(
        "--id-column",
        metavar="COLUMN",
        default=None,
        help="Column that labels the rows [default: one the model does not name, such as customer_id].",
    ),
    click.option(
        "--bounds",
        default="background",
        callback=_bounds,
        help="Range of the evaluation points: background, none or LOW,HIGH.",
    ),
    click.option(
        "--batch-rows",
        type=click.IntRange(1),
        default=None,
        help="Maximal number of rows per call of the model.",
    ),
)
_MODEL = (
    click.option("--background", metavar="FILE", help="Table of training rows [default: rows of the data]."),
    click.option(
        "--separator",
        callback=_separator,
        metavar="MARK",
        help="Delimiter of a CSV table, such as ';' or tab.",
    ),
    click.option("--decimal", metavar="MARK", help="Decimal mark of a CSV table, such as ','."),
    click.option(
        "--drop", multiple=True, metavar="COLUMN", help="Column that is not a feature; may be repeated."
    ),
    click.option(
        "--trust", multiple=True, metavar="TYPE", help="Type a skops file may hold; may be repeated."
    ),
    click.option(
        "--module",
        metavar="PACKAGE.MODULE:FUNCTION",
        help="Function that builds the network for .pt weights.",
    ),
    click.option("--allow-pickle", is_flag=True, help="Open a pickle file. This runs any code in it."),
)


def explainer_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add TExplainer's arguments."""
    for option in reversed(_EXPLAINER):
        function = option(function)
    return function


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what loading a model and a background may need."""
    for option in reversed(_MODEL):
        function = option(function)
    return function


def hide(command: click.Command, *names: str) -> None:
    """Leave options out of a command's help that it only refuses."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name in names:
            parameter.hidden = True


def chosen(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments for TExplainer among a command's, without those left alone."""
    from texplainer.files.job import OPTIONS

    defaults = {
        "bounds": "background",
        "output": None,
        "categorical": None,
        "batch_rows": None,
        "id_column": None,
    }
    return {
        name: value
        for name, value in arguments.items()
        if name in OPTIONS and value != defaults.get(name, "auto")
    }


def job_from(model: str, data: str, arguments: dict[str, Any]) -> Any:
    """Prepare what a command's arguments describe, with a plain warning about pickles."""
    from texplainer.files import job as jobs
    from texplainer.files import models
    from texplainer.support.progress import waiting

    if arguments["allow_pickle"] and model.lower().endswith(tuple(models.UNSAFE)):
        click.echo(
            f"texplainer: warning: --allow-pickle: opening {model} runs any code in the file.", err=True
        )
    consent = models.Consent(arguments["trust"], arguments["allow_pickle"], arguments["module"])
    with waiting(f"reading {data}"):
        return jobs.prepare_job(
            model,
            data,
            background=arguments["background"],
            consent=consent,
            drop=arguments["drop"],
            options=chosen(arguments),
            dialect=dialect_of(arguments),
        )


def dialect_of(arguments: dict[str, Any]) -> Any:
    """How a text table is written, as far as the user says."""
    from texplainer.files.tables import Dialect

    separator, decimal = arguments["separator"], arguments["decimal"]
    if separator is not None and separator == decimal:
        raise click.UsageError(f"--separator and --decimal are both {separator!r}; expected two characters.")
    return Dialect(separator, decimal)


def refuse_overwriting(out: str, *inputs: str | None) -> None:
    """Refuse to write where something is read from, or to a path that is empty."""
    from texplainer.errors import InputError

    if not out:
        raise InputError("the path given to -o is empty; expected the name of a file or a folder/.")
    for name in inputs:
        if name is not None and Path(out).exists() and Path(name).exists() and Path(out).samefile(name):
            raise InputError(f"{out} is read by this command; choose another output file.")

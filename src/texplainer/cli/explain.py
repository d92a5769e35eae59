"""`texplainer explain`: a model file and a table in, explanations out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from texplainer.cli import options


@click.command(
    epilog="""\b
Examples:
  texplainer explain iris.skops iris.csv -o result.parquet
  texplainer explain iris.skops iris.csv --row 17 --output 2
  texplainer explain iris.skops iris.csv -o shards/ --on processes --workers 2
"""
)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o", "--out", metavar="OUT", help="Result: .parquet .arrow .feather .npz .csv .jsonl, or a folder/."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["auto", "table"]),
    default="auto",
    help="table shows one row in the terminal [default without -o].",
)
@click.option("--row", type=click.IntRange(0), default=None, help="The row to show, counted from 0.")
@click.option(
    "--top", type=click.IntRange(1), default=20, help="Number of features to show.", show_default=True
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 1 if a row could not be explained (always, if OUT is a folder).",
)
@click.option("--sign", metavar="KEY", help="Sign the result with an Ed25519 private key (PEM).")
@options.model_options
@options.explainer_options
@click.option(
    "--on", type=str, default=None, help="Backend for a folder of shards: processes, dask, ray, spark."
)
@click.option("--workers", type=click.IntRange(1), default=None, help="Number of workers.")
@click.option("--scheduler", metavar="ADDRESS", default=None, help="Address of a running Dask scheduler.")
@click.option("--memory", default=None, help="Memory per worker, such as 2GB.")
@click.option("--shard-rows", type=click.IntRange(1), default=None, help="Rows per shard.")
@click.option("--restart", is_flag=True, help="Delete the shards of an earlier run.")
def command(
    model: str, data: tuple[str, ...], out: str | None, kind: str, row: int | None, **arguments: Any
) -> int:
    """Explain every row of the table DATA with the model in the file MODEL.

    MODEL is an ONNX, skops, XGBoost (.json, .ubj), LightGBM (.txt), CatBoost (.cbm) or torch.export
    (.pt2) file, torch weights (.pt with --module), or package.module:function, a function from a pandas
    frame to predictions. DATA is a CSV, Parquet, Arrow (Feather) or JSON lines file. Columns the model
    does not name are left out. A result holds the slopes and the Shapley values of every row, or the
    attributions asked for, such as --attribution slope,variation.

    DATA can also be images (files or folders). OUT is then a folder for one result and a picture of each
    image.
    """
    from texplainer.files.picture_files import are_pictures

    if are_pictures(data):
        return explain_pictures(model, data, out, {**arguments, "row": row})
    if len(data) != 1:
        raise click.UsageError(f"{len(data)} files; expected one table, or several images.")
    return _explain_table(model, data[0], out, kind, row, arguments)


def _explain_table(
    model: str, data: str, out: str | None, kind: str, row: int | None, arguments: dict[str, Any]
) -> int:
    """Explain a table as the options ask."""
    if out is None or kind == "table" or row is not None:
        if out is not None:
            raise click.UsageError("--row and --format table show one row; omit -o.")
        return _draw(model, data, row or 0, arguments)
    inputs = (data, model, arguments["background"], arguments["sign"])
    options.refuse_overwriting(out, *inputs)
    options.refuse_overwriting(f"{out}.json", *inputs)
    many = out.endswith("/") or Path(out).is_dir() or arguments["on"] or arguments["scheduler"]
    if not many:
        from texplainer.files import results

        results.result_format(Path(out))  # a wrong suffix is reported before the work
    job = options.job_from(model, data, arguments | {"attribution": _attributions(arguments)})
    return (_run if many else _save)(job, out, arguments)


def _attributions(arguments: dict[str, Any]) -> Any:
    """What a result holds: the attributions asked for; by default one, and the one it is shown beside."""
    from texplainer.attributions.table import attribution_of, shown_beside

    names = arguments["attribution"].split(",")
    if names == ["auto"]:
        own = attribution_of("auto", arguments["step"])
        return [own, shown_beside(own)]
    return names if len(names) > 1 else names[0]


def _save(job: Any, out: str, arguments: dict[str, Any]) -> int:
    """Stream the table through the explainer into one file."""
    from texplainer.files import job as jobs
    from texplainer.files import results
    from texplainer.support.progress import reporting

    counts: dict[str, int] = {}
    first = ""
    writer = results.ResultWriter(out, key=arguments["sign"], **job.facts)
    with writer, reporting(None, 0, job.table.rows) as tell:
        for start, piece in jobs.explain_blocks(job):
            writer.write(piece)
            for stability, number in piece.stability_counts().items():
                counts[stability] = counts.get(stability, 0) + number
            if counts["undefined"] and not first:
                at = int((piece.arrays["stability"] == "undefined").argmax())
                first = f"row {start + at}: {piece.arrays['reason'][at]}"
            tell(start + len(piece), job.table.rows)
    words = ", ".join(f"{number} {stability}" for stability, number in counts.items())
    click.echo(f"{out}: {job.table.rows} rows ({words}), engine {job.explainer.engine.name}", err=True)
    if first:
        click.echo(f"texplainer: warning: {counts['undefined']} rows are undefined; {first}", err=True)
    return 1 if first and arguments["strict"] else 0


def _run(job: Any, out: str, arguments: dict[str, Any]) -> int:
    """Explain into a folder of shards, resumable and on a cluster."""
    from texplainer.execution import run
    from texplainer.execution.manifest import sign_folder
    from texplainer.files import audit

    if arguments["sign"]:
        audit.sign("", Path(arguments["sign"]))  # a wrong key is reported before the work, not after
    report = run(
        job.explainer,
        job.table,
        out,
        on=arguments["scheduler"] or arguments["on"] or "serial",
        workers=arguments["workers"],
        memory=arguments["memory"],
        shard_rows=arguments["shard_rows"],
        restart=arguments["restart"],
        record=job.facts,
    )
    click.echo(str(report), err=True)
    if arguments["sign"] and report.code == 0:
        sign_folder(Path(out), arguments["sign"])
    return report.code


def _draw(model: str, data: str, row: int, arguments: dict[str, Any]) -> int:
    """Draw one row in the terminal, in every attribution asked for."""
    from texplainer.cli import picture
    from texplainer.errors import InputError
    from texplainer.files import job as jobs
    from texplainer.files import survey

    job = options.job_from(model, data, arguments | {"attribution": _attributions(arguments)})
    if row >= job.table.rows:
        raise InputError(f"--row {row}: {data} has {job.table.rows} rows, counted from 0.")
    frame = survey.take_rows(job.table, job.columns, [row])
    piece, failure = jobs.explain_piece(job.explainer, frame, job.background)
    if failure is not None:
        raise failure
    every = [piece, *(piece.with_attribution(name) for name in piece.others)]
    # slopes and contributions stand in any table
    shown = [one for one in every if one.attribution not in ("slope", "shapley")] or every[:1]
    for one in shown:
        picture.draw(one, row, arguments["top"])
    undefined = any(one.arrays["stability"][0] == "undefined" for one in shown)
    return 1 if arguments["strict"] and undefined else 0


#: options of tables that mean nothing to images -> what they are when left alone
OF_TABLES = {
    "row": None,
    "sign": None,
    "on": None,
    "scheduler": None,
    "background": None,
    "categorical": None,
}


def explain_pictures(model: str, data: Sequence[str], out: str | None, arguments: dict[str, Any]) -> int:
    """Explain image files into a folder: explanation.npz and a PNG file for every image."""
    from texplainer.files import models
    from texplainer.files.picture_files import load_pictures, picture_paths, shape_of
    from texplainer.images.image_explainer import ImageExplainer

    if out is None:
        raise click.UsageError("images need an output folder; pass -o FOLDER/.")
    for name, alone in OF_TABLES.items():
        if arguments.get(name, alone) != alone:
            raise click.UsageError(f"--{name} is for tables; omit it for images.")
    paths = picture_paths(data)
    consent = models.Consent(arguments["trust"], arguments["allow_pickle"], arguments["module"])
    loaded = models.load_model(model, consent)
    auto = {"scale": "auto", "engine": "auto", "smoothing": None, "attribution": "auto"}
    chosen = {name: arguments[name] for name, alone in auto.items() if arguments[name] != alone}
    chosen |= {name: arguments[name] for name in ("output", "batch_rows") if arguments[name] is not None}
    shape = shape_of(loaded)
    explainer = ImageExplainer(loaded, channels="first" if shape.channels_first else "last", **chosen)
    explanation = explainer(load_pictures(paths, shape))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    explanation.save(folder / "explanation.npz")
    _draw_pictures(explanation, paths, folder)
    words = ", ".join(f"{number} {stability}" for stability, number in explanation.stability_counts().items())
    click.echo(f"{folder}: {len(paths)} images ({words}), engine {explanation.engine}", err=True)
    return 1 if arguments["strict"] and explanation.stability_counts()["undefined"] else 0


def _draw_pictures(explanation: Any, paths: Sequence[Path], folder: Path) -> None:
    """A picture of every image, numbered, since names may repeat."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from texplainer import plots

    for i, path in enumerate(paths):
        drawn: Any = plots.image(explanation[i]).figure
        drawn.savefig(folder / f"{i:04d}-{path.stem}.png", dpi=110)
        pyplot.close("all")

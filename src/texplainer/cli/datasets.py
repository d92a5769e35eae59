"""`texplainer datasets`: the list of data sets, or one of them as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command(
    epilog="""\b
Examples:
  texplainer datasets
  texplainer datasets iris -o iris.csv --model iris.skops
"""
)
@click.argument("name", required=False)
@click.option("-o", "--out", metavar="FILE", help="Write a part, with its target, as .csv or .parquet.")
@click.option("--model", metavar="FILE.skops", help="Also train a small network on the training part.")
@click.option(
    "--part",
    type=click.Choice(["train", "test", "all"]),
    default="test",
    show_default=True,
    help="The rows to write.",
)
def command(name: str | None, out: str | None, model: str | None, part: str) -> None:
    """List the data sets and their state, or write the data set NAME to a file."""
    if name is None:
        return _list()
    if out is None:
        from texplainer.datasets import ENTRIES

        if name not in ENTRIES:
            raise click.UsageError(f"unknown data set {name!r}; known are {', '.join(ENTRIES)}.")
        raise click.UsageError("pass the file to write: -o FILE.csv")
    _write(name, Path(out), model, part)


def _list() -> None:
    from rich.console import Console
    from rich.table import Table

    from texplainer import datasets

    table = Table(box=None, pad_edge=False)
    for title in ("name", "rows", "features", "state", "what it is"):
        table.add_column(title, justify="right" if title in ("rows", "features") else "left")
    for entry in datasets.table():
        numbers = (f"{entry[key]:,}" for key in ("rows", "features"))
        table.add_row(str(entry["name"]), *numbers, str(entry["state"]), str(entry["about"]))
    Console().print(table)


def _write(name: str, out: Path, model: str | None, part: Any) -> None:
    import numpy as np

    from texplainer import datasets
    from texplainer.errors import InputError

    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out} has the suffix {out.suffix!r}; expected .csv or .parquet.")
    found = datasets.load(name)
    target = np.empty(len(found.target), dtype=found.y_train.dtype)
    target[found.train_rows], target[found.test_rows] = found.y_train, found.y_test
    rows = {"train": found.train_rows, "test": found.test_rows, "all": np.arange(len(target))}[part]
    frame = _unscaled(found, part).assign(target=target[rows])
    if out.suffix == ".csv":
        frame.to_csv(out, index=False)
    else:
        frame.to_parquet(out, index=False)
    click.echo(f"{out}: {len(frame)} rows x {frame.shape[1] - 1} features and the target", err=True)
    if model is not None:
        _train(found, Path(model))


def _unscaled(found: Any, part: Any) -> Any:
    """The encoded columns of a part in their own units."""
    frame = found.frame(part, encoded=True)
    frame[:] = found.scaler.inverse(frame.to_numpy()).round(10)
    return frame


def _train(found: Any, path: Path) -> None:
    """A network small enough to train at once, as a skops file."""
    import skops.io
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    kind = MLPClassifier if found.task == "classification" else MLPRegressor
    network = kind(hidden_layer_sizes=(16,), solver="lbfgs", alpha=0.3, max_iter=500, random_state=0)
    pipeline = make_pipeline(MinMaxScaler(), network).fit(_unscaled(found, "train"), found.y_train)
    skops.io.dump(pipeline, path)
    score = pipeline.score(_unscaled(found, "test"), found.y_test)
    click.echo(f"{path}: a network of 16 units, score {score:.3f} on the test part", err=True)

"""`texplainer explain` for images: one result of all, and a picture of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

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
    _draw(explanation, paths, folder)
    words = ", ".join(f"{number} {stability}" for stability, number in explanation.stability_counts().items())
    click.echo(f"{folder}: {len(paths)} images ({words}), engine {explanation.engine}", err=True)
    return 1 if arguments["strict"] and explanation.stability_counts()["undefined"] else 0


def _draw(explanation: Any, paths: Sequence[Path], folder: Path) -> None:
    """A picture of every image, numbered, since names may repeat."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from texplainer import plots

    for i, path in enumerate(paths):
        drawn: Any = plots.image(explanation[i]).figure
        drawn.savefig(folder / f"{i:04d}-{path.stem}.png", dpi=110)
        pyplot.close("all")

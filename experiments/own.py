"""An explainer of your own in the comparison: one Python file with `QUESTION` and `build`.

CONTRIBUTING.md, "Compare an explainer of your own", has an example.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lines import LINES, QUESTIONS, ExplainerLine
from texplainer.errors import InputError
from texplainer.explainers.base import PER_SD, SHARES, Counter, OtherExplainer, rebuildable, task_of
from texplainer.types import Array

#: question -> what the values are
MEANING = {"slope": PER_SD, "shapley": SHARES, "variation": "variation"}


def add_line(path: Path) -> str:
    """Add the explainer of a file to the lines; return its name, that of the file."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; expected a Python file with QUESTION and build.")
    name = path.stem
    if name in LINES:
        raise InputError(f"{path}: {name!r} is the name of another line; rename the file.")
    spec = importlib.util.spec_from_file_location(f"own_{name}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file; expected a name that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    question, build = getattr(module, "QUESTION", None), getattr(module, "build", None)
    if question not in QUESTIONS:
        raise InputError(f"{path}: QUESTION is {question!r}; expected one of {', '.join(QUESTIONS)}.")
    if not callable(build):
        raise InputError(f"{path} has no function build(model, background, predict); define one.")
    meaning = MEANING[question]
    LINES[name] = ExplainerLine(
        question,
        lambda s: own_explainer(
            s.model,
            s.background,
            build=build,
            name=name,
            attribution=meaning,
            output=s.output,
            feature_names=s.feature_names,
        ),
    )
    return name


@rebuildable
def own_explainer(
    model: Any, background: Any, *, build: Any, name: str, attribution: str, **choice: Any
) -> OtherExplainer:
    """Wrap what `build(model, background, predict)` returns: a function from rows to values."""
    task = task_of(model, background, **choice)
    predict = Counter(task.output_of)
    explain = build(model, np.asarray(background, dtype=float), predict)

    def attribute(rows: Array) -> tuple[Array, Array]:
        before = predict.rows
        values = np.asarray(explain(rows.copy()), dtype=float)
        if values.shape != rows.shape:
            raise InputError(
                f"{name} returned values of shape {values.shape}; expected one value per row and feature, "
                f"{rows.shape}."
            )
        return values, np.full(len(rows), (predict.rows - before) / len(rows))

    return OtherExplainer(name, task, attribute, attribution=attribution)

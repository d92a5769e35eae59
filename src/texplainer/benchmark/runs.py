"""One run: load the data, train the model, build the explainers, score them all in the same cycle.

`execute` turns a `Run` into a `Result`; it knows nothing of other runs or of files. `WORK` has one line per
kind of experiment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer import datasets
from texplainer.datasets import Dataset
from texplainer.metrics import evaluate

from . import models
from .explainers import Setting, build
from .plan import CONTROLS, METRICS, Run
from .results import Result

Outcome = tuple[dict[tuple[str, str], NDArray[np.float64]], dict[str, Any]]  # scores, notes


def execute(run: Run) -> Result:
    """Do the work of one run."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    dataset = datasets.load(run.experiment.dataset)
    training = shortened(dataset, run.sizes.train_rows)
    trained = models.train(run.experiment.model, training, epochs=run.sizes.epochs)
    setting = Setting(
        model=trained.model,
        background=dataset.X_train,
        references=run.references,
        feature_names=dataset.feature_names,
        groups={name: group for name, group in dataset.groups.items() if len(group) > 1},
    )
    with threadpool_limits(1):  # small matrices: more threads cost time, and might change the last bit
        scores, notes = WORK[run.experiment.kind](run, setting, dataset)
    record = {
        "configuration": run.configuration,
        "model": {
            key: value for key, value in asdict(replace(trained, model=None)).items() if key != "model"
        },
        "dataset": {
            "rows": len(dataset.target),
            "features": len(dataset.feature_names),
            "checksum": dataset.checksum,
            "note": dataset.note,
        },
        "seconds": round(time.perf_counter() - start, 1),
        **notes,
    }
    return Result(run.name, scores, record)


def compare(run: Run, setting: Setting, dataset: Dataset) -> Outcome:
    """Score all explainers on the same rows, neighbours and masks."""
    evaluation = evaluate(
        build(run.explainers, setting),
        dataset.X_test[: run.rows],
        metrics=METRICS[run.experiment.kind],
        k=run.experiment.k,
        neighbours=run.sizes.neighbours,
        runs=run.sizes.runs,
        groups={
            name: [dataset.feature_names.index(column) for column in columns]
            for name, columns in setting.groups.items()
        },
        controls=CONTROLS if run.experiment.kind in ("stability", "faithfulness") else (),
        seed=run.configuration["seed"],
        progress=False,
    )
    scores = {
        (explainer, column.name): evaluation.scores[i, j]
        for i, explainer in enumerate(evaluation.explainers)
        for j, column in enumerate(evaluation.columns)
    }
    notes = {
        "skipped": dict(evaluation.notes),
        "fewest_neighbours": int(evaluation.neighbours.min()),
        "explaining_seconds": dict(
            zip(evaluation.explainers, evaluation.seconds.round(4).tolist(), strict=True)
        ),
    }
    return scores, notes


def stopwatch(run: Run, setting: Setting, dataset: Dataset) -> Outcome:
    """Time explaining 10, 20, ... rows: build, then explain block by block; the first row warms up.

    The libraries compared explain row by row, so the time of n rows is that of building plus that of the
    first n rows, and one pass over the largest task times all of them.
    """
    edges = (0, *run.sizes.tasks)
    blocks = [dataset.X_test[a:b] for a, b in pairwise(edges)]
    scores: dict[tuple[str, str], NDArray[np.float64]] = {}
    for name in run.explainers:
        build([name], setting)[name](blocks[0][:1])
        start = time.perf_counter()
        explainer = build([name], setting)[name]
        marks = []
        for block in blocks:
            explainer(block)
            marks.append(time.perf_counter() - start)
        scores[name, "seconds"] = np.array(marks)
    return scores, {"tasks": list(run.sizes.tasks)}


def shortened(dataset: Dataset, rows: int | None) -> Dataset:
    """Keep the first training rows only (a smoke run trains on few)."""
    if rows is None or len(dataset.X_train) <= rows:
        return dataset
    return replace(dataset, X_train=dataset.X_train[:rows], y_train=dataset.y_train[:rows])


WORK: dict[str, Callable[[Run, Setting, Dataset], Outcome]] = {
    "stability": compare,
    "faithfulness": compare,
    "boxplots": compare,
    "running_time": stopwatch,
}

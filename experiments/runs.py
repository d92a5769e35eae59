"""One run: load the data, train the model, build the explainers, score them all in the same cycle.

`execute` turns a `Run` into a `Result`; it knows nothing of other runs or of files. `SUBJECTS_OF` and
`WORKERS` have one line per kind of experiment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import models
from experiments.gated import GATED
from experiments.lines import Setting, build_explainers
from experiments.plan import CONTROL_LINES, METRICS_OF, WITH_CONTROLS, Run
from experiments.results import Result
from experiments.wide.models import fit_wide
from texplainer import datasets
from texplainer.datasets import Dataset, synthetic
from texplainer.metrics import evaluate
from texplainer.types import Array

Outcome = tuple[dict[tuple[str, str], NDArray[np.float64]], dict[str, Any]]  # scores, notes
BACKGROUND = 500  # rows in the wide evaluation
MOST_LEVELS = 12  # of a category in the wide evaluation; one with more is left out
SVM_ROWS = 150  # the machine's answers cost as many products as it was taught rows
TRUTH_RADIUS = 0.75


@dataclass(frozen=True)
class RunSubject:
    """What a run explains: a setting, the rows, and what is known of both."""

    setting: Setting
    rows: Array
    record: dict[str, Any]
    truth: Array | None = None


def execute(run: Run) -> Result:
    """Do the work of one run."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):  # small matrices: more threads cost time, and might change the last bit
        subject = SUBJECTS_OF[run.experiment.kind](run)
        scores, notes = WORKERS.get(run.experiment.kind, score_explainers)(run, subject)
    record = {
        "configuration": run.configuration,
        **subject.record,
        "seconds": round(time.perf_counter() - start, 1),
        **notes,
    }
    return Result(run.name, scores, record)


# What is explained. ----------------------------------------------------------------------------------------


def paper_subject(run: Run) -> RunSubject:
    """One of the paper's models on one of its data sets."""
    again = run.part if run.experiment.kind == "authors" else 0
    dataset = drawn_again(run.experiment.dataset, again)
    training = shortened(dataset, run.sizes.train_rows)
    trained = models.train(run.experiment.model, training, epochs=run.sizes.epochs, seed=again)
    setting = Setting(
        model=trained.model,
        background=dataset.X_train,
        feature_names=dataset.feature_names,
        groups=real_groups(dataset),
        training=(training.X_train, training.y_train),
        references=run.references,
        samples=run.sizes.samples,
    )
    known = {key: value for key, value in asdict(replace(trained, model=None)).items() if key != "model"}
    rows = (
        training.X_train if run.experiment.kind == "authors" else dataset.X_test
    )  # their code's, the text's
    return RunSubject(setting, rows[: run.rows], {"model": known, "dataset": about(dataset)})


def drawn_again(name: str, again: int) -> Dataset:
    """The paper's data set (0), or the same with another split and, where it is synthetic, another draw."""
    redraw = {
        "4ft": lambda seed: synthetic.four_features(seed=1234 + seed),
        "20ft": lambda seed: synthetic.clusters("20ft", features=20, seed=567 + seed),
    }.get(name)
    split = datasets.SPLIT_SEED + again
    return (
        datasets.prepare(redraw(again), seed=split) if redraw and again else datasets.load(name, seed=split)
    )


def wide_subject(run: Run) -> RunSubject:
    """One kind of model on one data set, split, fitted and drawn by the run's seed."""
    plain = datasets.load(run.experiment.dataset, seed=datasets.SPLIT_SEED + run.seed)
    dataset = shortened(few_levels(plain, datasets.SPLIT_SEED + run.seed), run.sizes.train_rows)
    if run.experiment.model == "svm":
        dataset = shortened(dataset, SVM_ROWS)
    model, known = fit_wide(run.experiment.model, dataset, run.seed, run.sizes.epochs)
    setting = Setting(
        model=model,
        background=dataset.X_train[:BACKGROUND],
        feature_names=dataset.feature_names,
        groups=real_groups(dataset),
        output=1 if dataset.task == "classification" else None,
        references=run.references,
        samples=run.sizes.samples,
    )
    rows = dataset.X_test[known_levels(dataset, setting)][: run.rows]
    return RunSubject(setting, rows, {"model": known, "dataset": about(dataset)})


def known_levels(dataset: Dataset, setting: Setting) -> NDArray[np.bool_]:
    """Mask of the test rows whose levels the background holds; of others nothing can be asked."""
    known = np.ones(len(dataset.X_test), dtype=bool)
    for group in setting.groups.values():
        columns = [setting.feature_names.index(name) for name in group]
        levels = {tuple(cells) for cells in setting.background[:, columns]}
        known &= np.array([tuple(cells) in levels for cells in dataset.X_test[:, columns]])
    return known


def gated_subject(run: Run) -> RunSubject:
    """A function whose truth is known, explained as a black box."""
    function = GATED[run.experiment.dataset]
    background = function.sample(BACKGROUND, seed=run.seed)
    rows = function.sample(run.rows, seed=1000 + run.seed)
    names = tuple(f"x{j}" for j in range(function.features))
    setting = Setting(function, background, names, references=run.references, samples=run.sizes.samples)
    truth = function.relevant(rows, TRUTH_RADIUS).astype(float)
    record = {"model": {"name": "function", "dataset": function.name, "task": "regression"}}
    return RunSubject(setting, rows, record | {"dataset": {"note": function.about}}, truth)


def about(dataset: Dataset) -> dict[str, Any]:
    """What a record says of its data."""
    return {
        "rows": len(dataset.target),
        "features": len(dataset.feature_names),
        "checksum": dataset.checksum,
        "note": dataset.note,
    }


def real_groups(dataset: Dataset) -> dict[str, tuple[str, ...]]:
    """The one-hot groups of more than one column."""
    return {name: group for name, group in dataset.groups.items() if len(group) > 1}


def few_levels(dataset: Dataset, seed: int) -> Dataset:
    """The data set without categories of very many levels: each of them would be that many columns."""
    many = [name for name, group in dataset.groups.items() if len(group) > MOST_LEVELS]
    if not many:
        return dataset
    kept = {name: column for name, column in dataset.columns.items() if name not in many}
    task: Any = dataset.task
    source = (dataset.source, dataset.licence, f"without {', '.join(many)}")
    return datasets.prepare(
        datasets.Table(dataset.name, kept, dataset.target, task, dataset.class_names, None, *source),
        seed=seed,
    )


def shortened(dataset: Dataset, rows: int | None) -> Dataset:
    """Keep the first training rows only (a smoke run trains on few)."""
    if rows is None or len(dataset.X_train) <= rows:
        return dataset
    return replace(dataset, X_train=dataset.X_train[:rows], y_train=dataset.y_train[:rows])


# What is measured. -----------------------------------------------------------------------------------------


def score_explainers(run: Run, subject: RunSubject) -> Outcome:
    """Score all explainers on the same rows, neighbours and masks."""
    setting, kind = subject.setting, run.experiment.kind
    positions = {name: j for j, name in enumerate(setting.feature_names)}
    evaluation = evaluate(
        build_explainers(run.experiment.lines, setting),
        subject.rows,
        metrics=METRICS_OF[kind],
        k=run.experiment.k or None,
        neighbours=run.sizes.neighbours,
        neighbourhood="first-draws" if kind == "authors" else "nearest",
        runs=run.sizes.runs,
        truth=subject.truth,
        groups={name: [positions[one] for one in group] for name, group in setting.groups.items()},
        controls=CONTROL_LINES if kind in WITH_CONTROLS else (),
        seed=run.seed,
        progress=False,
    )
    scores = {
        (explainer, column.name): evaluation.scores[i, j]
        for i, explainer in enumerate(evaluation.explainers)
        for j, column in enumerate(evaluation.columns)
    }
    each = dict(
        zip(evaluation.explainers, zip(evaluation.seconds, evaluation.evaluations, strict=True), strict=True)
    )
    notes = {
        "skipped": dict(evaluation.notes),
        "fewest_neighbours": int(evaluation.neighbours.min()),
        "explaining_seconds": {name: round(float(seconds), 4) for name, (seconds, _) in each.items()},
        "evaluations": {
            name: round(float(count), 1) for name, (_, count) in each.items() if np.isfinite(count)
        },
        "prediction_seconds": prediction_seconds(setting, subject.rows),
    }
    return scores, notes


def prediction_seconds(setting: Setting, rows: Array) -> float:
    """The model's own processor time for one row, the best of three, over a few hundred rows at once."""
    predict = getattr(setting.model, "predict_proba", None) or getattr(
        setting.model, "predict", setting.model
    )
    table = np.tile(rows, (max(1, 256 // len(rows)), 1))
    times = []
    for _ in range(3):
        start = time.process_time()
        predict(table)
        times.append(time.process_time() - start)
    return float(f"{min(times) / len(table):.3g}")


def stopwatch(run: Run, subject: RunSubject) -> Outcome:
    """Processor time of explaining 10, 20, ... rows: build, then block by block; the first row warms up.

    The libraries compared explain row by row, so the time of n rows is that of building plus that of the
    first n rows, and one pass over the largest task times all of them.
    """
    rows = datasets.load(run.experiment.dataset).X_test
    blocks = [rows[a:b] for a, b in pairwise((0, *run.sizes.tasks))]
    scores: dict[tuple[str, str], NDArray[np.float64]] = {}
    for name in run.experiment.lines:
        build_explainers([name], subject.setting)[name](blocks[0][:1])
        start = time.process_time()
        explainer = build_explainers([name], subject.setting)[name]
        marks = []
        for block in blocks:
            explainer(block)
            marks.append(time.process_time() - start)
        scores[name, "seconds"] = np.array(marks)
    return scores, {"tasks": list(run.sizes.tasks)}


SUBJECTS_OF: dict[str, Callable[[Run], RunSubject]] = {
    **dict.fromkeys(
        ("stability", "faithfulness", "authors", "boxplots", "running_time", "ablation"), paper_subject
    ),
    "wide": wide_subject,
    "gated": gated_subject,
}
WORKERS: dict[str, Callable[[Run, RunSubject], Outcome]] = {"running_time": stopwatch}

"""Measure every metric for one explainer, and gather the scores of all into an Evaluation.

`CONTROLS` are explainers that do not use the model, shown below the line of every table: a constant explainer is
perfectly stable and useless.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.metrics.evaluation import Evaluation, ScoreColumn
from texplainer.metrics.evidence.common import CommonEvidence
from texplainer.metrics.evidence.explained import ExplainerEvidence
from texplainer.metrics.table import Metric
from texplainer.types import Array


def measure_all(
    own: ExplainerEvidence,
    chosen: Mapping[str, Metric],
    parts: dict[tuple[str, str], Array],
    notes: dict[str, str],
) -> None:
    """All metrics of one explainer; whatever it raises costs its own cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a row that is undefined shows as a gap; no need to say it thrice
        try:
            own.warm_up()
            own.values  # noqa: B018
        except Exception as error:
            what = "skipped" if isinstance(error, Unsupported) else f"failed with {type(error).__name__}"
            notes[own.name] = f"{what}: {error}"
            return
        if own.broken.any():
            rows = f"{int(own.broken.sum())} of {len(own.broken)} rows"
            notes[own.name] = f"returned NaN or infinite values for {rows}, which have no scores."
        for name, metric in chosen.items():
            try:
                found = metric.measure(own)
            except Exception as error:
                notes[f"{own.name}: {metric.label}"] = str(error) or type(error).__name__
                continue
            for part, scores in (found if isinstance(found, dict) else {"": found}).items():
                parts[own.name, f"{name}/{part}"] = np.where(own.broken, np.nan, scores)


def collapsed(notes: dict[str, str], subjects: int) -> dict[str, str]:
    """Report once what is the same for every explainer: the reason lies in the model or the data."""
    whose = {who: who.rpartition(": ")[2] for who in notes if ": " in who}
    common = {}
    for metric in dict.fromkeys(whose.values()):
        said = [notes[who] for who, which in whose.items() if which == metric]
        if len(said) > 1 and len(set(said)) == 1 and len(said) >= subjects - len(notes.keys() - whose.keys()):
            common[metric] = said[0]
    return {who: why for who, why in notes.items() if whose.get(who) not in common} | common


def gather_scores(
    common: CommonEvidence,
    subjects: list[ExplainerEvidence],
    chosen: Mapping[str, Metric],
    parts: Mapping[tuple[str, str], Array],
    notes: dict[str, str],
    total: float,
) -> Evaluation:
    """Put all scores into one Evaluation."""
    columns = []
    for name, metric in chosen.items():
        found = dict.fromkeys(key[1].partition("/")[2] for key in parts if key[1].partition("/")[0] == name)
        for part in found or [""]:
            better = "low" if part in metric.lower_parts else metric.better
            columns.append(ScoreColumn(name, part, metric.label, better, metric.family))
    rows, features = len(common.rows), len(common.features.names)
    scores = np.full((len(subjects), len(columns), rows), np.nan)
    values = np.full((len(subjects), rows, features), np.nan)
    for i, own in enumerate(subjects):
        for j, column in enumerate(columns):
            scores[i, j] = parts.get((own.name, f"{column.metric}/{column.part}"), np.nan)
        if "values" in vars(own):
            values[i] = np.where(own.broken[:, None], np.nan, own.values)
    clock = common.clock
    drawn = "hood" in vars(common)
    return Evaluation(
        tuple(own.name for own in subjects),
        tuple(columns),
        scores,
        values,
        common.features.names,
        tuple(own.name for own in subjects if own.control or getattr(own.explain, "control", False)),
        notes,
        common.hood.counts if drawn else np.full(rows, common.settings.neighbours),
        np.array([own.seconds for own in subjects]),
        np.array([own.cost for own in subjects]),
        {
            "explainers": clock.explain,
            "model": clock.model,
            "harness": total - clock.explain - clock.model,
            "total": total,
        },
        _settings(common),
    )


def _settings(common: CommonEvidence) -> dict[str, Any]:
    asked = {**asdict(common.settings), "k": list(common.settings.k)}
    if not np.isfinite(common.settings.max_distance):
        asked["max_distance"] = None
    main = common.main
    return {
        **asked,
        "rows": len(common.rows),
        "model": type(common.model).__name__,
        "output": main.all_names[common.output],
        "scale": main.scale,
    }


def ones(rows: Array) -> Array:
    """Give every feature of every row the same weight."""
    return np.ones(rows.shape)


def zeros(rows: Array) -> Array:
    """Return zeros for every row."""
    return np.zeros(rows.shape)


def noise(rows: Array, seed: int = 0) -> Array:
    """Draw normal values from a generator seeded by the row, so that equal rows get equal values."""
    values = np.empty(rows.shape)
    for i, row in enumerate(np.ascontiguousarray(rows)):
        values[i] = np.random.default_rng([seed, zlib.crc32(row.tobytes())]).normal(size=len(row))
    return values


CONTROLS: dict[str, Callable[[Array], Array]] = {"constant": ones, "zero": zeros, "random": noise}

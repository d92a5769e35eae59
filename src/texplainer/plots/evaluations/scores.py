"""Scores per row by explainer, out of an Evaluation or plain arrays, for plots that compare explainers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.metrics.table import METRICS
from texplainer.plots import style


def per_row(subject: Any, metric: str) -> dict[str, np.ndarray]:
    """Scores per row of one metric, by explainer."""
    if isinstance(subject, Mapping):
        return {
            str(name): np.asarray(found[metric] if isinstance(found, Mapping) else found, dtype=float).ravel()
            for name, found in subject.items()
        }
    return subject.per_row(metric)


def label(subject: Any, metric: str) -> str:
    """The metric's name for an axis."""
    column = _column(subject, metric)
    if column is None:
        return metric.upper() if len(metric) <= 4 else metric
    part = column.part if metric == column.name or not column.part.isdigit() else ""
    return f"{column.label} {part}".strip()


def convention(subject: Any, metric: str) -> str:
    """How an Evaluation's metric is computed: element-wise, by norms; "" for plain arrays."""
    column = _column(subject, metric)
    return METRICS[column.metric].convention if column is not None and column.metric in METRICS else ""


def better_way(subject: Any, metric: str) -> str:
    """Return which direction is better; lower by default."""
    column = _column(subject, metric)
    return f"log; {'lower' if column is None or column.better == 'low' else 'higher'} is better"


def _column(subject: Any, metric: str) -> Any:
    """What the Evaluation says of a metric; None for plain arrays."""
    return None if isinstance(subject, Mapping) else subject.columns[subject.columns_of(metric)[0]]


def colours(names: Sequence[str] | Iterable[str]) -> list[str]:
    """One colour per explainer, in order."""
    return [style.SERIES[i % len(style.SERIES)] for i, _ in enumerate(names)]


def markers(count: int) -> list[str]:
    """One marker per explainer, in order."""
    return [style.MARKERS[i % len(style.MARKERS)] for i in range(count)]

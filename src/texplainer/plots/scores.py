"""Scores per row by explainer, out of an Evaluation or plain arrays, for plots that compare explainers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from texplainer.plots import style


def per_row(subject: Any, metric: str) -> dict[str, np.ndarray]:
    """Scores per row of one metric, by explainer."""
    if isinstance(subject, Mapping):
        return {
            str(name): np.asarray(found[metric] if isinstance(found, Mapping) else found, dtype=float).ravel()
            for name, found in subject.items()
        }
    raise NotImplementedError


def label(subject: Any, metric: str) -> str:
    """The metric's name for an axis."""
    return metric.upper() if len(metric) <= 4 else metric


def direction(subject: Any, metric: str) -> str:
    """Which way is better, in words."""
    return "log; lower is better"


def colours(names: Sequence[str] | Iterable[str]) -> list[str]:
    """One colour per explainer, in order."""
    return [style.SERIES[i % len(style.SERIES)] for i, _ in enumerate(names)]


def markers(count: int) -> list[str]:
    """One marker per explainer, in order: shapes tell apart what colours may not."""
    return [style.MARKERS[i % len(style.MARKERS)] for i in range(count)]

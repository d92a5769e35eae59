"""Parts of an Explanation: cohorts of rows, samples of them, and what their values come to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from texplainer.errors import InputError
from texplainer.support.names import suggest

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation

LEVELS = 8  # numbers with more distinct values are cut in two


def cohorts(explanation: Explanation, by: Any) -> dict[str, Explanation]:
    """Rows by the level of a feature, below and above its median, or by labels of one's own."""
    if "r" in explanation.dropped:
        raise InputError("the explanation holds one row; cohorts need several.")
    labels = _of_feature(explanation, by) if isinstance(by, str) else np.asarray(by).astype(str)
    if labels.shape != (len(explanation),):
        raise InputError(
            f"by has shape {labels.shape}; expected a feature's name or one label for each of "
            f"{len(explanation)} rows."
        )
    return {str(name): explanation[np.flatnonzero(labels == name)] for name in np.unique(labels)}


def _of_feature(explanation: Explanation, name: str) -> np.ndarray:
    """One label a row: the level, or the side of the median."""
    if name not in explanation.feature_names:
        known = ", ".join(explanation.feature_names[:12])
        raise InputError(
            f"by={name!r} is not a feature; there are {known}. Or give one label a row."
            f"{suggest(name, explanation.feature_names)}"
        )
    column = explanation.arrays["data"][:, explanation.feature_names.index(name)]
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return np.array([_level_label(name, cell) for cell in column])
    known = np.isfinite(numbers)
    if len(np.unique(numbers[known])) <= LEVELS:
        labels = np.array([f"{name} = {cell:g}" for cell in numbers], dtype=object)
    else:
        middle = float(np.median(numbers[known]))
        labels = np.where(numbers < middle, f"{name} < {middle:.4g}", f"{name} ≥ {middle:.4g}").astype(object)
    labels[~known] = f"{name} missing"
    return labels.astype(str)


def _level_label(name: str, cell: Any) -> str:
    if cell is None or cell != cell:  # NaN is unlike itself
        return f"{name} missing"
    return f"{name} = {cell}" if cell != "" else f"{name} = ''"


def sample(explanation: Explanation, rows: int, seed: int = 0) -> Explanation:
    """Some rows drawn at random, in their order."""
    if not isinstance(rows, (int, np.integer)) or rows < 1 or "r" in explanation.dropped:
        raise InputError(
            f"rows={rows!r} of an explanation of {len(explanation)}; expected at least 1 of several."
        )
    drawn = np.random.default_rng(seed).permutation(len(explanation))[:rows]
    return explanation[np.sort(drawn)]


def sizes(explanation: Explanation) -> Explanation:
    """The same with |values|."""
    return replace(explanation, arrays={**explanation.arrays, "values": np.abs(explanation.arrays["values"])})


def over_rows(explanation: Explanation, how: str) -> np.ndarray:
    """The mean or the sum of the values over the rows that have any, (features,) or (features, outputs)."""
    values = explanation.arrays["values"]
    known = values[np.isfinite(values).all(axis=(1, 2))]
    found = {"mean": np.mean, "sum": np.sum}[how](known, axis=0)
    return found[:, 0] if "o" in explanation.dropped else found

"""Rows that are not explained, with the reason: values that the model cannot handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from texplainer.errors import ModelError
from texplainer.models.predictor import Predictor
from texplainer.types import Array


def refused_rows(predictor: Predictor, names: Sequence[str], rows: Array) -> dict[int, Any]:
    """Return the rows with infinite values, and those with missing values that this model rejects."""
    refused: dict[int, Any] = {}
    infinite = np.isinf(rows).any(axis=1)
    gaps = np.isnan(rows)
    minded = _rejected_rows(predictor, rows, gaps, np.flatnonzero(gaps.any(axis=1) & ~infinite))
    for i in np.flatnonzero(infinite):
        cell = _cell(names, rows[i], np.isinf(rows[i]))
        refused[int(i)] = f"{cell}; expected a finite number. Clip or drop it."
    for i in minded:
        cell = _cell(names, rows[i], gaps[i])
        refused[int(i)] = f"{cell} and the model does not accept missing values. Impute or drop it."
    return refused


def _rejected_rows(predictor: Predictor, rows: Array, gaps: np.ndarray, holed: np.ndarray) -> np.ndarray:
    """Return the rows with missing values that the model rejects; one row is predicted per pattern."""
    if not len(holed):
        return holed
    packed = np.packbits(gaps[holed], axis=1)  # an eighth of the bytes to sort
    words = packed.view(f"S{packed.shape[1]}")[:, 0]  # ten times faster to sort than rows of an array
    _, first, pattern = np.unique(words, return_index=True, return_inverse=True)
    return holed[~_taken(predictor, rows[holed[first]])[pattern]]


def _taken(predictor: Predictor, rows: Array) -> np.ndarray:
    """Return whether the model predicts a number for each row."""
    try:
        return np.asarray(np.isfinite(predictor(rows)).all(axis=1))
    except ModelError:  # one of them is too much for it: ask again, one by one
        return np.array([_predicts(predictor, rows[i : i + 1]) for i in range(len(rows))])


def _predicts(predictor: Predictor, row: Array) -> bool:
    try:
        return bool(np.isfinite(predictor(row)).all())
    except ModelError:
        return False


def _cell(names: Sequence[str], row: Array, bad: np.ndarray) -> str:
    j = int(np.flatnonzero(bad)[0])
    return f"value {names[j]!r} is {row[j]}"

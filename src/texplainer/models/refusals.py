"""Rows that no explanation is tried of, with the reason: cells that no model, or not this one, can take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from texplainer.errors import ModelError
from texplainer.models.predictor import Predictor
from texplainer.types import Array


def refused_rows(predictor: Predictor, names: Sequence[str], rows: Array) -> dict[int, Any]:
    """Rows with infinite cells, and with missing ones if this model minds."""
    refused: dict[int, Any] = {}
    infinite = np.isinf(rows).any(axis=1)
    gaps = np.isnan(rows)
    patterns, first, pattern = np.unique(gaps[~infinite], axis=0, return_index=True, return_inverse=True)
    asked = np.asarray(patterns.any(axis=1))
    fine = _taken(predictor, rows[~infinite][first], asked)[pattern.reshape(-1)]
    minded = np.flatnonzero(~infinite)[~fine]
    for i in np.flatnonzero(infinite):
        cell = _cell(names, rows[i], np.isinf(rows[i]))
        refused[int(i)] = f"{cell}; expected a finite number. Clip or drop it."
    for i in minded:
        cell = _cell(names, rows[i], gaps[i])
        refused[int(i)] = f"{cell} and the model does not take missing values. Impute or drop it."
    return refused


def _taken(predictor: Predictor, rows: Array, asked: np.ndarray) -> np.ndarray:
    """Whether the model predicts a number for each row, one row for every pattern of missing cells."""
    fine = np.ones(len(rows), bool)
    which = np.flatnonzero(asked)
    try:
        if len(which):
            fine[which] = np.isfinite(predictor(rows[which])).all(axis=1)
    except ModelError:  # one of them is too much for it: ask again, one by one
        for i in which:
            try:
                fine[i] = np.isfinite(predictor(rows[i : i + 1])).all()
            except ModelError:
                fine[i] = False
    return fine


def _cell(names: Sequence[str], row: Array, bad: np.ndarray) -> str:
    j = int(np.flatnonzero(bad)[0])
    return f"cell {names[j]!r} is {row[j]}"

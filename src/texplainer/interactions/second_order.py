"""What is asked of every way to second derivatives, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from texplainer.types import Array


@dataclass(frozen=True)
class SecondOrder:
    """sigma_i sigma_j d2f/dx_i dx_j of some rows.

    Attributes
    ----------
    values
        (rows, features, features, outputs).
    error
        Same shape: bound on the absolute error.
    evaluations
        (rows,), evaluations of the model or of its slopes spent on each row.
    """

    values: Array
    error: Array
    evaluations: np.ndarray


def symmetric(found: SecondOrder) -> SecondOrder:
    """The mean with the transpose; what the two disagree by is part of the error."""
    mirrored = found.values.swapaxes(1, 2)
    error = np.maximum((found.error + found.error.swapaxes(1, 2)) / 2, np.abs(found.values - mirrored) / 2)
    return SecondOrder((found.values + mirrored) / 2, error, found.evaluations)


def joined_blocks(parts: list[SecondOrder]) -> SecondOrder:
    """Several groups of rows as one."""
    values, error, cost = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "error", "evaluations")
    )
    return SecondOrder(values, error, cost)

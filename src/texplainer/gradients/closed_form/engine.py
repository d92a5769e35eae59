"""Exact gradients of scikit-learn models, by reverse-mode differentiation of their formulas.

`models` holds the formulas, `networks` and `kernels` their passes, `transformers` the chain rule. Before a
formula is trusted its values are compared with the model's own predictions; a mismatch means the
model is not what its type promises, and another engine takes over.
"""

from __future__ import annotations

from typing import Any

from texplainer.errors import Unsupported
from texplainer.gradients import maps
from texplainer.gradients.closed_form.columns import column_map
from texplainer.gradients.closed_form.models import formula
from texplainer.gradients.engine import Engine, Settings
from texplainer.gradients.maps import Map
from texplainer.models.predictor import Predictor
from texplainer.types import Array

TOLERANCE = 1e-6  # between the formula's values and the model's, relative to the largest


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the model's formula and check it against the model."""
    met = []

    def of_table(step: Any) -> Map:
        met.append(step)
        return column_map(step, predictor, background)

    scales = formula(predictor.model, of_table)
    if predictor.schema.encoded and not met:
        raise Unsupported("categorical columns reach the model as something else than numbers.")
    if predictor.scale not in scales:
        raise Unsupported(
            f"the {type(predictor.model).__name__} has no closed form on the {predictor.scale} scale."
        )
    return maps.checked_engine(
        scales[predictor.scale],
        "closed-form",
        "the model's own formula, differentiated exactly",
        predictor,
        background,
        TOLERANCE,
    )

"""Exact gradients of scikit-learn models, by reverse-mode differentiation of their formulas.

`closed_form_models` holds the formulas, `transformers` the chain rule, `reverse` the passes. Before a
formula is trusted its values are compared with the model's own predictions; a mismatch means the
model is not what its type promises, and another engine takes over.
"""

from __future__ import annotations

from texplainer.gradients import Engine, Settings, Unsupported, reverse
from texplainer.gradients.closed_form_models import formula
from texplainer.gradients.transformers import chain
from texplainer.prediction import Predictor
from texplainer.signatures import Array

TOLERANCE = 1e-6  # between the formula's values and the model's, relative to the largest
#: libsvm finds even two coupled probabilities by an iteration it stops early, on its way to Platt's sigmoid
PLATT, PLATT_TOLERANCE = ("SVC", "NuSVC"), 1e-2


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Read the model's formula and check it against the model."""
    if predictor.kind != "sklearn":
        raise Unsupported("the model is not from scikit-learn.")
    if predictor.schema.encoded:
        raise Unsupported("categorical columns reach the model as something else than numbers.")
    scales = formula(predictor.model)
    if predictor.scale not in scales:
        raise Unsupported(
            f"the {type(predictor.model).__name__} has no closed form on the {predictor.scale} scale."
        )
    platt = predictor.scale == "probability" and type(chain(predictor.model)[1]).__name__ in PLATT
    what = "Platt's sigmoid, which libsvm reaches to 0.5%" if platt else "the model's own formula"
    return reverse.engine(
        scales[predictor.scale],
        "closed-form",
        f"{what}, differentiated exactly",
        predictor,
        background,
        PLATT_TOLERANCE if platt else TOLERANCE,
    )

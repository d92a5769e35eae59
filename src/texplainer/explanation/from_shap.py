"""A `shap.Explanation` as an Explanation, so that it can be drawn, compared and saved like any other."""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.explanation.explanation import Explanation


def from_shap(found: Any) -> Explanation:
    """Convert a `shap.Explanation` of one row or several; its values are contributions.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from texplainer.explanation.from_shap import from_shap
    >>> shap_explanation = SimpleNamespace(values=np.ones((4, 2)), base_values=0.5, data=np.zeros((4, 2)))
    >>> from_shap(shap_explanation).predictions
    array([2.5, 2.5, 2.5, 2.5])
    """
    values = np.asarray(found.values, dtype=float)
    single = values.ndim == 1
    values = values[None] if single else values
    rows, features = values.shape[:2]
    outputs = values.shape[2] if values.ndim == 3 else 1
    base = np.asarray(found.base_values, dtype=float)
    base = base[..., None] if outputs == 1 and base.shape not in ((1,), (rows, 1)) else base
    base = np.broadcast_to(base, (rows, outputs))
    data = getattr(found, "data", None)
    names = getattr(found, "feature_names", None)
    labels = getattr(found, "output_names", None)
    labels = [labels] if isinstance(labels, str) or np.ndim(labels) == 0 else list(labels)  # type: ignore
    labels = [str(n) for n in labels] if len(labels) == outputs and labels != [None] else None
    result = Explanation.build(
        values,
        data=np.full((rows, features), np.nan) if data is None else np.asarray(data).reshape(rows, features),
        base_values=base,
        predictions=base + values.reshape(rows, features, outputs).sum(axis=1),
        feature_names=None if names is None else [str(n) for n in names],
        output_names=labels or (["output"] if outputs == 1 else [f"output {i}" for i in range(outputs)]),
        attribution="shapley",
    )
    return result[0] if single else result


def is_shap(found: Any) -> bool:
    """Whether an object is a `shap.Explanation`."""
    return type(found).__name__ == "Explanation" and type(found).__module__.split(".")[0] == "shap"

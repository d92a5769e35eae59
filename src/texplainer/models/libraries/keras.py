"""Keras 3 models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import Library, ModelAdapter
from texplainer.models.scales import network_outlet
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    import keras

    _check_inputs(model)
    width = np.float64 if model.compute_dtype == "float64" else np.float32

    def raw(table: Any) -> np.ndarray:
        return np.asarray(keras.ops.convert_to_numpy(model(np.asarray(table, dtype=width), training=False)))

    return network_outlet("keras", raw, replace(schema, kind="array"), width, _ending(model))


def _check_inputs(model: Any) -> None:
    for what in ("input", "output"):
        found = getattr(model, f"{what}s", None) or [None]
        if len(found) > 1:
            raise InputError(
                f"the Keras model has {len(found)} {what}s; expected one tensor, (rows, ...). Wrap it in a "
                "keras.Model of one input with all columns and one output."
            )


def _ending(model: Any) -> str:
    """Return the activation of the last layer, or the layer's name if it is an activation layer."""
    last = (getattr(model, "layers", None) or [None])[-1]
    name = getattr(getattr(last, "activation", None), "__name__", "")
    return name or (type(last).__name__.lower() if type(last).__name__ in ("Softmax", "ReLU", "ELU") else "")


LIBRARY = Library("keras", _outlet, engines=lambda model: ("autodiff",))

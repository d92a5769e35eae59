"""Functions that JAX has compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.models.libraries import Library, ModelAdapter
from texplainer.models.scales import network_outlet
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    import jax

    width = np.float64 if jax.config.jax_enable_x64 else np.float32  # type: ignore[attr-defined]
    ending = _ending(model, np.zeros((2, schema.width), dtype=width))
    return network_outlet(
        "jax",
        lambda t: np.asarray(model(np.asarray(t, dtype=width))),
        replace(schema, kind="array"),
        width,
        ending,
    )


def _ending(model: Any, rows: np.ndarray) -> str:
    """Find the last operation of the traced function, ignoring reshapes; a softmax ends in exp, sum, div."""
    import jax

    try:
        traced = jax.make_jaxpr(model)(rows)
    except Exception:  # the first prediction says what is wrong with it
        return ""
    names = [name for name in _operations(traced.jaxpr) if name not in SHAPES]
    if names[-1:] == ["div"]:
        return "softmax" if names[-3:-1] == ["exp", "reduce_sum"] else ""
    return ENDINGS.get(names[-1], "") if names else ""


def _operations(jaxpr: Any) -> Iterator[str]:
    """Yield the names of all operations in order, including those of inner functions."""
    for step in jaxpr.eqns:
        inner = next((step.params[key] for key in ("jaxpr", "call_jaxpr") if key in step.params), None)
        if inner is None:
            yield step.primitive.name
        else:
            yield from _operations(getattr(inner, "jaxpr", inner))


SHAPES = ("reshape", "squeeze", "broadcast_in_dim", "convert_element_type", "stop_gradient")
ENDINGS = {"logistic": "sigmoid", "tanh": "tanh", "exp": "exp"}


LIBRARY = Library("jax", _outlet, content=None, engines=lambda model: ("autodiff",))

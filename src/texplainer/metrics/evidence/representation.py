"""The last hidden layer of a network, which relative representation stability looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.errors import Unsupported
from texplainer.models.perceptron import Layers


def hidden_of(model: Any) -> Callable[[Any], np.ndarray]:
    """Build a function from the model's table to the units of its last hidden layer, (rows, units).

    Raises
    ------
    Unsupported : when the model is neither a scikit-learn MLP (alone or last in a pipeline) nor torch.
    """
    if hasattr(model, "coefs_"):
        return lambda table: _mlp(model, np.asarray(table))
    if hasattr(model, "steps") and hasattr(model.steps[-1][1], "coefs_"):
        return lambda table: _mlp(model.steps[-1][1], np.asarray(model[:-1].transform(table)))
    if any(base.__module__.startswith("torch.nn") for base in type(model).__mro__):
        return lambda table: _torch(model, table)
    raise Unsupported(f"a {type(model).__name__} has no hidden layer; RRS is for networks.")


def _mlp(network: Any, rows: np.ndarray) -> np.ndarray:
    return Layers(network).forward(rows.astype(np.float64))[-2].copy()  # its buffers are used again


def _torch(network: Any, table: Any) -> np.ndarray:
    """Catch what enters the last linear layer."""
    import torch

    linear = [module for module in network.modules() if isinstance(module, torch.nn.Linear)]
    if len(linear) < 2:
        raise Unsupported("the torch network has no hidden linear layer; RRS needs one.")
    caught: list[Any] = []
    handle = linear[-1].register_forward_pre_hook(lambda module, inputs: caught.append(inputs[0].detach()))
    try:
        with torch.no_grad():
            network(torch.as_tensor(np.asarray(table), dtype=linear[0].weight.dtype))
    finally:
        handle.remove()
    return caught[-1].double().numpy()

"""torch modules."""

from __future__ import annotations

import contextlib
import copy
import inspect
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import Library, ModelAdapter
from texplainer.models.scales import network_outlet
from texplainer.tables.schema import Schema


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    import torch

    _check_inputs(model)
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    device = "cpu" if first is None else first.device

    half = (torch.float16, torch.bfloat16)  # numpy knows one of them

    def call(module: Any, table: Any) -> np.ndarray:
        rows = np.require(np.asarray(table), requirements="W")  # those of pandas are read-only: torch warns
        x = torch.as_tensor(rows, dtype=dtype, device=device)
        with evaluating(model), torch.no_grad():
            found = module(x)
        if not isinstance(found, torch.Tensor):
            raise TypeError(
                f"the module returned a {type(found).__name__}; expected one tensor, (rows, outputs). Wrap "
                "it in a module whose forward(x) returns the part to explain"
            )
        found = found.detach().cpu()
        return (found.float() if found.dtype in half else found).numpy()

    width = np.float64 if dtype == torch.float64 else np.float32
    inner, ending = without_ending(model)
    scores = partial(call, inner) if inner is not model else None
    if not ending:
        ending = _last_operation(model, torch.zeros((1, schema.width), dtype=dtype, device=device))
    unit = torch.finfo(dtype).eps / 2 if dtype in half else None
    array = replace(schema, kind="array")
    return network_outlet("torch", partial(call, model), array, width, ending, scores, unit)


def _check_inputs(model: Any) -> None:
    parameters = inspect.signature(model.forward).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in parameters if p.kind in plain and p.default is inspect.Parameter.empty]
    if len(needed) > 1:
        raise InputError(
            f"the module takes {len(needed)} inputs ({', '.join(needed)}); expected one, (rows, features). "
            "Wrap it in a module whose forward(x) takes all columns and distributes them."
        )


def without_ending(model: Any) -> tuple[Any, str]:
    """Return a Sequential without its final sigmoid or softmax, and the name of that layer."""
    import torch

    if type(model) is not torch.nn.Sequential or len(model) < 2:
        return model, ""
    last = model[-1]
    if type(last) is torch.nn.Sigmoid:
        return model[:-1], "sigmoid"
    if type(last) is torch.nn.Softmax and last.dim in (1, -1):
        return model[:-1], "softmax"
    return model, ""


#: the last operation of a graph -> the kind of ending; any other one may return scores
ENDINGS = {
    "logsoftmax": "log_softmax",
    **{name: name for name in ("sigmoid", "softmax", "relu", "softplus", "tanh", "exp", "elu")},
}


def _last_operation(model: Any, x: Any) -> str:
    """Find the last operation of one forward pass among `ENDINGS`, ignoring reshapes."""
    import torch

    try:
        with torch.enable_grad(), torch.random.fork_rng([]), evaluating(model):
            node = model(x.requires_grad_()).grad_fn
    except Exception:
        return ""
    while node is not None and node.name().startswith(("View", "Squeeze", "Unsqueeze", "Reshape")):
        node = node.next_functions[0][0]
    name = "" if node is None else node.name().lower().partition("backward")[0]
    return ENDINGS.get(name, "")


_LOCK = threading.Lock()
#: module in use -> how many calls use it now, and the mode its owner left it in
_IN_USE: weakref.WeakKeyDictionary[Any, tuple[int, bool]] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a torch module into eval mode; restore every submodule's mode on exit.

    Threads may share a module: the first call switches it, and the last one restores it.
    """
    parts = list(module.modules())
    with _LOCK:
        for part in parts:
            count, mode = _IN_USE.get(part, (0, part.training))
            _IN_USE[part] = (count + 1, mode)
        with contextlib.suppress(NotImplementedError):  # an exported program has one mode only
            module.eval()
    try:
        yield
    finally:
        with _LOCK:
            for part in parts:
                count, mode = _IN_USE.pop(part)
                if count > 1:
                    _IN_USE[part] = (count - 1, mode)
                else:
                    part.training = mode


def evaluation_copy(module: Any) -> Any:
    """A copy in eval mode, for a library that changes the module it is given; the user's stays as it is."""
    return copy.deepcopy(module).eval()


def _content(model: Any) -> Any:
    """Return content that is the same in every process (hashes of tensors are not)."""
    return repr(model), {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}


LIBRARY = Library("torch", _outlet, content=_content, engines=lambda model: ("autodiff",))

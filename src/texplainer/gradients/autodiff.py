"""Exact gradients by the automatic differentiation of torch, JAX and Keras 3.

Each library contributes the map of the network's raw outputs (`RAW_MAPS`): a forward pass, and a
pullback that is the library's own reverse pass, one per explained output. The link to probabilities
or margins is shared (`maps`). A model is left as it was found: its training mode, its parameters'
gradients and the library's random state do not change; its float width and device are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from texplainer.errors import InputError, ModelError, Unsupported
from texplainer.gradients import maps
from texplainer.gradients.engine import BATCH, Engine, Settings
from texplainer.gradients.maps import Map, Pullback, compose, identity
from texplainer.gradients.steps import check_steps
from texplainer.models.predictor import Predictor
from texplainer.types import Array

BLOCK = BATCH // 3  # more than `maps.BLOCK`, for a library's calls cost more than numpy's
TOLERANCE = {8: 1e-6, 4: 1e-3}  # float32 products of another shape are summed in another order


def build(predictor: Predictor, background: Array, settings: Settings) -> Engine:
    """Differentiate the model by its own library."""
    library = "jax" if predictor.kind == "callable" else predictor.kind
    if predictor.schema.encoded:
        raise Unsupported("categorical columns reach the model as something else than numbers.")
    model, ending = predictor.model, predictor.ending
    if library == "torch" and ending and predictor.scale == "log-odds":
        from texplainer.models.libraries.torch import without_ending

        model, found = without_ending(model)
        ending = "" if found else ending
    raw, how = RAW_MAPS[library](model, predictor.dtype)
    linked = compose(raw, _link(predictor.scale, _columns(raw, background), ending))
    narrow = 8 if predictor.unit < 1e-10 else 4
    block = min(BLOCK, settings.batch_rows)  # no more rows at once than the user allows
    with _supported():
        engine = maps.checked_engine(
            linked,
            "autodiff",
            how,
            predictor,
            background,
            TOLERANCE[narrow],
            block,
            narrow=library == "torch",
        )
    check_steps(engine, predictor, background)
    return engine


def _columns(raw: Map, background: Array) -> int:
    with _supported():
        return raw(background[:1])[0].shape[1]


@contextmanager
def _supported() -> Iterator[None]:
    """A model that its library cannot run or differentiate is explained by another engine."""
    try:
        yield
    except (Unsupported, InputError, ModelError):
        raise
    except Exception as error:
        why = next(iter(str(error).splitlines()), "")
        raise Unsupported(f"its reverse pass failed with {type(error).__name__}: {why}.") from error


def _link(scale: str, columns: int, ending: str = "") -> Map:
    """Mirror what the adapter does to a network's raw outputs, or to its probabilities."""
    if scale == "raw":
        return identity
    if ending:
        probability = maps.pair if columns == 1 else identity
        return probability if scale == "probability" else compose(probability, maps.log_odds)
    return maps.of_scores(scale, columns)


# ---------------------------------------------------------------- one map per library


def _torch(model: Any, dtype: np.dtype) -> tuple[Map, str]:
    @cache
    def of(width: np.dtype) -> Map:
        """The module itself; for rows in float32 a copy of a float64 module in float32."""
        short = width == np.float32 and dtype == np.float64
        module = copy.deepcopy(model).float() if short else model
        return _torch_map(module, module)

    return lambda rows: of(rows.dtype)(rows), "torch.autograd, one reverse pass per output"


def _torch_map(module: Any, call: Callable[[Any], Any]) -> Map:
    import torch

    from texplainer.models.libraries.torch import evaluating

    first = next((p for p in module.parameters() if p.is_floating_point()), None)  # seeds are integers
    kind = torch.get_default_dtype() if first is None else first.dtype
    device = torch.device("cpu") if first is None else first.device
    forked = [device] if device.type == "cuda" else []

    def forward(rows: Array) -> tuple[Array, Pullback]:
        kept = torch.float32 if rows.dtype == np.float32 else torch.float64  # of the slopes
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.random.fork_rng(forked),
            evaluating(module),
        ):
            x = torch.tensor(rows, dtype=kind, device=device, requires_grad=True)
            y = call(x).reshape(len(rows), -1)
        if not y.requires_grad:
            raise Unsupported("its outputs do not depend on its inputs through differentiable operations.")

        def pullback(d: Array) -> Array:
            seeds = torch.as_tensor(d, dtype=kind, device=device)
            each = [
                torch.autograd.grad(y, x, seed, retain_graph=True, allow_unused=True)[0] for seed in seeds
            ]
            # None where all ways from the inputs to the outputs have steps: `check_steps` finds these
            out = [torch.zeros_like(x) if one is None else one for one in each]
            found = out[0][None] if len(out) == 1 else torch.stack(out)
            return found.detach().cpu().to(kept).numpy()

        return y.detach().cpu().double().numpy(), pullback

    return forward


def _jax(model: Any, dtype: np.dtype) -> tuple[Map, str]:
    return _jax_map(model), "jax.vjp, one reverse pass per output"


def _jax_map(call: Callable[[Any], Any]) -> Map:
    import jax

    width = np.float64 if jax.config.jax_enable_x64 else np.float32  # type: ignore[attr-defined]

    def columns(x: Any) -> Any:
        return call(x).reshape(x.shape[0], -1)

    value = jax.jit(columns)
    reverse_pass = jax.jit(lambda x, seed: jax.vjp(columns, x)[1](seed)[0])

    def forward(rows: Array) -> tuple[Array, Pullback]:
        x = rows.astype(width)

        def pullback(d: Array) -> Array:
            return np.stack([np.asarray(reverse_pass(x, seed), np.float64) for seed in d.astype(width)])

        return np.asarray(value(x), np.float64), pullback

    return forward


def _keras(model: Any, dtype: np.dtype) -> tuple[Map, str]:
    import keras

    backend = keras.backend.backend()
    if backend == "jax":
        return _jax_map(lambda x: model(x, training=False)), "Keras through jax.vjp"
    if backend == "torch":
        return _torch_map(model, lambda x: model(x, training=False)), "Keras through torch.autograd"
    raise Unsupported(f"Keras runs on {backend!r} here; its derivatives are taken on 'jax' or 'torch'.")


RAW_MAPS: dict[str, Callable[[Any, np.dtype], tuple[Map, str]]] = {
    "torch": _torch,
    "jax": _jax,
    "keras": _keras,
}

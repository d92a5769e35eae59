"""A model of images and one image -> a model of how much of each segment is present.

    g(z) = f(x m(z) + b (1 - m(z)))      m(z): every pixel's segment's presence, x: the image, b: its baseline

g is a model like any other, with one numeric feature a segment, so all that explains tables explains it.
Where f can be differentiated by its own library g is written in that library too, and the chain rule leads
through the mask. Elsewhere g is a plain function.

The explanations of several images are joined; images of fewer segments get features that do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import axes_of
from texplainer.images.pictures import Layout
from texplainer.images.segments import Segments
from texplainer.models.libraries import library_of, uses_jax
from texplainer.tables.schema import Schema


@dataclass(frozen=True)
class SegmentedImage:
    """One image, what stands for it where it is absent, and its segments."""

    image: np.ndarray  # in the model's layout
    baseline: np.ndarray
    segments: Segments
    layout: Layout
    tensors: bool = False

    @property
    def size(self) -> int:
        """How many segments there are."""
        return len(self.segments.names)

    def masks(self, z: Any) -> Any:
        """Every pixel's presence, (rows, height, width) with an axis for the channels where there is one."""
        maps = z[:, self.segments.labels]
        axis = self.channel_axis
        return maps if axis is None else maps[:, None] if axis == 1 else maps[..., None]

    @property
    def channel_axis(self) -> int | None:
        """Where a map of presences gets its axis for the channels; None where it has one."""
        return self.layout.channel_axis if self.segments.labels.ndim < self.image.ndim else None

    def owners(self) -> np.ndarray:
        """The segment of each number of the flattened image."""
        seen = self.layout.seen(self.image)
        return self.layout.given(np.broadcast_to(self.segments.labels[..., None], seen.shape)).reshape(-1)

    def by_pixel(self) -> SegmentedImage:
        """The same with every pixel a segment of its own."""
        shape = self.segments.labels.shape
        return replace(self, segments=Segments.numbered(shape))

    def of_numbers(self) -> SegmentedImage:
        """An image whose segments are the single numbers of this one; their presences are its values."""
        ones, zeros = np.ones_like(self.image), np.zeros_like(self.image)
        return replace(self, image=ones, baseline=zeros, segments=Segments.numbered(self.image.shape))


@dataclass(frozen=True)
class Masked:
    """What the tabular explainer is given, and the scale it is on where the explainer cannot know it."""

    model: Any
    scale: str | None = None


class MaskedFunction:
    """g as a plain function of arrays; equal rows are shown to the model once."""

    def __init__(self, call: Callable[[Any], Any], scene: SegmentedImage) -> None:
        self.call, self.scene = call, scene

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Predict the masked images."""
        kinds, back = np.unique(z, axis=0, return_inverse=True)
        mask = self.scene.masks(kinds)
        images = self.scene.image * mask + self.scene.baseline * (1 - mask)
        return np.asarray(self.call(images.astype(self.scene.image.dtype)))[back.reshape(-1)]


def masked(model: Any, scene: SegmentedImage, scale: str) -> Masked:
    """Write a model of one scene's segments."""
    name = library_of(model).name
    if name == "callable" and scene.tensors and callable(model):
        name = "torch"  # a function that takes tensors
    if name == "callable" and uses_jax(model):
        name = "jax"
    write = DIFFERENTIABLE.get(name, lambda model, scene: None)
    found = write(model, scene)
    return Masked(found) if found is not None else _plain(model, scene, scale)


def _plain(model: Any, scene: SegmentedImage, scale: str) -> Masked:
    """A model that is called by the file of its library, on a scale chosen here."""
    adapter = library_of(model).adapter(model, Schema(scene.segments.names, "array"))
    chosen = adapter.default if scale == "auto" else scale
    if chosen not in adapter.scales:
        raise InputError(
            f"scale={scale!r} is not available for a {type(model).__name__}; it offers "
            f"{', '.join(adapter.scales)}. Choose one of these, or scale='auto'."
        )
    return Masked(MaskedFunction(adapter.scales[chosen], scene), chosen)


# ---------------------------------------------------------------- libraries with derivatives


def _torch(model: Any, scene: SegmentedImage) -> Any:
    return _torch_module(model, model, scene)


def _torch_module(module: Any, call: Callable[[Any], Any], scene: SegmentedImage) -> Any:
    import torch

    first = (
        next((p for p in module.parameters() if p.is_floating_point()), None) if _is_module(module) else None
    )
    place = {} if first is None else {"dtype": first.dtype, "device": first.device}

    class MaskedModule(torch.nn.Module):
        """g as a torch module."""

        image: torch.Tensor
        baseline: torch.Tensor
        labels: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.part = module  # its parameters tell float width and device
            default = place or {"dtype": torch.get_default_dtype()}
            for name in ("image", "baseline"):
                self.register_buffer(name, torch.as_tensor(getattr(scene, name).copy()).to(**default))
            self.register_buffer("labels", torch.as_tensor(scene.segments.labels).to(place.get("device")))

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            """Predict the masked images."""
            if not torch.is_grad_enabled():  # equal rows are shown to the model once
                kinds, back = torch.unique(z, dim=0, return_inverse=True)
                return self._seen(kinds)[back]
            return self._seen(z)

        def _seen(self, z: torch.Tensor) -> torch.Tensor:
            maps = z[:, self.labels]
            axis = scene.channel_axis
            mask = maps if axis is None else maps.unsqueeze(axis)
            return call(self.image * mask + self.baseline * (1 - mask))

    return MaskedModule()


def _is_module(model: Any) -> bool:
    return hasattr(model, "parameters")


def _jax(model: Any, scene: SegmentedImage) -> Any:
    import jax

    return jax.jit(lambda z: model(scene.image * scene.masks(z) + scene.baseline * (1 - scene.masks(z))))


def _keras(model: Any, scene: SegmentedImage) -> Any:
    import keras

    backend = keras.backend.backend()
    if backend == "jax":
        return _jax(lambda images: model(images, training=False), scene)
    if backend == "torch":
        return _torch_module(model, lambda images: model(images, training=False), scene)
    return None


#: library -> g written in it; None where it cannot be
DIFFERENTIABLE: dict[str, Callable[[Any, SegmentedImage], Any]] = {
    "torch": _torch,
    "jax": _jax,
    "keras": _keras,
}


def joined_images(
    parts: Sequence[Explanation], scenes: Sequence[SegmentedImage], **words: Any
) -> Explanation:
    """One Explanation of all images, with the images and their maps of segments among its arrays."""
    width = max(scene.size for scene in scenes)
    names = set.intersection(*(set(part.arrays) for part in parts))
    arrays = {
        name: np.concatenate([_padded(name, part.arrays[name], width) for part in parts])
        for name in parts[0].arrays
        if name in names
    }
    arrays["segment"] = np.stack([_numbers(scene, width) for scene in scenes])
    arrays["segments"] = np.stack([scene.segments.labels for scene in scenes]).astype(np.int32)
    arrays["image"] = np.stack([scene.layout.seen(scene.image) for scene in scenes])
    same = all(scene.segments.names == scenes[0].segments.names for scene in scenes)
    features = scenes[0].segments.names if same else tuple(f"segment {j}" for j in range(width))
    first = parts[0]
    units = (first.units[0],) * width if first.units else ()
    return replace(first, arrays=arrays, feature_names=features, units=units, live=None, **words)


def _padded(name: str, array: np.ndarray, width: int) -> np.ndarray:
    """Give an array of one image rows, and zeros for features it does not have."""
    if name == "base_values" and array.ndim == 1:
        array = array[None]
    axes = axes_of(name, array)
    missing = width - array.shape[1] if "f" in axes else 0
    return np.pad(array, [(0, 0), (0, missing), *[(0, 0)] * (array.ndim - 2)]) if missing else array


def _numbers(scene: SegmentedImage, width: int) -> np.ndarray:
    """The number each feature has in the map of segments; -1 for one the image does not have."""
    return np.where(np.arange(width) < scene.size, np.arange(width), -1)

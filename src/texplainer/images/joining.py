"""The explanations of single images as one: images of fewer segments get features that do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import axes_of
from texplainer.images.masking import SegmentedImage


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

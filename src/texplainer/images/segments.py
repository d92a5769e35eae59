"""Which pixels belong together: a grid, superpixels, or label maps of the user's own.

To add a way: a function from an image (height, width, channels) and a count to a map of labels, and a line in
`WAYS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.images.pictures import Pictures

COUNT = 64  # segments, where the user does not say how many
LEAST_PIXELS = 4  # of a segment of the automatic grid: small images get fewer


@dataclass(frozen=True)
class Segments:
    """A map of numbers 0 .. n-1, (height, width), and the name of every segment."""

    labels: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def numbered(cls, shape: tuple[int, ...]) -> Segments:
        """A segment for every place of a map."""
        labels = np.arange(int(np.prod(shape))).reshape(shape)
        return cls(labels, tuple(f"pixel {label}" for label in range(labels.size)))


def grid(seen: np.ndarray, count: int) -> np.ndarray:
    """About `count` rectangles, as square as they come."""
    height, width = seen.shape[:2]
    down = int(np.clip(round((count * height / width) ** 0.5), 1, height))
    across = int(np.clip(round(count / down), 1, width))
    return cells(height, width, down, across)


def cells(height: int, width: int, down: int, across: int) -> np.ndarray:
    """A grid of `down` times `across` rectangles."""
    rows, columns = np.arange(height) * down // height, np.arange(width) * across // width
    return rows[:, None] * across + columns


def superpixels(seen: np.ndarray, count: int) -> np.ndarray:
    """Patches of one colour, by scikit-image's SLIC."""
    return slic_labels(seen, count)


#: word -> (image as height, width, channels; count) -> a map of labels
WAYS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "auto": grid,
    "grid": grid,
    "slic": superpixels,
}


def segment(pictures: Pictures, segments: Any, count: int | None) -> list[Segments]:
    """Cut every image into segments."""
    seen = [pictures.layout.seen(image) for image in pictures.pixels]
    shape = seen[0].shape[:2]
    if count is not None and (not isinstance(count, (int, np.integer)) or count < 2):
        raise InputError(f"n_segments={count!r} is invalid; expected at least 2 segments.")
    if isinstance(segments, str):
        if segments not in WAYS:
            raise InputError(
                f"segments={segments!r} is unknown; expected one of {', '.join(WAYS)}, (rows, columns) of a "
                "grid, or maps of labels."
            )
        count = count or int(max(2, min(COUNT, shape[0] * shape[1] // LEAST_PIXELS)))
        maps = [WAYS[segments](image, count) for image in seen]
    elif isinstance(segments, tuple) and len(segments) == 2 and np.ndim(segments[0]) == 0:
        maps = [_asked_cells(shape, segments)] * len(seen)
    else:
        maps = _own_maps(segments, len(seen), shape)
    return [_numbered(labels) for labels in maps]


def _asked_cells(shape: tuple[int, ...], asked: tuple[Any, Any]) -> np.ndarray:
    for given, most in zip(asked, shape, strict=True):
        if not isinstance(given, (int, np.integer)) or not 1 <= given <= most:
            raise InputError(
                f"segments={asked!r} is not a grid for images of {shape[0]} x {shape[1]} pixels; expected "
                "whole numbers of rows and columns, at most one per pixel."
            )
    return cells(shape[0], shape[1], int(asked[0]), int(asked[1]))


def _own_maps(segments: Any, rows: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    maps = np.asarray(segments.detach().cpu() if hasattr(segments, "detach") else segments)
    if maps.shape not in (shape, (rows, *shape)):
        raise InputError(
            f"the maps of segments have shape {maps.shape}; expected {shape}, one map for all images, or "
            f"{(rows, *shape)}, one for each."
        )
    if maps.dtype.kind not in "iub":
        raise InputError(f"the maps of segments hold {maps.dtype} values; expected whole numbers.")
    return [maps] * rows if maps.ndim == 2 else list(maps)


def _numbered(labels: np.ndarray) -> Segments:
    known, numbers = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise InputError(
            "an image has only one segment; expected at least 2. Increase n_segments, or pass a finer map."
        )
    return Segments(numbers.reshape(labels.shape), tuple(f"segment {label}" for label in known.tolist()))


def slic_labels(seen: np.ndarray, count: int) -> np.ndarray:
    """Cut an image (height, width, channels) into about `count` patches of one colour."""
    try:
        from skimage.segmentation import slic
    except ModuleNotFoundError as error:
        raise InputError(
            "segments='slic' needs scikit-image, which is not installed. Install it with: "
            "pip install 'texplainer[images]', or use segments='grid'."
        ) from error
    low, high = float(seen.min()), float(seen.max())
    image = (seen - low) / (high - low) if high > low else np.zeros_like(seen)
    colour = image.shape[-1] == 3
    image = image if colour else image.mean(axis=-1)  # only three channels are a colour to it
    # grey values differ less than colours do, so nearness must count less for them
    return slic(
        image.astype(np.float64),
        n_segments=count,
        compactness=10.0 if colour else 0.1,
        start_label=0,
        channel_axis=-1 if colour else None,
    )

"""Images as the user has them -> arrays of a known layout: numpy or torch, grey or colour, channels anywhere.

Images stay in the layout the model takes; `Layout` says which axis holds the channels, so that everything
that looks at pixels can see them as (height, width, channels).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from texplainer.errors import InputError

CHANNELS = (1, 3, 4)  # grey, colour, colour and opacity
LAYOUTS = ("auto", "first", "last", "none")


@dataclass(frozen=True)
class Layout:
    """Where an image's channels are: "first", "last", or "none" for grey images of two axes."""

    channels: str

    def seen(self, image: np.ndarray) -> np.ndarray:
        """An image as (height, width, channels)."""
        if self.channels == "none":
            return image[..., None]
        return np.moveaxis(image, -3, -1) if self.channels == "first" else image

    def given(self, seen: np.ndarray) -> np.ndarray:
        """The inverse of `seen`."""
        if self.channels == "none":
            return seen[..., 0]
        return np.moveaxis(seen, -1, -3) if self.channels == "first" else seen

    @property
    def channel_axis(self) -> int | None:
        """Where a map (rows, height, width) gets its axis for the channels."""
        return {"first": 1, "last": 3, "none": None}[self.channels]


@dataclass(frozen=True)
class Pictures:
    """Images (rows, ...) in the user's layout; `tensors` says that they came as torch tensors."""

    pixels: np.ndarray
    layout: Layout
    tensors: bool = False


def read_pictures(images: Any, channels: str, value_range: tuple[float, float] | None) -> Pictures:
    """Check images and find their channel axis."""
    if channels not in LAYOUTS:
        raise InputError(f"channels={channels!r} is unknown; expected one of {', '.join(LAYOUTS)}.")
    tensors = type(images).__module__.split(".")[0] == "torch"
    pixels = images.detach().cpu().numpy() if tensors else _stacked(images)
    if pixels.dtype.kind not in "fiub":
        raise InputError(
            f"the images hold {pixels.dtype} values; expected numbers. Resize images of different sizes "
            "first."
        )
    if pixels.ndim not in (3, 4) or 0 in pixels.shape:
        raise InputError(
            f"the images have shape {pixels.shape}; expected (rows, height, width), (rows, height, width, "
            "channels) or (rows, channels, height, width). Give a single image as image[None]."
        )
    layout = Layout(_channels_of(pixels, channels, tensors))
    if not np.isfinite(pixels).all():
        row = int(np.flatnonzero(~np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1))[0])
        raise InputError(f"image {row} contains values that are not finite; correct or drop it.")
    if pixels.dtype.kind in "iub":
        pixels = pixels.astype(np.float32)  # masks are fractions
    if value_range is not None:
        _check_range(pixels, value_range)
    return Pictures(pixels, layout, tensors)


def _stacked(images: Any) -> np.ndarray:
    try:
        return np.asarray(images)
    except ValueError as error:  # rows of unlike shapes
        shapes = sorted({np.shape(image) for image in images}, key=str)
        raise InputError(
            f"the images have the shapes {', '.join(map(str, shapes[:3]))}; expected one shape for all. "
            "Resize them first."
        ) from error


def _channels_of(pixels: np.ndarray, channels: str, tensors: bool) -> str:
    """Find the axis of the channels: the one of length 1, 3 or 4."""
    shape = pixels.shape
    if pixels.ndim == 3:
        if channels in ("first", "last"):
            raise InputError(
                f"channels={channels!r} for images of shape {shape}, which do not have a channel axis; pass "
                "(rows, height, width, channels) or (rows, channels, height, width)."
            )
        return "none"
    if channels == "none":
        raise InputError(f"channels='none' for images of shape {shape}; expected (rows, height, width).")
    fits = {"first": shape[1] in CHANNELS, "last": shape[3] in CHANNELS}
    if channels != "auto":
        if not fits[channels] and fits["last" if channels == "first" else "first"]:
            count = shape[1] if channels == "first" else shape[3]
            raise InputError(
                f"channels={channels!r} makes {count} channels of images of shape {shape}; expected 1, 3 or "
                "4. The channels seem to be on another axis."
            )
        return channels
    if fits["first"] and fits["last"]:
        return "first" if tensors else "last"
    if fits["first"] or fits["last"]:
        return "first" if fits["first"] else "last"
    raise InputError(
        f"images of shape {shape} do not have 1, 3 or 4 channels on the first or last axis; pass "
        "channels='first' or channels='last'."
    )


def _check_range(pixels: np.ndarray, value_range: tuple[float, float]) -> None:
    low, high = value_range
    least, most = float(pixels.min()), float(pixels.max())
    if least < low or most > high:
        hint = " Divide them by 255." if most > 1 >= high and most <= 255 and least >= 0 else ""
        raise InputError(
            f"the images hold values from {least:g} to {most:g}; expected {low:g} to {high:g}, as given by "
            f"value_range. Scale them as in training.{hint}"
        )

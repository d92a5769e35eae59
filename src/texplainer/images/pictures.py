"""Images as the user has them -> arrays of a known layout: numpy or torch, grey or colour, channels anywhere.

Images stay in the layout the model takes; `Layout` says which axis holds the channels, so that everything
that looks at pixels can see them as (height, width, channels).

`baselines_of` makes what replaces an absent segment: a blur, the mean colour, a constant or a given image. To add a
baseline: a function from an image (height, width, channels) to another, and a line in `WORDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

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


BLUR = 0.1  # width of the blur as a part of the longer side


def blur(seen: np.ndarray) -> np.ndarray:
    """The image without its detail."""
    sigma = max(1.0, BLUR * max(seen.shape[:2]))
    return gaussian_filter(seen, (sigma, sigma, 0), mode="nearest")


def mean_colour(seen: np.ndarray) -> np.ndarray:
    """One colour everywhere, the image's mean."""
    return np.broadcast_to(seen.mean(axis=(0, 1)), seen.shape)


WORDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"blur": blur, "mean": mean_colour}


def baselines_of(pictures: Pictures, baseline: Any) -> np.ndarray:
    """A baseline for every image, of the images' shape."""
    pixels, layout = pictures.pixels, pictures.layout
    if isinstance(baseline, str):
        if baseline not in WORDS:
            raise InputError(
                f"baseline={baseline!r} is unknown; expected one of {', '.join(WORDS)}, a number, a colour "
                "or an image."
            )
        made = [layout.given(WORDS[baseline](layout.seen(image))) for image in pixels]
        return np.stack(made).astype(pixels.dtype)
    given = np.asarray(baseline.detach().cpu() if hasattr(baseline, "detach") else baseline)
    if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
        raise InputError(f"baseline={baseline!r} contains values that are not finite numbers.")
    _check_baseline_range(pixels, given)
    return _spread_out(pictures, given).astype(pixels.dtype)


def _spread_out(pictures: Pictures, given: np.ndarray) -> np.ndarray:
    pixels, layout = pictures.pixels, pictures.layout
    colours = layout.seen(pixels[0]).shape[-1]
    if given.ndim == 1 and len(given) == colours:
        one = layout.given(np.broadcast_to(given, layout.seen(pixels[0]).shape))
        return np.broadcast_to(one, pixels.shape)
    if given.ndim == 0 or given.shape in (pixels.shape[1:], pixels.shape):
        return np.broadcast_to(given, pixels.shape)
    raise InputError(
        f"the baseline has shape {given.shape}; expected a number, {colours} numbers of a colour, an image "
        f"of shape {pixels.shape[1:]}, or one for each image, {pixels.shape}."
    )


def _check_baseline_range(pixels: np.ndarray, given: np.ndarray) -> None:
    """A baseline far outside the images' values is one on another scale."""
    low, high = float(pixels.min()), float(pixels.max())
    room = max(high - low, abs(high), abs(low), 1e-12)
    least, most = float(given.min()), float(given.max())
    if least < low - room or most > high + room:
        raise InputError(
            f"the baseline holds values from {least:g} to {most:g}, the images from {low:g} to {high:g}; "
            "expected the same range. Scale the baseline as the images are scaled."
        )

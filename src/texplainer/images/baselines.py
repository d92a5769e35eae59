"""What stands where a segment is absent: a blur, the mean colour, a constant, or a given image.

To add a baseline: a function from an image (height, width, channels) to another, and a line in `WORDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from texplainer.errors import InputError
from texplainer.images.pictures import Pictures

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
    _check_range(pixels, given)
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


def _check_range(pixels: np.ndarray, given: np.ndarray) -> None:
    """A baseline far outside the images' values is one on another scale."""
    low, high = float(pixels.min()), float(pixels.max())
    room = max(high - low, abs(high), abs(low), 1e-12)
    least, most = float(given.min()), float(given.max())
    if least < low - room or most > high + room:
        raise InputError(
            f"the baseline holds values from {least:g} to {most:g}, the images from {low:g} to {high:g}; "
            "expected the same range. Scale the baseline as the images are scaled."
        )

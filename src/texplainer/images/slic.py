"""Superpixels by scikit-image's SLIC (Achanta et al. 2012)."""

from __future__ import annotations

import numpy as np

from texplainer.errors import InputError


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

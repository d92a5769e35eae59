"""Image files in, as arrays a model of images takes; Pillow reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.files.paths import existing, first_line

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Shape:
    """What a model says of the images it takes; None where it does not say."""

    channels_first: bool = True
    channels: int | None = None
    height: int | None = None
    width: int | None = None


def are_pictures(given: Sequence[str]) -> bool:
    """Whether paths are image files or folders of them, rather than a table."""
    return bool(given) and all(
        Path(path).suffix.lower() in SUFFIXES or (Path(path).is_dir() and _is_album(Path(path)))
        for path in given
    )


def picture_paths(given: Sequence[str]) -> list[Path]:
    """The image files among paths and in folders, in order."""
    found: list[Path] = []
    for path in map(Path, given):
        inside = (
            sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
        )
        if not inside:
            kinds = ", ".join(SUFFIXES[:3])
            raise InputError(f"the folder {path} does not contain images; expected files such as {kinds}.")
        found += inside
    return found


def load_pictures(paths: Sequence[Path], shape: Shape) -> np.ndarray:
    """Images as float32 in [0, 1], of the channels and size the model takes, (rows, ...)."""
    images = [_load(path, shape) for path in paths]
    sizes = {image.shape for image in images}
    if len(sizes) > 1:
        raise InputError(
            f"the images have different sizes, such as {sorted(sizes)[:2]} (height, width, channels), and "
            "the model does not define its input size. Resize them first."
        )
    stacked = np.stack(images).astype(np.float32) / 255
    return np.moveaxis(stacked, -1, 1) if shape.channels_first else stacked


def shape_of(model: Any) -> Shape:
    """The shape of the images an ONNX session takes; channels first for anything else."""
    if not hasattr(model, "get_inputs"):
        return Shape()
    known = [n if isinstance(n, int) and n > 0 else None for n in model.get_inputs()[0].shape]
    if len(known) != 4:
        raise InputError(f"the ONNX model takes an input of shape {known}; expected images, of four axes.")
    if known[3] in (1, 3) and known[1] not in (1, 3):
        return Shape(False, known[3], known[1], known[2])
    return Shape(True, known[1], known[2], known[3])


def _is_album(folder: Path) -> bool:
    """Whether a folder holds images, or nothing at all."""
    names = [p.suffix.lower() for p in folder.iterdir()]
    return not names or any(name in SUFFIXES for name in names)


def _load(path: Path, shape: Shape) -> np.ndarray:
    """One image, (height, width, channels) of bytes."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise InputError(
            "image files need Pillow, which is not installed. "
            "Install it with: pip install 'texplainer[images]'"
        ) from error
    try:
        with Image.open(existing(path)) as image:
            grey = shape.channels == 1 or (shape.channels is None and image.mode in ("1", "L"))
            picture = image.convert("L" if grey else "RGB")
            if shape.width and shape.height and picture.size != (shape.width, shape.height):
                picture = picture.resize((shape.width, shape.height))
            pixels = np.asarray(picture)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not an image, or is damaged ({first_line(error)}).") from error
    return pixels[..., None] if grey else pixels

"""Explanations in and out of files, without pickle.

An npz archive: one entry per array, and `explanation.json` for everything else. Text and mixed
columns go into the JSON, so that numpy's own reader opens the archive with `allow_pickle=False`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation import CategoryEffects, Explanation

FORMAT, VERSION = "texplainer-explanation", 1


def save(explanation: Explanation, path: Any) -> None:
    """Write an Explanation to an npz file."""
    arrays = {n: a for n, a in explanation.arrays.items() if a.dtype.kind != "O"}
    text = {n: a.tolist() for n, a in explanation.arrays.items() if a.dtype.kind == "O"}
    categories = {}
    for name, category in explanation.categories.items():
        arrays[f"category/{name}/effects"] = category.effects
        arrays[f"category/{name}/frequencies"] = category.frequencies
        categories[name] = list(category.levels)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "feature_names": explanation.feature_names,
        "output_names": explanation.output_names,
        "scale": explanation.scale,
        "attribution": explanation.attribution,
        "engine": explanation.engine,
        "settings": dict(explanation.settings),
        "dropped": sorted(explanation.dropped),
        "categories": categories,
        "text": text,
    }
    blob = np.frombuffer(json.dumps(header, default=_plain).encode(), dtype=np.uint8)
    with Path(path).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, header=blob, **arrays)


def load(path: Any) -> Explanation:
    """Read what `save` wrote; a damaged or newer file is refused with a word."""
    try:
        with np.load(Path(path), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise
    except Exception as error:
        raise InputError(f"{path} is no saved explanation, or is damaged ({error}).") from error
    if header.get("format") != FORMAT or header.get("version", 0) > VERSION:
        raise InputError(
            f"{path} has format {header.get('format')!r} version {header.get('version')}; this texplainer reads "
            f"{FORMAT!r} up to version {VERSION}. Upgrade texplainer to open it."
        )
    categories = {
        name: CategoryEffects(
            tuple(levels), arrays.pop(f"category/{name}/effects"), arrays.pop(f"category/{name}/frequencies")
        )
        for name, levels in header["categories"].items()
    }
    arrays |= {name: np.array(values, dtype=object) for name, values in header["text"].items()}
    return Explanation(
        arrays,
        tuple(header["feature_names"]),
        tuple(header["output_names"]),
        header["scale"],
        header["attribution"],
        header["engine"],
        header["settings"],
        categories,
        frozenset(header["dropped"]),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")

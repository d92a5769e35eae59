"""What a run depends on, in digests, and words for what changed.

A model of a known library is known by its content; a function by its name and by what it predicts for the
background, for its code cannot be compared. Data is known by names, sizes and dates of its files; where these
do not tell (a frame in memory, a touched file), every finished shard's rows are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import joblib
import numpy as np
from joblib.hashing import NumpyHasher

from texplainer import __version__
from texplainer.execution.shards import bytes_digest
from texplainer.explainer import TExplainer
from texplainer.files.parquet_rows import ParquetRows
from texplainer.models.libraries import library_called

PROBE_ROWS = 1000
IGNORED = {"model", "background", "batch_rows"}  # digested apart, or part of the plan


def run_fingerprint(explainer: TExplainer, source: ParquetRows) -> dict[str, Any]:
    """The fingerprint of a run."""
    settings = {k: plain_setting(v) for k, v in explainer.arguments.items() if k not in IGNORED}
    return {
        "texplainer": __version__,
        "model": model_digest(explainer),
        "background": bytes_digest(np.ascontiguousarray(explainer.background.rows).tobytes()),
        "engine": explainer.engine.name,
        "settings": settings,
        "data": source.identity(),
    }


def model_digest(explainer: TExplainer) -> str:
    """A digest of the model: its type and its content, or its behaviour where content cannot be had."""
    predictor = explainer.predictor
    model, shown = predictor.model, library_called(predictor.kind).content
    name = f"{type(model).__module__}.{getattr(model, '__qualname__', type(model).__qualname__)}"
    try:
        content = None if shown is None else content_digest(shown(model))
    except Exception:
        content = None
    if content is None:
        rows = explainer.background.rows[:PROBE_ROWS]
        content = bytes_digest(np.ascontiguousarray(predictor.everything(rows)).tobytes())
    return bytes_digest(f"{name} {content}".encode())


class _Hasher(NumpyHasher):
    """That of joblib without random generators: a fitted model uses none, and not every file keeps them."""

    def save(self, obj: Any) -> None:
        super().save(type(obj).__name__ if isinstance(obj, GENERATORS) else obj)


GENERATORS = (np.random.RandomState, np.random.Generator)


def content_digest(model: Any) -> str:
    """A digest of all parts of a model, the same in every process and for every time it is loaded."""
    return str(_Hasher(hash_name="md5").hash(model))


def plain_setting(value: Any) -> Any:
    """A setting as JSON can hold it; large ones as a digest."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    try:
        return f"{type(value).__name__} {joblib.hash(value)}"
    except Exception:
        return type(value).__name__


def differing_fingerprints(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Describe the differences between two runs; file dates are ignored."""
    words = [f"the {key}" for key in ("model", "background") if old[key] != new[key]]
    words += [f"{key} ({old[key]} -> {new[key]})" for key in ("texplainer", "engine") if old[key] != new[key]]
    before, after = old["settings"], new["settings"]
    words += [
        f"{key}= ({before.get(key)!r} -> {after.get(key)!r})"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    return words + _data_changes(old["data"], new["data"])


def _data_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    words = [
        f"the data's {key} ({_short(old[key])} -> {_short(new[key])})"
        for key in ("rows", "columns")
        if old[key] != new[key]
    ]
    before, after = old.get("files"), new.get("files")
    if before is not None and after is not None:
        if list(before) != list(after):
            words.append(f"the data's files ({_short(list(before))} -> {_short(list(after))})")
        words += [
            f"the file {name} ({before[name][0]} -> {after[name][0]} bytes)"
            for name in before
            if name in after and before[name][0] != after[name][0]
        ]
    return words


def same_dates(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the data's files are untouched since."""
    files = old["data"].get("files")
    return files is not None and files == new["data"].get("files")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."

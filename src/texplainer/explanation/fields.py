"""The arrays of an Explanation, and what its header says: one table each.

All that is known of a per-row array stands in its row of `FIELDS`: its axes, its dtype, what stands for a row
that could not be explained, and which files hold it. Arrays that are not listed (an engine's own diagnostics)
have rows first and are held by the full formats only. `FACTS` are the parts of an Explanation that are not
arrays, each with its form in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

CATEGORY = "category/"  # begins the name of a feature's level effects, (rows, levels, outputs)


@dataclass(frozen=True)
class Field:
    """One array.

    Attributes
    ----------
    name
        Its key in `Explanation.arrays`.
    axes
        One letter an axis: r rows, f features, o outputs, . its own.
    dtype
        What it is kept as; None: as it was computed (float64 if it was not).
    fill
        The value of a row without one.
    always
        Whether every explanation of an explainer has it.
    short, shard
        Whether CSV and JSON lines hold it; whether the shards of a run do. The full formats hold all.
    shared
        Whether it is the same for every attribution of the same rows, so that a file holds it once.
    diagnostic
        Whether it is one of `Explanation.diagnostics`.
    """

    name: str
    axes: str
    dtype: Any = None
    fill: Any = np.nan
    always: bool = False
    short: bool = False
    shard: bool = False
    shared: bool = False
    diagnostic: bool = True


#: the arrays in the order of a file's columns
FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("index", "r", object, fill=None, short=True, shared=True, diagnostic=False),
        Field("predictions", "ro", always=True, short=True, shard=True, shared=True, diagnostic=False),
        # of each row's own class; otherwise (outputs,), one for all rows, and part of the header
        Field("base_values", "ro", short=True, shard=True, shared=True, diagnostic=False),
        Field("predicted_class", "r", int, fill=0, short=True, shard=True, shared=True),
        Field("stability", "r", "<U9", fill="undefined", always=True, short=True, shard=True),
        Field("reason", "r", object, fill="", always=True, short=True, shard=True),
        Field("relative_change", "ro", always=True, short=True, shard=True),
        Field("values", "rfo", always=True, short=True, shard=True, diagnostic=False),
        Field("error", "rfo", always=True, short=True, shard=True),
        Field("data", "rf", object, fill=None, short=True, shared=True, diagnostic=False),
        Field("evaluations", "r", fill=0, always=True, shard=True),
        Field("completeness", "ro", always=True, shard=True),
        # what only ranks is kept in float32: memory counts per value. A bound must not underflow
        Field("taylor_residual", "ro", np.float32, shard=True),
        Field("gradient", "rfo", always=True, diagnostic=False),
        Field("hessian", "rffo"),
        Field("boundary", "r", np.float32),
        Field("step", "rf", np.float32),
        Field("flags", "rf", np.uint8, fill=0),
        # the slope is 0, but other values of the feature change the prediction
        Field("flat", "rfo", bool, fill=False, shard=True),
        # of images: the feature's number in the map of segments, the maps and the images themselves
        Field("segment", "rf", int, fill=-1, shared=True),
        Field("segments", "r..", np.int32, fill=-1, shared=True),
        Field("image", "r...", shared=True),
    )
}


def field_of(name: str) -> Field | None:
    """What is known of an array; "shapley/values" are the values of another attribution in the same file."""
    return None if name.startswith(CATEGORY) else FIELDS.get(name.rpartition("/")[2])


def is_shared(name: str) -> bool:
    """Whether an array is the same for every attribution; the effects of categories are."""
    field = field_of(name)
    return name.startswith(CATEGORY) or (field is not None and field.shared)


def axes_of(name: str, array: np.ndarray) -> str:
    """The axes of an array by its name; arrays that are not listed have rows first and axes of their own after.

    Base values are one per output, or one per row too where each row has its own output.
    """
    if name == "base_values":
        return "o" if array.ndim == 1 else "ro"
    if name.startswith(CATEGORY):
        return "r.o"
    field = field_of(name)
    return field.axes if field and len(field.axes) == array.ndim else "r" + "." * (array.ndim - 1)


def held(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, np.ndarray]:
    """The arrays that the "short" formats or a "shard" hold, attribution by attribution in the table's order."""
    owners = dict.fromkeys(name.rpartition("/")[0] for name in arrays if not name.startswith(CATEGORY))
    names = [f"{owner}/{n}" if owner else n for owner in owners for n in FIELDS if getattr(FIELDS[n], where)]
    return {name: arrays[name] for name in names if name in arrays}


def is_text(name: str) -> bool:
    """Whether an array holds words."""
    field = field_of(name)
    return field is not None and np.dtype(field.dtype).kind in "UO"


def blank_like(name: str, array: np.ndarray, rows: int) -> np.ndarray:
    """An array for so many rows, none of them known yet; the shape of a row is that of `array`."""
    field = field_of(name)
    dtype = field.dtype if field and field.dtype is np.float32 else array.dtype
    usual: Any = np.nan if array.dtype.kind == "f" else "" if array.dtype.kind in "UO" else 0
    return np.full((rows, *array.shape[1:]), field.fill if field else usual, dtype=dtype)


def blanks(rows: int, features: int, outputs: int, names: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """The arrays every explanation has, and those named, of rows none of which could be explained."""
    sizes = {"r": rows, "f": features, "o": outputs}
    return {
        name: np.full(
            [sizes[axis] for axis in field.axes], field.fill, dtype=field.dtype or _kind(field.fill)
        )
        for name, field in FIELDS.items()
        if field.always or name in names
    }


def _kind(fill: Any) -> type:
    return int if isinstance(fill, int) else float


# ---------------------------------------------------------------- what is not an array


@dataclass(frozen=True)
class Fact:
    """One field of an Explanation that is not an array: its type in JSON, and the way there and back."""

    name: str
    kind: type
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


def _without_seconds(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same explanation gives the same file, however long it took."""
    return {name: value for name, value in settings.items() if name != "seconds"}


#: the fields of an Explanation beside its arrays, its categories, its other attributions and the link to its explainer
FACTS = (
    Fact("feature_names", list, list, tuple),
    Fact("output_names", list, list, tuple),
    Fact("scale", str),
    Fact("attribution", str),
    Fact("engine", str),
    Fact("settings", dict, _without_seconds),
    Fact("dropped", list, sorted, frozenset),
    Fact("units", list, list, tuple),
)

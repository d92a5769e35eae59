"""The arrays of an Explanation, and what its header says: one table each.

All that is known of a per-row array stands in its row of `FIELDS`: its axes, its dtype, what stands for a row
that could not be explained, and which files hold it. Arrays that are not listed (an engine's own diagnostics)
have rows first and are held by the full formats only. `FACTS` are the parts of an Explanation that are not
arrays, each with its form in JSON. Arrays are indexed by number and by name (`position`), and filled block by
block (`RowArrays`), without the rows that fail (`by_halves`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from texplainer.support.messages import suggest

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation

Rows = TypeVar("Rows", range, np.ndarray)
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
        The dtype it is stored in; None keeps that of the computation.
    fill
        The value for rows that were not explained.
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
        Field("flat", "rfo", bool, fill=False, short=True, shard=True),
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


# ---------------------------------------------------------------- the parts of an Explanation


class Diagnostics(Mapping[str, Any]):
    """Per-row diagnostics, as a mapping and as attributes: `diagnostics["error"]`, `diagnostics.error`."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(f"no diagnostic {name!r}; there are {', '.join(self._arrays)}") from None

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(self._arrays)})"


@dataclass(frozen=True)
class CategoryEffects:
    """What each category of one feature would do: f(x with that category) - f(x).

    `effects` is (rows, levels, outputs); `frequencies` (levels,) are those of the background.
    """

    levels: tuple[Any, ...]
    effects: np.ndarray
    frequencies: np.ndarray


@dataclass(frozen=True)
class Live:
    """The link of an Explanation to the explainer that made it.

    `ask(rows, name)` explains rows of the same table, by their positions, in another attribution; `rows` are
    the positions of the Explanation's own. `background()` gives the names of the background's columns and its
    rows, as the user gave them. `source(position)` gives the explainer and one row as a table.
    """

    ask: Callable[[np.ndarray, str], Explanation]
    rows: np.ndarray
    background: Callable[[], tuple[tuple[str, ...], Any]] | None = None
    source: Callable[[int], tuple[Any, Any]] | None = None


# ---------------------------------------------------------------- positions along the axes


def position(key: Any, names: Sequence[str], size: int) -> Any:
    """An index of one axis: names become positions, single numbers are checked."""
    if isinstance(key, str):
        if not names:
            raise KeyError(
                f"{key!r} is not a row: rows have numbers. For a feature write explanation[:, {key!r}]."
            )
        if key not in names:
            known = ", ".join(names[:12]) + (f", ... {len(names) - 12} more" if len(names) > 12 else "")
            raise KeyError(f"{key!r} is not one of {known}.{suggest(key, names)}")
        return names.index(key)
    if isinstance(key, slice):
        return key
    if isinstance(key, (int, np.integer)):
        if not -size <= key < size:
            raise IndexError(f"index {key} is out of range; expected {-size} to {size - 1}.")
        return int(key) % size
    if isinstance(key, (list, tuple)) and all(isinstance(k, str) for k in key):
        return np.array([position(k, names, size) for k in key], dtype=int)
    keys = np.asarray(key)
    if keys.size and keys.dtype.kind not in "iub":
        raise IndexError(f"{key!r} is not an index; expected whole numbers, a slice, a mask or names.")
    if keys.ndim > 1:
        raise IndexError(f"an index has the shape {keys.shape}; expected one dimension for each axis.")
    if keys.dtype.kind == "b" and keys.shape != (size,):
        raise IndexError(f"the mask has the shape {keys.shape}; expected ({size},), one value each.")
    if keys.dtype.kind in "iu" and keys.size and not (-size <= keys.min() and keys.max() < size):
        raise IndexError(f"an index in {keys.tolist()} is out of range; expected {-size} to {size - 1}.")
    return keys.astype(int) if not keys.size else keys


def names_left(names: tuple[str, ...], pick: Any) -> tuple[str, ...]:
    """The names a pick along their axis leaves."""
    if pick is None:
        return names
    left = np.array(names, dtype=object)[pick]
    return (left,) if isinstance(left, str) else tuple(left)


def take(array: np.ndarray, axis: int, pick: Any) -> np.ndarray:
    """Index one axis; a single position keeps the axis, with length 1."""
    index = pick if isinstance(pick, slice) else np.atleast_1d(pick)
    return array[(slice(None),) * axis + (index,)]


# ---------------------------------------------------------------- blocks of rows


class RowArrays:
    """The arrays of all rows, filled block by block."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, block: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        """Write the arrays of some rows, given by their indices."""
        for name, array in arrays.items():
            same = next(other for other, held in arrays.items() if held is array)
            if same != name and self.arrays.get(name, self.arrays[same]) is self.arrays[same]:
                self.arrays[name] = self.arrays[same]
                continue
            if name not in self.arrays:
                self.arrays[name] = blank_like(name, array, self.rows)
            self.arrays[name][block] = array


def by_halves(
    rows: Rows,
    work: Callable[[Rows], None],
    fail: Callable[[int, Exception], None],
    kind: type[Exception] = Exception,
) -> None:
    """Call `work` for all rows, or for halves of them where it raises an error of this `kind`.

    `fail` is called with each row that fails by itself and with its error. Calls come in the order of the rows.
    """
    try:
        work(rows)
    except kind as error:
        if len(rows) == 1:
            fail(int(rows[0]), error)
            return
        half = len(rows) // 2
        by_halves(rows[:half], work, fail, kind)
        by_halves(rows[half:], work, fail, kind)


def of_predicted_class(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Keep each row's own greatest output only."""
    pick = arrays["predictions"].argmax(axis=1)
    out = {"predicted_class": pick}
    for name, array in arrays.items():
        if axes_of(name, array).endswith("o"):
            index = pick.reshape(-1, *(1,) * (array.ndim - 1))
            array = np.take_along_axis(array, index, axis=array.ndim - 1)
        out[name] = array
    return out

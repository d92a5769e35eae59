"""Forgeries of a saved result: one claim changed, everything sealed anew, as a careful forger would."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.files import audit, results
from texplainer.files.formats import FORMATS
from texplainer.support import hashing

Forge = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def forge_file(source: Path, target: Path, forge: Forge) -> Path:
    """Change a result and seal it anew: no fingerprint betrays it."""
    header, arrays = results.read_result(source)
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    forge(header, arrays)
    record = header.get("record")
    if isinstance(record, dict) and isinstance(record.get("values"), dict):
        record["values"] = {name: hashing.of_array(array) for name, array in arrays.items()}
        if isinstance(record.get("data"), dict) and "fingerprint" in record["data"]:
            record["data"]["fingerprint"] = record["values"]["data"]
        if isinstance(record.get("configuration"), dict):
            record["configuration"]["sha256"] = hashing.of_facts(record["configuration"].get("options"))
    sink = FORMATS[target.suffix].open(target)
    names = header.get("feature_names"), header.get("output_names")
    sink.write(arrays, *names)
    sink.close(lambda layout: audit.seal({**header, "layout": layout}))
    return target


def array_forgeries(source: Path) -> Iterator[tuple[str, Forge]]:
    """One cell of every array, by a little and by much; a claim too good; an array too many."""
    _, arrays = results.read_result(source)
    for name, array in arrays.items():
        for word, change in _cell_changes(array):
            copy_of = array.copy()
            change(copy_of)
            if hashing.of_array(copy_of) == hashing.of_array(array):
                continue  # nothing was forged: a missing number that is missing anyway
            yield f"{name}: {word}", lambda h, a, name=name, change=change: change(a[name])
    if np.isfinite(arrays["error"]).any() and np.nanmax(arrays["error"]) > 0:
        yield "error: a quarter of every bound", lambda h, a: np.multiply(a["error"], 0.25, out=a["error"])
    yield "error: no error at all", lambda h, a: a["error"].fill(0.0)
    if (arrays["stability"] != "stable").any():
        yield "stability: every row is stable", lambda h, a: a["stability"].fill("stable")
    yield "an array nobody computed", lambda h, a: a.update(trust=np.ones(len(a["values"])))
    for name in arrays:
        if name != "data":  # the forger above needs it
            yield f"{name} left out", lambda h, a, name=name: a.__delitem__(name)
            yield f"{name}: a row too few", lambda h, a, name=name: a.update({name: a[name][:-1]})


def _cell_changes(array: np.ndarray) -> Iterator[tuple[str, Callable[[np.ndarray], None]]]:
    kind = array.dtype.kind
    if kind == "f":
        yield "a cell of 1,000", lambda a: a.__setitem__(_first(a), 1000.0)
        yield "a cell without a number", lambda a: a.__setitem__(_first(a), np.nan)
        if np.isfinite(array).any() and np.nanmax(np.abs(array)) > 0:
            yield "its greatest cell by a thousandth of a third", _a_little
    elif kind in "iu":
        yield "a whole number more", lambda a: a.__setitem__(_first(a), a[_first(a)] + 1)
    elif kind == "b":
        yield "yes for no", lambda a: a.__setitem__(_first(a), ~a[_first(a)])
    else:
        yield "another word", lambda a: a.__setitem__(_first(a), "forged")


def _first(array: np.ndarray) -> tuple[int, ...]:
    """The first cell that is a number, or just the first."""
    if array.dtype.kind == "f" and np.isfinite(array).any():
        return tuple(int(i[0]) for i in np.nonzero(np.isfinite(array)))
    return (0,) * array.ndim


def _a_little(array: np.ndarray) -> None:
    where = np.unravel_index(np.nanargmax(np.abs(array)), array.shape)
    factor = 1 + 1 / 3000 if array.ndim < 3 else 3.0
    array[where] *= factor


HEADER_FORGERIES: dict[str, Forge] = {
    "names swapped": lambda h, a: h.update(feature_names=h["feature_names"][::-1]),
    "a name changed": lambda h, a: h["feature_names"].__setitem__(0, "income"),
    "another output": lambda h, a: h.update(output_names=["approved"] * len(h["output_names"])),
    "another scale": lambda h, a: h.update(scale="probability" if h["scale"] != "probability" else "raw"),
    "another attribution": lambda h, a: h.update(attribution="shapley"),
    "another engine": lambda h, a: h.update(engine="tree"),
    "base values moved": lambda h, a: h.update(base_values=[b + 0.01 for b in h["base_values"]]),
    "another unit": lambda h, a: h["units"].__setitem__(0, "this category"),
    "a setting changed": lambda h, a: h["settings"].update(width=0.123),
    "a setting added": lambda h, a: h["settings"].update(approved=True),
    "a setting left out": lambda h, a: h["settings"].pop("why") and None,
    "another model by name": lambda h, a: h["settings"].update(model="LinearRegression"),
    "fingerprints of another": lambda h, a: h["settings"]["fingerprints"].update(model="0" * 64),
    "a category invented": lambda h, a: (h["categories"].update(x=["a"]), h["frequencies"].update(x=[1.0]))[
        0
    ],
    "an axis dropped": lambda h, a: h.update(dropped=sorted({*h["dropped"], "r"})),
    "an entry added": lambda h, a: h.update(certified="yes"),
    "another model's fingerprint": lambda h, a: h["record"]["model"].update(sha256="0" * 64),
    "another data's fingerprint": lambda h, a: h["record"]["data"].update(sha256="0" * 64),
    "another background's fingerprint": lambda h, a: h["record"]["background"].update(sha256="0" * 64),
    "another number of rows": lambda h, a: h["record"]["data"].update(rows=7),
    "another sample": lambda h, a: h["record"]["background"].update(sampled_rows=3),
    "predictions' fingerprint": lambda h, a: h["record"]["model"].update(fingerprint="0" * 64),
    "background's fingerprint": lambda h, a: h["record"]["background"].update(fingerprint="0" * 64),
    "another configuration": lambda h, a: h["record"]["configuration"]["options"].update(step=0.02),
    "a column left out": lambda h, a: h["record"]["configuration"]["options"]["columns"].pop() and None,
}

#: headers of the wrong kind: each must give one sentence
MALFORMED: dict[str, Forge] = {
    f"{name} is {word}": lambda h, a, name=name, value=value: h.update({name: value})
    for name in (*results.HEADER, "version", "format")
    if name not in ("sha256", "layout")
    for word, value in (("a number", 33), ("null", None), ("a list of lists", [[1], {}]), ("a text", "x"))
    if not isinstance(value, results.HEADER.get(name, ()))
    or name in ("feature_names", "output_names", "units")
} | {
    f"record.{name} is {word}": lambda h, a, name=name, value=value: h["record"].update({name: value})
    for name in results.RECORD
    for word, value in (("a number", 3), ("null", None), ("a list", [1]))
}

"""Odd frames: headers, indexes, categories, cells and dtypes.

The explained prediction is the model's answer to the user's own frame, and the values are those of a plain frame where
there is one; or a sentence says what cannot be explained.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pathlib
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore")

COUNT = 40
N = np.random.default_rng(5).normal(size=COUNT)
Z = np.random.default_rng(6).integers(0, 5, COUNT)
W = np.array(["north", "south", "east"])[Z % 3]
HOLES = np.arange(COUNT) % 7 == 3
TIMES = pd.to_datetime("2021-03-27") + pd.to_timedelta(7 * np.arange(COUNT), "h")
Make = Callable[[], Any]


def columns_of(table: Any) -> list[list[Any]]:
    if hasattr(table, "column_names"):
        return [column.to_pylist() for column in table.columns]
    if isinstance(table, pl.DataFrame):
        return [column.to_list() for column in table.get_columns()]
    if isinstance(table, np.ndarray):
        return [list(column) for column in table.T]
    return [list(table.iloc[:, j]) for j in range(table.shape[1])]


def score(value: Any) -> float:
    """Numbers as numbers, anything else by its text."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return 7.0
    if isinstance(value, (bool, np.bool_)):
        return 3.0 * bool(value)
    if isinstance(value, (int, float, np.number, decimal.Decimal)):
        return float(value)
    return zlib.crc32(str(value).encode()) % 1000 / 100


def model(table: Any) -> np.ndarray:
    columns = columns_of(table)
    return sum((j + 1) * np.array([score(v) for v in column]) for j, column in enumerate(columns))


def two(c: Any, n: Any = None) -> pd.DataFrame:
    return pd.DataFrame({"n": N if n is None else n, "c": c})


def objects(values: Any) -> pd.DataFrame:
    return two(pd.Series(list(values), dtype=object))


def category(values: Any, levels: Any = None, ordered: bool = False) -> pd.DataFrame:
    return two(pd.Categorical(values, categories=levels, ordered=ordered))


def headed(names: Any) -> pd.DataFrame:
    frame = pd.DataFrame(np.column_stack([N, Z]))
    frame.columns = names
    return frame


def in_polars(column: Any) -> Any:
    return pl.DataFrame({"n": N, "c": column})


def in_arrow(column: Any) -> Any:
    return pa.table({"n": N, "c": column})


HEADERS = {
    "multi-index": pd.MultiIndex.from_tuples([("g", "n"), ("g", "c")]),
    "numbers": [0, 1],
    "other numbers": [10, 3],
    "None": [None, "a"],
    "NaN": [np.nan, "a"],
    "bytes": [b"a", b"b"],
    "dates": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)],
    "times": pd.date_range("2020", periods=2),
    "intervals": pd.interval_range(0, 2),
    "an empty one": ["", "b"],
    "line feed": ["a\nb", "c"],
    "null character": ["a\0b", "c"],
    "spaces": [" a", "a "],
    "two normal forms": ["\u00e9", "e\u0301"],
    "long": ["x" * 100_000, "b"],
    "booleans": [True, False],
    "tuples": [("a", 1), ("b", 2)],
    "categories": pd.CategoricalIndex(["a", "b"]),
    "a named index": pd.Index(["a", "b"], name="foo"),
    "names of arrays": ["output", "values"],
    "slash": ["values/a", "a"],
    "methods": ["__len__", "index"],
    "right to left": ["\u202eabc", "b"],
    "no width": ["a\u200b", "a"],
    "case": ["A", "a"],
}
TWICE = {
    "multi-index": pd.MultiIndex.from_tuples([("g/n", "c"), ("g", "n/c")]),
    "number and text": [1, "1"],
    "None": [None, None],
    "empty": ["", ""],
    "the same": ["a", "a"],
    "boolean and text": [True, "True"],
}
INDEXES = {
    "twice": [0] * COUNT,
    "multi-index": pd.MultiIndex.from_arrays([np.arange(COUNT), W]),
    "times": TIMES,
    "NaN": [np.nan] * COUNT,
    "texts": [str(i) for i in range(COUNT)],
    "reversed": range(COUNT, 0, -1),
    "intervals": pd.interval_range(0, COUNT),
    "mixed": [i if i % 2 else str(i) for i in range(COUNT)],
    "categories": pd.CategoricalIndex(W),
    "None": [None] * COUNT,
    "periods": pd.period_range("2020", periods=COUNT),
    "zoned times": TIMES.tz_localize("UTC"),
    "fractions": np.arange(COUNT) / 2,
    "booleans": [True] * COUNT,
}
#: one frame, passed as background and as rows
FRAMES: dict[str, Make] = {
    "unused categories": lambda: category(W, ["a", "north", "b", "south", "east", "z"]),
    "unused ordered categories": lambda: category(W, ["a", "north", "b", "south", "east", "z"], True),
    "only missing categories": lambda: category([None] * COUNT, ["a", "b"]),
    "no categories": lambda: category([None] * COUNT, []),
    "one category": lambda: category(["a"] * COUNT),
    "categories of fractions": lambda: category(np.where(HOLES, np.nan, Z / 2)),
    "categories of intervals": lambda: two(pd.cut(N, 4)),
    "categories of periods": lambda: category(pd.period_range("2020", periods=5).take(Z)),
    "categories of tuples": lambda: two(pd.Series([("a", int(z)) for z in Z]).astype("category")),
    "mixed categories": lambda: category([int(z) if z % 2 else str(z) for z in Z]),
    "a number and its text": lambda: category([1 if z % 2 else "1" for z in Z]),
    "categories of durations": lambda: category(pd.to_timedelta(Z, "h")),
    "categories of zoned times": lambda: category(TIMES.tz_localize("UTC")[Z]),
    "categories of Decimals": lambda: category([decimal.Decimal(int(z)) for z in Z]),
    "categories of bytes": lambda: category([w.encode() for w in W]),
    "categories of huge integers": lambda: category(2**60 + Z.astype(object)),
    "categories of nullable integers": lambda: two(pd.Series(Z, dtype="Int64").astype("category")),
    "categories of strings": lambda: two(pd.Series(W, dtype="string").astype("category")),
    "categories of nullable booleans": lambda: two(
        pd.Series(Z % 2 == 0, dtype="boolean").astype("category")
    ),
    "categories of dates": lambda: category([d.date() for d in TIMES[Z]]),
    "the empty category": lambda: category(np.where(HOLES, "", W)),
    "a category called nan": lambda: category(np.where(HOLES, "nan", W)),
    "times of several zones": lambda: objects(
        t.tz_localize("UTC" if i % 2 else "Asia/Tokyo") for i, t in enumerate(TIMES)
    ),
    "times as objects": lambda: objects(t.to_pydatetime() for t in TIMES),
    "durations as objects": lambda: objects(dt.timedelta(hours=int(z)) for z in Z),
    "numpy times as objects": lambda: objects(np.datetime64(t) for t in TIMES),
    "times of day": lambda: objects(dt.time(int(z)) for z in Z),
    "only NaT": lambda: two(pd.Series([pd.NaT] * COUNT)),
    "quarters": lambda: two(pd.period_range("2020", periods=COUNT, freq="Q")),
    "periods with NaT": lambda: two(pd.Series(pd.period_range("2020", periods=COUNT, freq="D")).where(~HOLES)),
    "intervals with NaN": lambda: two(pd.Series(pd.interval_range(0, COUNT)).where(~HOLES)),
    "sparse, mostly NaN": lambda: two(pd.arrays.SparseArray(np.where(HOLES, N, np.nan))),
    "sparse booleans": lambda: two(pd.arrays.SparseArray(HOLES)),
    "sparse, mostly 5": lambda: two(pd.arrays.SparseArray(np.where(HOLES, Z, 5), fill_value=5)),
    "sparse texts": lambda: two(pd.arrays.SparseArray(W.astype(object), fill_value="north")),
    "all objects": lambda: two(W).astype(object),
    "integers and fractions": lambda: objects(int(z) if i % 2 else z / 2 for i, z in enumerate(Z)),
    "booleans and texts": lambda: objects(bool(z % 2) if i % 2 else "x" for i, z in enumerate(Z)),
    "bytes and texts": lambda: objects(w.encode() if i % 2 else w for i, w in enumerate(W)),
    "numpy scalars": lambda: objects(map(np.float32, Z)),
    "only None": lambda: objects([None] * COUNT),
    "members of an integer enumeration": lambda: objects(
        map(enum.IntEnum("E", list("abcde")), (Z + 1).tolist())
    ),
    "identifiers": lambda: objects(uuid.UUID(int=int(z)) for z in Z),
    "paths": lambda: objects(map(pathlib.PurePosixPath, W)),
    "tuples": lambda: objects((w, int(z)) for w, z in zip(W, Z, strict=True)),
    "Decimals with NaN": lambda: objects(
        decimal.Decimal("NaN") if hole else decimal.Decimal(int(z)) for hole, z in zip(HOLES, Z, strict=True)
    ),
    "numpy texts": lambda: objects(map(np.str_, W)),
    "negative zero": lambda: two(np.where(HOLES, -0.0, 0.0)),
    "null characters": lambda: objects(np.where(HOLES, "a\0", "a").astype(object)),
    "two normal forms": lambda: objects(np.where(HOLES, "\u00e9", "e\u0301")),
    "empty text and None": lambda: objects(None if hole else "" for hole in HOLES),
    "the text nan and NaN": lambda: objects(
        "nan" if i % 3 == 0 else np.nan if i % 3 == 1 else w for i, w in enumerate(W)
    ),
    "long texts": lambda: objects(w * 10_000 for w in W),
    "a text per row": lambda: objects(f"u{i}" for i in range(COUNT)),
    "constant": lambda: pd.DataFrame({"n": [1.0] * COUNT, "c": ["a"] * COUNT}),
    "float32 and texts": lambda: two(W, N.astype("f4")),
    "long doubles": lambda: two(Z / 2, N.astype(np.longdouble)),
    "reversed view": lambda: pd.DataFrame(np.asfortranarray(np.column_stack([N, Z]))[::2][::-1], columns=["n", "c"]),
    "Arrow half": lambda: in_arrow(pa.array(N.astype("f2"))),
    "Arrow numbers as categories": lambda: in_arrow(pa.array(Z).dictionary_encode()),
    "Arrow fractions as categories": lambda: in_arrow(pa.array(Z / 2).dictionary_encode()),
    "Arrow null category": lambda: in_arrow(
        pa.DictionaryArray.from_arrays(pa.array(Z % 3), pa.array(["a", None, "b"]))
    ),
    "Arrow category twice": lambda: in_arrow(
        pa.DictionaryArray.from_arrays(pa.array(Z % 3), pa.array(["a", "b", "a"]))
    ),
    "Arrow times as categories": lambda: in_arrow(pa.array(TIMES[Z]).dictionary_encode()),
    "Arrow booleans as categories": lambda: in_arrow(pa.array([bool(z % 2) for z in Z]).dictionary_encode()),
    "Arrow long decimals": lambda: in_arrow(pa.array([decimal.Decimal(int(z)) / 4 for z in Z], pa.decimal256(50, 4))),
    "Arrow seconds of the day": lambda: in_arrow(pa.array([dt.time(int(z)) for z in Z], pa.time32("s"))),
    "Arrow fixed bytes": lambda: in_arrow(pa.array([b"ab"] * COUNT, pa.binary(2))),
    "Arrow days in milliseconds": lambda: in_arrow(pa.array([d.date() for d in TIMES], pa.date64())),
    "Arrow unequal dictionaries": lambda: in_arrow(
        pa.chunked_array([pa.array(part).dictionary_encode() for part in (W[:3], W[3:])])
    ),
    "Arrow empty chunk": lambda: in_arrow(pa.chunked_array([pa.array(Z[:0]), pa.array(Z)])),
    "polars chunks of categories": lambda: in_polars(
        pl.concat([pl.Series(part, dtype=pl.Categorical) for part in (W[:5], W[5:])])
    ),
    "polars enumeration with the empty text": lambda: in_polars(
        pl.Series(np.where(HOLES, "", W), dtype=pl.Enum(["", "north", "south", "east"]))
    ),
    "polars objects": lambda: in_polars(pl.Series(list(Z), dtype=pl.Object)),
    "polars bytes": lambda: in_polars(pl.Series([w.encode() for w in W])),
    "polars nulls": lambda: in_polars(pl.Series([None] * COUNT)),
}  # fmt: skip
#: background and rows that differ
PAIRS: dict[str, tuple[Make, Make]] = {
    "categories in another order": (
        lambda: category(W, ["north", "south", "east"]),
        lambda: category(W, ["east", "south", "north"]),
    ),
    "fewer categories": (lambda: category(W), lambda: category(np.where(W == "east", "south", W))),
    "more categories": (lambda: category(W), lambda: category(np.where(HOLES, "west", W))),
    "texts for categories": (lambda: category(W), lambda: two(W)),
    "categories for texts": (lambda: two(W), lambda: category(W)),
    "ordered for unordered": (lambda: category(W), lambda: category(W, None, True)),
    "strings for objects": (lambda: objects(W), lambda: two(pd.Series(W, dtype="string"))),
    "booleans for objects": (lambda: objects((Z % 2 == 0).tolist()), lambda: two(Z % 2 == 0)),
    "integers for fractions": (lambda: two(Z / 2), lambda: two(Z)),
    "objects for fractions": (lambda: two(Z / 2), lambda: objects(Z / 2)),
    "a first missing number": (lambda: two(Z / 2), lambda: two(np.where(HOLES, np.nan, Z / 2))),
    "a first missing category": (lambda: category(W), lambda: category(np.where(HOLES, None, W))),
    "None for NaN": (
        lambda: objects(np.where(HOLES, np.nan, W.astype(object))),
        lambda: objects(np.where(HOLES, None, W.astype(object))),
    ),
    "polars for pandas": (lambda: two(W), lambda: in_polars(W)),
    "pandas for polars": (lambda: in_polars(W), lambda: two(W)),
    "Arrow for polars": (lambda: in_polars(W), lambda: in_arrow(W)),
    "Arrow for polars, categories": (
        lambda: in_polars(pl.Series(W, dtype=pl.Categorical)),
        lambda: in_arrow(pa.array(W).dictionary_encode()),
    ),
    "another enumeration": (
        lambda: in_polars(pl.Series(W, dtype=pl.Enum(["north", "south", "east"]))),
        lambda: in_polars(pl.Series(W, dtype=pl.Enum(["east", "west", "south", "north"]))),
    ),
    "another unit of times": (lambda: two(TIMES.as_unit("ns")), lambda: two(TIMES.as_unit("s"))),
    "one background row": (lambda: two(W)[:1], lambda: two(W)),
}
#: refused -> background, rows (None: the same), words of the sentence
REFUSED: dict[str, tuple[Make, Make | None, str]] = {
    "True and 1": (lambda: objects(True if z % 2 else 1 for z in Z), None, "the column 'c' is object"),
    "booleans and numbers": (
        lambda: objects(bool(z % 2) if i % 2 else int(z) for i, z in enumerate(Z)),
        None,
        "the column 'c' is object",
    ),
    "numbers for booleans": (lambda: two(Z % 2 == 0), lambda: two(Z % 2), "the column 'c' is int64"),
    "booleans for numbers": (lambda: two(Z % 2), lambda: two(Z % 2 == 0), "the column 'c' is bool"),
    "text for booleans": (lambda: two(Z % 2 == 0), lambda: two((Z % 2 == 0).astype(str)), "'True' of column 'c'"),
    "text for numbers": (lambda: two(Z / 2), lambda: two((Z / 2).astype(str)), "in column 'c' is not a number"),
    "text for times": (lambda: two(TIMES), lambda: two(TIMES.astype(str)), "in column 'c'; the background holds times"),
    "numbers for times": (lambda: two(TIMES), lambda: two(TIMES.astype("int64")), "column 'c' holds numbers"),
    "another zone": (
        lambda: two(TIMES.tz_localize("UTC")),
        lambda: two(TIMES.tz_localize("Asia/Tokyo")),
        "the column 'c' is datetime64",
    ),
    "complex objects": (lambda: objects(map(complex, Z)), None, "'c' holds complex values"),
    "members of an enumeration": (
        lambda: objects(map(enum.Enum("E", list("abcde")), (Z + 1).tolist())),
        None,
        "'c' holds E values",
    ),
    "sets": (lambda: objects({w} for w in W), None, "'c' holds set values"),
    "arrays": (lambda: objects(np.array([z, z]) for z in Z), None, "'c' holds ndarray values"),
    "frames": (lambda: objects(pd.DataFrame() for _ in Z), None, "'c' holds DataFrame values"),
    "integers of 64 bits": (lambda: two(np.full(COUNT, 2**64 - 1, np.uint64)), None, r"'c' is above 2\^53"),
    "Decimals of 30 digits": (lambda: objects(decimal.Decimal(10**30 + int(z)) for z in Z), None, r"'c' is above 2\^53"),
    "Arrow lists": (lambda: in_arrow(pa.array([[1.0]] * COUNT)), None, "'c' holds list values"),
    "Arrow structs": (lambda: in_arrow(pa.array([{"x": 1.0}] * COUNT)), None, "'c' holds dict values"),
    "Arrow unions": (
        lambda: in_arrow(
            pa.UnionArray.from_sparse(pa.array([0, 1] * 20, pa.int8()), [pa.array(N), pa.array(W)])
        ),
        None,
        "'c' of the type sparse_union.* is not supported",
    ),
    "Arrow decimals of a negative scale": (
        lambda: in_arrow(pa.array([decimal.Decimal(100)] * COUNT, pa.decimal128(10, -2))),
        None,
        "'c' of the type decimal128.* is not supported",
    ),
    "Arrow name twice": (lambda: pa.table([pa.array(N)] * 2, names=["a", "a"]), None, "occur twice"),
    "Arrow without names": (lambda: pa.table([pa.array(N)] * 2, names=["", ""]), None, "occur twice"),
    "polars structs": (lambda: in_polars(pl.Series([{"x": 1.0}] * COUNT)), None, "'c' holds dict values"),
    "polars odd nanoseconds": (
        lambda: in_polars(pl.Series(Z.astype("i8") + 1).cast(pl.Duration("ns"))),
        None,
        "'c' is finer than the microseconds",
    ),
    "infinite background": (lambda: in_polars(np.where(HOLES, np.inf, N)), None, "holds inf in column 'c'"),
}  # fmt: skip


def explained(background: Make, rows: Make | None, plain: Make | None = None) -> None:
    """The prediction is the model's own, and the values are those of a plain frame."""
    given = background() if rows is None else rows()
    found = tx.TExplainer(model, background())(given)
    defined = found.diagnostics.stability != "undefined"
    np.testing.assert_allclose(np.ravel(found.predictions)[defined], model(given)[defined], rtol=1e-9)
    if plain:
        expected = tx.TExplainer(model, plain())(plain())
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-9)


def numbers() -> pd.DataFrame:
    return two(Z.astype(float))


CASES: dict[str, Callable[[], None]] = {
    **{f"header: {k}": (lambda v=v: explained(lambda: headed(v), None, numbers)) for k, v in HEADERS.items()},
    **{f"header twice: {k}": (lambda v=v: explained(lambda: headed(v), None)) for k, v in TWICE.items()},
    **{
        f"index: {k}": (lambda v=v: explained(lambda: numbers().set_index(pd.Index(v)), None, numbers))
        for k, v in INDEXES.items()
    },
    **{f"frame: {k}": (lambda v=v: explained(v, None)) for k, v in FRAMES.items()},
    **{f"rows: {k}": (lambda v=v: explained(*v)) for k, v in PAIRS.items()},
    **{f"refused: {k}": (lambda v=v: explained(*v[:2])) for k, v in REFUSED.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_a_frame_is_explained_as_the_model_sees_it_or_refused(name: str) -> None:
    kind, _, case = name.partition(": ")
    words = REFUSED[case][2] if kind == "refused" else "occur twice" if kind == "header twice" else None
    if words is None:
        CASES[name]()
    else:
        with pytest.raises((InputError, ModelError), match=words):
            CASES[name]()

"""Odd dtypes: the prediction that is explained is the model's answer to the user's own table, or the column is refused.

Each table has a number `n` and one odd column `c`; each model reads `c` in its own way.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

ROWS = 40
NUMBERS = np.random.default_rng(3).normal(size=ROWS)
INTEGERS = np.random.default_rng(4).integers(10_000, 99_999, ROWS)
HOLES = np.arange(ROWS) % 7 == 3
WORDS = [("north", "south", "east")[i % 3] for i in range(ROWS)]
DAYS = [dt.datetime(2021, 3, 27, 12) + dt.timedelta(hours=7 * i, microseconds=i) for i in range(ROWS)]
SPANS = [dt.timedelta(days=i % 9, seconds=3 * i) for i in range(ROWS)]

pytestmark = pytest.mark.filterwarnings("ignore")


def holed(values: Any, mark: Any = None) -> list[Any]:
    return [mark if hole else value for value, hole in zip(list(values), HOLES, strict=True)]


#: the odd column of a pandas frame
PANDAS: dict[str, Callable[[], Any]] = {
    **{
        name: (lambda name=name: pd.Series(INTEGERS % 100).astype(name))
        for name in [
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
        ]
    },
    **{
        f"nullable {name}": (lambda name=name: pd.Series(holed(INTEGERS % 100), dtype=name))
        for name in [
            "Int8",
            "Int16",
            "Int32",
            "Int64",
            "UInt8",
            "UInt16",
            "UInt32",
            "UInt64",
            "Float32",
            "Float64",
        ]
    },
    **{
        f"whole {name}": (lambda name=name: pd.Series(list(INTEGERS % 100), dtype=name))
        for name in ("Int64", "UInt8", "Float64")
    },
    "zip codes": lambda: pd.Series(INTEGERS),
    "big-endian int32": lambda: pd.Series(INTEGERS.astype(">i4")),
    "big-endian float64": lambda: pd.Series(NUMBERS.astype(">f8")),
    "bool": lambda: pd.Series(INTEGERS % 2 == 0),
    "boolean": lambda: pd.Series(holed((INTEGERS % 2 == 0).tolist()), dtype="boolean"),
    "whole boolean": lambda: pd.Series((INTEGERS % 2 == 0).tolist(), dtype="boolean"),
    "bool objects": lambda: pd.Series(holed((INTEGERS % 2 == 0).tolist()), dtype=object),
    "text": lambda: pd.Series(WORDS),
    "text objects": lambda: pd.Series(holed(WORDS), dtype=object),
    "text NaN": lambda: pd.Series(holed(WORDS, np.nan), dtype=object),
    "string": lambda: pd.Series(holed(WORDS), dtype="string"),
    "string python": lambda: pd.Series(holed(WORDS), dtype="string[python]"),
    "category": lambda: pd.Series(holed(WORDS)).astype("category"),
    "category of integers": lambda: pd.Series(INTEGERS % 4).astype("category"),
    "category of booleans": lambda: pd.Series(INTEGERS % 2 == 0).astype("category"),
    "category of dates": lambda: pd.Series([d.replace(hour=0, minute=0, microsecond=0) for d in DAYS]).astype(
        "category"
    ),
    "ordered": lambda: pd.Series(pd.Categorical(WORDS, ["south", "east", "north"], ordered=True)),
    "integers above 2^53": lambda: pd.Series(2**53 + 1 + 2 * np.arange(ROWS)),
    "unsigned above 2^63": lambda: pd.Series(np.uint64(2**63) + np.arange(ROWS, dtype=np.uint64)),
    "nullable above 2^53": lambda: pd.Series(
        holed((2**53 + 1 + 2 * np.arange(ROWS)).tolist()), dtype="Int64"
    ),
    "integer objects": lambda: pd.Series(holed(INTEGERS.tolist()), dtype=object),
    "huge integer objects": lambda: pd.Series([2**70 + i for i in range(ROWS)], dtype=object),
    "decimals": lambda: pd.Series([Decimal(int(i)) / 8 for i in INTEGERS], dtype=object),
    **{
        f"times {unit}": (lambda unit=unit: pd.Series(DAYS).astype(f"datetime64[{unit}]"))
        for unit in ("s", "ms", "us", "ns")
    },
    "nanoseconds": lambda: pd.Series(pd.to_datetime(1_600_000_000_000_000_001 + 7 * np.arange(ROWS))),
    "far times": lambda: pd.Series(
        np.array([f"{1000 + 200 * i}-01-01T00:00:00.000001" for i in range(ROWS)], dtype="M8[us]")
    ),
    "times with holes": lambda: pd.Series(holed(DAYS, pd.NaT)),
    "zoned times": lambda: pd.Series(DAYS).dt.tz_localize("Europe/Berlin", nonexistent="shift_forward"),
    "zoned times with holes": lambda: pd.Series(holed(DAYS, pd.NaT)).dt.tz_localize("UTC"),
    "fixed offset": lambda: pd.Series(DAYS).dt.tz_localize(dt.timezone(dt.timedelta(hours=5, minutes=30))),
    **{
        f"durations {unit}": (lambda unit=unit: pd.Series(SPANS).astype(f"timedelta64[{unit}]"))
        for unit in ("s", "ms", "us", "ns")
    },
    "durations with holes": lambda: pd.Series(holed(SPANS, pd.NaT)),
    "dates": lambda: pd.Series([d.date() for d in DAYS], dtype=object),
    "periods": lambda: pd.Series(pd.period_range("2020-01", periods=ROWS, freq="M")),
    "intervals": lambda: pd.Series(pd.interval_range(0, ROWS)),
    "complex": lambda: pd.Series(NUMBERS + 1j),
    "sparse": lambda: pd.Series(pd.arrays.SparseArray(np.where(HOLES, 0.0, NUMBERS))),
    "sparse integers": lambda: pd.Series(pd.arrays.SparseArray(np.where(HOLES, 0, INTEGERS))),
    "lists": lambda: pd.Series([[i, i] for i in range(ROWS)]),
    "mixed": lambda: pd.Series([i if i % 2 else str(i) for i in range(ROWS)], dtype=object),
}
ARROW = {
    "int8": (INTEGERS % 100, lambda: pa.int8()),
    "int64": (INTEGERS, lambda: pa.int64()),
    "uint64": (INTEGERS, lambda: pa.uint64()),
    "huge int64": (2**53 + 1 + 2 * np.arange(ROWS), lambda: pa.int64()),
    "float32": (INTEGERS / 8, lambda: pa.float32()),
    "float64": (NUMBERS, lambda: pa.float64()),
    "bool": ((INTEGERS % 2 == 0).tolist(), lambda: pa.bool_()),
    "string": (WORDS, lambda: pa.string()),
    "large string": (WORDS, lambda: pa.large_string()),
    "dictionary": (WORDS, lambda: pa.dictionary(pa.int32(), pa.string())),
    "dictionary int8": (WORDS, lambda: pa.dictionary(pa.int8(), pa.string())),
    "timestamp s": ([d.replace(microsecond=0) for d in DAYS], lambda: pa.timestamp("s")),
    "timestamp us": (DAYS, lambda: pa.timestamp("us")),
    "timestamp ns": (DAYS, lambda: pa.timestamp("ns")),
    "timestamp zoned": (DAYS, lambda: pa.timestamp("us", "Asia/Tokyo")),
    "duration us": (SPANS, lambda: pa.duration("us")),
    "duration s": (SPANS, lambda: pa.duration("s")),
    "date32": ([d.date() for d in DAYS], lambda: pa.date32()),
    "decimal": ([Decimal(int(i)) / 8 for i in INTEGERS], lambda: pa.decimal128(12, 3)),
    "time": ([d.time() for d in DAYS], lambda: pa.time64("us")),
    "binary": ([w.encode() for w in WORDS], lambda: pa.binary()),
    "null": ([None] * ROWS, lambda: pa.null()),
    "string view": (WORDS, lambda: pa.string_view()),
    "binary view": ([w.encode() for w in WORDS], lambda: pa.binary_view()),
}
POLARS = {
    "Int8": (INTEGERS % 100, lambda: pl.Int8),
    "Int64": (INTEGERS, lambda: pl.Int64),
    "UInt32": (INTEGERS, lambda: pl.UInt32),
    "Int128": (INTEGERS, lambda: pl.Int128),
    "huge Int128": (2**70 + INTEGERS.astype(object), lambda: pl.Int128),
    "huge Int64": (2**53 + 1 + 2 * np.arange(ROWS), lambda: pl.Int64),
    "Float32": (INTEGERS / 8, lambda: pl.Float32),
    "Float64": (NUMBERS, lambda: pl.Float64),
    "Boolean": ((INTEGERS % 2 == 0).tolist(), lambda: pl.Boolean),
    "String": (WORDS, lambda: pl.String),
    "Categorical": (WORDS, lambda: pl.Categorical),
    "Enum": (WORDS, lambda: pl.Enum(["north", "south", "east"])),
    "Datetime ms": ([d.replace(microsecond=0) for d in DAYS], lambda: pl.Datetime("ms")),
    "Datetime us": (DAYS, lambda: pl.Datetime("us")),
    "Datetime ns": (DAYS, lambda: pl.Datetime("ns")),
    "Datetime zoned": (DAYS, lambda: pl.Datetime("us", "Asia/Tokyo")),
    "Duration us": (SPANS, lambda: pl.Duration("us")),
    "Duration ms": (SPANS, lambda: pl.Duration("ms")),
    "Date": ([d.date() for d in DAYS], lambda: pl.Date),
    "Decimal": ([Decimal(int(i)) / 8 for i in INTEGERS], lambda: pl.Decimal(12, 3)),
    "Time": ([d.time() for d in DAYS], lambda: pl.Time),
    "List": ([[1, i] for i in range(ROWS)], lambda: pl.List(pl.Int64)),
}


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def tables() -> dict[str, Callable[[], Any]]:
    """All tables of this page, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for name, make in PANDAS.items():
        found[f"pandas {name}"] = lambda make=make: pd.DataFrame({"n": NUMBERS, "c": make()})
    for name, (values, dtype) in ARROW.items():
        for gaps in (False, True):
            cells = holed(_plain(values)) if gaps else _plain(values)
            suffix = " with holes" if gaps else ""
            found[f"arrow {name}{suffix}"] = lambda c=cells, t=dtype: pa.table(
                {"n": NUMBERS, "c": pa.array(c, type=t())}
            )
            found[f"pandas arrow {name}{suffix}"] = lambda c=cells, t=dtype: pd.DataFrame(
                {"n": NUMBERS, "c": pd.Series(pa.array(c, type=t()), dtype=pd.ArrowDtype(t()))}
            )
    for name, (values, dtype) in POLARS.items():
        for gaps in (False, True):
            cells = holed(_plain(values)) if gaps else _plain(values)
            found[f"polars {name}{' with holes' if gaps else ''}"] = lambda c=cells, t=dtype: pl.DataFrame(
                {"n": NUMBERS, "c": pl.Series(c, dtype=t())}
            )
    found["polars NaN"] = lambda: pl.DataFrame({"n": NUMBERS, "c": np.where(HOLES, np.nan, NUMBERS)})
    found["polars NaN and null"] = lambda: pl.DataFrame(
        {"n": NUMBERS, "c": [None if i % 5 == 0 else np.nan if i % 5 == 1 else float(i) for i in range(ROWS)]}
    )
    found["arrow NaN"] = lambda: pa.table({"n": NUMBERS, "c": np.where(HOLES, np.nan, NUMBERS)})
    for name, values in (("words", WORDS), ("numbers", NUMBERS)):
        runs = pc.run_end_encode(pa.array(values))
        found[f"arrow runs of {name}"] = lambda c=runs: pa.table({"n": NUMBERS, "c": c})
        found[f"pandas arrow runs of {name}"] = lambda c=runs: pd.DataFrame(
            {"n": NUMBERS, "c": pd.Series(pd.arrays.ArrowExtensionArray(c))}
        )
    found["arrow null"] = lambda: pa.table({"n": NUMBERS, "c": pa.nulls(ROWS)})
    return found


TABLES = tables()


def _cells(table: Any) -> list[Any]:
    column = table["c"]
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


def _n(table: Any) -> np.ndarray:
    return np.asarray(table["n"], dtype=float)


def by_text(table: Any) -> np.ndarray:
    """Each value by its text, as `astype(str)` gives it."""
    return _n(table) + [zlib.crc32(str(v).encode()) % 1000 / 100 for v in _cells(table)]


def by_missing(table: Any) -> np.ndarray:
    """Null, NaN and all the others are three different things."""
    marks = [5.0 if v is None or v is pd.NA or v is pd.NaT else 3.0 if v != v else 1.0 for v in _cells(table)]
    return _n(table) * marks


def by_dtype(table: Any) -> np.ndarray:
    """The dtype of the column, without its width, byte order and kind of number."""
    dtype = table.schema.field("c").type if hasattr(table, "schema") and hasattr(table.schema, "field") else table["c"].dtype  # fmt: skip
    text = str(dtype).lower()
    numbers = ("int", "float", "double", "decimal", "halffloat", ">i4", ">f8")
    kind = "number" if any(word in text for word in numbers) and "category" not in text else text
    return _n(table) + zlib.crc32(kind.encode()) % 100 / 10


MODELS = {"text": by_text, "missing": by_missing, "dtype": by_dtype}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", TABLES)
def test_the_explained_prediction_is_that_of_the_users_table(name: str, model: str) -> None:
    table, predict = TABLES[name](), MODELS[model]
    expected = predict(table)
    try:
        found = tx.TExplainer(predict, table)(table)
    except (InputError, ModelError) as error:
        assert "'c'" in str(error) or "complex" in str(error), error  # the column is named
        return
    explained = found.diagnostics.stability != "undefined"
    np.testing.assert_allclose(np.ravel(found.predictions)[explained], expected[explained], rtol=1e-9)


@pytest.mark.parametrize(
    "name", [n for n in TABLES if "int" in n.lower() and "above" not in n and "objects" not in n]
)
def test_declared_codes_reach_the_model_in_their_own_dtype(name: str) -> None:
    table = TABLES[name]()
    found = tx.TExplainer(by_text, table, categorical=["c"])(table)
    np.testing.assert_allclose(np.ravel(found.predictions), by_text(table), rtol=1e-9)


def test_text_of_whole_numbers_is_refused_with_the_remedy() -> None:
    table = TABLES["pandas zip codes"]()
    with pytest.raises(
        InputError, match=r"column 'c' is int64 and is passed as float64.*categorical=\['c'\]"
    ):
        tx.TExplainer(by_text, table)


def test_rows_of_another_dtype_than_the_background_are_compared_too() -> None:
    explainer = tx.TExplainer(by_text, pd.DataFrame({"n": NUMBERS, "c": INTEGERS / 2}))
    with pytest.raises(InputError, match="column 'c' is int64 and is passed as float64"):
        explainer(pd.DataFrame({"n": NUMBERS, "c": INTEGERS}))


@pytest.mark.parametrize("zones", [("UTC", None), (None, "UTC")])
def test_times_with_and_without_a_zone_are_not_mixed(zones: tuple[str | None, str | None]) -> None:
    first, second = (
        pd.DataFrame({"n": NUMBERS, "c": pd.Series(DAYS).dt.tz_localize(zone)}) for zone in zones
    )
    explainer = tx.TExplainer(_n, first)
    with pytest.raises(InputError, match=r"column 'c' has .*time zone"):
        explainer(second)


def test_a_random_model_is_not_blamed_on_a_column() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"n": NUMBERS, "c": INTEGERS})
    explainer = tx.TExplainer(lambda t: _n(t) + generator.normal(size=len(t)), table)
    assert explainer(table[:3]).settings["repeatable"] is False


def test_floats_cost_no_further_prediction() -> None:
    asked: list[int] = []

    def predict(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return rows[:, 0]

    rows = np.column_stack([NUMBERS, NUMBERS**2])
    explainer = tx.TExplainer(predict, rows)
    asked.clear()
    explainer(rows[:1])
    plain = sum(asked)
    asked.clear()
    explainer(rows[:1].tolist())
    assert sum(asked) == plain

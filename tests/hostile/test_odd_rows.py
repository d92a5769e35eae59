"""Rows as programs hand them on: one by one, by name, with times, texts and masks among the numbers.

The explained prediction is the answer of a fitted model, or of a function, to the same rows of a frame.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import functools
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import texplainer as tx
from texplainer.errors import InputError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore")
COUNT = 60
N = np.random.default_rng(11).normal(size=COUNT)
Z = np.random.default_rng(12).integers(0, 5, COUNT)
W = np.array(["n\u00f6rth", "so\nuth", "<b>e</b>", "nan", "1.0"])[Z]
HOLES = np.arange(COUNT) % 7 == 3
TIMES = pd.Series(pd.to_datetime("2021-03-27") + pd.to_timedelta(7 * np.arange(COUNT), "h"))
NEAR, FEW = range(2, 8), slice(2, 8)  # row 3 has a hole


def holed(values: Any, mark: Any = None) -> list[Any]:
    return [mark if hole else value for value, hole in zip(list(values), HOLES, strict=True)]


#: a column beside the numbers `n`
COLUMNS: dict[str, Callable[[], Any]] = {
    "texts": lambda: pd.Series(holed(W, np.nan), dtype=object),
    "texts and None": lambda: pd.Series(holed(W), dtype=object),
    "strings": lambda: pd.Series(holed(W), dtype="string"),
    "categories": lambda: pd.Series(holed(W)).astype("category"),
    "ordered categories": lambda: pd.Series(
        pd.Categorical(holed(W), ["zz", *dict.fromkeys(W[::-1])], ordered=True)
    ),
    "categories of numbers": lambda: pd.Series(Z * 7 - 3).astype("category"),
    "booleans": lambda: pd.Series(Z % 2 == 0),
    "nullable booleans": lambda: pd.Series(holed((Z % 2 == 0).tolist()), dtype="boolean"),
    "periods": lambda: pd.Series(pd.period_range("2020", periods=5, freq="M").take(Z)),
    "bytes": lambda: pd.Series([w.encode() for w in W], dtype=object),
    "nullable integers": lambda: pd.Series(holed(Z.tolist()), dtype="Int64"),
    "times": lambda: TIMES,
    "zoned times": lambda: TIMES.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    "Arrow times": lambda: TIMES.astype("timestamp[us][pyarrow]"),
    "durations": lambda: TIMES - TIMES[0],
}


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """A user's own features: the hour of times, the hours of durations, a size of everything else."""
    c = frame["c"]
    if hasattr(c, "dt") and hasattr(c.dt, "to_timestamp"):
        size = c.dt.month.astype(float)
    elif hasattr(c, "dt"):
        size = (c.dt.hour if hasattr(c.dt, "hour") else c.dt.total_seconds() / 3600).astype(float)
    else:
        size = c.map(lambda v: float(v) if isinstance(v, (int, float, np.number)) else float(len(str(v))))
    return pd.DataFrame({"n": frame["n"].astype(float), "size": size.astype(float).fillna(-1.0)})


def encoded() -> Any:
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]), remainder="passthrough"
    )
    return make_pipeline(encoder, LogisticRegression())


MODELS: dict[str, Callable[[], Any]] = {
    "encoder": encoded,
    "histogram boosting": lambda: HistGradientBoostingClassifier(
        max_iter=5, categorical_features="from_dtype"
    ),
    "user's features": lambda: make_pipeline(FunctionTransformer(numbers), LogisticRegression()),
}
#: columns that a library does not take
NO_NUMBERS = ["texts", "texts and None", "strings", "periods", "bytes", "times", "zoned times", "Arrow times", "durations"]  # fmt: skip
NOT_TAKEN = {*((column, "histogram boosting") for column in NO_NUMBERS), ("strings", "encoder")}
#: six rows of a frame, or one
STYLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "one Series": lambda f: f.iloc[0],
    "one dict": lambda f: f.iloc[0].to_dict(),
    "one named tuple": lambda f: next(f.itertuples(index=False)),
    "dicts": lambda f: f.to_dict("records"),
    "dict of lists": lambda f: f.to_dict("list"),
    "Series": lambda f: [row for _, row in f.iterrows()],
    "named tuples": lambda f: list(f.itertuples(index=False)),
    "reordered dicts": lambda f: f[["c", "n"]].to_dict("records"),
    "reordered Series": lambda f: [row for _, row in f[["c", "n"]].iterrows()],
    "reordered named tuples": lambda f: list(f[["c", "n"]].itertuples(index=False)),
}


@functools.cache
def subject(column: str, kind: str) -> tuple[Any, pd.DataFrame, Any]:
    """A fitted model, its table and its explainer."""
    table = pd.DataFrame({"n": N, "c": COLUMNS[column]()})
    model = MODELS[kind]().fit(table, N + Z % 3 > 1)
    return model, table, tx.TExplainer(model, table, scale="probability")


def as_fitted(column: str, kind: str, style: str) -> None:
    model, table, explainer = subject(column, kind)
    found = explainer(STYLES[style](table.iloc[FEW]))
    expected = model.predict_proba(table.iloc[FEW])[: len(found.predictions), 1]
    np.testing.assert_allclose(np.ravel(found.predictions), expected, rtol=1e-6)


# ---------------------------------------------------------------- plain numbers, by name and with holes

PLAIN = pd.DataFrame({"a": N, "b": Z / 2, "c": N**2})
GAPS = PLAIN.mask((np.arange(COUNT)[:, None] + np.arange(3)) % 5 == 1)


def product(table: Any) -> np.ndarray:
    """Another value if columns are exchanged; a missing value counts by its column."""
    cells = table[list("abc")].to_numpy(float) if hasattr(table, "columns") else np.asarray(table, float)
    a, b, c = np.where(np.isnan(cells), [7.0, 2.0, 5.0], cells).T
    return 3 * a - b * c


EXPLAINER = tx.TExplainer(product, PLAIN)
TURNED = PLAIN.iloc[FEW][["c", "a", "b"]]
HOLED = GAPS.iloc[FEW]
Row = collections.namedtuple("Row", "c a b")


def selected(table: str = "c, a, b") -> Any:
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    TURNED.to_sql("t", base, index=False)
    return base.execute(f"select {table} from t").fetchall()


def records(frame: pd.DataFrame) -> np.ndarray:
    return np.array([tuple(row) for row in frame.to_numpy()], [(name, "f8") for name in frame.columns])


def masked(frame: pd.DataFrame) -> Any:
    """The holes hidden behind a mask, with 99 below it."""
    return np.ma.MaskedArray(frame.fillna(99.0).to_numpy(), frame.isna().to_numpy())


def masked_records(frame: pd.DataFrame) -> Any:
    out = np.ma.zeros(len(frame), dtype=[(name, "f8") for name in frame.columns])
    for name in frame.columns:
        out[name] = masked(frame[[name]])[:, 0]
    return out


#: rows that know their columns' names, in another order than the background
BY_NAME: dict[str, Callable[[], Any]] = {
    "named tuples": lambda: [Row(*row) for row in TURNED.to_numpy()],
    "one named tuple": lambda: Row(*TURNED.to_numpy()[0]),
    "rows of sqlite3": selected,
    "one row of sqlite3": lambda: selected()[0],
    "records": lambda: records(TURNED),
    "list of records": lambda: list(records(TURNED)),
    "one record": lambda: records(TURNED)[0],
    "one masked record": lambda: masked_records(TURNED)[0],
    "one nullable Series": lambda: TURNED.iloc[0].astype("Float64"),
    "Series and dicts": lambda: [r if i % 2 else r.to_dict() for i, (_, r) in enumerate(TURNED.iterrows())],
}
#: rows with holes
MASKED: dict[str, Callable[[], Any]] = {
    "masked array": lambda: masked(HOLED),
    "list of masked rows": lambda: list(masked(HOLED)),
    "dict of masked columns": lambda: dict(zip("abc", masked(HOLED).T, strict=True)),
    "masked records": lambda: masked_records(HOLED),
    "signalling NaN": lambda: HOLED.astype(object).where(HOLED.notna(), decimal.Decimal("sNaN")),
    "masked integers": lambda: dict(zip("abc", np.ma.masked_equal(np.arange(18).reshape(6, 3), 4).T, strict=True)),
}  # fmt: skip


def as_plain(rows: Any, frame: pd.DataFrame) -> None:
    found, expected = EXPLAINER(rows), EXPLAINER(frame)
    np.testing.assert_array_equal(found.predictions, expected.predictions[: len(found.predictions)])
    np.testing.assert_array_equal(found.values, expected.values[: len(found.values)])


def _holed(name: str) -> pd.DataFrame:
    if name != "masked integers":
        return HOLED
    return pd.DataFrame(
        np.where(np.arange(18) == 4, np.nan, np.arange(18)).reshape(6, 3), columns=list("abc")
    )


def _times(cell: Any, column: str = "times", kind: str = "user's features") -> Any:
    _, _, explainer = subject(column, kind)
    return explainer([{"n": 0.0, "c": cell}, {"n": 0.0, "c": TIMES[3]}][: 1 + (cell is pd.NaT)])


#: refused -> the call, words of the sentence
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a name twice": (lambda: EXPLAINER(selected("a, b, c, a")), r"\['a'\] occur twice"),
    "a Series with a name twice": (lambda: EXPLAINER([TURNED.iloc[0].rename({"c": "a"})]), r"\['a'\] occur twice"),
    "the index of a frame": (lambda: EXPLAINER(list(TURNED.itertuples())), "unexpected columns .'Index'"),
    "other names in a row": (lambda: EXPLAINER([{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "d": 3}]), "row 1 has the columns"),
    "a row without names": (lambda: EXPLAINER([{"a": 1, "b": 2, "c": 3}, [1, 2, 3]]), "row 1 has"),
    "text for a time": (lambda: _times("2021-01-01"), "'2021-01-01' in column 'c'; the background holds times"),
    "a number for a time": (lambda: _times(3.0), "column 'c' holds numbers; the background holds times"),
    "a duration for a time": (lambda: _times(dt.timedelta(1)), "timedelta.* in column 'c'; the background holds times"),
    "a time for a duration": (lambda: _times(dt.datetime(2021, 1, 1), "durations"), "the background holds durations"),
    "nanoseconds": (lambda: _times(pd.Timestamp(1_577_836_800_000_000_001)), "'c' is finer than the microseconds"),
    "a zone too many": (lambda: _times(dt.datetime(2021, 1, 1, tzinfo=dt.UTC)), "'c' has the time zone"),
    "a zone too few": (lambda: _times(dt.datetime(2021, 1, 1), "zoned times"), "'c' has no time zone"),
    "a zone too few for categories": (lambda: _times(dt.datetime(2021, 1, 1), "zoned times", "encoder"), "'c' has no time zone"),
    "a name that is no text": (lambda: tx.TExplainer(product, PLAIN, feature_names=["\ud800", "b", "c"]), "not valid text"),
}  # fmt: skip

CASES: dict[str, Callable[[], Any]] = {
    **{
        f"{column}, {kind}: {style}": (lambda c=column, k=kind, s=style: as_fitted(c, k, s))
        for column in COLUMNS
        for kind in MODELS
        for style in STYLES
        if (column, kind) not in NOT_TAKEN
    },
    **{f"by name: {k}": (lambda v=v: as_plain(v(), PLAIN.iloc[FEW])) for k, v in BY_NAME.items()},
    **{f"masked: {k}": (lambda k=k, v=v: as_plain(v(), _holed(k))) for k, v in MASKED.items()},
    **{f"refused: {k}": v[0] for k, v in REFUSED.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_explained_as_the_rows_of_a_frame(name: str) -> None:
    kind, _, case = name.partition(": ")
    if kind != "refused":
        CASES[name]()
    else:
        with pytest.raises((InputError, ModelError), match=REFUSED[case][1]):
            CASES[name]()


def test_a_missing_time_is_one_in_a_zone_too() -> None:
    _, _, explainer = subject("zoned times", "user's features")
    assert explainer([{"n": 0.0, "c": pd.NaT}]).shape == explainer([{"n": 0.0, "c": None}]).shape

"""Odd models: answers of every kind, objects of every kind, and errors that no one expects.

A model is explained as the function it stands for, or a sentence says what is wrong with it.
"""

from __future__ import annotations

import array
import collections
import concurrent.futures
import decimal
import enum
import fractions
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse
from sklearn.linear_model import LinearRegression

import texplainer as tx
from texplainer.errors import InputError, ModelError, ModelWarning

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

X = np.round(np.random.default_rng(5).normal(size=(40, 3)) * 4) / 2
FEW = X[:6]


def f(table: Any) -> np.ndarray:
    rows = np.asarray(table, dtype=float)
    return 2 * rows[:, 0] - rows[:, 1] * rows[:, 2]


def probabilities(table: Any) -> np.ndarray:
    p = 1 / (1 + np.exp(-f(table) / 5))
    return np.column_stack([1 - p, p])


PLAIN = tx.TExplainer(f, X)(FEW)
LIKELY = tx.TExplainer(lambda rows: probabilities(rows)[:, 1], X)(FEW)


class Likely:
    """A classifier in all but its class labels."""

    classes_: Any = np.array([0, 1])

    def predict_proba(self, table: Any) -> Any:
        return probabilities(table)


def labelled(classes: Any) -> Likely:
    model = Likely()
    model.classes_ = classes
    return model


class Predicts:
    """A regressor."""

    def predict(self, table: Any) -> Any:
        return f(table)


class Slots:
    __slots__ = ()
    predict = Predicts.predict


class Unequal(Predicts):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")


class Untrue(Predicts):
    def __bool__(self) -> bool:
        raise ValueError("truth")


class Empty(Predicts):
    def __len__(self) -> int:
        return 0


class Unprintable(Predicts):
    def __repr__(self) -> str:
        raise RuntimeError("repr")


class Unpicklable(Predicts):
    def __reduce__(self) -> Any:
        raise TypeError("no pickle")


class Static:
    predict = staticmethod(f)


class ArrayProtocol:
    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.rows


def in_place(rows: np.ndarray) -> np.ndarray:
    answer = f(rows)
    rows[...] = 0
    return answer


def one_buffer() -> Callable[[Any], np.ndarray]:
    held = np.empty(100_000)

    def predict(rows: Any) -> np.ndarray:
        out = held[: len(rows)]
        out[:] = f(rows)
        return out

    return predict


def read_only(rows: Any) -> np.ndarray:
    answer = f(rows)
    answer.setflags(write=False)
    return answer


#: models that are explained as `f`
SAME: dict[str, Any] = {
    "list": lambda t: f(t).tolist(),
    "list of lists": lambda t: f(t)[:, None].tolist(),
    "tuple": lambda t: tuple(f(t)),
    "frame": lambda t: pd.DataFrame({"y": f(t)}),
    "Series": lambda t: pd.Series(f(t)),
    "Series with another index": lambda t: pd.Series(f(t), index=range(100, 100 + len(t))),
    "Series with a reversed index": lambda t: pd.Series(f(t), index=range(len(t))[::-1]),
    "nullable Series": lambda t: pd.Series(f(t), dtype="Float64"),
    "Arrow Series": lambda t: pd.Series(f(t), dtype="double[pyarrow]"),
    "Series of objects": lambda t: pd.Series(f(t), dtype=object),
    "sparse Series": lambda t: pd.Series(pd.arrays.SparseArray(f(t))),
    "pandas array": lambda t: pd.array(f(t)),
    "pandas index": lambda t: pd.Index(f(t)),
    "polars column": lambda t: pl.Series(f(t)),
    "polars frame": lambda t: pl.DataFrame({"y": f(t)}),
    "Arrow array": lambda t: pa.array(f(t)),
    "Arrow chunks": lambda t: pa.chunked_array([f(t)[:1], f(t)[1:]]),
    "Arrow table": lambda t: pa.table({"y": f(t)}),
    "Arrow batch": lambda t: pa.record_batch({"y": f(t)}),
    "tensor": lambda t: torch.tensor(f(t)),
    "tensor with gradient": lambda t: torch.tensor(f(t), requires_grad=True),
    "tensor of one column": lambda t: torch.tensor(f(t))[:, None],
    "sparse tensor": lambda t: torch.tensor(f(t)[:, None]).to_sparse(),
    "list of tensors": lambda t: [torch.tensor(v) for v in f(t)],
    "negated view": lambda t: torch._neg_view(torch.tensor(-f(t))),
    "masked, nothing hidden": lambda t: np.ma.masked_array(f(t)),
    "long double": lambda t: f(t).astype(np.longdouble),
    "big-endian": lambda t: f(t).astype(">f8"),
    "objects": lambda t: f(t).astype(object),
    "Decimals": lambda t: [decimal.Decimal(v) for v in f(t)],
    "Fractions": lambda t: [fractions.Fraction(v) for v in f(t)],
    "memory view": lambda t: memoryview(f(t)),
    "flat array": lambda t: array.array("d", f(t)),
    "deque": lambda t: collections.deque(f(t)),
    "__array__": lambda t: ArrayProtocol(f(t)),
    "read-only": read_only,
    "changes its input": in_place,
    "one buffer for all answers": one_buffer(),
    "predict": Predicts(),
    "slots": Slots(),
    "partial": functools.partial(f),
    "method": Predicts().predict,
    "static method": Static(),
    "fails when compared": Unequal(),
    "fails when asked for its truth": Untrue(),
    "of length 0": Empty(),
    "fails when printed": Unprintable(),
    "fails when pickled": Unpicklable(),
}
#: class labels -> explained as the probability of the second class
LABELS: dict[str, Any] = {
    "list": [0, 1],
    "tuple": (0, 1),
    "texts": np.array(["no", "yes"]),
    "booleans": np.array([False, True]),
    "None": None,
    "a number": 2,
    "none": [],
    "a column": np.array([[0], [1]]),
    "None and text": np.array([None, "a"], dtype=object),
    "times": pd.date_range("2020", periods=2),
    "categories": pd.Categorical(["a", "b"]),
    "mapping": {0: "a", 1: "b"},
    "members of an enumeration": list(enum.Enum("E", "a b")),
    "bytes": [b"a", b"b"],
    "Series": pd.Series(["a", "b"], index=[5, 6]),
    "twice the same": np.array([1, 1]),
    "1 and True": np.array([1, True], dtype=object),
    "line feed": ["a\nb", "c"],
    "long": ["x" * 10_000, "y"],
}


class Nameless(Exception):
    """Fails when it is printed."""

    def __str__(self) -> str:
        raise RuntimeError("str")


def raising(error: BaseException) -> Callable[[Any], Any]:
    def predict(table: Any) -> Any:
        raise error

    return predict


def endless(table: Any) -> Any:
    return endless(table)


def later(change: Callable[[np.ndarray], Any], calls: int = 6) -> Callable[[Any], Any]:
    """`f` for some calls, then something else."""
    count = [0]

    def predict(table: Any) -> Any:
        count[0] += 1
        return f(table) if count[0] <= calls else change(f(table))

    return predict


class Everything:
    """Has every attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given, **more: f(given[0])


class Broken(Predicts):
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Unfitted(Predicts):
    @property
    def predict_proba(self) -> Any:
        raise RuntimeError("not fitted")


class Generates:
    def predict(self, table: Any) -> Any:
        yield from f(table)


class Waits:
    async def predict(self, table: Any) -> Any:
        return f(table)


class TwoArguments:
    def predict(self, table: Any, flag: bool) -> Any:
        return f(table)


class Withdrawn(Likely, Predicts):
    def predict_proba(self, table: Any) -> Any:
        raise AttributeError("predict_proba is not available")


#: refused models -> words of the sentence
REFUSED: dict[str, tuple[Any, str]] = {
    "missing for some rows": (lambda t: pd.Series(f(t), dtype="Float64").mask(f(t) > 5), "returned .nan. for"),
    "NaN for some rows": (lambda t: np.where(f(t) > 8, np.nan, f(t)), "returned .nan. for background row 3"),
    "infinite for some rows": (lambda t: np.where(f(t) > 8, np.inf, f(t)), "returned .inf. for background row 3"),
    "NaN in one output": (lambda t: np.column_stack([f(t), f(t) * np.nan]), "expected finite numbers"),
    "1e150": (lambda t: f(t) * 1e150, "squares overflow"),
    "sparse matrix": (lambda t: sparse.csr_matrix(f(t)[:, None]), "returned a csr_matrix"),
    "sparse array": (lambda t: sparse.coo_array(f(t)[:, None]), "returned a coo_array"),
    "conjugated view": (lambda t: torch.tensor(f(t) + 0j).conj(), "complex128 values"),
    "a row": (lambda t: f(t)[None], r"shape \(1, 8\)"),
    "structured": (lambda t: f(t).view([("y", "f8")]), "expected numbers"),
    "texts of numbers": (lambda t: f(t).astype(str), "expected numbers"),
    "bytes of numbers": (lambda t: f(t).astype(str).astype("S"), "expected numbers"),
    "texts": (lambda t: np.where(f(t) > 0, "yes", "no"), "instead of labels"),
    "mixed": (lambda t: [v if i % 2 else str(v) for i, v in enumerate(f(t))], "expected numbers"),
    "complex": (lambda t: f(t) + 0j, "complex128 values"),
    "times": (lambda t: f(t).astype("i8").astype("M8[s]"), "datetime64"),
    "None": (lambda t: None, "returned None"),
    "None each": (lambda t: [None] * len(t), "such as None"),
    "NotImplemented": (lambda t: NotImplemented, "NotImplementedType"),
    "a number": (lambda t: 1.0, r"shape \(\) for 8 rows"),
    "three dimensions": (lambda t: f(t)[:, None, None], r"shape \(8, 1, 1\)"),
    "dict": (lambda t: {"y": f(t)}, "returned a dict"),
    "set": (lambda t: set(f(t)), "returned a set"),
    "list of dicts": (lambda t: [{"y": v} for v in f(t)], "expected numbers"),
    "generator": (lambda t: (v for v in f(t)), "returned a generator"),
    "map": (lambda t: map(float, f(t)), "returned a map"),
    "future": (lambda t: concurrent.futures.Future(), "returned a Future"),
    "text": (lambda t: "yes", r"shape \(\)"),
    "ragged": (lambda t: [[v] * (1 + i % 2) for i, v in enumerate(f(t))], "is not an array"),
    "mean and deviation": (lambda t: (f(t), f(t) ** 2), "tuple of 2"),
    "list of outputs": (lambda t: [f(t), f(t)], r"shape \(2, 8\)"),
    "no rows": (lambda t: [], r"shape \(0,\)"),
    "a row less": (lambda t: f(t)[:-1], r"shape \(7,\)"),
    "a row more": (lambda t: np.append(f(t), 0), r"shape \(9,\)"),
    "each row twice": (lambda t: np.tile(f(t), 2), r"shape \(16,\)"),
    "an exit": (raising(SystemExit(3)), "SystemExit"),
    "the end of an iteration": (raising(StopIteration()), "with StopIteration. If"),
    "no memory": (raising(MemoryError()), "with MemoryError. If"),
    "endless recursion": (endless, "RecursionError"),
    "an assertion": (raising(AssertionError()), "with AssertionError. Check"),
    "a long message": (raising(ValueError("x" * 100_000)), r"x{200}"),
    "control characters": (raising(ValueError("a\n\x1b[31mred")), r"ValueError: a \[31mred\. "),
    "a message that fails": (raising(Nameless()), "with Nameless"),
    "one row at most": (lambda t: f(t) if len(t) == 1 else raising(ValueError("one row"))(t), "batch_rows="),
    "other outputs later": (later(lambda y: np.column_stack([y, y])), "outputs must not change"),
    "fewer rows later": (later(lambda y: y[:-1]), "expected one prediction per row|expected"),
    "fails later": (later(lambda y: raising(ConnectionError("gone"))(y)), "pass retries="),
    "no model": (object(), "is not a model"),
    "a class": (Predicts, "the class Predicts was passed"),
    "unfitted": (LinearRegression(), "is not fitted"),
    "two arguments": (lambda t, u: 1, "missing 1 required positional"),
    "predict with two arguments": (TwoArguments(), "missing 1 required positional"),
    "a path": ("model.pkl", "is not a model"),
    "an array": (X, "is not a model"),
    "a list of models": ([f, f], "is not a model"),
    "every attribute": (Everything(), "an Everything cannot be examined"),
    "attributes that fail": (Broken(), "a Broken cannot be examined"),
    "a property that fails": (Unfitted(), "a Unfitted cannot be examined"),
    "a generator method": (Generates(), "returned a generator"),
    "no probabilities after all": (Withdrawn(), "predict_proba is not available"),
}  # fmt: skip


def explained(model: Any, plain: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tx.TExplainer(model, X)(FEW)
    np.testing.assert_allclose(found.predictions, plain.predictions, rtol=1e-9)
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-6, atol=1e-9)


CASES: dict[str, Callable[[], None]] = {
    **{f"same: {name}": (lambda m=m: explained(m, PLAIN)) for name, m in SAME.items()},
    **{f"labels: {name}": (lambda c=c: explained(labelled(c), LIKELY)) for name, c in LABELS.items()},
    **{f"refused: {name}": (lambda m=m: explained(m, PLAIN)) for name, (m, _) in REFUSED.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_explained_as_its_function_or_refused(name: str) -> None:
    kind, _, case = name.partition(": ")
    if kind != "refused":
        CASES[name]()
    else:
        with pytest.raises((InputError, ModelError), match=REFUSED[case][1]):
            CASES[name]()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_coroutine_is_not_an_answer() -> None:
    with pytest.raises(ModelError, match="returned a coroutine"):
        tx.TExplainer(Waits(), X)


@pytest.mark.parametrize("most", [1, 4, 10])
def test_a_model_that_takes_few_rows_is_asked_for_as_many(most: int) -> None:
    def few(rows: np.ndarray) -> np.ndarray:
        assert len(rows) <= most
        return f(rows)

    found = tx.TExplainer(few, X, batch_rows=most)(FEW)
    np.testing.assert_allclose(found.values, PLAIN.values, rtol=1e-9, atol=1e-9)


#: models whose answer to some row, but not to the first, depends on the others
ORDERED = {
    "place": lambda rows: np.arange(len(rows)) + rows[:, 0] * 0,
    "running sum": lambda rows: rows[:, 0].cumsum(),
    "running mean": lambda rows: pd.Series(rows[:, 0]).expanding().mean().to_numpy(),
    "running maximum": lambda rows: np.maximum.accumulate(rows[:, 0]),
    "difference": lambda rows: np.diff(rows[:, 0], prepend=rows[0, 0]) + rows[:, 1],
    "reversed": lambda rows: rows[::-1, 0],
    "sorted": lambda rows: np.sort(rows[:, 0]),
}


@pytest.mark.parametrize("name", ORDERED)
def test_a_model_that_depends_on_the_rows_before_is_reported(name: str) -> None:
    with pytest.warns(ModelWarning, match="for a row alone"):
        tx.TExplainer(ORDERED[name], X)


@pytest.mark.parametrize("attribution", ["slope", "gradient", "shapley", "variation"])
@pytest.mark.parametrize("constant", [3.0, 1e-9, 2.0**70])
def test_a_constant_model_has_stable_zeros(constant: float, attribution: str) -> None:
    found = tx.TExplainer(lambda rows: np.full(len(rows), constant), X, attribution=attribution)(FEW)
    assert not found.values.any()
    assert set(found.diagnostics.stability) == {"stable"}

"""Odd containers of plain numbers: explained as a float array of the same numbers, or refused with a sentence.

Each is passed as background and rows, as rows alone and as background alone.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import decimal
import fractions
import io
import tempfile
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sparse

import texplainer as tx
from texplainer.errors import InputError, ModelError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = ["a", "b", "c"]
X = np.round(np.random.default_rng(5).normal(size=(40, 3)) * 4) / 2  # exact in half precision
FEW = 6


def model(table: Any) -> np.ndarray:
    rows = np.asarray(table, dtype=float)
    return 2 * rows[:, 0] - rows[:, 1] * rows[:, 2]


PLAIN = tx.TExplainer(model, X)(X[:FEW])


class Holder:
    """An object that offers its rows by one protocol only."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = np.ascontiguousarray(rows)


class ArrayProtocol(Holder):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype)


class InterfaceProtocol(Holder):
    @property
    def __array_interface__(self) -> Any:
        return self.rows.__array_interface__


class StreamProtocol(Holder):
    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return named(self.rows, pa.table).__arrow_c_stream__(schema)


class FrameProtocol(Holder):
    def __dataframe__(self, *given: Any, **more: Any) -> Any:
        return frame(self.rows).__dataframe__(*given, **more)


class TensorProtocol(Holder):
    def __dlpack__(self, **given: Any) -> Any:
        return self.rows.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self.rows.__dlpack_device__()


class SequenceProtocol(Holder):
    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i]


class Subclass(np.ndarray):
    """Adds nothing."""


Named = collections.namedtuple("Named", NAMES)
Data = dataclasses.make_dataclass("Data", NAMES)


def frame(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=NAMES)


def named(x: np.ndarray, make: Any = dict) -> Any:
    return make(dict(zip(NAMES, np.ascontiguousarray(x.T), strict=True)))


def structured(x: np.ndarray, kind: str = "f8") -> np.ndarray:
    out = np.empty(len(x), dtype=[(name, kind) for name in NAMES])
    for j, name in enumerate(NAMES):
        out[name] = x[:, j]
    return out


def strided(x: np.ndarray) -> np.ndarray:
    out = np.full((2 * len(x), 6), 99.0)
    out[::2, ::2] = x
    return out[::2, ::2]


def read_only(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out.flags.writeable = False
    return out


def unaligned(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.size * 8 + 1, np.uint8)[1:].view(np.float64).reshape(x.shape)
    out[:] = x
    return out


def mapped(x: np.ndarray, mode: Any = "r") -> np.ndarray:
    with tempfile.NamedTemporaryFile() as file:
        x.astype(float).tofile(file.name)
        return np.memmap(file.name, dtype=float, mode=mode, shape=x.shape)


def cells(x: np.ndarray, make: Callable[[Any], Any]) -> np.ndarray:
    out = np.empty(x.shape, dtype=object)
    for at, value in np.ndenumerate(x):
        out[at] = make(value.item())
    return out


def by_row(x: np.ndarray, make: Callable[..., Any]) -> list[Any]:
    return [make(*row) for row in x.tolist()]


def doubled(x: np.ndarray) -> Any:
    i, j = np.indices(x.shape)
    places = (np.r_[i.ravel(), i.ravel()], np.r_[j.ravel(), j.ravel()])
    return sparse.coo_matrix((np.r_[x.ravel() / 2, x.ravel() / 2], places), shape=x.shape)


def nullable(x: np.ndarray, backend: Any) -> pd.DataFrame:
    return frame(x).convert_dtypes(dtype_backend=backend)


SPARSE = ("coo_matrix", "csr_matrix", "csc_matrix", "bsr_matrix", "dia_matrix", "dok_matrix", "lil_matrix", "coo_array")  # fmt: skip

#: containers that must give the same explanation as the array
SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed twice": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
    "unaligned": unaligned,
    "big-endian": lambda x: x.astype(">f8"),
    "big-endian float32": lambda x: x.astype(">f4"),
    "float16": lambda x: x.astype(np.float16),
    "long double": lambda x: x.astype(np.longdouble),
    "matrix": np.asmatrix,
    "subclass": lambda x: x.view(Subclass),
    "memory-mapped": mapped,
    "memory-mapped, copy on write": lambda x: mapped(x, "c"),
    "structured": structured,
    "structured big-endian": lambda x: structured(x, ">f4"),
    "record array": lambda x: structured(x).view(np.recarray),
    "masked, nothing hidden": np.ma.masked_array,
    "masked structured": lambda x: np.ma.masked_array(structured(x)),
    "objects": lambda x: x.astype(object),
    "Decimals": lambda x: cells(x, lambda v: decimal.Decimal(str(v))),
    "Fractions": lambda x: cells(x, fractions.Fraction),
    "float32 scalars": lambda x: cells(x, np.float32),
    "arrays without dimensions": lambda x: [[np.array(v) for v in row] for row in x],
    "tensors without dimensions": lambda x: [[torch.tensor(v) for v in row] for row in x],
    "list": np.ndarray.tolist,
    "tuple": lambda x: tuple(map(tuple, x.tolist())),
    "list of arrays": list,
    "list of Series": lambda x: [pd.Series(row, index=NAMES) for row in x],
    "list of tensors": lambda x: list(torch.tensor(x)),
    "deque": lambda x: collections.deque(x.tolist()),
    "memory view": lambda x: memoryview(np.ascontiguousarray(x)),
    "named tuples": lambda x: by_row(x, Named),
    "dict of lists": lambda x: named(x, lambda d: {k: v.tolist() for k, v in d.items()}),
    "dict of Series": lambda x: named(
        x, lambda d: {k: pd.Series(v, index=range(5, 5 + len(v))) for k, v in d.items()}
    ),
    "dict of tensors": lambda x: named(x, lambda d: {k: torch.tensor(v) for k, v in d.items()}),
    "dict of polars": lambda x: named(x, lambda d: {k: pl.Series(v) for k, v in d.items()}),
    "dict of Arrow": lambda x: named(x, lambda d: {k: pa.array(v) for k, v in d.items()}),
    "dict of chunks": lambda x: named(
        x, lambda d: {k: pa.chunked_array([v[:3], v[3:]]) for k, v in d.items()}
    ),
    "ordered dict": lambda x: named(x, collections.OrderedDict),
    "user's dict": lambda x: named(x, collections.UserDict),
    "mapping proxy": lambda x: named(x, types.MappingProxyType),
    "default dict": lambda x: named(x, lambda d: collections.defaultdict(list, d)),
    "dict with numbers as keys": lambda x: dict(enumerate(x.T)),
    "list of dicts": lambda x: [dict(zip(NAMES, row, strict=True)) for row in x.tolist()],
    "list of user's dicts": lambda x: [
        collections.UserDict(zip(NAMES, row, strict=True)) for row in x.tolist()
    ],
    "tuple of dicts": lambda x: tuple(dict(zip(NAMES, row, strict=True)) for row in x.tolist()),
    "__array__": ArrayProtocol,
    "__array_interface__": InterfaceProtocol,
    "sequence": SequenceProtocol,
    "tensor": torch.tensor,
    "half tensor": lambda x: torch.tensor(x).half(),
    "transposed tensor": lambda x: torch.tensor(x.T.copy()).T,
    "tensor with gradient": lambda x: torch.tensor(x).requires_grad_(),
    "parameter": lambda x: torch.nn.Parameter(torch.tensor(x)),
    "negated view": lambda x: torch._neg_view(torch.tensor(-x)),
    "quantized tensor": lambda x: torch.quantize_per_tensor(torch.tensor(x).float(), 0.5, 0, torch.qint8),
    "compressed tensor": lambda x: torch.tensor(x).to_sparse_csr(),
    "8-bit tensor": lambda x: torch.tensor(x).to(torch.float8_e4m3fn),
    **{f"scipy {name}": getattr(sparse, name) for name in SPARSE},
    "scipy, two entries per cell": doubled,
    "scipy, unsorted": lambda x: sparse.csr_matrix(x[:, ::-1])[:, ::-1],
    "frame": frame,
    "sparse frame": lambda x: frame(x).astype(pd.SparseDtype(float, 0.0)),
    "nullable frame": lambda x: nullable(x, "numpy_nullable"),
    "frame of Arrow columns": lambda x: nullable(x, "pyarrow"),
    "frame of Decimals": lambda x: frame(x).map(lambda v: decimal.Decimal(str(v))),
    "frame of objects": lambda x: frame(x).astype(object),
    "polars": lambda x: pl.DataFrame(x, schema=NAMES),
    "polars, lazy": lambda x: pl.DataFrame(x, schema=NAMES).lazy(),
    "polars in chunks": lambda x: pl.concat(
        [pl.DataFrame(part, schema=NAMES) for part in (x[:3], x[3:])], rechunk=False
    ),
    "Arrow": lambda x: named(x, pa.table),
    "Arrow batch": lambda x: named(x, pa.record_batch),
    "Arrow in chunks": lambda x: pa.concat_tables([named(x[:3], pa.table), named(x[3:], pa.table)]),
    "Arrow slice": lambda x: named(np.vstack([[9.0, 9.0, 9.0], x]), pa.table).slice(1),
    "Arrow tensor": lambda x: pa.Tensor.from_numpy(np.ascontiguousarray(x)),
}
#: containers that are refused -> words of the sentence
REFUSED: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "complex, no imaginary part": (lambda x: x.astype(complex), "complex numbers"),
    "complex objects": (lambda x: x.astype(complex).astype(object), "complex values|not a number"),
    "complex tensor": (lambda x: torch.tensor(x.astype(complex)), "complex numbers"),
    "conjugated view": (lambda x: torch.tensor(x.astype(complex)).conj(), "complex numbers"),
    "nested tensor": (lambda x: torch.nested.nested_tensor(list(torch.tensor(x))), "rectangular tensor"),
    "tensor data set": (lambda x: torch.utils.data.TensorDataset(torch.tensor(x)), "3 dimensions"),
    "data loader": (lambda x: torch.utils.data.DataLoader(torch.tensor(x)), "a DataLoader was passed"),
    "bytes of rows": (lambda x: np.ascontiguousarray(x).view("V24"), "is not a number|1 columns; expected 3"),
    "rows as objects": (lambda x: pd.Series(list(x)).to_numpy(), "1 dimensions|columns; expected 3"),
    "three dimensions": (lambda x: x[:, :, None], "3 dimensions"),
    "four dimensions": (lambda x: x[None, :, :, None], "4 dimensions"),
    "no dimension": (lambda x: np.array({"a": 1}, dtype=object), "was passed as a table"),
    "no rows": (lambda x: x[:0], "0 rows"),
    "no columns": (lambda x: x[:, :0], "0 columns"),
    "cells as arrays": (lambda x: [[np.array([v]) for v in row] for row in x], "3 dimensions"),
    "list of frames": (lambda x: [frame(row[None]) for row in x], "3 dimensions"),
    "generator": (lambda x: (row for row in x.tolist()), "a generator was passed"),
    "iterator": (lambda x: iter(x.tolist()), "a list_iterator was passed"),
    "map": (lambda x: map(list, x), "a map was passed"),
    "zip": (lambda x: zip(*x.T.tolist(), strict=True), "a zip was passed"),
    "set": (lambda x: set(map(tuple, x.tolist())), "a set was passed"),
    "flat array": (lambda x: array.array("d", x.ravel()), "1 dimensions|columns; expected 3"),
    "bytes": (lambda x: x.tobytes(), "a bytes was passed"),
    "byte array": (lambda x: bytearray(x.tobytes()), "1 dimensions|columns; expected 3"),
    "data classes": (lambda x: by_row(x, Data), "1 dimensions|columns; expected 3"),
    "dict of generators": (lambda x: {n: (v for v in c) for n, c in named(x).items()}, "'a' is a generator"),
    "dict of dicts": (lambda x: frame(x).to_dict(), "'a' is a dict"),
    "dict of sets": (lambda x: {n: set(c) for n, c in named(x).items()}, "'a' is a set"),
    "dict of text": (lambda x: dict.fromkeys(NAMES, "abc"), "is not a number|could not convert string"),
    "__arrow_c_stream__": (StreamProtocol, "a StreamProtocol was passed"),
    "__dataframe__": (FrameProtocol, "a FrameProtocol was passed"),
    "__dlpack__": (TensorProtocol, "a TensorProtocol was passed"),
    "pandas groups": (lambda x: frame(x).groupby([0] * len(x)), "a DataFrameGroupBy was passed"),
    "pandas style": (lambda x: frame(x).style, "a Styler was passed"),
    "pandas index": (lambda x: pd.Index(x[:, 0]), "1 dimensions|columns; expected 3"),
    "pandas multi-index": (
        lambda x: pd.MultiIndex.from_tuples(list(map(tuple, x))),
        "1 dimensions|columns; expected 3",
    ),
    "polars groups": (lambda x: pl.DataFrame(x, schema=NAMES).group_by("a"), "a GroupBy was passed"),
    "polars column of arrays": (lambda x: pl.Series(x), "ndarray values|columns; expected 3"),
    "polars column of structs": (
        lambda x: pl.DataFrame(x, schema=NAMES).to_struct("s"),
        "dict values|columns; expected 3",
    ),
    "Arrow structs": (
        lambda x: pa.StructArray.from_arrays([pa.array(c) for c in x.T], NAMES),
        "1 dimensions|columns; expected 3",
    ),
    "Arrow structs in chunks": (
        lambda x: pa.chunked_array([pa.StructArray.from_arrays([pa.array(c) for c in x.T], NAMES)]),
        "values such as|columns; expected 3",
    ),
    "Arrow reader": (lambda x: named(x, pa.table).to_reader(), "a RecordBatchReader was passed"),
    "Arrow data set": (lambda x: dataset.dataset(named(x, pa.table)), "an InMemoryDataset was passed"),
    "open file": (lambda x: io.StringIO("a,b,c\n1,2,3"), "a StringIO was passed"),
    "path": (lambda x: types.SimpleNamespace(), "a SimpleNamespace was passed"),
    "None": (lambda x: None, "None was passed"),
    "number": (lambda x: 3, "3 was passed"),
    "module": (lambda x: np, "a module was passed"),
    "class": (lambda x: pd.DataFrame, "a type was passed"),
    "the model": (lambda x: model, "a function was passed"),
    "Ellipsis": (lambda x: ..., "an ellipsis was passed"),
}


def explained(make: Callable[[np.ndarray], Any], place: str) -> None:
    """Pass the container in one place or in both; the explanation is that of the plain array."""
    background = X if place == "rows" else make(X)
    rows = X[:FEW] if place == "background" else make(X[:FEW])
    found = tx.TExplainer(model, background)(rows)
    np.testing.assert_allclose(found.predictions, PLAIN.predictions, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.values, PLAIN.values, rtol=1e-5, atol=1e-5)


MAKERS = SAME | {name: make for name, (make, _) in REFUSED.items()}
CASES = {
    f"{name}, {place}": (lambda make=make, place=place: explained(make, place))
    for name, make in MAKERS.items()
    for place in ("both", "rows", "background")
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_explained_as_such_whatever_holds_them(name: str) -> None:
    kind = name.rsplit(", ", 1)[0]
    if kind in SAME:
        CASES[name]()
    else:
        with pytest.raises((InputError, ModelError), match=REFUSED[kind][1]):
            CASES[name]()


def test_decimal_columns_of_polars_and_arrow_are_numbers() -> None:
    prices = [decimal.Decimal(str(v)) for v in X[:, 1]]
    for made in (pl.DataFrame({"a": X[:, 0], "b": prices, "c": X[:, 2]}), pa.table({"a": X[:, 0], "b": prices, "c": X[:, 2]})):  # fmt: skip
        found = tx.TExplainer(model, made)(made[:FEW])
        assert not found.categories
        np.testing.assert_allclose(found.values, PLAIN.values, rtol=1e-9, atol=1e-9)


def test_rows_with_a_name_twice_are_refused() -> None:
    twice = pd.concat([frame(X), frame(X)[["b"]] + 1], axis=1)
    with pytest.raises(InputError, match=r"\['b'\] occur twice"):
        tx.TExplainer(model, frame(X))(twice[:FEW])

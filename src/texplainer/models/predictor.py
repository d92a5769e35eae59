"""`Predictor`: a fitted model and a choice of outputs, as a function from floats to floats.

The library of a model is found by the module name of its type, so no library is imported before one of its
models is passed; `libraries` holds one file per library. For every library a binary classifier has two
outputs, [1-p, p] as probabilities and [-z, z] as log-odds, so that an output can be chosen by its class.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from texplainer.errors import InputError, ModelError, ModelWarning
from texplainer.limits import BATCH_ROWS
from texplainer.models.libraries import outlet_of, unwrapped
from texplainer.support.messages import describe
from texplainer.tables import native
from texplainer.tables.schema import Schema
from texplainer.types import Array

SCALES = ("auto", "probability", "log-odds", "raw")
LONGEST_ERROR = 240  # characters of a model's own message that are shown
ALONE = 1e-3  # of the predictions' size: what rounding in half precision explains
MOST_CELLS = 4_000_000  # of the points made at a time: wide tables must not fill the memory


@dataclass(frozen=True)
class Predictor:
    """The explained function: (rows, features) -> (rows, outputs), on the explained scale."""

    model: Any
    kind: str
    schema: Schema
    call: Callable[[Any], Any]
    scale: str
    task: str
    all_names: tuple[str, ...]
    outputs: tuple[int, ...]
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float64))
    unit: float = float(np.finfo(np.float64).eps / 2)
    batch_rows: int = BATCH_ROWS
    predicted: bool = False  # the explained output is each row's own predicted class
    ending: str = ""  # of a network that gives probabilities: "sigmoid" or "softmax"
    cache: MutableMapping[Any, Array] | None = None  # (scale, *key of a row) -> its prediction
    repeatable: bool = True  # whether the model gave the same answer when it was asked twice
    row_by_row: bool = True  # whether the answer to a row does not depend on the others

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the explained outputs."""
        return tuple(self.all_names[i] for i in self.outputs)

    def __call__(self, rows: Array) -> Array:
        """Predict the explained outputs, in batches of at most `batch_rows` rows."""
        return self.everything(rows)[:, self.outputs]

    def everything(self, rows: Array) -> Array:
        """Predict all outputs, (rows, all outputs)."""
        if self.cache is not None:
            return self._remembered(self.cache, rows)
        return self._in_batches(rows)

    def _remembered(self, cache: MutableMapping[Any, Array], rows: Array) -> Array:
        """Predict the rows that were not predicted before, each once."""
        keys = [(self.scale, *key) for key in self.schema.keys(rows)]
        places = list({key: i for i, key in enumerate(keys) if key not in cache}.values())
        for first in range(0, len(places), self.batch_rows):  # what was answered before a failure is kept
            part = places[first : first + self.batch_rows]
            for i, answer in zip(part, self._checked(rows[part]), strict=True):
                cache[keys[i]] = answer
        return np.array([cache[key] for key in keys]).reshape(len(rows), len(self.all_names))

    def _in_batches(self, rows: Array) -> Array:
        if len(rows) <= self.batch_rows:
            return self._checked(rows)
        parts = [self._checked(rows[i : i + self.batch_rows]) for i in range(0, len(rows), self.batch_rows)]
        return np.concatenate(parts)

    def piece(self, width: int) -> int:
        """Return how many points of `width` columns are created at a time."""
        return max(1, min(self.batch_rows, MOST_CELLS // max(1, width)))

    def _checked(self, rows: Array) -> Array:
        out = call_model(self.call, self.schema.write(rows.copy()), len(rows))
        if out.shape[1] != len(self.all_names):
            raise ModelError(
                f"the model returned {out.shape[1]} outputs for {len(rows)} rows; it returned "
                f"{len(self.all_names)} before. The number of outputs must not change between calls."
            )
        return out


def adapt(
    model: Any,
    schema: Schema,
    probe: Array,
    *,
    output: Any = None,
    scale: str = "auto",
    batch_rows: int = BATCH_ROWS,
    retries: int = 0,
    cache: MutableMapping[Any, Array] | bool | None = None,
) -> Predictor:
    """Choose the adapter of a model, its scale and the outputs to explain.

    `probe` holds a few background rows: one prediction gives the number of outputs and the float precision of
    an unknown model.
    """
    if scale not in SCALES:
        raise InputError(f"scale={scale!r} is unknown; expected one of {', '.join(SCALES)}.")
    model, own_scale = unwrapped(model)
    adapter = outlet_of(model, schema)
    natural = own_scale if own_scale and own_scale in adapter.scales else adapter.default
    chosen = natural if scale == "auto" else scale
    if chosen not in adapter.scales:
        raise InputError(
            f"scale={scale!r} is not available for a {type(model).__name__}; it offers "
            f"{', '.join(adapter.scales)}. Choose one of these, or scale='auto'."
        )
    if adapter.doubt and chosen != "raw":
        warnings.warn(adapter.doubt, ModelWarning, stacklevel=3)
    call = guarded(adapter.scales[chosen], model)
    if retries:
        call = partial(_retried, call, retries)
    schema, first = _first_answer(call, (adapter.schema or schema, schema), probe)
    repeatable = _answers_again(call, schema.write(probe.copy()), first)
    row_by_row = not repeatable or _answers_alone(call, schema, probe, first)
    names = adapter.names if len(adapter.names) == first.shape[1] else numbered(first.shape[1])
    task = adapter.task
    if task == "network":  # its outputs mean classes only when read through a link
        task = "regression" if chosen == "raw" else "classification"
    narrow = (
        (first.dtype.kind == "f" and first.dtype.itemsize <= 4)
        or adapter.dtype == np.float32
        or schema.narrow_floats
    )
    width = first.dtype if first.dtype == np.float16 else np.float32 if narrow else np.float64
    predictor = Predictor(
        model,
        adapter.kind,
        schema,
        call,
        chosen,
        task,
        names,
        (),
        # a function that answers in float32 most likely rounds its input to it, too
        dtype=np.dtype(np.float32 if narrow else np.float64),
        unit=adapter.unit or float(np.finfo(width).eps / 2),
        batch_rows=batch_rows,
        cache=cache if isinstance(cache, MutableMapping) else {} if cache else None,
        repeatable=repeatable,
        row_by_row=row_by_row,
        ending=adapter.ending,
    )
    if isinstance(output, str) and output == "predicted":
        return replace(predictor, outputs=tuple(range(len(names))), predicted=True)
    return replace(predictor, outputs=_choose(output, names, adapter.labels, task))


def numbered(count: int) -> tuple[str, ...]:
    """Return default output names."""
    return ("output",) if count == 1 else tuple(f"output {i}" for i in range(count))


def _retried(call: Callable[[Any], Any], retries: int, table: Any) -> Any:
    """Call the model again if it fails, with an untouched table."""
    for _ in range(retries):
        try:
            return call(table.copy() if hasattr(table, "copy") else table)
        except Exception:  # whatever a service raises; the last call's error is reported
            continue
    return call(table)


def _first_answer(
    call: Callable[[Any], Any], schemas: tuple[Schema, Schema], probe: Array
) -> tuple[Schema, np.ndarray]:
    """Predict with the inferred input type, otherwise with the user's own table type."""
    wanted, own = schemas
    try:
        return wanted, call_model(call, wanted.write(probe.copy()), len(probe), keep_dtype=True)
    except ModelError:
        if wanted is own:
            raise
        with suppress(ModelError):
            return own, call_model(call, own.write(probe.copy()), len(probe), keep_dtype=True)
        raise


def _answers_again(call: Callable[[Any], Any], table: Any, first: np.ndarray) -> bool:
    """Predict the same rows again; warn if the predictions differ."""
    again = call_model(call, table, len(first), keep_dtype=True)
    # sums in several threads may differ in their last bits
    unit = np.finfo(np.float32 if first.dtype.itemsize <= 4 else np.float64).eps
    same = again.shape == first.shape and np.allclose(again, first, rtol=64 * unit, atol=0, equal_nan=True)
    if not same:
        warnings.warn(
            "the model returned different predictions for the same rows: it is random or changes its state. "
            "Its explanations are not reproducible, and finite differences are unreliable. Fix its seed, or "
            "switch it to inference mode.",
            ModelWarning,
            stacklevel=4,
        )
    return same


def _answers_alone(call: Callable[[Any], Any], schema: Schema, probe: Array, first: np.ndarray) -> bool:
    """Predict two rows, each alone; warn if a prediction differs from that among the others.

    Ranks leave one row as it is, running sums the first.
    """
    size = np.nanmax(np.abs(first), initial=0.0)
    for i in dict.fromkeys((0, len(probe) // 2)) if len(probe) > 1 else ():
        try:
            alone = call_model(call, schema.write(probe[i : i + 1].copy()), 1)
        except ModelError:  # it takes no single row; explaining one will raise an error
            return True
        if alone.shape[1] == first.shape[1] and np.allclose(
            alone[0], first[i], rtol=0, atol=ALONE * size, equal_nan=True
        ):
            continue
        warnings.warn(
            f"the model predicts {alone[0].tolist()} for a row alone and {first[i].tolist()} for the same row "
            f"among {len(probe)}: its predictions depend on the other rows of the call, and so do their "
            "explanations. Standardise with the statistics of the training data, not with those of the rows "
            "passed.",
            ModelWarning,
            stacklevel=4,
        )
        return False
    return True


def _remedy(error: BaseException, rows: int) -> str:
    """What may help: another table, or another try."""
    wrong_input = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)
    if isinstance(error, wrong_input):
        few = " If it takes fewer rows at a time, pass batch_rows= to TExplainer." if rows > 1 else ""
        return f"Check that it is fitted and that the table is the one it expects.{few}"
    return "If it may succeed at another try, pass retries= to TExplainer."


def _first_words(error: BaseException) -> str:
    """The type of an error and its message; of a long one its first sentence, without control characters."""
    try:
        text = str(error)
    except Exception:  # an error whose own message fails
        text = ""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not text:
        return type(error).__name__
    return f"{type(error).__name__}: " + (
        text if len(text) <= LONGEST_ERROR else text[:LONGEST_ERROR].split(". ")[0]
    ).rstrip(".")


def call_model(call: Callable[[Any], Any], table: Any, rows: int, keep_dtype: bool = False) -> np.ndarray:
    """Call the user's model; any exception becomes a `ModelError`.

    `table` is a copy that the model may modify. The result is also a copy, not a view of the table or of an
    array that the model keeps.
    """
    try:
        answer = call(table)
    except InputError:  # of our own
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"the model failed on {rows} rows with {_first_words(error)}. {_remedy(error, rows)}"
        ) from error
    try:
        raw = np.array(native.array_of(answer))
        if isinstance(answer, np.ma.MaskedArray) and np.ma.getmaskarray(answer).any():
            raw = np.ma.filled(answer.astype(float), np.nan)
    except Exception as error:
        raise ModelError(
            f"the model returned {describe(answer)}, which is not an array ({type(error).__name__}: "
            f"{error}); "
            f"expected ({rows},) or ({rows}, outputs). Wrap it in a function that returns one number per row."
        ) from error
    if raw.ndim == 0 and raw.dtype.kind == "O":
        raise ModelError(
            f"the model returned {describe(answer)}; expected an array of shape ({rows},) or ({rows}, outputs). "
            "Wrap it in a function that returns one number per row."
        )
    if isinstance(answer, tuple) and len(answer) != rows:
        raise ModelError(
            f"the model returned a tuple of {len(answer)}; expected one array of {rows} predictions. Wrap it in "
            "a function that returns the one to explain."
        )
    shape = raw.shape
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or len(raw) != rows or not raw.shape[1]:
        raise ModelError(
            f"the model returned shape {shape} for {rows} rows; expected ({rows},) or ({rows}, outputs). "
            "Wrap it in a function that returns one prediction per row."
        )
    if raw.dtype.kind == "O" and all(isinstance(value, (Real, Decimal)) for value in raw.flat):
        raw = raw.astype(np.float64)
    if raw.dtype.kind not in "fiub":
        odd = next((value for value in raw.flat if not isinstance(value, (Real, Decimal))), raw.flat[0])
        raise ModelError(
            f"the model returned {raw.dtype} values such as {odd!r}; expected numbers. "
            "Pass a method that returns probabilities or scores instead of labels."
        )
    return raw if keep_dtype else raw.astype(np.float64, copy=False)


def _choose(output: Any, names: tuple[str, ...], labels: Mapping[Any, int], task: str) -> tuple[int, ...]:
    every = tuple(range(len(names)))
    if output is None:
        return (1,) if task == "classification" and len(names) == 2 else every
    if isinstance(output, str) and output == "all":
        return every
    if isinstance(output, np.ndarray):
        output = output.ravel().tolist()
    if isinstance(output, (list, tuple)):
        found = tuple(i for one in output for i in _choose(one, names, labels, task))
        if len(set(found)) < len(found):
            raise InputError(f"output={output!r} names an output twice; expected distinct outputs.")
        return found
    try:
        if output in labels:
            return (labels[output],)
    except TypeError:
        pass
    if str(output) in names:
        return (names.index(str(output)),)
    if isinstance(output, (int, np.integer)) and -len(names) <= output < len(names):
        return (int(output) % len(names),)
    raise InputError(
        f"output={output!r} is unknown; expected None, 'all', 'predicted', an index below {len(names)}, "
        f"or one of {', '.join(names)}."
    )


# ---------------------------------------------------------------- threads that do not survive a fork


#: how the type of such a model begins, with its package
OPENMP = ("lightgbm", "xgboost", "torch", "skorch", "sklearn.ensemble._hist_gradient_boosting")
_used: set[str] = set()
_inherited: set[str] = set()

if hasattr(os, "register_at_fork"):  # there is none on Windows, and no fork either
    os.register_at_fork(after_in_child=lambda: _inherited.update(_used))


def guarded(call: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:
    """The same function; in a forked child it raises an error if the model was used before the fork."""
    while getattr(model, "steps", None):
        model = model.steps[-1][1]
    owner = next((name for base in type(model).__mro__ if (name := _openmp(base.__module__))), None)
    if owner is None or getattr(model, "n_jobs", None) == 1 or os.environ.get("OMP_NUM_THREADS") == "1":
        return call

    def checked(table: Any) -> Any:
        if owner in _inherited:
            raise InputError(
                f"this process was forked after a model of {owner.split('.')[0]} was used: its threads do not "
                "exist here, and a prediction would never end. Start processes with "
                "multiprocessing.get_context('spawn'), or use the model only after the fork."
            )
        _used.add(owner)
        return call(table)

    return checked


def _openmp(module: str) -> str | None:
    return next((name for name in OPENMP if module == name or module.startswith(name + ".")), None)

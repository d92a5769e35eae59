"""A fitted model and a choice of output -> `Predictor`: floats in, floats out.

The library a model comes from is found by the name of its type's module, so none of them is
imported before a model of that library is at hand; `adapters.py` holds one function per library.
Whatever the library, a binary classifier has two outputs, [1-p, p] as probabilities and [-z, z] as
margins, so that an output is always chosen by its class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from texplainer import adapters
from texplainer.errors import InputError, ModelError
from texplainer.frames import Schema
from texplainer.signatures import Array

SCALES = ("auto", "probability", "margin", "raw")
BATCH_ROWS = 16384


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

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the explained outputs."""
        return tuple(self.all_names[i] for i in self.outputs)

    def __call__(self, rows: Array) -> Array:
        """Predict the explained outputs, in batches of at most `batch_rows` rows."""
        return self.everything(rows)[:, self.outputs]

    def everything(self, rows: Array) -> Array:
        """Predict all outputs, (rows, all outputs)."""
        if len(rows) <= self.batch_rows:
            return self._checked(rows)
        parts = [self._checked(rows[i : i + self.batch_rows]) for i in range(0, len(rows), self.batch_rows)]
        return np.concatenate(parts)

    def _checked(self, rows: Array) -> Array:
        out = call_model(self.call, self.schema.write(rows), len(rows))
        if out.shape[1] != len(self.all_names):
            raise ModelError(
                f"the model returned {out.shape[1]} outputs for {len(rows)} rows; it returned "
                f"{len(self.all_names)} before. Its number of outputs must not change between calls."
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
) -> Predictor:
    """Find the adapter of a model, its scale and the outputs to explain.

    `probe` holds a few rows of the background: one prediction tells the number of outputs and the
    float width of an unknown model.
    """
    if scale not in SCALES:
        raise InputError(f"scale={scale!r} is unknown; expected one of {', '.join(SCALES)}.")
    outlet = adapters.find(model, schema)
    chosen = outlet.default if scale == "auto" else scale
    if chosen not in outlet.scales:
        raise InputError(
            f"scale={scale!r} is not available for a {type(model).__name__}; it offers "
            f"{', '.join(outlet.scales)}. Choose one of these, or scale='auto'."
        )
    call = outlet.scales[chosen]
    schema = outlet.schema or schema
    first = call_model(call, schema.write(probe), len(probe), keep_dtype=True)
    names = outlet.names if len(outlet.names) == first.shape[1] else adapters.numbered(first.shape[1])
    task = outlet.task
    if task == "network":  # its outputs mean classes only when read through a link
        task = "regression" if chosen == "raw" else "classification"
    narrow = first.dtype == np.float32 or outlet.dtype == np.float32
    predictor = Predictor(
        model,
        outlet.kind,
        schema,
        call,
        chosen,
        task,
        names,
        (),
        # a function that answers in float32 most likely rounds its input to it, too
        dtype=np.dtype(np.float32 if narrow else np.float64),
        unit=float(np.finfo(np.float32 if narrow else np.float64).eps / 2),
        batch_rows=batch_rows,
    )
    if output == "predicted":
        return replace(predictor, outputs=tuple(range(len(names))), predicted=True)
    return replace(predictor, outputs=_choose(output, names, outlet.labels, task))


def call_model(call: Callable[[Any], Any], table: Any, rows: int, keep_dtype: bool = False) -> np.ndarray:
    """Call the user's model; whatever it raises becomes a `ModelError` that says so."""
    try:
        raw = np.asarray(call(table))
    except Exception as error:
        raise ModelError(
            f"the model failed on {rows} rows with {type(error).__name__}: {error}. "
            "Check that it is fitted and that the table is the one it expects."
        ) from error
    if raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or len(raw) != rows:
        raise ModelError(
            f"the model returned shape {raw.shape} for {rows} rows; expected ({rows},) or ({rows}, outputs). "
            "Wrap it in a function that returns one prediction per row."
        )
    if raw.dtype.kind not in "fiub":
        raise ModelError(
            f"the model returned {raw.dtype} values such as {raw.flat[0]!r}; expected numbers. "
            "Explain its probabilities or scores instead of its labels."
        )
    return raw if keep_dtype else raw.astype(np.float64, copy=False)


def _choose(output: Any, names: tuple[str, ...], labels: Mapping[Any, int], task: str) -> tuple[int, ...]:
    every = tuple(range(len(names)))
    if output is None:
        return (1,) if task == "classification" and len(names) == 2 else every
    if isinstance(output, str) and output == "all":
        return every
    if isinstance(output, (list, tuple)):
        return tuple(i for one in output for i in _choose(one, names, labels, task))
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

"""ONNX Runtime sessions."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import Library, ModelAdapter, ModelFile
from texplainer.models.scales import log_odds
from texplainer.tables.schema import Schema

# recent versions keep a device id in the home folder and report to a host when they are imported
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def _outlet(model: Any, schema: Schema) -> ModelAdapter:
    inputs = model.get_inputs()
    outputs = {o.name: o for o in model.get_outputs()}
    named = next((n for n in outputs if "prob" in n.lower()), None)
    target = named or next((n for n, o in outputs.items() if "float" in o.type or "double" in o.type), None)
    if target is None:
        raise InputError(
            f"the ONNX model has the outputs {sorted(outputs)}, none of them a float tensor; "
            "export it with probabilities or scores."
        )
    width = np.float64 if any("double" in i.type for i in inputs) else np.float32
    half = any("float16" in i.type for i in (*inputs, outputs[target]))
    unit = float(np.finfo(np.float16).eps / 2) if half else None
    _check_inputs([i.name for i in inputs], schema)

    def raw(table: Any) -> np.ndarray:
        if len(inputs) == 1:
            cells = np.float16 if "float16" in inputs[0].type else width
            feed = {inputs[0].name: np.asarray(table, dtype=cells)}
        else:  # one input per column
            feed = {
                i.name: np.asarray(table[i.name]).reshape(-1, 1).astype(_onnx_type(i.type)) for i in inputs
            }
        out = model.run([target], feed)[0]
        return np.array([list(r.values()) for r in out]) if isinstance(out, list) else out

    wanted = replace(schema, kind="array") if len(inputs) == 1 and not schema.levels else None
    if named is None:
        return ModelAdapter("onnx", "regression", {"raw": raw}, "raw", dtype=width, schema=wanted, unit=unit)
    scales = {"probability": raw, "log-odds": lambda t: log_odds(raw(t))}
    task = "classification"
    return ModelAdapter("onnx", task, scales, "probability", dtype=width, schema=wanted, unit=unit)


def _check_inputs(inputs: list[str], schema: Schema) -> None:
    absent = [name for name in inputs if name not in schema.names]
    if len(inputs) > 1 and absent:
        raise InputError(
            f"the ONNX model has the inputs {inputs}, but the table does not have a column {absent[0]!r}; "
            "expected one input with all columns, or one input per column, by name. Wrap the session in a "
            "function that prepares its inputs."
        )


def _onnx_type(name: str) -> Any:
    types = {
        "float16": np.float16,
        "float": np.float32,
        "double": np.float64,
        "int64": np.int64,
        "int32": np.int32,
    }
    return next((t for key, t in types.items() if key in name), object)


def _read(path: Path, threads: int) -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # its errors are raised; the log would repeat them
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


LIBRARY = Library(
    "onnx",
    _outlet,
    content=None,  # a session does not show its graph
    files={".onnx": ModelFile("onnxruntime", _read)},
    remedy="Pass an object that holds the model's path and opens the session when it is first called "
    "(docs/scale.md shows one)",
)

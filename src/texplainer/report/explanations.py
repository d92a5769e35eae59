"""An Explanation as the plain content of a page.

Arrays travel as base64 of float32: seven digits, a third of the size of text. When a page would grow
beyond its budget, rows are thinned evenly and the page says so; global numbers are of all rows.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from texplainer import audit, fingerprints
from texplainer.explanation import Explanation

BUDGET = 1_300_000  # bytes of arrays in a page, so that it stays well under 2 MB
EMPTY = (None, "", [], ())


def payload(explanation: Explanation) -> dict[str, Any]:
    """Everything the page shows of an explanation."""
    rows, features, outputs = explanation.arrays["values"].shape
    per_row = (2 * features * outputs * 4 + features * 5 + outputs * 4) * 4 / 3 + 40
    kept = np.unique(np.linspace(0, rows - 1, min(rows, max(1, int(BUDGET / per_row)))).astype(int))
    return {
        "kind": "explanation",
        "features": list(explanation.feature_names),
        "outputs": list(explanation.output_names),
        "scale": explanation.scale,
        "attribution": explanation.attribution,
        "shares": shares(explanation.attribution),
        "rows": rows,
        "kept": kept.tolist() if len(kept) < rows else None,
        "base": finite(explanation.arrays["base_values"]),
        "verdicts": explanation.verdict_counts(),
        "importance": importance(explanation),
        "facts": facts(explanation),
        **row_arrays(explanation, kept),
    }


def row_arrays(explanation: Explanation, kept: np.ndarray) -> dict[str, Any]:
    """The arrays of some rows: values, slopes, predictions, data, doubts."""
    arrays = explanation.arrays
    error = arrays.get("error")
    blank = np.full(len(kept), "", dtype=object)
    return {
        "values": packed(arrays["values"][kept]),
        "gradient": packed(arrays["gradient"][kept]),
        "errors": packed(error[kept]) if _linear(explanation) and error is not None else None,
        "predictions": packed(arrays["predictions"][kept]),
        "data": [column(arrays["data"][kept, j]) for j in range(arrays["data"].shape[1])],
        "flags": packed(arrays["flags"][kept], "u1") if "flags" in arrays else None,
        "verdict": [str(v) for v in arrays.get("verdict", blank)[kept if "verdict" in arrays else ...]],
        "reason": [str(r) for r in arrays.get("reason", blank)[kept if "reason" in arrays else ...]],
    }


def shares(attribution: str) -> bool:
    """Whether the values share out f(x) - E f, or measure each feature by itself."""
    return attribution not in ("sensitivity", "scaled", "effect")


def _linear(explanation: Explanation) -> bool:
    """Whether the derivative's error bound is the value's own."""
    return explanation.attribution == "sensitivity"


def importance(explanation: Explanation) -> dict[str, Any]:
    """Mean |value| and its quartiles over all rows, each (features, outputs)."""
    values = explanation.arrays["values"]
    size = np.abs(values[np.all(np.isfinite(values), axis=(1, 2))])
    if not len(size):
        size = np.zeros((1, *values.shape[1:]))
    low, high = np.quantile(size, [0.25, 0.75], axis=0)
    return {"mean": finite(size.mean(axis=0)), "low": finite(low), "high": finite(high)}


def facts(explanation: Explanation) -> list[tuple[str, str]]:
    """What was run, for the record."""
    settings = dict(explanation.settings)
    known = {"data": fingerprints.of_array(explanation.arrays["data"])} | settings.pop("fingerprints", {})
    # what was chosen stands before what was asked for ("auto")
    chosen = {
        "engine": explanation.engine,
        "scale": explanation.scale,
        "attribution": explanation.attribution,
    }
    found = chosen | {str(k): str(v) for k, v in settings.items() if k not in chosen and v not in EMPTY}
    if "evaluations" in explanation.arrays:
        spent = explanation.arrays["evaluations"]
        found["model evaluations"] = f"{int(spent.sum()):,} ({spent.mean():,.0f} a row)"
    found |= {f"fingerprint of the {name}": _short(found_there) for name, found_there in known.items()}
    return list((found | environment()).items())


def environment() -> dict[str, str]:
    """The versions of what did the work."""
    return {f"version of {name}": version for name, version in audit.software().items()}


def _short(fingerprint: Any) -> str:
    """The digits of a SHA-256 that people compare; a mapping's own if it names one."""
    found = fingerprint.get("sha256", fingerprint) if isinstance(fingerprint, Mapping) else fingerprint
    return str(found)[:16]


def packed(array: np.ndarray, kind: str = "f4") -> dict[str, Any]:
    """An array as base64 of little-endian numbers."""
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(array, dtype=np.dtype(kind).newbyteorder("<"))
    return {
        "type": kind,
        "shape": list(array.shape),
        "bytes": base64.b64encode(small.tobytes()).decode("ascii"),
    }


def column(values: np.ndarray) -> dict[str, Any]:
    """One column of the data: numbers, or codes with the texts they stand for."""
    try:
        return packed(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        levels = sorted({str(v) for v in values})
        where = {level: code for code, level in enumerate(levels)}
        return {"levels": levels, "codes": [where[str(v)] for v in values]}


def finite(array: np.ndarray) -> Any:
    """Nested lists with None for what JSON cannot say."""
    plain = np.asarray(array, dtype=object)
    plain[~np.isfinite(np.asarray(array, dtype=float))] = None
    return plain.tolist()

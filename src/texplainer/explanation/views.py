"""An Explanation seen otherwise: as a table, as a ranking of features, in cohorts of rows, over pixels, as text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.text import columns_text, row_tables
from texplainer.support.messages import suggest

if TYPE_CHECKING:
    from texplainer.explanation.explanation import Explanation


def importance(explanation: Explanation) -> dict[str, np.ndarray]:
    """Per feature the mean |value| and its bound, the standard deviation and the share of positive rows.

    The largest first, each with its unit: slopes and effects of categories differ. Over the rows that have
    values, NaN if there are none.
    """
    values = explanation.arrays["values"]
    known = np.isfinite(values).all(axis=(1, 2))
    error = np.asarray(explanation.arrays.get("error", np.full(values.shape, np.nan)), dtype=float)
    values, error = (np.swapaxes(part[known], 1, 2).reshape(-1, values.shape[1]) for part in (values, error))
    if not len(values):
        values = error = np.full((1, values.shape[1]), np.nan)
    size = np.abs(values).mean(axis=0)
    order = np.argsort(-size, kind="stable")
    return {
        "feature": np.array(explanation.feature_names, dtype=object)[order],
        "mean_abs": size[order],
        "bound": error.mean(axis=0)[order],
        "std": values.std(axis=0)[order],
        "positive_share": np.where(np.isnan(size), np.nan, (values > 0).mean(axis=0))[order],
        **({"unit": np.array(explanation.units, dtype=object)[order]} if explanation.units else {}),
    }


def to_frame(explanation: Explanation) -> Any:
    """A pandas table, one line per row, feature and output; its index are the labels of the user's rows."""
    import pandas as pd

    arrays = explanation.arrays
    values = arrays["values"]
    r, f, o = (axis.reshape(-1) for axis in np.indices(values.shape))
    table = {
        "row": r,
        "feature": np.array(explanation.feature_names, dtype=object)[f],
        "output": np.array(explanation.output_names, dtype=object)[o],
        "data": arrays["data"][r, f],
        "value": values.reshape(-1),
        "prediction": arrays["predictions"][r, o],
        "base_value": np.broadcast_to(arrays["base_values"], values.shape[::2])[r, o],
    }
    if explanation.units:
        table["unit"] = np.array(explanation.units, dtype=object)[f]
    if "error" in arrays:
        table["error"] = arrays["error"].reshape(-1)
    for name, other in explanation.others.items():
        table[name] = other.arrays["values"].reshape(-1)
        if "error" in other.arrays:
            table[f"{name}_error"] = other.arrays["error"].reshape(-1)
    if "relative_change" in arrays:
        table["relative_change"] = arrays["relative_change"][r, o]
    if "stability" in arrays:
        table["stability"] = arrays["stability"][r]
    return pd.DataFrame(table, index=None if "index" not in arrays else pd.Index(arrays["index"].tolist())[r])


def to_shap(explanation: Explanation) -> Any:
    """The contributions as a `shap.Explanation`."""
    import shap

    parts = explanation.with_attribution("shapley")
    base = np.broadcast_to(parts.arrays["base_values"], parts.arrays["predictions"].shape)
    base = base[tuple(0 if axis in parts.dropped else slice(None) for axis in "ro")]
    return shap.Explanation(
        values=parts.values,
        base_values=base,
        data=parts.data,
        feature_names=list(parts.feature_names),
        output_names=None if "o" in parts.dropped else list(parts.output_names),
    )


def summary_words(explanation: Explanation) -> str:
    """What was explained, how, at which cost, and how far to trust it: a few lines."""
    if len(explanation) == 1:
        return _row_text(explanation)
    title, facts = summary(explanation)
    return "\n".join([title, *(f"  {name:12} {words}" for name, words in facts)])


def summary(explanation: Explanation) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what is known of an Explanation of many rows by name."""
    arrays = explanation.arrays
    rows, features, outputs = arrays["values"].shape
    names = explanation.output_names
    what = "prediction" if names[0] == "output" else f"output {names[0]!r}"
    what = what if outputs == 1 else f"{outputs} outputs"
    title = (
        f"Explanation of {rows} rows x {features} features, {what} "
        f"on the {explanation.scale} scale, attribution {explanation.attribution!r}"
    )
    if explanation.others:
        title += f", with {', '.join(map(repr, explanation.others))}"
    facts = []
    if explanation.settings.get("question"):
        facts.append(("question", str(explanation.settings["question"])))
    if explanation.engine:
        facts.append(("engine", f"{explanation.engine}: {explanation.settings.get('how', '')}"))
    cost = arrays.get("evaluations")
    if cost is not None and len(cost) and np.isfinite(cost).all():  # not every other explainer counts
        facts.append(("evaluations", f"{int(cost.sum()):,} ({cost.mean():,.0f} per row)"))
    if "error" in arrays and np.isfinite(arrays["values"]).any():
        facts.append(("error bound", _error_words(arrays["values"], arrays["error"])))
    if "relative_change" in arrays:
        facts.append(("changes by", _relative_change_words(arrays["relative_change"])))
    if "stability" in arrays:
        facts.append(("rows", ", ".join(f"{n} {v}" for v, n in explanation.stability_counts().items())))
    if explanation.categories:
        facts.append(("categorical", ", ".join(explanation.categories)))
    return title, facts


def _row_text(explanation: Explanation) -> str:
    """A single row with its contributions and slopes, one table per output."""
    parts = []
    for table in row_tables(explanation):
        cells = table.lines()
        lines = [f"row {table.label}, {table.prediction}", *columns_text(cells, right=1)]
        parts.append("\n".join(lines + [f"  {note}" for note in table.notes()]))
    return "\n\n".join(parts)


def _error_words(values: np.ndarray, error: np.ndarray) -> str:
    """Against the row's values as a whole: a bound larger than a value near zero is harmless."""
    if not np.isfinite(error).any():
        return "not known (a secant at a chosen step, not a derivative)"
    size = np.sqrt(np.nansum(values**2, axis=1))
    known = size > 0
    if not known.any():
        return "every value is 0"
    relative = np.sqrt(np.nansum(error.astype(float) ** 2, axis=1))[known] / size[known]
    middle, high = np.quantile(relative, [0.5, 0.95])
    return f"median {middle:.1e}, 95% of rows below {high:.1e}, relative to the row's values"


def _relative_change_words(relative_change: np.ndarray) -> str:
    known = relative_change[np.isfinite(relative_change)]
    if not len(known):
        return "not known"
    middle, high = np.quantile(known, [0.5, 0.95])
    return f"median {middle:.1%}, 95% of rows below {high:.1%}, if features move by 5% of an SD"


def surrogate(explanation: Explanation, dx: Any, order: int) -> np.ndarray:
    """The Taylor model of first or second order at displacements of the rows, (rows, outputs)."""
    gradient = explanation.arrays["gradient"]
    if np.isnan(gradient).all():
        raise InputError(
            f"the attribution {explanation.attribution!r} has no slopes and so no local model; "
            "take explanation.with_attribution('slope'), or explainer(X)."
        )
    if order not in (1, 2):
        raise InputError(f"order={order!r} is unknown; expected 1 or 2.")
    if order == 2 and "hessian" not in explanation.arrays:
        raise InputError(
            "this explanation does not hold interactions, which order=2 needs. Add them with "
            "explanation.with_interactions(explainer.interactions(X))."
        )
    try:
        dx = np.asarray(dx, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"dx={dx!r} is not a displacement; expected numbers, one per feature.") from None
    if dx.shape[-1:] != gradient.shape[1:2]:
        raise InputError(f"dx has shape {dx.shape}; expected {gradient.shape[1]} features on its last axis.")
    dx = np.broadcast_to(dx, gradient.shape[:2])
    out = explanation.arrays["predictions"] + np.einsum("rf,rfo->ro", dx, gradient)
    if order == 1:
        return out
    return out + np.einsum("rf,rg,rfgo->ro", dx, dx, explanation.arrays["hessian"]) / 2


# ---------------------------------------------------------------- cohorts and samples of rows


LEVELS = 8  # numbers with more distinct values are cut in two


def cohorts(explanation: Explanation, by: Any) -> dict[str, Explanation]:
    """Rows by the category of a feature, below and above its median, or by labels of the user's own."""
    if "r" in explanation.dropped:
        raise InputError("the explanation holds one row; cohorts need several.")
    labels = _of_feature(explanation, by) if isinstance(by, str) else np.asarray(by).astype(str)
    if labels.shape != (len(explanation),):
        raise InputError(
            f"by has shape {labels.shape}; expected a feature's name or one label for each of "
            f"{len(explanation)} rows."
        )
    return {str(name): explanation[np.flatnonzero(labels == name)] for name in np.unique(labels)}


def _of_feature(explanation: Explanation, name: str) -> np.ndarray:
    """One label per row: the category, or the side of the median."""
    if name not in explanation.feature_names:
        known = ", ".join(explanation.feature_names[:12])
        raise InputError(
            f"by={name!r} is not a feature; there are {known}. Or give one label a row."
            f"{suggest(name, explanation.feature_names)}"
        )
    column = explanation.arrays["data"][:, explanation.feature_names.index(name)]
    try:
        numbers = np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return np.array([_level_label(name, cell) for cell in column])
    known = np.isfinite(numbers)
    if len(np.unique(numbers[known])) <= LEVELS:
        labels = np.array([f"{name} = {cell:g}" for cell in numbers], dtype=object)
    else:
        middle = float(np.median(numbers[known]))
        labels = np.where(numbers < middle, f"{name} < {middle:.4g}", f"{name} ≥ {middle:.4g}").astype(object)
    labels[~known] = f"{name} missing"
    return labels.astype(str)


def _level_label(name: str, cell: Any) -> str:
    if cell is None or cell != cell:  # NaN is unlike itself
        return f"{name} missing"
    return f"{name} = {cell}" if cell != "" else f"{name} = ''"


def sample(explanation: Explanation, rows: int, seed: int = 0) -> Explanation:
    """Some rows drawn at random, in their order."""
    if not isinstance(rows, (int, np.integer)) or rows < 1 or "r" in explanation.dropped:
        raise InputError(
            f"rows={rows!r} cannot be drawn from an explanation of {len(explanation)}; expected a number of rows of "
            "at least 1, and an explanation of several rows."
        )
    drawn = np.random.default_rng(seed).permutation(len(explanation))[:rows]
    return explanation[np.sort(drawn)]


def evenly(count: int, most: int) -> np.ndarray:
    """Positions of at most `most` of `count` rows, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def sizes(explanation: Explanation) -> Explanation:
    """The same with |values|."""
    return replace(explanation, arrays={**explanation.arrays, "values": np.abs(explanation.arrays["values"])})


def reduced(explanation: Explanation, how: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """`np.mean` or `np.sum` of the values over the rows that have any, or over everything."""
    if axis not in (0, None):
        raise InputError(
            f"axis={axis!r} is not available; expected 0 (over the rows), or None for all values. "
            "Use numpy on explanation.values for others."
        )
    values = explanation.arrays["values"]
    known = values[np.isfinite(values).all(axis=(1, 2))]
    return how(known[:, :, 0] if "o" in explanation.dropped else known, axis=axis, dtype=dtype, out=out)


# ---------------------------------------------------------------- images


def painted(explanation: Explanation) -> np.ndarray:
    """Spread values over pixels, (rows, height, width, outputs); NaN where a segment was cut away."""
    if "segments" not in explanation.arrays:
        raise InputError(
            "the explanation is not one of images: it has no map of segments. "
            "Explain images with ImageExplainer."
        )
    maps, numbers = explanation.arrays["segments"], explanation.arrays["segment"]
    values = explanation.arrays["values"]
    out = np.full((*maps.shape, values.shape[2]), np.nan)
    for i, own in enumerate(numbers):
        table = np.full((int(maps[i].max()) + 1, values.shape[2]), np.nan)
        table[own[own >= 0]] = values[i, own >= 0]
        out[i] = table[maps[i]]
    return out

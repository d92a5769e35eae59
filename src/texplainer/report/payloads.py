"""Explanations, evaluations and explained images as the plain content of a page.

Attributions stand side by side, each under its question. All words, units and signs of an attribution come
from the table of attributions; the page's script knows none of them. Arrays travel as base64 of float32:
seven digits, a third of the size of text. When a page would grow beyond its budget, rows are thinned evenly
and the page reports it; the bars of the attribution given are of all rows. Images are thinned in the same way; their
pictures are drawn by `plots.image`, one per attribution, and travel as PNG.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.explanation import text
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.views import evenly
from texplainer.files import audit
from texplainer.reasons.columns import typical_values
from texplainer.reasons.curve import Curve, ice_curve
from texplainer.support import hashing

CURVE_ROWS, CURVE_FEATURES, CURVE_OUTPUTS = 12, 4, 3  # whose curves a page holds
CURVE_POINTS, RUG = 51, 120
BUDGET = 1_300_000  # bytes of arrays in a page, so that it stays well under 2 MB
EMPTY = (None, "", [], ())


def explanation_payload(explanation: Explanation, *, curves: bool = True) -> dict[str, Any]:
    """Everything the page shows of an explanation; without `curves` if they are asked for one by one."""
    rows, kept = len(explanation), _kept(explanation)
    shown = explanation if len(kept) == rows else explanation[kept]
    both = both_attributions(shown)
    found = [attribution_payload(one) for one in both]
    for part in found:
        if part["name"] == explanation.attribution:
            part["importance"] = mean_sizes(explanation)
    data = shown.arrays["data"]
    return {
        "kind": "explanation",
        "features": list(explanation.feature_names),
        "outputs": list(explanation.output_names),
        "rows": rows,
        "kept": kept.tolist() if len(kept) < rows else None,
        "labels": [str(label) for label in shown.index] if "index" in shown.arrays else None,
        "predictions": packed(shown.arrays["predictions"]),
        "data": [column(data[:, j]) for j in range(data.shape[1])],
        "categorical": [name in explanation.categories for name in explanation.feature_names],
        "attributions": found,
        "missing": "" if len(found) > 1 else how_to_get_the_other(explanation),
        "typical": typical(explanation),
        "curves": curves_of(both) if curves else None,
        "facts": facts(explanation),
        **quantities(explanation),
    }


def _kept(explanation: Explanation) -> np.ndarray:
    """The rows a page has room for, evenly spaced."""
    rows, features, outputs = explanation.arrays["values"].shape
    cells = 5 * features * outputs * 4  # two attributions: values and errors of both, slopes of one
    per_row = (cells + features * 6 + outputs * 12 + 30) * 4 / 3
    return evenly(rows, max(1, int(BUDGET / per_row)))


# ------------------------------------------------------------------ attributions


def both_attributions(explanation: Explanation) -> list[Explanation]:
    """The explanation's slopes and Shapley values; only itself if it was loaded with one attribution."""
    beside = table.shown_beside(explanation.attribution)
    if explanation.live is None and beside not in explanation.others:
        return [explanation]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # undefined rows are marked in their stability
        other = explanation.with_attribution(beside)
    return sorted([explanation, other], key=lambda one: table.adds_up(one.attribution))


def how_to_get_the_other(explanation: Explanation) -> str:
    """Return the note of a page with only one attribution."""
    other = table.shown_beside(explanation.attribution)
    question = table.ATTRIBUTIONS[other].question
    return f"Not in this explanation: “{question}” Compute it with explainer(X, attribution='{other}')."


def quantities(explanation: Explanation) -> dict[str, Any]:
    """Return the names of the explained outputs and quantities, and their scale."""
    return {
        "output_words": [text.output_text(name) for name in explanation.output_names],
        "scale": explanation.scale,
        "quantities": [table.quantity(explanation.scale, str(name)) for name in explanation.output_names],
        "log_odds": explanation.scale == "log-odds",
    }


def typical(explanation: Explanation) -> list[Any] | None:
    """What is typical of each feature in the background: a mean or a category; None if that is not known."""
    if explanation.live is None or explanation.live.background is None:
        return None
    names, rows = explanation.live.background()
    found = typical_values(rows, names)
    shown = [found.get(name) for name in explanation.feature_names]
    return [value if value is None or isinstance(value, (int, float)) else str(value) for value in shown]


# ------------------------------------------------------------------ curves


def curves_of(both: list[Explanation]) -> dict[str, Any] | None:
    """Per row and output the curves of the features with the largest values; None if there is no explainer to ask.

    Rows are thinned evenly. The slope of a curve is the one in the table of the row.
    """
    first = both[-1]  # contributions, if there are any
    source = None if first.live is None else first.live.source
    if source is None or len(first.output_names) > CURVE_OUTPUTS or not len(first):
        return None
    explainer = source(int(first.live.rows[0]))[0]  # pyright: ignore[reportOptionalMemberAccess]
    names, outputs = list(explainer.schema.names), list(explainer.predictor.output_names)
    if explainer.predictor.predicted:
        return None
    kept = evenly(len(first), CURVE_ROWS)
    found: dict[str, Any] = {}
    for i in kept.tolist():
        row = source(int(first.live.rows[i]))[1]  # pyright: ignore[reportOptionalMemberAccess]
        values = first.arrays["values"][i]  # (features, outputs)
        if np.isfinite(values).all():
            found[str(i)] = [
                [
                    curve_payload(_curve(explainer, row, names, both, (i, j, o), outputs))
                    for j in np.argsort(-np.abs(values[:, o]), kind="stable")[:CURVE_FEATURES].tolist()
                    if first.feature_names[j] in names
                ]
                for o in range(len(first.output_names))
            ]
    return found


def _curve(
    explainer: Any,
    row: Any,
    names: list[str],
    both: list[Explanation],
    cell: tuple[int, int, int],
    outputs: list[str],
) -> Curve:
    """The curve of one cell (row, feature, output), with the slope that is already known."""
    known = [one.arrays["gradient"][cell] for one in both if np.isfinite(one.arrays["gradient"][cell])]
    _, j, o = cell
    feature, output = names.index(both[0].feature_names[j]), outputs.index(both[0].output_names[o])
    slope = float(known[0]) if known else np.nan
    return ice_curve(explainer, row, feature, output=output, points=CURVE_POINTS, slope=slope)


def curve_payload(curve: Curve) -> dict[str, Any]:
    """A curve as the page draws it; its column is thinned to a rug."""
    column = np.sort(curve.column)
    kept = evenly(len(column), RUG)
    lists = {"x": curve.x, "y": curve.y, "column": column[kept]}
    numbers = {"at": curve.at, "prediction": curve.prediction, "slope": curve.slope, "sd": curve.sd}
    return {
        **{name: packed(array) for name, array in lists.items()},
        **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
        "feature": curve.feature,
        "levels": list(curve.levels),
        "steps": curve.steps,
    }


def attribution_words(explanation: Explanation) -> dict[str, Any]:
    """The name of an attribution and what its values mean, for every output and feature."""
    name, scale = explanation.attribution, explanation.scale
    spec = table.ATTRIBUTIONS.get(name)
    what = [table.quantity(scale, str(output)) for output in explanation.output_names]
    levels = [spec is not None and unit == spec.level_unit for unit in explanation.units]
    two_units = spec is not None and spec.level_unit != spec.feature_unit and any(levels)
    return {
        "name": name,
        "head": table.head(name),
        "place": [*table.columns_in_order(), name].index(name),  # of its column in the table of a row
        "marks_categories": table.marks_categories(name),
        "width": float(explanation.settings.get("width", 0.0)),
        "question": name if spec is None else spec.question,
        "signed": table.signed(name),
        "adds_up": table.adds_up(name),
        "axis": [table.axis_words(name, one, scale) for one in what],
        "level_axis": [table.axis_words(name, one, scale, level=True) for one in what] if two_units else None,
        "units": list(explanation.units),
        "levels": levels if two_units else None,
    }


def attribution_payload(explanation: Explanation) -> dict[str, Any]:
    """One attribution of some rows: its words, values, error bounds, slopes and doubtful entries."""
    arrays, rows = explanation.arrays, len(explanation)
    blank = np.full(rows, "", dtype=object)
    slopes = np.isfinite(arrays["gradient"]).any()
    relative_change = arrays.get("relative_change", np.full((rows, 1), np.nan))
    return attribution_words(explanation) | {
        "base": packed(np.broadcast_to(arrays["base_values"], arrays["predictions"].shape)),
        "values": packed(arrays["values"]),
        "errors": packed(arrays["error"]) if "error" in arrays else None,
        "gradient": packed(arrays["gradient"]) if slopes else None,
        "flags": packed(arrays["flags"], "u1") if "flags" in arrays else None,
        "flat": packed(arrays["flat"], "u1") if "flat" in arrays else None,
        "stability": [str(v) for v in arrays.get("stability", blank)],
        "reason": [str(r) for r in arrays.get("reason", blank)],
        "relative_change": packed(_worst(relative_change)),
        "stability_labels": explanation.stability_counts(),
        "importance": mean_sizes(explanation),
    }


def _worst(relative_change: np.ndarray) -> np.ndarray:
    """The greatest over the outputs, (rows,); NaN where none is known."""
    known = np.where(np.isfinite(relative_change), relative_change, -np.inf).max(axis=1)
    return np.where(np.isfinite(known), known, np.nan)


def mean_sizes(explanation: Explanation) -> dict[str, Any]:
    """Mean |value| and its quartiles over all rows, each (features, outputs)."""
    values = explanation.arrays["values"]
    size = np.abs(values[np.all(np.isfinite(values), axis=(1, 2))])
    if not len(size):
        size = np.zeros((1, *values.shape[1:]))
    low, high = np.quantile(size, [0.25, 0.75], axis=0)
    return {"mean": finite(size.mean(axis=0)), "low": finite(low), "high": finite(high)}


# ------------------------------------------------------------------ facts


def facts(explanation: Explanation) -> list[tuple[str, str]]:
    """What was run, for the record."""
    settings = dict(explanation.settings)
    known = {"data": hashing.of_array(explanation.arrays["data"])} | settings.pop("fingerprints", {})
    # what was chosen stands before what was asked for ("auto")
    chosen = {
        "engine": explanation.engine,
        "scale": explanation.scale,
        "attribution": explanation.attribution,
    }
    found = chosen | {str(k): str(v) for k, v in settings.items() if k not in chosen and v not in EMPTY}
    spent = explanation.arrays.get("evaluations")
    if spent is not None and np.isfinite(spent).all():  # not every other explainer counts
        found["model evaluations"] = f"{int(spent.sum()):,} ({spent.mean():,.0f} per row)"
    found |= {f"fingerprint of the {name}": _short(found_there) for name, found_there in known.items()}
    return list((found | library_versions()).items())


def library_versions() -> dict[str, str]:
    """The versions of what did the work."""
    return {f"version of {name}": version for name, version in audit.software().items()}


def _short(fingerprint: Any) -> str:
    """The digits of a SHA-256 that people compare; a mapping's own if it names one."""
    found = fingerprint.get("sha256", fingerprint) if isinstance(fingerprint, Mapping) else fingerprint
    return str(found)[:16]


# ------------------------------------------------------------------ arrays


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


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def evaluation_payload(evaluation: Any) -> dict[str, Any]:
    """Everything the page shows of an evaluation."""
    top = min(5, max(1, len(evaluation.feature_names) // 2))  # on all features everybody agrees
    return {
        "kind": "evaluation",
        "explainers": list(evaluation.explainers),
        "controls": [name in evaluation.controls for name in evaluation.explainers],
        "columns": [
            {
                "name": column.name,
                "label": f"{column.label} {column.part}".strip(),
                "better": column.better,
                "family": column.family,
            }
            for column in evaluation.columns
        ],
        "rows": evaluation.scores.shape[2],
        "summary": finite(evaluation.summary()),
        "best": evaluation.best().tolist(),
        "boxes": boxes(evaluation.scores),
        "seconds": finite(evaluation.seconds),
        "agreement": finite(evaluation.agreement("feature", k=top)),
        "top": top,
        "notes": [[str(who), str(why)] for who, why in evaluation.notes.items()],
        "facts": evaluation_facts(evaluation),
    }


def boxes(scores: np.ndarray) -> list[list[Any]]:
    """Quantiles of every explainer's scores in every column and how many are 0; None where none is known."""
    found: list[list[Any]] = []
    for explainer in scores:
        line: list[Any] = []
        for column in explainer:
            known = column[np.isfinite(column)]
            quantiles = np.quantile(known, QUANTILES).tolist() if len(known) else None
            line.append({"at": quantiles, "zeros": int(np.sum(known == 0))} if quantiles else None)
        found.append(line)
    return found


def evaluation_facts(evaluation: Any) -> list[tuple[str, str]]:
    """What was run, for the record."""
    found = {str(k): str(v) for k, v in evaluation.settings.items() if v not in EMPTY}
    found |= {f"seconds, {name}": f"{seconds:.3g}" for name, seconds in evaluation.timing.items()}
    for name, seconds, spent in zip(
        evaluation.explainers, evaluation.seconds, evaluation.evaluations, strict=True
    ):
        cost = f", {spent:,.0f} model evaluations per row" if np.isfinite(spent) else ""
        found[f"explaining, {name}"] = f"{seconds:.3g} s{cost}"
    return list((found | library_versions()).items())


MOST_IMAGES = 20  # in a page
DOTS = 80  # of a picture, an inch


def images_payload(explanation: Explanation) -> dict[str, Any]:
    """Everything the page shows of explained images."""
    rows = len(explanation)
    kept = evenly(rows, MOST_IMAGES)
    found = both_attributions(explanation[kept])
    return {
        "kind": "images",
        "rows": rows,
        "kept": kept.tolist(),
        "attributions": [_image_words(one) for one in found],
        "images": [[_shown(one[int(i)]) for one in found] for i in range(len(kept))],
        "missing": "" if len(found) > 1 else how_to_get_the_other(explanation),
        "facts": facts(explanation),
    }


def _image_words(explanation: Explanation) -> dict[str, Any]:
    spec = table.ATTRIBUTIONS.get(explanation.attribution)
    return {
        "name": explanation.attribution,
        "question": explanation.attribution if spec is None else spec.question,
        "stability_labels": explanation.stability_counts(),
    }


def _shown(one: Explanation) -> dict[str, Any]:
    """One image in one attribution: the picture, and what is to be said of it."""
    from texplainer.plots.explanations.image import PANELS

    names = one.output_names
    some = one[..., list(names[:PANELS])] if len(names) > PANELS else one
    predicted = one.arrays.get("predicted_class")
    called = names if predicted is None or names != ("predicted",) else (f"class {int(predicted[0])}",)
    pairs = zip(called, one.arrays["predictions"][0], strict=True)
    words = [f"{table.quantity(one.scale, str(name))} = {value:.4g}" for name, value in pairs]
    return {
        "picture": picture(some),
        "prediction": "; ".join(words[:PANELS]),
        "stability": str(one.arrays["stability"][0]) if "stability" in one.arrays else "",
        "reason": str(one.arrays["reason"][0]) if "reason" in one.arrays else "",
    }


def picture(one: Explanation) -> str:
    """The picture of one image as a data address."""
    from matplotlib import pyplot

    from texplainer.plots.explanations.image import image

    figure: Any = image(one).figure
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
    pyplot.close(figure)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

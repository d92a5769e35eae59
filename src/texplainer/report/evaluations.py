"""An Evaluation as the plain content of a page: summaries, boxes, agreement, and what was run."""

from __future__ import annotations

from typing import Any

import numpy as np

from texplainer.report.explanations import EMPTY, finite, library_versions

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def payload(evaluation: Any) -> dict[str, Any]:
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
        "facts": facts(evaluation),
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


def facts(evaluation: Any) -> list[tuple[str, str]]:
    """What was run, for the record."""
    found = {str(k): str(v) for k, v in evaluation.settings.items() if v not in EMPTY}
    found |= {f"seconds, {name}": f"{seconds:.3g}" for name, seconds in evaluation.timing.items()}
    for name, seconds, spent in zip(
        evaluation.explainers, evaluation.seconds, evaluation.evaluations, strict=True
    ):
        cost = f", {spent:,.0f} model evaluations per row" if np.isfinite(spent) else ""
        found[f"explaining, {name}"] = f"{seconds:.3g} s{cost}"
    return list((found | library_versions()).items())

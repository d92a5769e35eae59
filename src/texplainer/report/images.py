"""An Explanation of images as the plain content of a page: every image with its segments coloured.

Pictures are drawn by `plots.image`, one an attribution, and travel as PNG. When there are more images than a
small page can hold they are thinned evenly, and the page reports it.
"""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import numpy as np

from texplainer.attributions import table
from texplainer.explanation.explanation import Explanation
from texplainer.plots.explanations.image import PANELS, image
from texplainer.report import explanations

MOST = 20  # images in a page
DOTS = 80  # an inch


def payload(explanation: Explanation) -> dict[str, Any]:
    """Everything the page shows of explained images."""
    rows = len(explanation)
    kept = np.unique(np.linspace(0, rows - 1, min(rows, MOST)).astype(int))
    found = explanations.with_sibling(explanation[kept])
    return {
        "kind": "images",
        "rows": rows,
        "kept": kept.tolist(),
        "attributions": [_words(one) for one in found],
        "images": [[_shown(one[int(i)]) for one in found] for i in range(len(kept))],
        "missing": "" if len(found) > 1 else explanations.how_to_get_the_other(explanation),
        "facts": explanations.facts(explanation),
    }


def _words(explanation: Explanation) -> dict[str, Any]:
    spec = table.ATTRIBUTIONS.get(explanation.attribution)
    return {
        "name": explanation.attribution,
        "question": explanation.attribution if spec is None else spec.question,
        "stability_labels": explanation.stability_counts(),
    }


def _shown(one: Explanation) -> dict[str, Any]:
    """One image in one attribution: the picture, and what is to be said of it."""
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

    figure: Any = image(one).figure
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
    pyplot.close(figure)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

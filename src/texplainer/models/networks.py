"""Networks of any library: the meaning of their outputs is inferred from the last layer, where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from texplainer.models.libraries.library import ModelAdapter
from texplainer.models.scales import both_classes, log_odds, softmax_log_odds
from texplainer.tables.schema import Schema

PROBABILITIES = ("sigmoid", "softmax")
#: endings whose outputs may be scores: none that is known, or the logarithms of probabilities
SCORES = ("", "linear", "log_softmax")


def network_outlet(
    kind: str,
    raw: Callable[[Any], np.ndarray],
    schema: Schema,
    width: type,
    ending: str = "",
    scores: Callable[[Any], np.ndarray] | None = None,
    unit: float | None = None,
) -> ModelAdapter:
    """Adapt a network: its outputs as they are, and through a link function.

    A network that ends in a sigmoid or a softmax (`ending`) returns probabilities; `scores` are the inputs of
    that last layer, if available. One that ends in another activation, such as ReLU, returns neither
    probabilities nor class scores.
    """
    ending, doubt = (ending, "") if ending in PROBABILITIES else ("", _doubt(ending))
    before = raw if not ending else scores

    def probability(table: Any) -> np.ndarray:
        if ending:
            return both_classes(raw(table))
        z = raw(table)
        return both_classes(expit(z).reshape(-1)) if z.ndim == 1 or z.shape[1] == 1 else softmax(z, axis=1)

    def margin(table: Any) -> np.ndarray:
        if before is None:
            return log_odds(both_classes(raw(table)))
        return softmax_log_odds(before(table))

    scales = {"raw": raw, "probability": probability, "log-odds": margin}
    default = "raw" if not ending else "probability" if before is None else "log-odds"
    return ModelAdapter(
        kind, "network", scales, default, dtype=width, schema=schema, ending=ending, unit=unit, doubt=doubt
    )


def _doubt(ending: str) -> str:
    if ending in SCORES:
        return ""
    return (
        f"the network ends in {ending}: its outputs are neither probabilities nor class scores, so they "
        "cannot be converted to probabilities. Use scale='raw'."
    )

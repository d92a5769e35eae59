"""Networks of any library: what their outputs mean is told by how they end, if at all."""

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
    """Explain a network's outputs as they are, or through the usual link.

    A network that ends in a sigmoid or a softmax (`ending`) already gives probabilities; `scores` is what
    stands before that, where it can be had. One that ends in another function than these, such as a relu,
    gives neither probabilities nor scores of classes.
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
        f"the network ends in {ending}: its outputs are neither probabilities nor scores of classes, and "
        "probabilities made of them mean nothing. Explain them with scale='raw'."
    )

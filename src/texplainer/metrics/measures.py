"""Select the arguments of a metric: one small wrapper per kind of metric.

A score (scores/) is a function of arrays. The arrays are computed by the evidence (evidence/) when they are first
used. Each function here takes a score and returns a `Measure`, which calls the score with arrays of one explainer's
evidence. Arrays that no chosen metric uses are not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from texplainer.metrics.evidence.explained import ExplainerEvidence
from texplainer.metrics.evidence.neighbourhood import comparable
from texplainer.types import Array

Score = Callable[..., Array | dict[str, Array]]
#: the evidence of one explainer -> scores per row, or a dict of parts
Measure = Callable[[ExplainerEvidence], Array | dict[str, Array]]


def of_values(score: Score) -> Measure:
    """Needs the attributions alone."""
    return lambda seen: score(seen.values)


def of_neighbours(score: Score) -> Measure:
    """Needs the attributions of the rows and of their neighbours."""
    return lambda seen: score(seen.values, seen.near_values, seen.near_valid)


def of_inputs(score: Score) -> Measure:
    """Needs the attributions and the inputs of the rows and of their neighbours."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            seen.values,
            seen.near_values,
            comparable(common.rows),
            comparable(common.near_rows),
            seen.near_valid,
        )

    return measure


def of_outputs(score: Score) -> Measure:
    """Needs the attributions and outputs of the rows and of their neighbours, probabilities if there are any."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(seen.values, seen.near_values, common.outputs, common.near_outputs, seen.near_valid)

    return measure


def of_margins(score: Score) -> Measure:
    """Needs the attributions and outputs of the rows and of their neighbours; log-odds for classifiers."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(seen.values, seen.near_values, common.margins, common.near_margins, seen.near_valid)

    return measure


def of_hidden(score: Score) -> Measure:
    """Needs a network's last hidden layer at the rows and their neighbours."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(seen.values, seen.near_values, common.hidden, common.near_hidden, seen.near_valid)

    return measure


def of_scaled_inputs(score: Score) -> Measure:
    """Needs rows and neighbours, and the columns' SD."""
    return lambda seen: of_inputs(partial(score, sd=seen.common.sd))(seen)


def of_scaled_outputs(score: Score) -> Measure:
    """Needs outputs at rows and neighbours, and the outputs' SD."""
    return lambda seen: of_outputs(partial(score, sd=seen.common.outputs_sd))(seen)


def of_repeats(score: Score) -> Measure:
    """Needs the same rows explained repeatedly."""
    return lambda seen: score(seen.repeats)


def of_classmates(score: Score) -> Measure:
    """Needs the predicted classes of the rows."""
    return lambda seen: score(seen.values, seen.common.rows, seen.common.labels, seen.common.sd)


def of_gaps(score: Score, mask: str = "") -> Measure:
    """Needs the model and the values that replace removed features: those of `mask`, or of the run."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, prediction=common.prediction, predict=common.predict,
            fills=common.fills(mask), owner=common.features.owner, ties=common.ties, k=common.settings.k,
        )  # fmt: skip

    return measure


def of_removal_order(score: Score) -> Measure:
    """Needs the model, the run's mask, and the direction of the predicted class."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, predict=common.predict, fills=common.fills(),
            owner=common.features.owner, ties=common.ties, direction=common.direction, top=common.top,
        )  # fmt: skip

    return measure


def of_subsets(score: Score) -> Measure:
    """Needs the model, the run's mask and random subsets of features."""
    return lambda seen: of_single_removals(partial(score, subsets=seen.common.subsets))(seen)


def of_single_removals(score: Score) -> Measure:
    """Needs the model and the run's mask."""

    def measure(seen: ExplainerEvidence) -> Any:
        common = seen.common
        return score(
            values=seen.values, rows=common.rows, prediction=common.prediction, predict=common.predict,
            fills=common.fills(), owner=common.features.owner,
        )  # fmt: skip

    return measure


def of_small_steps(score: Score) -> Measure:
    """Needs the changes predicted by the values for small steps, and the actual changes."""
    return lambda seen: score(seen.expected_small, seen.response_small)


def of_surrogate_steps(score: Score) -> Measure:
    """Needs the changes predicted by the local model for small steps, and the actual changes."""
    return lambda seen: score(seen.expected_surrogate, seen.response_small)


def of_reference_steps(score: Score) -> Measure:
    """Needs the changes predicted by the values for steps to background rows, and the actual changes."""
    return lambda seen: score(seen.expected_references, seen.response_references)


def of_local_effects(score: Score, radii: Sequence[float]) -> Measure:
    """Needs the effects of the features near the rows, within each radius (in SDs)."""
    return lambda seen: {f"{r:g}": np.asarray(score(seen.values, seen.local_effects(r))) for r in radii}


def of_backgrounds(score: Score) -> Measure:
    """Needs the rows explained by the same explainer on other backgrounds."""
    return lambda seen: score(*seen.on_other_backgrounds)


def of_seeds(score: Score) -> Measure:
    """Needs the rows explained by the same explainer with another seed."""
    return lambda seen: score(seen.values, seen.with_another_seed)


def of_sums(score: Score) -> Measure:
    """Needs the explained function at the rows and over the background, and contributions."""
    return lambda seen: score(seen.own_predictions, seen.base, seen.contributions)


def of_truth(score: Score) -> Measure:
    """Needs the known gradients or weights."""
    return lambda seen: score(seen.values, seen.common.truth)

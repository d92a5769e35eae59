"""What an attribution's number means, so that different explainers can be asked the same question.

A derivative is output per unit of the feature; a SHAP value is output for the whole way from the baseline; a
scaled derivative is output per standard deviation. Infidelity and local accuracy compare numbers with
outputs, so they must be read in their own unit. Rankings (PGI and the like) use attributions as they are.
"""

from __future__ import annotations

import numpy as np

from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.metrics.evidence.features import Features
from texplainer.metrics.scores.stability import clip_from_zero
from texplainer.types import Array


def unit_of(attribution: str) -> str:
    """Return the unit of an attribution; contributions unless known otherwise."""
    spec = ATTRIBUTIONS.get(attribution)
    return "share" if spec is None else spec.unit


def _per_feature(columns: Array, features: Features) -> Array:
    """Take each feature's own column, (..., columns) -> (..., features); a group's first is never used."""
    return columns[..., [own[0] for own in features.columns]]


def _numeric(features: Features) -> Array:
    return features.numeric[[own[0] for own in features.columns]].astype(float)


def output_shares(
    values: Array, unit: str, rows: Array, baseline: Array, sd: Array, features: Features
) -> Array:
    """Compute the contribution of each feature to f(x) - f(baseline), (rows, features).

    A category's attribution is taken as its contribution in every unit.
    """
    if unit == "share":
        return values
    way = _per_feature(rows - baseline, features)
    slope = values / _per_feature(sd, features) if unit == "sd" else values
    numeric = _numeric(features)
    return np.where(numeric > 0, slope * way, values)


def expected_small(
    values: Array, unit: str, rows: Array, offsets: Array, baseline: Array, sd: Array, features: Features
) -> Array:
    """Compute the change I·e an explanation expects of offsets (rows, draws, columns) -> (rows, draws).

    Contributions become slopes by dividing by the distance from the baseline, at least a hundredth of the SD;
    offsets leave categories alone.
    """
    scale = _per_feature(sd, features)
    way = clip_from_zero(_per_feature(rows - baseline, features) / scale, 1e-2) * scale
    slope = {"slope": values, "sd": values / scale, "share": values / way}[unit] * _numeric(features)
    return np.einsum("rf,rdf->rd", slope, _per_feature(offsets, features))


def expected_references(
    values: Array, unit: str, rows: Array, references: Array, sd: Array, features: Features
) -> Array:
    """Compute f(x) - f(b) as an explanation expects it, b (draws, columns) -> (rows, draws).

    Contributions are summed, whatever b: they are already relative to the background.
    """
    if unit == "share":
        return np.repeat(values.sum(axis=1)[:, None], len(references), axis=1)
    way = rows[:, None, :] - references  # (rows, draws, columns)
    differs = np.stack([np.any(way[..., list(own)] != 0, axis=-1) for own in features.columns], axis=-1)
    scale = _per_feature(sd, features)
    slope = values / scale if unit == "sd" else values
    amounts = np.where(_numeric(features) > 0, _per_feature(way, features), 0.0)
    category = values * (1 - _numeric(features))
    return np.einsum("rf,rdf->rd", slope, amounts) + np.einsum("rf,rdf->rd", category, differs.astype(float))

"""Setting up an evaluation: the model, the background and the features its explainers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.metrics.evidence.common import CommonEvidence, EvaluationSettings
from texplainer.metrics.evidence.features import describe_features
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames
from texplainer.types import Array


def gather(
    named: Mapping[str, Any],
    X: Any,
    settings: EvaluationSettings,
    model: Any,
    background: Any,
    output: Any,
    groups: Mapping[str, Sequence[int]] | None,
    max_distance: float | str | None,
    truth: Any,
) -> CommonEvidence:
    """Build the evidence that all explainers of an evaluation share."""
    hosts = [e for e in named.values() if hasattr(e, "predictor") and hasattr(e, "background")]
    if not hosts and (model is None or background is None):
        raise InputError(
            "the explainers do not have a model and background; pass model=... and background=...."
        )
    schemas = [getattr(host, "schema", host.predictor.schema) for host in hosts]
    if background is not None:
        schema, reference = frames.learn(background)
    else:
        schema = schemas[0].inner or schemas[0]
        reference = schemas[0].wide(hosts[0].background.rows)
    model = hosts[0].predictor.model if model is None else model
    if groups is None:
        groups = next((one.groups for one in schemas if one.layout is not None), {})
    features = describe_features(
        schema.names, reference, groups, {j: len(levels) for j, levels in schema.levels.items()}
    )
    settings = _completed(settings, features.names, reference, max_distance)
    if output is None and hosts and len(hosts[0].predictor.outputs) == 1:
        output = hosts[0].predictor.outputs[0]
    predictor = _main_predictor(model, schema, reference, output)
    if len(predictor.outputs) != 1:
        names = ", ".join(predictor.all_names)
        raise InputError(f"the model has several outputs ({names}); pass output=<name or index>.")
    rows = schema.read(X)
    known = None if truth is None else features.gather(np.asarray(truth, dtype=float))
    return CommonEvidence(
        rows, reference, schema, features, {"main": predictor}, model, predictor.outputs[0], settings, known
    )


def _main_predictor(model: Any, schema: frames.Schema, reference: Array, output: Any) -> prediction.Predictor:
    """The model's probabilities where it has them, else what it has."""
    try:
        return prediction.adapt(model, schema, reference[:8], output=output, scale="probability")
    except InputError:
        return prediction.adapt(model, schema, reference[:8], output=output)


def _completed(
    asked: EvaluationSettings, names: Sequence[str], reference: Array, max_distance: float | str | None
) -> EvaluationSettings:
    """Fill in what depends on the data: k, and the farthest distance."""
    count = len(names)
    k = asked.k or tuple(one for one in ((1, 3, 5, 7, 9) if count >= 9 else (1, 2, 3)) if one <= count)
    if min(k) < 1 or max(k) > count:
        raise InputError(f"k={k} for {count} features; expected numbers between 1 and {count}.")
    if max_distance == "paper":
        from scipy.spatial import KDTree

        points = np.unique(reference, axis=0)
        far = KDTree(points).query(points, k=2)[0][:, 1].min() / 2 if len(points) > 1 else np.inf
    else:
        far = np.inf if max_distance is None else float(max_distance)
    return replace(asked, k=k, max_distance=float(far))

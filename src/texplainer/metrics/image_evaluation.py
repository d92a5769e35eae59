"""Explainers of images side by side: every image is two tables, and the metrics are those of tables.

Metrics of removed features use the table of presences, whose one row says that all segments are present: the
model is then a model of a table like any other. Metrics of noise use the table of pixels. Segments and baseline are
the same for every explainer, and for the image with noise. Scores of all images are one `Evaluation`, a row per image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.metrics.evaluation import Evaluation
from texplainer.metrics.evidence.common import CommonEvidence, EvaluationSettings
from texplainer.metrics.evidence.explained import ExplainerEvidence
from texplainer.metrics.evidence.features import Features, describe_features
from texplainer.metrics.measuring import CONTROLS, collapsed, gather_scores, measure_all
from texplainer.metrics.table import Metric, choose_metrics
from texplainer.models.predictor import Predictor
from texplainer.support.progress import track
from texplainer.types import Array

#: metrics of what noise does: they look at pixels
OF_NOISE = (
    "ris", "ros", "ris_openxai", "ros_openxai", "ris_skipped", "ros_skipped", "ris_quantus", "ros_quantus",
    "ris_norm", "ros_norm", "lipschitz", "sensitivity",
)  # fmt: skip
#: metrics that need what an image alone has not: other backgrounds, rows of its class, hidden layers
OF_TABLES = ("rrs", "cai", "background", "seed", "infidelity_background")
DEFAULT = ("deletion", "insertion", "infidelity", "ris", "ros", "misplaced", "local_rank", "complexity")


def evaluate_images(
    named: Mapping[str, Callable[[Any], Any]],
    images: Any,
    metrics: Sequence[str] | str,
    settings: EvaluationSettings,
    truth: Any,
    controls: Sequence[str],
    progress: bool | None,
    of_tables: Mapping[str, Any],
) -> Evaluation:
    """Evaluate explainers of images; the first one defines the segments and baselines.

    `settings.sigma`, the noise, is a part of the images' range; `of_tables` are arguments that must be left
    alone.
    """
    began = time.perf_counter()
    chosen = _chosen(metrics, truth is not None)
    _refuse(settings.mask, of_tables)
    host: Any = next(explain for explain in named.values() if hasattr(explain, "scenes"))
    scenes = host.scenes(images)
    known = _truths(truth, scenes)
    pixels = np.stack([scene.image for scene in scenes])
    limits = float(pixels.min()), float(pixels.max())
    parts = []
    for scene, true in zip(track(scenes, "evaluating images", progress), known, strict=True):
        own = replace(settings, k=_k_of(settings.k, scene.size))
        presences = of_presences(host, scene, own, true)
        noised = of_pixels(host, scene, own, limits)
        parts.append(_one(named, controls, scene, chosen, presences, noised))
    return _joined(parts, time.perf_counter() - began)


def _one(
    named: Mapping[str, Callable[[Any], Any]],
    controls: Sequence[str],
    scene: Any,
    chosen: Mapping[str, Metric],
    presences: CommonEvidence,
    noised: CommonEvidence,
) -> Evaluation:
    """All scores of one image."""
    near = {name: metric for name, metric in chosen.items() if name in OF_NOISE}
    other = {name: metric for name, metric in chosen.items() if name not in OF_NOISE}
    found: dict[tuple[str, str], Array] = {}
    notes: dict[str, str] = {}
    subjects = []
    for name in [*named, *(name for name in controls if name not in named)]:
        control = name not in named
        over = CONTROLS[name] if control else OfPresences(named[name], scene)
        own = ExplainerEvidence(name, over, presences, control)
        measure_all(own, other, found, notes)
        if near and name not in notes:
            over = CONTROLS[name] if control else OfPixels(named[name], scene)
            measure_all(ExplainerEvidence(name, over, noised, control), near, found, notes)
        subjects.append(own)
    whole = gather_scores(presences, subjects, chosen, found, collapsed(notes, len(subjects)), 0.0)
    drawn = noised.hood.counts if near else whole.neighbours
    return replace(whole, neighbours=drawn)


def _joined(parts: Sequence[Evaluation], seconds: float) -> Evaluation:
    """One Evaluation of all images; those of fewer segments have gaps among the values."""
    first = max(parts, key=lambda part: len(part.feature_names))
    width = len(first.feature_names)
    columns = dict.fromkeys(column for part in parts for column in part.columns)
    scores = np.full((len(first.explainers), len(columns), len(parts)), np.nan)
    values = np.full((len(first.explainers), len(parts), width), np.nan)
    for i, part in enumerate(parts):
        for j, column in enumerate(columns):
            if column in part.columns:
                scores[:, j, i] = part.scores[:, part.columns.index(column), 0]
        values[:, i, : part.values.shape[2]] = part.values[:, 0]
    timing = {name: sum(part.timing[name] for part in parts) for name in ("explainers", "model")}
    return replace(
        first,
        columns=tuple(columns),
        scores=scores,
        values=values,
        notes={who: why for part in parts for who, why in part.notes.items()},
        neighbours=np.concatenate([part.neighbours for part in parts]),
        seconds=np.sum([part.seconds for part in parts], axis=0),
        evaluations=np.mean([part.evaluations for part in parts], axis=0),
        timing={**timing, "harness": seconds - sum(timing.values()), "total": seconds},
        settings={**first.settings, "rows": len(parts), "output": "each image's own"},
    )


def _chosen(metrics: Sequence[str] | str, truth: bool) -> dict[str, Metric]:
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    asked = choose_metrics([one for name in names for one in (DEFAULT if name == "default" else (name,))])
    named = [name for name in names if name in OF_TABLES]
    if named:
        raise InputError(f"{named} are metrics for tables, not for images; omit them.")
    if not truth and any(name in asked and asked[name].family == "truth" for name in names):
        raise InputError(f"{names} need the known segments; pass truth=..., (images, segments).")
    return {
        name: metric
        for name, metric in asked.items()
        if name not in OF_TABLES and (truth or metric.family != "truth")
    }


def _refuse(mask: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments of tables."""
    odd = [name for name, value in given.items() if value is not None]
    odd += ["mask"] if mask != "zero" else []
    if odd:
        raise InputError(
            f"{', '.join(odd)} are not used for images: the explainers define what is explained, and "
            "removed segments become their baseline. Omit them."
        )


def _truths(truth: Any, scenes: Sequence[Any]) -> list[Array | None]:
    """What is known of every image's segments, (1, segments) each."""
    if truth is None:
        return [None] * len(scenes)
    known = [np.asarray(one, dtype=float) for one in truth]
    sizes = [scene.size for scene in scenes]
    if [one.shape for one in known] != [(size,) for size in sizes]:
        shapes = sorted({one.shape for one in known})
        raise InputError(
            f"truth holds {len(known)} rows of shapes {shapes}; expected {len(scenes)} of "
            f"{sorted(set(sizes))} segments."
        )
    return [one[None] for one in known]


def _k_of(k: Sequence[int], size: int) -> tuple[int, ...]:
    """How many segments PGI and PGU remove."""
    asked = tuple(k or ((1, 3, 5, 7, 9) if size >= 9 else (1, 2, 3)))
    return tuple(sorted({min(one, size) for one in asked}))


class ExplainsImages(Protocol):
    """What an ImageExplainer and its other explainers have in common."""

    def scenes(self, images: Any) -> list[Any]:
        """Cut images into segments."""
        ...

    def predictor_of(self, scene: Any, scale: str = "") -> Predictor:
        """The explained output as a function of presences."""
        ...

    def explain_scenes(self, scenes: list[Any]) -> Explanation:
        """Explain images that are cut already."""
        ...


@dataclass(frozen=True)
class OfPresences:
    """An explainer of images as one of the rows in which all segments are present."""

    explainer: Any
    scene: Any

    @property
    def control(self) -> bool:
        """Whether it is a control."""
        return bool(getattr(self.explainer, "control", False))

    def __call__(self, rows: Array) -> Any:
        """Explain the image, once a row."""
        return _explain(self.explainer, [self.scene] * len(rows))

    def explained(self, rows: Array) -> Array:
        """Call what is explained, on the explainer's own scale, (rows,)."""
        return self.explainer.predictor_of(self.scene)(rows)[:, 0]


@dataclass(frozen=True)
class OfPixels:
    """An explainer of images as one of rows of pixels, in the segments of one image."""

    explainer: Any
    scene: Any

    def __call__(self, rows: Array) -> Any:
        """Explain images whose pixels are given."""
        image = self.scene.image
        pixels = rows.reshape(len(rows), *image.shape).astype(image.dtype)
        return _explain(self.explainer, [replace(self.scene, image=one) for one in pixels])


def _explain(explainer: Any, scenes: list[Any]) -> Any:
    return getattr(explainer, "explain_scenes", explainer)(scenes)  # what was skipped says why


def of_presences(
    host: ExplainsImages, scene: Any, settings: EvaluationSettings, truth: Array | None
) -> CommonEvidence:
    """The table of one image's presences, in which an absent segment is a 0."""
    predictor = host.predictor_of(scene, "probability")
    if len(predictor.outputs) != 1:
        raise InputError(
            f"the model has several outputs ({', '.join(predictor.all_names)}) and the explainer's own "
            "output does not select one; build it with output='predicted' or an index."
        )
    background = np.zeros((1, scene.size))
    features = describe_features(scene.segments.names, background)
    return CommonEvidence(
        np.ones((1, scene.size)), background, predictor.schema, features, {"main": predictor},
        predictor.model, predictor.outputs[0], settings, truth,
    )  # fmt: skip


def of_pixels(
    host: ExplainsImages, scene: Any, settings: EvaluationSettings, limits: tuple[float, float]
) -> CommonEvidence:
    """The table of one image's pixels: features are segments, columns the numbers the image consists of."""
    numbers = scene.of_numbers()
    predictor = host.predictor_of(numbers, "probability")
    segment = scene.owners()
    columns = tuple(tuple(np.flatnonzero(segment == j).tolist()) for j in range(scene.size))
    features = Features(scene.segments.names, columns, segment, {})
    low, high = limits
    settings = replace(settings, sigma=settings.sigma * (high - low))
    background = np.outer([low, high], np.ones(scene.image.size))
    return CommonEvidence(
        scene.image.reshape(1, -1).astype(float), background, predictor.schema, features, {"main": predictor},
        predictor.model, predictor.outputs[0], settings,
    )  # fmt: skip

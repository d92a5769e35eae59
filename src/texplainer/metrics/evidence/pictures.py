"""Evidence of one image, as two tables: its segments' presence, and its pixels.

What is removed is removed from the table of presences, whose one row says that all segments are there: the
model is then a model of a table like any other. What is noised are the pixels. Segments and baseline are the
same for every explainer, and for the image with noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from texplainer.errors import InputError
from texplainer.explanation.explanation import Explanation
from texplainer.metrics.evidence.common import CommonEvidence, EvaluationSettings
from texplainer.metrics.evidence.features import Features, describe_features
from texplainer.models.predictor import Predictor
from texplainer.types import Array


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

"""ImageExplainer: a model of images in, explanations by segments out.

Every image becomes a model of its segments' presence (`masking`), and the tabular explainer explains the row
in which all are fully present, against a background in which none is.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from texplainer.attributions.table import ATTRIBUTIONS, attribution_of
from texplainer.errors import BackgroundWarning, InputError, ModelError
from texplainer.explainer import TExplainer
from texplainer.explanation.explanation import Explanation
from texplainer.explanation.fields import Live
from texplainer.images.masking import Masked, SegmentedImage, joined_images, masked
from texplainer.images.pictures import baselines_of, read_pictures
from texplainer.images.segments import segment
from texplainer.models import predictor
from texplainer.models.predictor import Predictor
from texplainer.support import hashing
from texplainer.support.progress import track
from texplainer.tables.schema import Schema

BATCH_ROWS = 32
WIDTH = 0.2  # of the neighbourhood of the full image that slopes are averaged over, as presence


class ImageExplainer:
    """Deterministic explanations of a model of images, by the segments of each image.

    Parameters
    ----------
    model
        A torch module, Keras model, JAX function or ONNX Runtime session that takes images, or any function
        from images to outputs.
    segments
        "auto" and "grid" (about `n_segments` rectangles), "slic" (superpixels; needs scikit-image), (rows,
        columns) of a grid, or maps of whole numbers: (height, width) for all images, or (rows, height,
        width).
    n_segments
        Approximate number of segments; None for 64, fewer for very small images.
    baseline
        What replaces an absent segment: "blur", "mean" (the mean colour), a number, a colour, an image, or
        one image for each.
    channels
        Where the images' channels are: "first", "last", "none" (grey images of two axes), or "auto": the axis
        of length 1, 3 or 4.
    value_range
        (low, high), if given: images with other values are rejected.
    output
        The explained output: "predicted" (each image's predicted class), "all", an output's name or index, or
        several in a list.
    scale
        As for `TExplainer`: "auto", "probability", "log-odds" or "raw".
    engine
        "auto" uses exact gradients if the model's library has them, otherwise differences of predictions.
    smoothing
        Bandwidth around the full image, in units of presence; slopes are averaged over it.
    attribution
        "slope" (what would a small change of a segment do?), "shapley" (contributions that add up to the
        difference to the baseline), "variation" (how much does the prediction depend on a segment?) or
        "gradient".
    batch_rows
        Maximal number of images per call of the model.

    Notes
    -----
    Values are those of whole segments. The result of an image does not depend on the other images in the
    batch.
    """

    def __init__(
        self,
        model: Any,
        *,
        segments: Any = "auto",
        n_segments: int | None = None,
        baseline: Any = "blur",
        channels: str = "auto",
        value_range: tuple[float, float] | None = None,
        output: Any = "predicted",
        scale: str = "auto",
        engine: str = "auto",
        smoothing: Any = WIDTH,
        attribution: str = "slope",
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        if batch_rows < 1:
            raise InputError(f"batch_rows={batch_rows} is too small; expected at least 1.")
        self.model = model
        self.segments, self.n_segments, self.baseline = segments, n_segments, baseline
        self.channels, self.value_range = channels, value_range
        self.output, self.scale = output, scale
        self.attribution = attribution_of(attribution)
        self.batch_rows = batch_rows
        self.smoothing = smoothing
        self._options = {"engine": engine, "batch_rows": batch_rows}

    def __call__(
        self, images: Any, *, attribution: str | None = None, progress: bool | None = None
    ) -> Explanation:
        """Explain images in the explainer's own attribution or in another.

        `progress` shows a bar (None: on a terminal, when there are several images).
        """
        name = self.attribution if attribution is None else attribution_of(attribution)
        return self.explain_scenes(self.scenes(images), name, progress)

    def __repr__(self) -> str:
        words = self.segments if isinstance(self.segments, str) else "given"
        base = self.baseline if isinstance(self.baseline, str) else "given"
        return (
            f"ImageExplainer of a {type(self.model).__name__}: segments {words}, baseline {base}, "
            f"output {self.output}, attribution {self.attribution}"
        )

    def scenes(self, images: Any) -> list[SegmentedImage]:
        """The images with their baselines and segments."""
        pictures = read_pictures(images, self.channels, self.value_range)
        cut = segment(pictures, self.segments, self.n_segments)
        absent = baselines_of(pictures, self.baseline)
        parts = zip(pictures.pixels, absent, cut, strict=True)
        return [
            SegmentedImage(image, base, own, pictures.layout, pictures.tensors) for image, base, own in parts
        ]

    def predictor_of(self, scene: SegmentedImage, scale: str = "") -> Predictor:
        """One image as a function of its segments' presence: the explained output.

        On the explainer's own scale; on another, where the model offers it.
        """
        scale = scale or self.scale
        try:
            wrapped = masked(self.model, scene, scale)
            chosen = scale if wrapped.scale is None else "auto"
            return self._adapted(scene, wrapped.model, chosen, self._output(scene, wrapped.model, chosen)[0])
        except InputError:
            if scale in ("auto", self.scale):
                raise
            return self.predictor_of(scene, "auto")

    def explain_scenes(
        self, scenes: Sequence[SegmentedImage], attribution: str | None = None, progress: bool | None = False
    ) -> Explanation:
        """Explain images that are already segmented."""
        name = attribution or self.attribution
        began = time.perf_counter()
        parts = [self._explain(scene, name) for scene in track(scenes, "explaining images", progress)]
        whole = joined_images(parts, scenes)
        live = Live(
            lambda which, other: self.explain_scenes([scenes[i] for i in which], other),
            np.arange(len(scenes)),
        )
        record = self._record(whole, scenes) | {"seconds": round(time.perf_counter() - began, 4)}
        return replace(whole, settings=record, live=live)

    # -------------------------------------------------------------- the work

    def _explain(self, scene: SegmentedImage, name: str) -> Explanation:
        """One image, a row of ones."""
        explainer, wrapped, predicted = self._prepared(scene, name)
        part = explainer(np.ones((1, scene.size)), progress=False)
        if wrapped.scale is not None:
            part = replace(part, scale=wrapped.scale)
        if predicted is None:
            return part
        arrays = {**part.arrays, "predicted_class": np.array([predicted])}
        return replace(part, arrays=arrays, output_names=("predicted",))

    def _prepared(self, scene: SegmentedImage, name: str) -> tuple[TExplainer, Masked, int | None]:
        wrapped = masked(self.model, scene, self.scale)
        scale = self.scale if wrapped.scale is None else "auto"
        output, predicted = self._output(scene, wrapped.model, scale)
        with warnings.catch_warnings():  # one row is all the background there is, and its SD is known
            warnings.simplefilter("ignore", BackgroundWarning)
            explainer = TExplainer(
                wrapped.model,
                np.zeros((1, scene.size)),
                output=output,
                scale=scale,
                attribution=name,
                smoothing=self.smoothing if ATTRIBUTIONS[name].neighbourhood else None,
                bounds=(0.0, 1.0),
                categorical=(),
                feature_names=scene.segments.names,
                **self._options,
            )
        return explainer, wrapped, predicted

    def _output(self, scene: SegmentedImage, model: Any, scale: str) -> tuple[Any, int | None]:
        """What to ask the tabular explainer for; of the predicted class, which that is."""
        asked = self._adapted(scene, model, scale, "all")
        if self.output not in ("predicted", None) or len(asked.all_names) == 1:
            return ("all" if self.output in ("predicted", None) else self.output), None
        best = int(asked(np.ones((1, scene.size)))[0].argmax())
        return best, best

    def _adapted(self, scene: SegmentedImage, model: Any, scale: str, output: Any) -> Predictor:
        schema, full = Schema(scene.segments.names, "array"), np.ones((1, scene.size))
        try:
            return predictor.adapt(
                model, schema, full, output=output, scale=scale, batch_rows=self.batch_rows
            )
        except ModelError as error:
            raise ModelError(
                f"{error} The images reach it in the shape {(1, *scene.image.shape)}; if the model expects "
                "the channels on another axis, pass images in that layout."
            ) from error

    def _record(self, whole: Explanation, scenes: Sequence[SegmentedImage]) -> dict[str, Any]:
        """What was run, for the record; plain values only."""
        plain = {
            name: value if isinstance(value, (str, int, float)) else "given"
            for name, value in (("segments", self.segments), ("baseline", self.baseline))
        }
        return {
            **whole.settings,
            **plain,
            "n_segments": self.n_segments,
            "output": self.output if isinstance(self.output, (str, int)) else str(self.output),
            "scale": self.scale,
            "model": type(self.model).__name__,
            "fingerprints": {
                "model": hashing.of_array(whole.arrays["predictions"]),
                "background": hashing.of_array(np.stack([scene.baseline for scene in scenes])),
            },
        }

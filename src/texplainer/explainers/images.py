"""Other explainers of images, under the segments, baselines and masks of an ImageExplainer.

`shap_partition(explainer)` and its siblings explain what the explainer explains. Methods that draw their own
masks (SHAP, LIME) are given an image of presences, all 1, to mask with 0: whatever they cover is then covered
by the explainer's baseline. Methods of pixels are summed over segments. To add one: a function (explainer,
**choice) -> OtherImageExplainer, and a line in `IMAGE_EXPLAINERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from texplainer.errors import InputError, Unsupported
from texplainer.explainers.base import SHARES, SLOPE, Counter, Skipped, needs
from texplainer.explainers.captum import quiet_hooks
from texplainer.explanation.explanation import Explanation
from texplainer.images.image_explainer import ImageExplainer
from texplainer.images.masking import SegmentedImage, joined_images
from texplainer.models.libraries.torch import evaluating
from texplainer.models.predictor import Predictor
from texplainer.support.process import isolated
from texplainer.types import Array

#: one image -> (values (segments,), model evaluations)
AttributeScene = Callable[[SegmentedImage], tuple[Array, float]]


@dataclass(frozen=True)
class OtherImageExplainer:
    """Another library's explainer with the interface of ImageExplainer."""

    name: str
    host: ImageExplainer
    attribute: AttributeScene
    attribution: str = SHARES
    scale: str = "probability"  # what is explained, where the model offers it

    def __call__(self, images: Any) -> Explanation:
        """Explain images."""
        return self.explain_scenes(self.scenes(images))

    def scenes(self, images: Any) -> list[SegmentedImage]:
        """The images with the explainer's baselines and segments."""
        return self.host.scenes(images)

    def predictor_of(self, scene: SegmentedImage, scale: str = "") -> Predictor:
        """The explained output as a function of presences."""
        return self.host.predictor_of(scene, scale or self.scale)

    def explain_scenes(self, scenes: Sequence[SegmentedImage]) -> Explanation:
        """Explain images that are cut already."""
        return joined_images([self._explain(scene) for scene in scenes], scenes)

    def _explain(self, scene: SegmentedImage) -> Explanation:
        values, evaluations = self.attribute(scene)
        predict = output_asked(self.predictor_of(scene))
        ends = predict(np.stack([np.zeros(scene.size), np.ones(scene.size)]))[:, 0]
        return Explanation.build(
            values[None],
            data=np.ones((1, scene.size)),
            base_values=ends[:1, None],
            predictions=ends[1:],
            feature_names=scene.segments.names,
            output_names=("predicted",) if self.host.output == "predicted" else predict.output_names,
            diagnostics={
                "evaluations": np.array([evaluations]),
                "predicted_class": np.array(predict.outputs),
            },
            scale=predict.scale,
            attribution=self.attribution,
            engine=self.name,
        )


def output_asked(predictor: Predictor) -> Predictor:
    """The predictor, if it is one of a single output."""
    if len(predictor.outputs) != 1:
        raise InputError(
            f"the model has {len(predictor.outputs)} outputs but other explainers explain one. Build the "
            "explainer with output='predicted' or an index."
        )
    return predictor


def by_segments(scene: SegmentedImage, pixels: Array) -> Array:
    """Sum values of pixels (height, width) over segments."""
    weights = np.asarray(pixels, dtype=float).reshape(-1)
    return np.bincount(scene.segments.labels.reshape(-1), weights, scene.size).astype(float)


# ---------------------------------------------------------------- methods that mask


def shap_partition(explainer: ImageExplainer, *, evaluations: int = 500) -> OtherImageExplainer:
    """SHAP's PartitionExplainer with its image masker, which halves the image recursively.

    `evaluations` is its max_evals.
    """
    library = needs("shap")

    def attribute(scene: SegmentedImage) -> tuple[Array, float]:
        shape = (*scene.segments.labels.shape, 1)
        predict = output_asked(explainer.predictor_of(scene.by_pixel(), "probability"))
        counter = Counter(lambda rows: predict(rows)[:, 0])
        masker = library.maskers.Image(np.zeros(shape), shape)
        method = library.PartitionExplainer(lambda maps: counter(np.reshape(maps, (len(maps), -1))), masker)
        with isolated(0):
            found = method(np.ones((1, *shape)), max_evals=evaluations, silent=True)
        return by_segments(scene, found.values), counter.rows

    return OtherImageExplainer("SHAP partition", explainer, attribute)


def shap_partition_segments(explainer: ImageExplainer, *, evaluations: int = 500) -> OtherImageExplainer:
    """SHAP's PartitionExplainer on the segments themselves, near ones joined first."""
    library, hierarchy = needs("shap"), needs("scipy.cluster.hierarchy")

    def attribute(scene: SegmentedImage) -> tuple[Array, float]:
        predict = output_asked(explainer.predictor_of(scene, "probability"))
        counter = Counter(lambda rows: predict(rows)[:, 0])
        tree = hierarchy.linkage(centres(scene), "ward")
        masker = library.maskers.Partition(np.zeros((1, scene.size)), clustering=tree)
        method = library.PartitionExplainer(counter, masker)
        with isolated(0):
            found = method(np.ones((1, scene.size)), max_evals=evaluations, silent=True)
        return np.ravel(found.values), counter.rows

    return OtherImageExplainer("SHAP partition, segments", explainer, attribute)


def centres(scene: SegmentedImage) -> Array:
    """The middle of every segment, (segments, 2)."""
    labels = scene.segments.labels
    places = np.indices(labels.shape).astype(float)  # (2, height, width)
    pixels = by_segments(scene, np.ones(labels.shape))
    return np.stack([by_segments(scene, places[axis]) / pixels for axis in (0, 1)], axis=1)


def lime(explainer: ImageExplainer, *, samples: int = 1000, seed: int = 0) -> OtherImageExplainer:
    """LIME's image explainer: a ridge regression on the presence of segments."""
    library = needs("lime.lime_image")

    def attribute(scene: SegmentedImage) -> tuple[Array, float]:
        predict = output_asked(explainer.predictor_of(scene, "probability"))
        counter = Counter(lambda rows: predict(rows))
        labels = scene.segments.labels
        places = np.unique(labels, return_index=True)[1]  # a pixel of every segment
        method = library.LimeImageExplainer(feature_selection="none", random_state=seed)
        with redirect_stderr(StringIO()):  # its progress bar has no switch
            found = method.explain_instance(
                np.ones((*labels.shape, 3)),
                lambda maps: counter(np.asarray(maps)[..., 0].reshape(len(maps), -1)[:, places]),
                labels=(0,),
                top_labels=None,
                hide_color=0,
                num_samples=samples,
                batch_size=explainer.batch_rows,
                segmentation_fn=lambda picture: labels,
                random_seed=seed,
            )
        weights = dict(found.local_exp[0])
        return np.array([weights[j] for j in range(scene.size)]), counter.rows

    return OtherImageExplainer("LIME", explainer, attribute)


# ---------------------------------------------------------------- methods that differentiate a torch network


def integrated_gradients(explainer: ImageExplainer, *, steps: int = 50) -> OtherImageExplainer:
    """Captum's Integrated Gradients of the score, from the baseline to the image."""

    def call(library: Any, network: Any, image: Any, baseline: Any, target: int | None) -> Any:
        return library.IntegratedGradients(network).attribute(
            image, baseline, target=target, n_steps=steps, internal_batch_size=explainer.batch_rows
        )

    return _differentiated("Integrated Gradients", explainer, call, SHARES, steps)


def saliency(explainer: ImageExplainer) -> OtherImageExplainer:
    """Captum's Saliency: the size of the score's slope at every pixel."""

    def call(library: Any, network: Any, image: Any, baseline: Any, target: int | None) -> Any:
        return library.Saliency(network).attribute(image, target=target)

    return _differentiated("Saliency", explainer, call, SLOPE, 1)


def gradcam(explainer: ImageExplainer, *, layer: Any = None) -> OtherImageExplainer:
    """Captum's GradCAM at a layer; by default the network's last convolution."""
    torch = needs("torch")
    network = _torch_network(explainer)
    convolutions = [part for part in network.modules() if isinstance(part, torch.nn.Conv2d)]
    if layer is None and not convolutions:
        raise Unsupported("GradCAM needs a convolutional layer; the network does not have one.")
    place = layer or convolutions[-1]

    def call(library: Any, network: Any, image: Any, baseline: Any, target: int | None) -> Any:
        found = library.LayerGradCam(network, place).attribute(image, target=target, relu_attributions=True)
        return library.LayerAttribution.interpolate(found, tuple(image.shape[-2:]), "bilinear")

    return _differentiated("GradCAM", explainer, call, SLOPE, 1)


def _torch_network(explainer: ImageExplainer) -> Any:
    torch = needs("torch")
    if not isinstance(explainer.model, torch.nn.Module):
        raise Unsupported(f"needs a torch network; a {type(explainer.model).__name__} is not one.")
    return explainer.model


def _differentiated(
    name: str, explainer: ImageExplainer, call: Callable[..., Any], attribution: str, cost: int
) -> OtherImageExplainer:
    """A method of Captum's, (library, network, image, baseline, target) -> values of pixels."""
    torch, library = needs("torch"), needs("captum.attr")
    network = _torch_network(explainer)
    dtype = next((p.dtype for p in network.parameters()), torch.get_default_dtype())

    def attribute(scene: SegmentedImage) -> tuple[Array, float]:
        predict = output_asked(explainer.predictor_of(scene, "raw"))
        image, baseline = (torch.tensor(one[None], dtype=dtype) for one in (scene.image, scene.baseline))
        target = predict.outputs[0] if len(predict.all_names) > 1 else None
        with evaluating(network), quiet_hooks():
            found = call(library, network, image.requires_grad_(), baseline, target)
        pixels = scene.layout.seen(found.detach().double().numpy()[0]).sum(axis=-1)
        return by_segments(scene, pixels), float(cost)

    return OtherImageExplainer(name, explainer, attribute, attribution, "raw")


#: name -> (explainer, **choice) -> OtherImageExplainer
IMAGE_EXPLAINERS: dict[str, Callable[..., OtherImageExplainer]] = {
    "shap_partition": shap_partition,
    "shap_partition_segments": shap_partition_segments,
    "lime": lime,
    "integrated_gradients": integrated_gradients,
    "saliency": saliency,
    "gradcam": gradcam,
}


def image_suite(
    explainer: ImageExplainer, names: Iterable[str] = tuple(IMAGE_EXPLAINERS)
) -> dict[str, OtherImageExplainer | Skipped]:
    """Build other explainers by name; an unsupported one becomes a `Skipped` with the reason."""
    built: dict[str, OtherImageExplainer | Skipped] = {}
    for name in names:
        if name not in IMAGE_EXPLAINERS:
            raise InputError(f"unknown explainer {name!r}; expected one of {', '.join(IMAGE_EXPLAINERS)}.")
        try:
            built[name] = IMAGE_EXPLAINERS[name](explainer)
        except Unsupported as reason:
            built[name] = Skipped(name, str(reason))
    return built

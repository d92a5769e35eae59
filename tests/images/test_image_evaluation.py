"""Explainers of images side by side, under the same segments, masks and noise."""

from __future__ import annotations

import image_subjects as subjects
import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError
from texplainer.explainers.images import IMAGE_EXPLAINERS, image_suite
from texplainer.metrics.evidence.common import EvaluationSettings
from texplainer.metrics.image_evaluation import of_pixels

torch = pytest.importorskip("torch")

IMAGES = subjects.scenes(6, 2)[0][:2]
COLOUR = np.random.default_rng(1).random((2, 8, 8, 3))
WEIGHTS = np.random.default_rng(0).normal(size=(8, 8, 3))
BLOCKS = (COLOUR - 0.5) * WEIGHTS
BLOCKS = BLOCKS.sum(axis=-1).reshape(2, 2, 4, 2, 4).sum(axis=(2, 4)).reshape(2, 4)  # what each segment adds


def linear(images):
    return np.array([[(one * WEIGHTS).sum()] for one in np.asarray(images, dtype=float)])


def of_linear(**options):
    return tx.ImageExplainer(linear, segments=(2, 2), baseline=0.5, **options)


def of_scenes(**options):
    return tx.ImageExplainer(subjects.network(), segments=(2, 4), baseline=0.0, **options)


def deletion_by_hand(image, values, labels):
    """The predicted class's probability as segments go, and the area below."""
    order = np.argsort(-values)
    seen = [image]
    for segment in order:
        seen.append(np.where(labels == segment, 0, seen[-1]))
    scores = torch.softmax(torch.as_tensor(subjects.predictions(subjects.network(), np.stack(seen))), dim=1)
    curve = scores[:, scores[0].argmax()].numpy()
    return np.trapezoid(curve) / len(order)


def test_deletion_is_that_of_masks_by_hand():
    explainer = of_scenes()
    evaluation = tx.evaluate({"slope": explainer}, IMAGES, metrics=["deletion"])
    labels = explainer.scenes(IMAGES)[0].segments.labels
    values = explainer(IMAGES).values
    by_hand = [deletion_by_hand(image, own, labels) for image, own in zip(IMAGES, values, strict=True)]
    np.testing.assert_allclose(evaluation.per_row("deletion")["slope"], by_hand, atol=1e-6)
    np.testing.assert_allclose(evaluation.values[0], values)


def test_linear_models_are_explained_without_error():
    explainers = {"slope": of_linear(), "shapley": of_linear(attribution="shapley")}
    evaluation = tx.evaluate(explainers, COLOUR, metrics=["infidelity", "lap", "misplaced", "ris", "res"])
    for name in explainers:
        np.testing.assert_allclose(evaluation.per_row("infidelity")[name], 0, atol=1e-9)
        np.testing.assert_array_equal(evaluation.per_row("lap")[name], 1)
        np.testing.assert_array_equal(evaluation.per_row("res")[name], 0)
        assert np.isfinite(evaluation.per_row("ris/max")[name]).all()
    np.testing.assert_array_equal(evaluation.neighbours, 10)


@pytest.mark.parametrize("name", ["shap_partition", "shap_partition_segments", "lime"])
def test_other_explainers_that_mask_find_what_a_linear_model_adds(name):
    pytest.importorskip(name.partition("_")[0])
    found = IMAGE_EXPLAINERS[name](of_linear())(COLOUR)
    np.testing.assert_allclose(found.values, BLOCKS, atol=0.02 * np.abs(BLOCKS).max() + 1e-9)
    assert found.to_pixels().shape == (2, 8, 8) and (found.diagnostics.evaluations > 4).all()


def test_other_explainers_that_differentiate():
    pytest.importorskip("captum")
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 1, bias=False)).double()
    images = np.moveaxis(COLOUR, -1, 1)
    with torch.no_grad():
        network[1].weight.copy_(torch.as_tensor(np.moveaxis(WEIGHTS, -1, 0).reshape(1, -1)))
    explainer = tx.ImageExplainer(network, segments=(2, 2), baseline=0.5)
    built = image_suite(explainer, ["integrated_gradients", "saliency", "gradcam"])
    np.testing.assert_allclose(built["integrated_gradients"](images).values, BLOCKS, rtol=1e-6)
    sizes = np.abs(WEIGHTS).sum(axis=-1).reshape(2, 4, 2, 4).sum(axis=(1, 3)).reshape(4)
    np.testing.assert_allclose(built["saliency"](images).values, [sizes] * 2, rtol=1e-6)
    assert "convolution" in built["gradcam"].reason
    assert network.training and network[1].weight.grad is None


def test_gradcam_looks_at_the_last_convolution():
    pytest.importorskip("captum")
    network = subjects.network()
    found = IMAGE_EXPLAINERS["gradcam"](of_scenes())(IMAGES)
    assert found.values.shape == (2, 8) and (found.values >= 0).all() and found.values.any()
    other = IMAGE_EXPLAINERS["gradcam"](of_scenes(), layer=network[0])(IMAGES)
    assert not np.allclose(other.values, found.values)


def test_what_does_not_fit_says_why():
    pytest.importorskip("captum")
    host = of_linear()
    evaluation = tx.evaluate({"slope": host, **image_suite(host, ["saliency"])}, COLOUR, metrics=["deletion"])
    assert "needs a torch network" in evaluation.notes["saliency"]
    assert np.isfinite(evaluation.per_row("deletion")["slope"]).all()
    assert np.isnan(evaluation.per_row("deletion")["saliency"]).all()


def test_other_explainers_change_no_score():
    alone = tx.evaluate({"slope": of_scenes()}, IMAGES, neighbours=3)
    both = tx.evaluate(
        {"slope": of_scenes(), "shapley": of_scenes(attribution="shapley")}, IMAGES, neighbours=3
    )
    np.testing.assert_array_equal(alone.scores[0], both.scores[0])
    first = tx.evaluate({"slope": of_scenes()}, IMAGES[:1], neighbours=3, sigma=0.01)
    again = tx.evaluate({"slope": of_scenes()}, IMAGES[:1], neighbours=3, sigma=0.01)
    np.testing.assert_array_equal(first.scores, again.scores)


def test_noise_is_one_of_pixels_within_their_range():
    images = 255 * COLOUR
    host = tx.ImageExplainer(linear, segments=(2, 2), baseline=0.5)
    settings = EvaluationSettings((1,), 20, 0.01, 0.0, np.inf, "zero", 1, 0, 64)
    evidence = of_pixels(host, host.scenes(images)[0], settings, (0.0, 255.0))
    moved = evidence.near_rows[0] - images[0].reshape(-1)
    assert moved.shape == (20, 192) and 2 < moved.std() < 2.7
    assert evidence.near_rows.min() >= 0 and evidence.near_rows.max() <= 255
    np.testing.assert_allclose(
        evidence.near_outputs[0], linear(evidence.near_rows[0].reshape(20, 8, 8, 3)), rtol=1e-6
    )


def test_images_of_different_segments_and_a_known_truth():
    maps = np.zeros((2, 8, 8), dtype=int)
    maps[0, :, 4:], maps[1, 4:, :4], maps[1, 4:, 4:] = 1, 1, 2
    host = tx.ImageExplainer(linear, segments=maps, baseline=0.5)
    truth = [np.array([1.0, 0.0]), np.array([1.0, 1.0, 0.0])]
    evaluation = tx.evaluate({"slope": host}, COLOUR, metrics=["truth_mass", "deletion"], truth=truth)
    size = np.abs(host(COLOUR).values)
    np.testing.assert_allclose(
        evaluation.per_row("truth_mass")["slope"], [size[0, 1] / size[0].sum(), size[1, 2] / size[1].sum()]
    )
    assert np.isnan(evaluation.values[0, 0, 2]) and evaluation.values.shape[1:] == (2, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mask": "mean"}, "mask are not used for images"),
        ({"background": np.zeros((1, 4))}, "background are not used for images"),
        ({"metrics": "truth_mass"}, "pass truth"),
        ({"metrics": ["rrs"]}, "metrics for tables"),
        ({"truth": np.ones((2, 7))}, "truth holds 2 rows"),
    ],
)
def test_arguments_of_tables_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        tx.evaluate({"slope": of_linear()}, COLOUR, **options)


def test_several_outputs_are_refused():
    with pytest.raises(InputError, match="output='predicted' or an index"):
        tx.evaluate({"slope": of_scenes(output="all")}, IMAGES)
    with pytest.raises(InputError, match="unknown explainer 'limes'"):
        image_suite(of_scenes(), ["limes"])

"""Explanations of images: exact where they can be, the same whatever else is in the batch, kept and cut like others."""

from __future__ import annotations

import image_subjects as subjects
import numpy as np
import pytest

import texplainer as tx
from texplainer.attributions.table import GENERAL
from texplainer.errors import InputError

torch = pytest.importorskip("torch")

IMAGES = subjects.scenes(6, 2)[0]
GRID = subjects.GRID


def brightness(images):
    """A function of images of any layout, row by row the same bits: three outputs."""
    flat = np.asarray(images, dtype=float).reshape(len(images), -1)
    rows = [(row.sum(), (row**2).sum(), np.sin(row).sum()) for row in flat]
    return np.array(rows)


def smooth_network():
    """Without kinks: blank pixels are ties to a pooling of maxima."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        layers = (torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.Tanh(), torch.nn.AvgPool2d(2))
        return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4 * 4 * 8, 3)).double()


def masked_by_hand(network, scene, z, scale):
    """The network of the masked images, pixel by pixel, without anything of the explainer."""
    down, across = np.arange(8) * 4 // 8, np.arange(16) * 8 // 16
    mask = z[:, (down[:, None] * 8 + across)][:, None]
    images = scene.image * mask + scene.baseline * (1 - mask)
    with torch.no_grad():
        scores = network(torch.as_tensor(images, dtype=torch.float64))
    p = torch.softmax(scores, dim=1)
    return {"raw": scores, "probability": p, "log-odds": torch.log(p / (1 - p))}[scale].numpy()


@pytest.mark.parametrize("scale", ["raw", "probability", "log-odds"])
def test_the_chain_rule_through_the_mask_equals_differences(scale):
    network = smooth_network()
    explainer = tx.ImageExplainer(network, segments=GRID, output="all", attribution="gradient", scale=scale)
    exact = explainer(IMAGES[:2])
    assert exact.engine == "autodiff"
    for i, scene in enumerate(explainer.scenes(IMAGES[:2])):
        steps = 1e-5 * np.eye(scene.size)
        ahead, behind = (masked_by_hand(network, scene, 1 + step, scale) for step in (steps, -steps))
        np.testing.assert_allclose(exact.values[i], (ahead - behind) / 2e-5, atol=1e-5)


@pytest.mark.parametrize("model", ["torch", "function"])
def test_shares_sum_to_the_difference_to_the_baseline(model):
    network = subjects.network()
    given = network if model == "torch" else lambda x: subjects.predictions(network, x)
    explainer = tx.ImageExplainer(given, segments=GRID, baseline="mean", attribution="shapley")
    found = explainer(IMAGES)
    absent = np.stack([scene.baseline for scene in explainer.scenes(IMAGES)])
    best = found.arrays["predicted_class"][:, None]
    there = np.take_along_axis(subjects.predictions(network, IMAGES), best, 1)[:, 0]
    gap = there - np.take_along_axis(subjects.predictions(network, absent), best, 1)[:, 0]
    np.testing.assert_allclose(found.values.sum(axis=1) + found.diagnostics.completeness, gap, atol=1e-5)
    assert np.abs(found.diagnostics.completeness).max() <= 1e-4 * np.abs(gap).max()


@pytest.mark.parametrize("attribution", GENERAL)
def test_an_image_is_explained_alike_whatever_else_is_in_the_batch(attribution):
    explainer = tx.ImageExplainer(subjects.network(), segments=GRID, attribution=attribution)
    together = explainer(IMAGES)
    for i in range(len(IMAGES)):
        alone = explainer(IMAGES[i : i + 1])
        for name, array in alone.arrays.items():
            np.testing.assert_array_equal(array[0], together.arrays[name][i], err_msg=name)


@pytest.mark.parametrize("attribution", GENERAL)
def test_the_size_of_batches_changes_no_bit(attribution):
    whole = tx.ImageExplainer(brightness, segments=GRID, output="all")(IMAGES[:2], attribution=attribution)
    for batch_rows in (1, 7):
        part = tx.ImageExplainer(brightness, segments=GRID, output="all", batch_rows=batch_rows)
        np.testing.assert_array_equal(part(IMAGES[:2], attribution=attribution).values, whole.values)


@pytest.mark.parametrize("model", ["torch", "function"])
@pytest.mark.parametrize("attribution", ["slope", "shapley", "variation"])
def test_the_model_sees_no_more_images_at_once_than_allowed(model, attribution):
    sizes = []

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = subjects.network()

        def forward(self, x):
            sizes.append(len(x))
            return self.part(x)

    counting = Counting()
    given = counting if model == "torch" else lambda x: subjects.predictions(counting, x)
    tx.ImageExplainer(given, segments=GRID, batch_rows=9)(IMAGES[:1], attribution=attribution)
    assert max(sizes) <= 9


def test_all_classes_or_the_predicted_one():
    network = subjects.network()
    every = tx.ImageExplainer(network, segments=GRID, output="all", attribution="shapley")(IMAGES)
    own = tx.ImageExplainer(network, segments=GRID, attribution="shapley")(IMAGES)
    assert every.values.shape == (6, 32, 10) and own.output_names == ("predicted",)
    best = own.arrays["predicted_class"]
    np.testing.assert_array_equal(best, every.predictions.argmax(axis=1))
    np.testing.assert_allclose(own.predictions, every.predictions[np.arange(6), best], rtol=1e-5)
    some = tx.ImageExplainer(network, segments=GRID, output=[3, 7])(IMAGES[:2])
    assert some.output_names == ("output 3", "output 7")


def test_probabilities_of_several_classes_cancel():
    explainer = tx.ImageExplainer(subjects.network(), segments=GRID, output="all", scale="probability")
    np.testing.assert_allclose(explainer(IMAGES[:2]).values.sum(axis=2), 0, atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 16), (8, 16, 1), (8, 16, 3), (3, 8, 16)])
def test_layouts(shape):
    images = np.random.default_rng(0).random((2, *shape)).astype(np.float32)
    explanation = tx.ImageExplainer(brightness, segments=GRID, output=0, baseline=0.0)(
        images, attribution="shapley"
    )
    layout = "first" if shape[0] == 3 else "last"
    seen = (
        images[..., None] if len(shape) == 2 else np.moveaxis(images, 1, -1) if layout == "first" else images
    )
    blocks = seen.sum(axis=-1).reshape(2, 4, 2, 8, 2).sum(axis=(2, 4)).reshape(2, 32)
    np.testing.assert_allclose(explanation.values, blocks, rtol=1e-4)
    np.testing.assert_array_equal(explanation.arrays["image"], seen)


def test_tensors_and_functions_of_tensors():
    network = subjects.network()
    tensors = torch.as_tensor(IMAGES[:2])
    expected = tx.ImageExplainer(network, segments=GRID)(IMAGES[:2])
    np.testing.assert_array_equal(tx.ImageExplainer(network, segments=GRID)(tensors).values, expected.values)
    found = tx.ImageExplainer(lambda x: network(x) * 1.0, segments=GRID)(tensors)
    assert found.engine == "autodiff"
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-4, atol=1e-5)


def test_a_model_is_left_as_it_was():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(128, 2)).train()
    explainer = tx.ImageExplainer(network, segments=GRID)
    first, again = explainer(IMAGES[:1]), explainer(IMAGES[:1])
    np.testing.assert_array_equal(first.values, again.values)
    assert network.training and all(p.grad is None for p in network.parameters())


def test_jax_functions():
    jax = pytest.importorskip("jax")
    weights = np.random.default_rng(0).normal(0, 0.1, size=(128, 2)).astype(np.float32)
    model = jax.jit(lambda images: jax.numpy.tanh(images.reshape(len(images), -1) @ weights))
    found = tx.ImageExplainer(model, segments=(2, 2))(IMAGES[:1])
    plain = tx.ImageExplainer(lambda x: np.tanh(x.reshape(len(x), -1) @ weights), segments=(2, 2))(IMAGES[:1])
    assert (found.engine, plain.engine) == ("autodiff", "finite-difference")
    np.testing.assert_allclose(found.values, plain.values, atol=0.05 * np.abs(plain.values).max())


def test_onnx_sessions(tmp_path):
    onnxruntime, _ = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(128, 3)).astype(np.float32)
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = tx.ImageExplainer(session, segments=GRID, output="all", baseline=0.0)(
        IMAGES[:1], attribution="shapley"
    )
    parts = (IMAGES[0].reshape(-1, 1) * weights).reshape(4, 2, 8, 2, 3).sum(axis=(1, 3)).reshape(32, 3)
    np.testing.assert_allclose(found.values[0], parts, atol=1e-4)


# ---------------------------------------------------------------- what an Explanation of images can do


def test_values_by_pixel():
    found = tx.ImageExplainer(brightness, segments=GRID, output="all")(IMAGES[:2])
    pixels = found.to_pixels()
    assert pixels.shape == (2, 8, 16, 3)
    np.testing.assert_array_equal(pixels[1, 2, 5], found.values[1, 8 + 2])
    assert found[0].to_pixels().shape == (8, 16, 3)
    assert found[0, :, "output 1"].to_pixels().shape == (8, 16)
    one = found[:, "segment 10"].to_pixels()[..., 0]
    assert np.isfinite(one[1]).sum() == 4 and np.isfinite(one[1, 2:4, 4:6]).all()


def test_tables_have_no_pixels():
    table = tx.Explanation.build(np.ones((1, 2)), data=np.ones((1, 2)))
    with pytest.raises(InputError, match="not one of images"):
        table.to_pixels()


def test_saved_and_loaded(tmp_path):
    found = tx.ImageExplainer(subjects.network(), segments=GRID)(IMAGES[:3])
    found.save(tmp_path / "images.npz")
    again = tx.Explanation.load(tmp_path / "images.npz")
    np.testing.assert_array_equal(again.to_pixels(), found.to_pixels())
    np.testing.assert_array_equal(again.arrays["image"], found.arrays["image"])
    assert again.settings["segments"] == "given" and again.output_names == ("predicted",)


def test_its_siblings_and_its_report(tmp_path):
    found = tx.ImageExplainer(subjects.network(), segments=GRID)(IMAGES[:3])
    shares = found[1:].with_attribution("shapley")
    np.testing.assert_allclose(shares.values.sum(axis=1), shares.predictions - shares.base_values, atol=1e-4)
    assert found.report(tmp_path / "images.html").stat().st_size > 1000


def test_label_maps_of_ones_own():
    maps = np.zeros((2, 8, 16), dtype=int)
    maps[0, :, 8:], maps[1, 4:, :8], maps[1, 4:, 8:] = 7, 5, 9
    found = tx.ImageExplainer(brightness, segments=maps, output=0, attribution="shapley", baseline=0.0)(
        IMAGES[:2]
    )
    assert found.feature_names == ("segment 0", "segment 1", "segment 2")
    np.testing.assert_allclose(
        found.values[0], [IMAGES[0, ..., :8].sum(), IMAGES[0, ..., 8:].sum(), 0], rtol=1e-4
    )
    np.testing.assert_array_equal(found.arrays["segment"][0], [0, 1, -1])
    assert np.isfinite(found.to_pixels()).all()
    one = tx.ImageExplainer(brightness, segments=maps[0], output=0)(IMAGES[:2])
    assert one.feature_names == ("segment 0", "segment 7")


def test_superpixels():
    pytest.importorskip("skimage")
    image = np.zeros((1, 24, 24, 3), dtype=np.float32)
    image[0, :, 12:] = (1.0, 0.2, 0.2)
    found = tx.ImageExplainer(brightness, segments="slic", n_segments=16, output=0)(image)
    maps = found.arrays["segments"][0]
    assert 4 <= maps.max() + 1 <= 32
    assert not set(np.unique(maps[:, :12])) & set(np.unique(maps[:, 12:]))


def test_automatic_segments():
    counts = {}
    for size in (4, 8, 28, 224):
        explainer = tx.ImageExplainer(brightness)
        counts[size] = explainer.scenes(np.random.default_rng(0).random((1, size, size)))[0].size
    assert counts == {4: 4, 8: 16, 28: 64, 224: 64}

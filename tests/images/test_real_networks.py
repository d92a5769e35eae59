"""Networks of other libraries, and one that people use: is a line of text upside down?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import texplainer as tx

TEXT = "ch_ppocr_mobile_v2.0_cls_infer.onnx"  # its outputs: upright, upside down


def test_keras_networks():
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    if keras.backend.backend() not in ("jax", "torch"):
        pytest.skip(f"Keras runs on {keras.backend.backend()!r}, whose derivatives are not used")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    network = keras.Sequential(
        [layers.Input((8, 8, 3)), layers.Conv2D(4, 3, activation="tanh"), layers.Flatten(), layers.Dense(3)]
    )
    images = np.random.default_rng(0).random((2, 8, 8, 3)).astype(np.float32)
    found = tx.ImageExplainer(network, segments=(2, 2), scale="raw", attribution="gradient")(images)
    assert found.engine == "autodiff" and found.to_pixels().shape == (2, 8, 8)
    plain = tx.ImageExplainer(
        lambda x: keras.ops.convert_to_numpy(network(x)), segments=(2, 2), attribution="gradient"
    )(images)
    assert plain.engine == "finite-difference"
    np.testing.assert_array_equal(found.arrays["predicted_class"], plain.arrays["predicted_class"])
    np.testing.assert_allclose(found.values, plain.values, atol=0.02 * np.abs(found.values).max())


def line_of_text(words="apples"):
    """A line of black text on white, as the network takes it: (1, 3, 48, 192) in [-1, 1]."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (192, 48), 255)
    ImageDraw.Draw(picture).text((6, 6), words, fill=0, font=ImageFont.load_default(30))
    grey = np.asarray(picture, dtype=np.float32) / 127.5 - 1
    return np.repeat(grey[None, None], 3, axis=1)


def test_which_strokes_say_upside_down():
    if find_spec("rapidocr_onnxruntime") is None:
        pytest.skip("the package rapidocr-onnxruntime, which holds the network, is not installed")
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("PIL")
    folder = Path(find_spec("rapidocr_onnxruntime").origin).parent
    session = onnxruntime.InferenceSession(str(folder / "models" / TEXT), providers=["CPUExecutionProvider"])
    upright = line_of_text()
    images = np.concatenate([upright, upright[:, :, ::-1, ::-1]])
    explainer = tx.ImageExplainer(
        session, segments=(1, 8), baseline=1.0, channels="first", attribution="shapley"
    )
    found = explainer(images)
    np.testing.assert_array_equal(found.arrays["predicted_class"], [0, 1])
    np.testing.assert_allclose(found.values.sum(axis=1), found.predictions - found.base_values, atol=1e-3)
    blank = (images[:, 0].reshape(2, 48, 8, 24) == 1).all(axis=(1, 3))
    assert blank.any(axis=1).all() and np.abs(found.values[blank]).max() < 1e-6  # no ink, no say
    assert np.abs(found.values).max(axis=1).min() > 0.1

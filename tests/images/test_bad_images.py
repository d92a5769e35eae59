"""Images, segments and baselines that cannot be: a sentence each."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError, ModelError

IMAGES = np.random.default_rng(0).random((2, 8, 12, 3))
BROKEN = IMAGES.copy()
BROKEN[1, 0, 0, 0] = np.nan


def total(images):
    return np.asarray(images).reshape(len(images), -1).sum(axis=1)


@pytest.mark.parametrize(
    ("images", "options", "words"),
    [
        (IMAGES[0, :, :, 0], {}, r"shape \(8, 12\).*image\[None\]"),
        (IMAGES[:0], {}, r"shape \(0, 8, 12, 3\)"),
        (np.array([["a", "b"]]), {}, "expected numbers"),
        ([IMAGES[0], IMAGES[0, :4]], {}, r"shapes \(4, 12, 3\), \(8, 12, 3\); expected one shape"),
        (BROKEN, {}, "image 1 contains values that are not finite"),
        (np.ones((2, 8, 12, 7)), {}, "channels='first' or channels='last'"),
        (IMAGES, {"channels": "first"}, "8 channels.*on another axis"),
        (IMAGES, {"channels": "none"}, "channels='none' for images of shape"),
        (IMAGES[..., 0], {"channels": "last"}, "do not have a channel axis"),
        (IMAGES, {"channels": "sideways"}, "channels='sideways' is unknown"),
        (255 * IMAGES, {"value_range": (0, 1)}, "values from .* expected 0 to 1.*Divide them by 255"),
        (IMAGES, {"segments": "triangles"}, "segments='triangles' is unknown"),
        (IMAGES, {"segments": np.zeros((9, 9), int)}, r"shape \(9, 9\); expected \(8, 12\)"),
        (IMAGES, {"segments": np.zeros((8, 12), int)}, "only one segment"),
        (IMAGES, {"segments": np.zeros((8, 12))}, "expected whole numbers"),
        (IMAGES, {"segments": (1, 1)}, "only one segment"),
        (IMAGES, {"segments": (9, 2)}, "at most one per pixel"),
        (IMAGES, {"n_segments": 1}, "n_segments=1 is invalid; expected at least 2 segments"),
        (IMAGES, {"baseline": "grey"}, "baseline='grey' is unknown"),
        (IMAGES, {"baseline": 127.0}, "baseline holds values from 127 to 127, the images from"),
        (IMAGES, {"baseline": np.nan}, "finite numbers"),
        (IMAGES, {"baseline": np.ones((4, 4))}, r"baseline has shape \(4, 4\)"),
        (IMAGES, {"scale": "log-odds"}, "scale='log-odds' is not available"),
        (IMAGES, {"output": "cat"}, "output='cat' is unknown"),
        (IMAGES, {"attribution": "scaled"}, "attribution='scaled' is unknown"),
        (IMAGES, {"batch_rows": 0}, "batch_rows=0 is too small"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(images, options, words):
    with pytest.raises(InputError, match=words):
        tx.ImageExplainer(total, **options)(images)


def test_a_model_that_wants_the_channels_elsewhere():
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(120, 2))
    with pytest.raises(ModelError, match=r"in the shape \(1, 8, 12, 3\).*channels on another axis"):
        tx.ImageExplainer(network)(IMAGES)


def test_superpixels_without_their_package(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(InputError, match=r"texplainer\[images\]"):
        tx.ImageExplainer(total, segments="slic")(IMAGES)

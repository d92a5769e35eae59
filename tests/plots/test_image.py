"""The picture of an image's segments."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from plot_subjects import made

import texplainer as tx
from texplainer import plots
from texplainer.errors import InputError
from texplainer.plots import style
from texplainer.plots.explanations.image import edges, shown

IMAGES = np.random.default_rng(0).random((2, 8, 8, 3))
WEIGHTS = np.random.default_rng(1).normal(size=(192, 8))


def linear(images):
    return np.asarray(images).reshape(len(images), -1) @ WEIGHTS


def explained(**options):
    return tx.ImageExplainer(linear, segments=(2, 2), baseline=0.0, attribution="shapley", **options)(IMAGES)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_the_strongest_segments_are_outlined_and_listed():
    explanation = explained()[0]
    ax = plots.image(explanation, max_display=3)
    picture, overlay = ax.child_axes
    np.testing.assert_allclose(picture.images[0].get_array(), IMAGES[0])
    lines = [text.get_text() for text in overlay.texts if "   " in text.get_text()]
    order = np.argsort(-np.abs(explanation.values), kind="stable")[:3]
    assert [line.split("   ")[1].split(" ±")[0] for line in lines] == [
        style.amount(explanation.values[j]) for j in order
    ]
    assert sum(isinstance(artist, LineCollection) for artist in overlay.collections) == 2 * 3
    assert overlay.get_title() == f"class {explanation.arrays['predicted_class'][0]}, predicted"


def test_colours_are_centred_at_nothing_and_alike_for_all_outputs():
    explanation = explained(output=[0, 1, 2])[0]
    ax = plots.image(explanation)
    limit = np.abs(explanation.values).max()
    pixels = explanation.to_pixels()
    assert len(ax.child_axes) == 4
    for k, panel in enumerate(ax.child_axes[1:]):
        colours = panel.images[1].get_array()
        np.testing.assert_allclose(
            colours[..., :3], style.DIVERGING((pixels[..., k] / limit + 1) / 2)[..., :3], atol=1e-6
        )


def test_an_axis_given_is_drawn_on():
    figure, ax = plt.subplots()
    assert plots.image(explained()[0], ax=ax) is ax
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("explanation", "words"),
    [
        (lambda: explained(), "holds 2 rows"),
        (lambda: explained(output="all")[0], "at most 6 fit side by side"),
        (lambda: made()[0], "not one of images"),
    ],
)
def test_what_cannot_be_drawn_is_refused(explanation, words):
    with pytest.raises(InputError, match=words):
        plots.image(explanation())


def test_edges_surround_a_segment():
    mask = np.zeros((3, 3), bool)
    mask[1, 1] = True
    corners = {point for line in edges(mask) for point in line}
    assert len(edges(mask)) == 4 and corners == {(0.5, 0.5), (1.5, 0.5), (0.5, 1.5), (1.5, 1.5)}


@pytest.mark.parametrize("low, high", [(0, 1), (0, 255), (0, 16), (-2.1, 2.6)])
def test_any_range_is_shown(low, high):
    pixels = np.linspace(low, high, 12).reshape(2, 2, 3)
    found = shown(pixels)
    assert found.min() == 0 and found.max() == pytest.approx(1)
    assert shown(pixels[..., :1]).shape == (2, 2, 3)

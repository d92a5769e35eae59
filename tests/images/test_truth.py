"""On scenes of two digits whose label is the left one, what decides is found."""

from __future__ import annotations

import image_subjects as subjects
import numpy as np
import pytest

import texplainer as tx

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def right():
    """Scenes the network reads rightly."""
    images, labels = subjects.scenes(80, 1)
    found = subjects.predictions(subjects.network(), images).argmax(axis=1)
    assert np.mean(found == labels) > 0.95
    return images[found == labels][:60]


def left_mass(explanation):
    size = np.abs(explanation.values)
    return size[:, subjects.LEFT].sum(axis=1) / size.sum(axis=1)


@pytest.mark.parametrize("baseline", ["blur", 0.0])
@pytest.mark.parametrize("attribution", ["slope", "shapley", "variation"])
def test_the_deciding_segments_hold_the_mass(right, attribution, baseline):
    explainer = tx.ImageExplainer(subjects.network(), segments=subjects.GRID, baseline=baseline)
    held = left_mass(explainer(right, attribution=attribution))
    assert np.mean(held >= 0.9) >= 0.95


@pytest.mark.parametrize("attribution", ["slope", "shapley"])
def test_a_black_box_finds_them_too(right, attribution):
    network = subjects.network()
    explainer = tx.ImageExplainer(lambda x: subjects.predictions(network, x), segments=subjects.GRID)
    explanation = explainer(right[:20], attribution=attribution)
    assert explanation.engine == "finite-difference"
    assert np.mean(left_mass(explanation) >= 0.9) >= 0.95

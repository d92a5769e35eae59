"""The width of the neighbourhood: as wide as the model allows, and a continuous number."""

import numpy as np
import pytest

from texplainer.background.sd import robust_sd
from texplainer.gradients.engine import Settings
from texplainer.gradients.width import FAITHFUL, WIDTHS, averaged, faithful_width
from texplainer.models import predictor as prediction
from texplainer.tables import schema as frames

X = np.random.default_rng(11).normal(size=(200, 3)) * [1.0, 2.0, 0.5]
SIGMA = robust_sd(X)


def model(function):
    schema, rows = frames.learn(X)
    return prediction.adapt(function, schema, rows[:8])


def width_of(function, rows=X):
    return faithful_width(model(function), rows, SIGMA, Settings())


def test_the_width_shrinks_as_the_model_gets_rougher():
    found = [
        width_of(lambda r, w=wave: np.sin(w * r[:, 0] / SIGMA[0]))
        for wave in (0.4, 1.0, 2.0, 3.0, 6.0, 200.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[1] > found[2] > found[3] and found[-1] == WIDTHS[0]


def test_a_straight_model_has_the_widest_and_a_constant_one_too():
    assert width_of(lambda r: r @ [1.0, -2.0, 3.0]) == WIDTHS[-1]
    assert width_of(lambda r: np.ones(len(r))) == WIDTHS[-1]


@pytest.mark.parametrize("sharp", [2.0, 3.0, 5.0])
def test_the_width_keeps_its_promise(sharp):
    predictor = model(lambda r: np.tanh(sharp * r[:, 0] / SIGMA[0]) + 0.3 * r[:, 1] / SIGMA[1])
    width = faithful_width(predictor, X, SIGMA, Settings())
    f = predictor(X)
    missed = np.mean((f - averaged(predictor, X, width * SIGMA, Settings())) ** 2) / np.var(f)
    assert WIDTHS[0] < width < WIDTHS[-1]
    assert 0.5 * (1 - FAITHFUL) < missed < 1.5 * (1 - FAITHFUL)  # chosen on 48 of these rows


def test_noise_in_the_background_or_the_model_changes_the_width_as_little():
    def wavy(r):
        return np.sin(2 * r[:, 0]) + np.tanh(r[:, 1] * r[:, 2])

    width = width_of(wavy)
    for seed in range(5):
        noise = 1 + 1e-12 * np.random.default_rng(seed).normal(size=X.shape)
        assert abs(width_of(wavy, X * noise) - width) < 1e-10
    bends = [width_of(lambda r, k=k: np.sin(k * r[:, 0])) for k in np.linspace(1.5, 3, 61)]
    assert np.abs(np.diff(bends)).max() < 0.05  # no jumps from one grid value to the next


def test_the_search_is_paid_once_and_costs_little():
    seen = []
    width_of(lambda r: (seen.append(len(r)), np.sin(3 * r[:, 0]))[1])
    assert sum(seen) <= 10_000


def test_a_model_that_fails_away_from_the_data_gets_a_narrow_width():
    with np.errstate(invalid="ignore"):
        width = width_of(lambda r: np.where(np.abs(r[:, 0]) < 3.1, r[:, 0], np.nan))
    assert WIDTHS[0] <= width < WIDTHS[-1]

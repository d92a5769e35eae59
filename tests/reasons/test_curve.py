"""The curve of one feature: the model's own predictions, the row's slope, categories and missing cells."""

from __future__ import annotations

import numpy as np
import pytest
from plot_subjects import curved, shopping

from texplainer.errors import InputError
from texplainer.plots import ice
from texplainer.reasons.curve import ice_curve


def test_the_curve_is_the_model_with_one_value_replaced():
    curve = ice_curve(curved(), [0.4, 1.5, 2.0], "dose")
    assert curve.y == pytest.approx(np.sin(2 * curve.x) * 1.5 + 2.0)
    assert curve.prediction == pytest.approx(np.sin(0.8) * 1.5 + 2.0)
    assert 0.4 in curve.x
    line = ice_curve(curved(), [0.4, 1.5, 2.0], 2)
    assert line.slope == pytest.approx(1.0, abs=0.02)


def test_categories_are_dots_at_each_level():
    curve = ice_curve(shopping(), {"age": 40.0, "colour": "green"}, "colour")
    assert dict(zip(curve.levels, curve.y, strict=True)) == pytest.approx(
        {"blue": 4.0, "green": 5.0, "<b>red</b>": 8.0}
    )
    assert curve.levels[int(curve.at)] == "green"
    assert np.isnan(curve.slope)


def test_the_picture_has_curve_row_and_tangent():
    ax = ice(curved(), [0.4, 1.0, 2.0], "dose")
    drawn = {line.get_gid(): line for line in ax.lines}
    assert {"curve", "row", "tangent"} <= set(drawn)
    low, high = drawn["tangent"].get_xdata()
    assert high - low == pytest.approx(2 * curved().background.sigma[0])


def test_bad_input_gets_a_sentence():
    with pytest.raises(InputError, match="feature names the feature 'dosis'"):
        ice(curved(), [0.4, 1.0, 2.0], "dosis")
    with pytest.raises(InputError, match="row holds 2 rows"):
        ice(curved(), [[0.4, 1.0, 2.0]] * 2, "dose")
    with pytest.raises(InputError, match=r"plots\.ice got a list; expected a TExplainer"):
        ice([1, 2], [0.4, 1.0, 2.0], "dose")

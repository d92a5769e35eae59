"""Cohorts, samples and aggregates of an explanation's rows."""

from __future__ import annotations

import numpy as np
import pytest
from plot_subjects import categorical, made

from texplainer.errors import InputError


def test_cohorts_by_median_level_and_labels():
    explanation = made()
    below, above = explanation.cohorts("age").values()
    middle = np.median(explanation.data[:, 0])
    assert below.data[:, 0].max() < middle <= above.data[:, 0].min() and len(below) + len(above) == 40
    found = categorical().cohorts("colour")
    assert set(found) == {"colour = red", "colour = green", "colour = <b>blue</b>"}
    assert set(found["colour = red"].data[:, 1]) == {"red"}
    labels = np.where(np.arange(40) < 10, "old", "new")
    np.testing.assert_array_equal(explanation.cohorts(labels)["old"].values, explanation.values[:10])


def test_rows_without_a_level_are_a_cohort_of_their_own():
    explanation = categorical()
    explanation.arrays["data"][:3, 1] = None, float("nan"), ""
    found = explanation.cohorts("colour")
    assert len(found["colour missing"]) == 2 and len(found["colour = ''"]) == 1


def test_cohorts_say_what_they_need():
    with pytest.raises(InputError, match="by='weight' is not a feature"):
        made().cohorts("weight")
    with pytest.raises(InputError, match=r"shape \(3,\); expected .* each of 40 rows"):
        made().cohorts([1, 2, 3])
    with pytest.raises(InputError, match="holds one row"):
        made()[0].cohorts("age")


def test_samples_and_aggregates():
    explanation = made()
    some = explanation.sample(7)
    assert len(some) == 7 and np.array_equal(some.values, explanation.sample(7).values)
    assert not np.array_equal(some.values, explanation.sample(7, seed=1).values)
    assert np.isin(some.values, explanation.values).all()
    np.testing.assert_allclose(explanation.abs.mean(), np.abs(explanation.values).mean(axis=0))
    np.testing.assert_allclose(explanation.sum(), explanation.values.sum(axis=0))
    assert made(outputs=("a", "b")).mean().shape == (6, 2)
    assert np.isclose(
        np.mean(explanation), explanation.values.mean()
    )  # numpy asks for axis=None, dtype and out
    assert np.isclose(np.sum(explanation[:, "age"]), explanation[:, "age"].values.sum())
    np.testing.assert_allclose(np.mean(explanation, axis=0), explanation.mean())
    with pytest.raises(InputError, match="axis=1 is not available"):
        np.mean(explanation, axis=1)
    explanation.arrays["values"][0] = np.nan  # an undefined row is left out
    np.testing.assert_allclose(explanation.mean(), explanation.values[1:].mean(axis=0))


def test_a_slice_keeps_names_as_plain_text():
    """One output or feature left, and its name is still a str: `print(explanation[..., 0])` shows it."""
    one = made(outputs=("a", "b"))[:, 0, "b"]
    assert [type(name) for name in (*one.output_names, *one.feature_names)] == [str, str]
    assert "output 'b' on" in repr(one)

"""Several attributions of the same rows in one Explanation."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError


def bent(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X[:, 0] * X[:, 1] + X[:, 2], X[:, 0] ** 2])


def explained(**options: object) -> tuple[tx.TExplainer, np.ndarray, tx.Explanation]:
    X = np.random.default_rng(0).normal(size=(80, 3))
    explainer = tx.TExplainer(bent, X, **options)
    return explainer, X[:6], explainer(X[:6], attribution=("slope", "shapley"))


def test_both_are_those_of_separate_calls() -> None:
    explainer, X, both = explained()
    assert both.attribution == "slope" and [*both.others] == ["shapley"]
    for name in ("slope", "shapley"):
        alone, one = explainer(X, attribution=name), both.with_attribution(name)
        assert one.attribution == name and one.units == alone.units
        assert one.settings["question"] == alone.settings["question"]
        for key, array in alone.arrays.items():
            np.testing.assert_array_equal(one.arrays[key], array, err_msg=key)


def test_the_constructor_takes_several_too() -> None:
    explainer, X, both = explained(attribution=["slope", "shapley"])
    np.testing.assert_array_equal(
        explainer(X).with_attribution("shapley").values, both.with_attribution("shapley").values
    )
    assert not explainer(X, attribution="slope").others


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".arrow", ".feather", ".csv", ".jsonl"])
def test_a_loaded_result_gives_both_without_its_explainer(tmp_path: Path, suffix: str) -> None:
    _, _, both = explained()
    both.save(tmp_path / f"both{suffix}")
    loaded = tx.Explanation.load(tmp_path / f"both{suffix}")
    for found in (loaded, pickle.loads(pickle.dumps(both))):
        other = found.with_attribution("shapley")
        np.testing.assert_array_equal(other.values, both.others["shapley"].values)
        np.testing.assert_array_equal(other.data, both.data)
        np.testing.assert_array_equal(other.with_attribution("slope").values, both.values)
        with pytest.raises(InputError, match=r"attribution=\('slope', 'variation'\)"):
            found.with_attribution("variation")


def test_slicing_slices_both() -> None:
    _, _, both = explained()
    part = both[2:5, ["x2", "x0"], "output 1"]
    whole = both.with_attribution("shapley")
    np.testing.assert_array_equal(part.with_attribution("shapley").values, whole.values[2:5, [2, 0], 1])
    assert part.with_attribution("shapley").feature_names == ("x2", "x0")


def test_what_is_known_of_the_rows_is_held_once() -> None:
    _, _, both = explained()
    other = both.others["shapley"]
    for name in ("data", "predictions", "base_values"):
        assert other.arrays[name] is both.arrays[name]
        assert f"shapley/{name}" not in both.every_array()


def test_names_are_checked() -> None:
    explainer, X, _ = explained()
    with pytest.raises(InputError, match="'nope' is unknown"):
        explainer(X, attribution=("slope", "nope"))
    with pytest.raises(InputError, match="is empty"):
        explainer(X, attribution=())


def test_an_array_of_an_explanation_is_its_values() -> None:
    _, _, both = explained()
    np.testing.assert_array_equal(np.asarray(both), both.values)
    assert np.asarray(both[0], dtype=np.float32).dtype == np.float32
    copied = np.array(both)
    copied[:] = 0
    assert both.values.any()


def test_the_frame_has_a_column_per_attribution() -> None:
    _, _, both = explained()
    frame = both.to_frame()
    other = both.others["shapley"]
    np.testing.assert_array_equal(frame["shapley"], other.values.ravel())
    np.testing.assert_array_equal(frame["shapley_error"], other.diagnostics.error.ravel())

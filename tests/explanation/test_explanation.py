"""The frozen result: slicing, surrogate, tables, files, SHAP's plots."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError
from texplainer.explanation.explanation import CategoryEffects
from texplainer.explanation.text import number, signed


@pytest.fixture
def explanation() -> tx.Explanation:
    rows, features, outputs = 6, 3, 2
    return tx.Explanation.build(
        np.random.default_rng(0).normal(size=(rows, features, outputs)),
        data=np.random.default_rng([0, 2]).normal(size=(rows, features)),
        base_values=[0.1, 0.9],
        predictions=np.random.default_rng([0, 3]).normal(size=(rows, outputs)),
        gradient=np.random.default_rng([0, 4]).normal(size=(rows, features, outputs)),
        feature_names=["age", "income", "job"],
        output_names=["bad", "good"],
        diagnostics={
            "error": np.full((rows, features, outputs), 1e-9),
            "step": np.full((rows, features), 1e-4),
            "evaluations": np.full(rows, 13),
            "stability": np.array(["stable"] * 5 + ["unstable"]),
            "reason": np.array([""] * 5 + ["kink in 'age'"], dtype=object),
            "trace_h": np.random.default_rng([0, 5]).normal(size=(rows, 7)),
        },
        engine="finite-difference",
        categories={
            "job": CategoryEffects(
                ("a", "b"),
                np.random.default_rng([0, 6]).normal(size=(rows, 2, outputs)),
                np.array([0.3, 0.7]),
            )
        },
    )


def test_slices_by_row_name_and_output(explanation):
    v = explanation.arrays["values"]
    assert np.array_equal(explanation[0].values, v[0])
    assert np.array_equal(explanation[-1].values, v[-1])
    assert np.array_equal(explanation[1:3].values, v[1:3])
    assert np.array_equal(explanation[[4, 1]].values, v[[4, 1]])
    assert np.array_equal(explanation[np.array([True, False] * 3)].values, v[::2])
    assert np.array_equal(explanation[:, "income"].values, v[:, 1])
    assert np.array_equal(explanation[:, ["job", "age"]].values, v[:, [2, 0]])
    assert np.array_equal(explanation[..., "good"].values, v[..., 1])
    assert np.array_equal(explanation[2, "age", "bad"].values, v[2, 0, 0])
    assert np.array_equal(explanation[1:4][0].values, v[1])
    assert np.array_equal(explanation[..., "good"][3].values, v[3, :, 1])


def test_everything_is_sliced_together(explanation):
    one = explanation[5, :, "good"]
    assert one.predictions == explanation.predictions[5, 1]
    assert one.base_values == 0.9
    assert one.diagnostics.stability == "unstable" and one.diagnostics.reason == "kink in 'age'"
    assert one.diagnostics.trace_h.shape == (7,) and one.diagnostics.error.shape == (3,)
    assert np.array_equal(one.data, explanation.data[5])
    assert one.output_names == ("good",) and one.feature_names == ("age", "income", "job")
    assert one.categories["job"].effects.shape == (1, 2, 1)
    assert explanation[:, ["age"]].categories == {}


def test_bad_slices_say_so(explanation):
    with pytest.raises(KeyError, match="'wage' is not one of age, income, job"):
        explanation[:, "wage"]
    with pytest.raises(IndexError, match="index 6 is out of range; expected -6 to 5"):
        explanation[6]
    with pytest.raises(IndexError, match="4 indices"):
        explanation[0, 0, 0, 0]
    with pytest.raises(AttributeError, match="no diagnostic 'luck'"):
        _ = explanation.diagnostics.luck


def test_frozen(explanation):
    with pytest.raises(dataclasses.FrozenInstanceError):
        explanation.scale = "log-odds"


def test_surrogate_is_the_linear_model(explanation):
    dx = np.random.default_rng([0, 7]).normal(size=3)
    expected = explanation.predictions + np.einsum("f,rfo->ro", dx, explanation.gradient)
    np.testing.assert_allclose(explanation.surrogate(dx), expected)
    np.testing.assert_allclose(explanation[2, :, "good"].surrogate(dx), expected[2, 1])
    np.testing.assert_allclose(explanation.surrogate(np.zeros((6, 3))), explanation.predictions)
    with pytest.raises(InputError, match="expected 3 features"):
        explanation.surrogate([1.0, 2.0])


def test_importance_is_sorted(explanation):
    table = explanation.importance()
    assert np.all(np.diff(table["mean_abs"]) <= 0)
    by_name = dict(zip(table["feature"], table["mean_abs"], strict=True))
    assert by_name["age"] == pytest.approx(np.abs(explanation.values[:, 0]).mean())
    assert explanation[:0].importance()["mean_abs"].isna().all()


def test_importance_leaves_undefined_rows_out_and_averages_the_bounds():
    values, error = np.array([[1.0, -4.0], [3.0, np.nan], [5.0, 2.0]]), np.array([[1.0, 2], [8, 8], [3, 4]])
    made = tx.Explanation.build(values, data=values, diagnostics={"error": error[:, :, None]})
    table = made.importance().set_index("feature")
    assert list(table.index) == ["x0", "x1"] and list(table["mean_abs"]) == [3.0, 3.0]
    assert list(table["bound"]) == [2.0, 3.0] and list(table["positive_share"]) == [1.0, 0.5]


def test_no_rows_make_an_empty_frame(explanation):
    assert explanation[:0].to_frame().shape == (0, explanation.to_frame().shape[1])
    np.testing.assert_array_equal(np.asarray(explanation), explanation.values)


def test_to_frame_has_a_line_per_value(explanation):
    frame = explanation.to_frame()
    assert len(frame) == 36
    line = frame[(frame.row == 4) & (frame.feature == "job") & (frame.output == "good")].iloc[0]
    assert line["value"] == explanation.values[4, 2, 1] and line["base_value"] == 0.9


def test_save_and_load_are_lossless_and_need_no_pickle(explanation, tmp_path):
    for sliced in (explanation, explanation[2:4], explanation[0], explanation[..., "good"]):
        path = tmp_path / "explanation.npz"
        sliced.save(path)
        again = tx.Explanation.load(path)
        assert again.values.shape == sliced.values.shape
        for name, array in sliced.arrays.items():
            assert np.array_equal(array, again.arrays[name]), name
        assert again.categories["job"].levels == ("a", "b")
        assert (again.feature_names, again.output_names) == (sliced.feature_names, sliced.output_names)


def test_repr_is_honest(explanation):
    text = repr(explanation)
    assert "6 rows x 3 features, 2 outputs" in text
    assert "finite-difference" in text and "5 stable, 1 unstable, 0 undefined" in text
    assert "78 (13 per row)" in text


def test_repr_of_one_row_tells_its_cells_and_values(explanation):
    tables = repr(explanation[4]).split("\n\n")
    assert len(tables) == len(explanation.output_names)
    for o, (output, text) in enumerate(zip(explanation.output_names, tables, strict=True)):
        assert f"{output}: {number(explanation.predictions[4, o], 4)}; base value:" in text
        for j, name in enumerate(explanation.feature_names):
            line = next(line for line in text.splitlines() if line.startswith(f"  {name} "))
            assert signed(explanation.values[4, j, o]) in line and str(explanation.data[4, j])[:4] in line
        assert "compute with explainer(X, attribution='shapley')" in text  # made by hand: nothing to ask


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (594_900.0, "594,900"),
        (0.01234, "0.0123"),
        (-2.5, "-2.50"),
        (1234.5, "1,234"),
        (0.0, "0"),
        (1e-7, "1.00e-07"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, text):
    assert number(value) == text


@pytest.mark.parametrize("cell", [None, np.nan])
def test_repr_of_one_row_calls_missing_cells_missing(cell):
    table = np.array([[cell, "red"]], dtype=object)
    one = tx.Explanation.build(np.ones((1, 2)), data=table, base_values=0.0, feature_names=["a", "b"])
    lines = [line.split() for line in repr(one).splitlines()]
    assert ["a", "missing", "+1.00"] in lines and ["b", "red", "+1.00"] in lines


@pytest.mark.parametrize("plot", ["waterfall", "beeswarm", "bar", "scatter", "heatmap"])
@pytest.mark.filterwarnings("ignore")
def test_shaps_own_plots_draw_it(plot):
    shap = pytest.importorskip("shap")
    import matplotlib.pyplot as plt

    many = tx.Explanation.build(np.random.default_rng([0, 8]).normal(size=(40, 3)), data=np.random.default_rng([0, 9]).normal(size=(40, 3)), base_values=0.2,
                                feature_names=["a", "b", "c"], attribution="shapley")  # fmt: skip
    drawn = many.to_shap()
    picked = {"waterfall": drawn[0], "scatter": drawn[:, "a"]}.get(plot, drawn)
    getattr(shap.plots, plot)(picked, show=False)
    assert plt.gcf().axes
    plt.close("all")


def test_rows_of_an_array_keep_their_positions_when_sliced():
    X = np.random.default_rng(21).normal(size=(60, 2))
    found = tx.TExplainer(lambda rows: rows[:, 0] + rows[:, 1] ** 2, X)(X)
    assert list(found[40:43].index) == [40, 41, 42] and list(found[40:43][1:].index) == [41, 42]
    assert set(found[40:42].reasons(1).to_frame()["row"]) <= {40, 41}

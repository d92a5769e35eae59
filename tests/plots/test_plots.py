"""The numbers that the plots' artists carry: lengths, order, labels, marks."""

from __future__ import annotations

import inspect
from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text
from plot_subjects import categorical, gated, interacting, loaded, made, searched

from texplainer import plots
from texplainer.errors import InputError
from texplainer.plots import style
from texplainer.plots.explanations.beeswarm import pile, ranks, thin
from texplainer.plots.explanations.dependence import strongest

LOCAL = (plots.waterfall, plots.force)
GLOBAL = (plots.bar, plots.beeswarm, plots.heatmap, plots.decision)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def widths(ax):
    return np.array([bar.get_width() for bar in ax.patches])


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_waterfall_stacks_from_base_to_prediction():
    explanation = made()[0]
    ax = plots.waterfall(explanation)
    values = explanation.values
    order = np.argsort(-np.abs(values), kind="stable")
    np.testing.assert_allclose(widths(ax), values[order])
    starts = np.array([bar.get_x() for bar in ax.patches])
    assert starts[-1] == pytest.approx(explanation.base_values)
    assert starts[0] + widths(ax)[0] == pytest.approx(explanation.predictions)
    np.testing.assert_allclose(
        starts[:-1], (starts + widths(ax))[1:]
    )  # each bar starts where the lower ended
    assert labels(ax)[0].startswith(explanation.feature_names[order[0]])
    words = [text.get_text() for text in ax.texts]
    assert f"E f(X) = {style.amount(float(explanation.base_values), False)}" in words


def test_waterfall_shows_what_the_sum_leaves_over():
    explanation = made()[0]
    explanation.arrays["predictions"][:] += 0.5
    ax = plots.waterfall(explanation)
    assert labels(ax)[-1] == "remaining difference"
    assert widths(ax)[-1] == pytest.approx(0.5)
    assert matplotlib.colors.same_color(ax.patches[-1].get_facecolor(), style.GREY)


@pytest.mark.parametrize("attribution", ["slope", "variation", "gradient"])
@pytest.mark.parametrize("draw", [plots.waterfall, plots.force])
def test_stacks_draw_shares_whatever_the_reading_and_say_so(draw, attribution):
    explanation = made(attribution=attribution)[0]
    ax = draw(explanation)
    words = " ".join(text.get_text() for text in ax.texts)
    assert f"f(x) = {style.amount(float(explanation.predictions), False)}" in words
    assert ax.get_title(loc="left") == "Shapley values of this row"
    with pytest.raises(
        InputError, match=r"no explainer to ask for 'shapley'.*attribution=\('\w+', 'shapley'\)"
    ):
        draw(loaded(explanation))


@pytest.mark.parametrize("draw", [plots.waterfall, plots.force, plots.decision])
def test_stacks_of_log_odds_have_a_second_axis_in_probability(draw):
    subject = made(scale="log-odds", outputs=("1",))[0]
    (top,) = draw(subject).child_axes
    for at, words in zip(top.get_xticks(), top.get_xticklabels(), strict=True):
        assert 100 / (1 + np.exp(-at)) == pytest.approx(float(words.get_text().rstrip("%")))
    assert len(top.get_xticks()) >= 2 and top.get_xlabel() == "probability"
    assert draw(made()[0]).child_axes == []


def test_axes_say_what_the_values_mean():
    words = plots.bar(made(attribution="slope", scale="log-odds", outputs=("1",))[0]).get_xlabel()
    assert " ".join(words.split()) == "slope of the log-odds of class 1 per SD, averaged over a quarter SD"
    ax = plots.bar(categorical()[0])
    lines = ax.get_xlabel().split("\n")
    assert lines[0].startswith("slope of output per SD")
    assert any(line.startswith("◆: output with this category") for line in lines)
    assert {label.split(" = ")[0] for label in labels(ax)} == {"size", "◆ colour"}
    assert "◆" not in plots.bar(categorical(attribution="shapley")[0]).get_xlabel()


def test_effects_are_sizes():
    ax = plots.bar(made(attribution="variation")[0])
    assert {matplotlib.colors.to_hex(bar.get_facecolor()) for bar in ax.patches} == {style.AMOUNT.lower()}
    assert not any(text.get_text().startswith("+") for text in ax.texts)
    assert plots.heatmap(made(attribution="variation")).images[0].get_clim()[0] == 0


def test_categories_have_no_low_and_high():
    ax = plots.beeswarm(categorical())
    dots = [c for c in ax.collections if len(c.get_offsets()) == 30]
    colours = [len(np.unique(c.get_facecolors(), axis=0)) for c in dots]
    assert sorted(colours)[0] == 1 and sorted(colours)[1] > 10
    assert "categories in grey" in ax.get_title(loc="left")


def test_rims_do_not_hide_the_colours_of_many_rows():
    ax = plots.beeswarm(made(rows=5000))
    assert all(np.max(c.get_linewidths()) == 0 for c in ax.collections if len(c.get_offsets()) == 2000)


def test_bars_are_hatched_on_a_kink_and_carry_their_error():
    explanation = made()[0]
    for draw in (plots.waterfall, plots.bar):
        ax = draw(explanation)
        hatched = {
            label for label, bar in zip(labels(ax), ax.patches, strict=True) if bar.get_hatch() == style.HATCH
        }
        assert {label.split(" = ")[0] for label in hatched} == {"age"}
        (whiskers,) = [c for c in ax.containers if hasattr(c, "has_xerr") and c.has_xerr]
        segments = np.array(whiskers.lines[2][0].get_segments())
        np.testing.assert_allclose(np.ptp(segments[:, :, 0], axis=1) / 2, 0.1 * np.abs(widths(ax)))


def test_unstable_rows_say_why():
    ax = plots.waterfall(made()[3])
    assert ax.get_title(loc="left") == "unstable: kink in 'age'"
    assert plots.waterfall(made()[0]).get_title(loc="left") == ""


def test_global_bar_has_means_and_the_middle_half():
    explanation = made()
    ax = plots.bar(explanation)
    size = np.abs(explanation.values)
    order = np.argsort(-size.mean(axis=0), kind="stable")
    np.testing.assert_allclose(widths(ax), size.mean(axis=0)[order])
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.array(lines.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends.T, np.quantile(size[:, order], [0.25, 0.75], axis=0))
    assert ax.get_title(loc="left") == "40 rows, 2 unstable"


@pytest.mark.parametrize("features", [13, 500])
def test_many_features_are_folded_without_loss(features):
    explanation = made(features=features)
    ax = plots.bar(explanation[0])
    assert labels(ax)[-1] == f"the other {features - 9}"
    assert widths(ax).sum() == pytest.approx(explanation[0].values.sum())
    ax = plots.bar(explanation)
    assert widths(ax).sum() == pytest.approx(np.abs(explanation.values).mean(axis=0).sum())
    assert f"the other {features - 9}" in labels(plots.beeswarm(explanation))
    assert f"the other {features - 11}" in labels(plots.decision(explanation))


def test_values_that_do_not_add_up_are_not_summed():
    explanation = made(features=30, attribution="slope")
    for draw, subject in (
        (plots.bar, explanation[0]),
        (plots.bar, explanation),
        (plots.beeswarm, explanation),
    ):
        ax = draw(subject)
        assert len(labels(ax)) == 10 and not any("the other" in label for label in labels(ax))
        assert "20 smaller features omitted" in " ".join(ax.get_title(loc="left").split())
    assert len(labels(plots.heatmap(explanation))) == 10
    for subject in (made(features=30, outputs=("a", "b")), made(features=30).cohorts("age")):
        words = plots.bar(subject).get_title(loc="left")
        assert "20 smaller features omitted" in " ".join(words.split())


@pytest.mark.parametrize("width", [8.0, 4.0])
def test_names_under_force_stay_inside_the_picture_and_apart(width):
    names = ("years in the present position", "income", "amount of the loan", "price", "debt", "age")
    ax = plt.subplots(figsize=(width, 2.5), layout="constrained")[1]
    plots.force(made(rows=1, names=names)[0], ax=ax)
    ax.figure.canvas.draw()
    hung = [text for text in ax.texts if text.get_va() == "top"]
    boxes = [text.get_window_extent() for text in hung]
    assert len(hung) >= 4
    assert all(ax.bbox.x0 - 1 <= box.x0 and box.x1 <= ax.bbox.x1 + 1 for box in boxes)
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_force_arrows_are_as_long_as_the_values():
    explanation = made()[0]
    ax = plots.force(explanation)
    lengths = {}
    for arrow in ax.patches:
        name, value = arrow.get_gid().split("|")
        x = arrow.get_xy()[:, 0]
        lengths[name] = np.ptp(x)
        assert lengths[name] == pytest.approx(abs(float(value)))
    assert len(lengths) == 6
    up = sum(v for v in explanation.values if v > 0)
    left = min(arrow.get_xy()[:, 0].min() for arrow in ax.patches)
    assert left == pytest.approx(float(explanation.predictions) - up)


def test_beeswarm_dots_stand_at_their_values():
    explanation = made()
    ax = plots.beeswarm(explanation)
    order = np.argsort(-np.abs(explanation.values).mean(axis=0), kind="stable")
    dots = [c for c in ax.collections if len(c.get_offsets()) == 40]
    for line, (collection, feature) in enumerate(zip(dots, order, strict=True)):
        offsets = np.asarray(collection.get_offsets())
        np.testing.assert_allclose(np.sort(offsets[:, 0]), np.sort(explanation.values[:, feature]))
        assert np.all(np.abs(offsets[:, 1] - (len(order) - 1 - line)) < 0.5)
        assert np.sum(np.asarray(collection.get_linewidths()) > 0) == 2  # the unstable rows' rims


def test_beeswarm_thins_100_000_rows_the_same_way_every_time():
    values = np.random.default_rng(0).normal(size=100_000)
    kept = thin(values)
    assert len(kept) == 2000
    np.testing.assert_array_equal(kept, thin(values))
    assert values[kept].min() == values.min() and values[kept].max() == values.max()
    np.testing.assert_allclose(
        np.quantile(values[kept], [0.1, 0.5, 0.9]), np.quantile(values, [0.1, 0.5, 0.9]), atol=5e-3
    )


def test_piles_keep_equal_values_apart():
    heights = pile(np.zeros(9), 1.0)
    assert len(np.unique(heights)) == 9 and np.abs(heights).max() <= 0.5
    np.testing.assert_array_equal(ranks(np.array([3.0, np.nan, 1.0, 2.0])), [1.0, np.nan, 0.0, 0.5])


def test_heatmap_sorts_rows_by_prediction_and_marks_unstable_ones():
    explanation = made()
    ax = plots.heatmap(explanation)
    order = np.argsort(explanation.predictions, kind="stable")
    features = np.argsort(-np.abs(explanation.values).mean(axis=0), kind="stable")
    np.testing.assert_allclose(ax.images[0].get_array(), explanation.values[order][:, features].T)
    (marks,) = [line for line in ax.lines if line.get_gid() == "unstable"]
    np.testing.assert_array_equal(marks.get_xdata(), np.nonzero(np.isin(order, [3, 23]))[0])


@pytest.mark.parametrize(("attribution", "name"), [("slope", "predictions"), ("gradient", "predictions")])
def test_scatter_draws_the_slope_through_each_point(attribution, name):
    explanation = made(attribution=attribution)
    ax = plots.scatter(explanation, "income")
    (lines,) = [c for c in ax.collections if c.get_gid() == "slopes"]
    ends = np.array(lines.get_segments())  # (rows, 2, 2)
    slope = np.diff(ends[:, :, 1])[:, 0] / np.diff(ends[:, :, 0])[:, 0]
    np.testing.assert_allclose(slope, -0.5)
    middle = ends.mean(axis=1)
    y = getattr(explanation, name)
    np.testing.assert_allclose(middle[:, 0], explanation.data[:, 1])
    np.testing.assert_allclose(middle[:, 1], y if y.ndim == 1 else y[:, 1])


def test_dependence_colours_by_the_feature_that_interacts():
    explanation = gated()
    ax = plots.dependence(explanation, "a")
    (points,) = [c for c in ax.collections if c.get_gid() == "points"]
    np.testing.assert_allclose(
        points.get_offsets(), np.column_stack([explanation.data[:, 0], explanation.values[:, 0]])
    )
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == "c"
    np.testing.assert_allclose(points.get_facecolors(), style.LOW_HIGH(ranks(explanation.data[:, 2])))
    assert plots.dependence(explanation, "a", colour="d").child_axes[0].get_ylabel() == "d"
    assert plots.dependence(explanation, "a", colour=None).child_axes == []


def test_the_interaction_found_may_be_a_category_and_none_is_found_by_chance():
    random = np.random.default_rng(1)
    x, sex, noise = random.normal(size=300), random.choice(["f", "m"], 300), random.normal(size=300)
    others = {1: noise, 2: sex.astype(object)}
    assert strongest(x * (sex == "f"), x, others) == 2
    assert strongest(np.zeros(300), x, others) is None


def test_plots_take_the_keywords_of_shap(monkeypatch):
    shown = []
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: shown.append(True))
    explanation = made(attribution="shapley")
    for name in ("bar", "beeswarm", "heatmap", "decision", "waterfall", "force"):
        draw, subject = (
            getattr(plots, name),
            explanation[0] if name in ("waterfall", "force") else explanation,
        )
        ax = plt.figure().subplots()
        assert draw(subject, max_display=3, ax=ax, show=False) is ax and not shown
        assert inspect.signature(draw).parameters["show"].default is False
    assert plots.bar(explanation, show=True) is not None and shown == [True]


def test_dependence_of_a_category():
    ax = plots.dependence(categorical(), "colour")
    (points,) = [c for c in ax.collections if c.get_gid() == "points"]
    x = np.asarray(points.get_offsets())[:, 0]
    assert len(np.unique(x)) == 30 and np.abs(x - np.round(x)).max() <= 0.25
    levels = [label.get_text() for label in ax.get_xticklabels()]
    assert [levels[i] for i in np.round(x).astype(int)] == list(categorical().data[:, 1])
    legend = plots.dependence(categorical(), "size", colour="colour").get_legend()
    assert {text.get_text() for text in legend.get_texts()} == {"red", "green", "<b>blue</b>"}


def test_bars_of_classes_are_stacked():
    explanation = made(outputs=("a", "b", "c"))
    ax = plots.bar(explanation)
    size = np.abs(explanation.values).mean(axis=0)  # (features, outputs)
    order = np.argsort(-size.sum(axis=1), kind="stable")
    np.testing.assert_allclose(widths(ax).reshape(3, 6), size[order].T[::-1])  # the greatest class first
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["c", "b", "a"]
    starts = np.array([bar.get_x() for bar in ax.patches]).reshape(3, 6)
    np.testing.assert_allclose(starts[2], size[order][:, 1:].sum(axis=1))
    many = plots.bar(made(outputs=tuple(f"c{i}" for i in range(12))))
    assert [text.get_text() for text in many.get_legend().get_texts()][-1] == "the other 5"


def test_bars_of_cohorts_stand_side_by_side():
    explanation = made()
    groups = explanation.cohorts(explanation.data[:, 0] > 0)
    ax = plots.bar(groups)
    for name, one in groups.items():
        drawn = {round(bar.get_y()): bar.get_width() for bar in ax.patches if bar.get_gid() == name}
        np.testing.assert_allclose(sorted(drawn.values()), np.sort(np.abs(one.values).mean(axis=0)))
    with pytest.raises(InputError, match="nothing to draw"):
        plots.bar({})
    with pytest.raises(InputError, match="40 cohorts are too many for distinct colours"):
        plots.bar(explanation.cohorts(np.arange(40)))


def test_features_are_chosen_and_sorted():
    explanation = made()
    chosen = ["доход", "age"]
    ax = plots.bar(explanation, features=chosen)
    assert labels(ax) == chosen
    np.testing.assert_allclose(widths(ax), np.abs(explanation.values).mean(axis=0)[[3, 0]])
    assert [label.split(" = ")[0] for label in labels(plots.bar(explanation[0], features=chosen))] == chosen
    assert labels(plots.bar(made(outputs=("a", "b")), features=chosen)) == chosen
    with pytest.raises(InputError, match="'x' is not in the explanation"):
        plots.bar(explanation, features=["x"])


def test_decision_paths_lead_from_base_to_prediction():
    explanation = made()
    ax = plots.decision(explanation)
    (paths,) = [c for c in ax.collections if c.get_gid() == "paths"]
    ends = np.array([path[[0, -1], 0] for path in paths.get_segments()])
    np.testing.assert_allclose(ends[:, 0], explanation.base_values)
    np.testing.assert_allclose(ends[:, 1], explanation.predictions)


def test_category_effects_of_one_row_and_of_many():
    explanation = categorical()
    ax = plots.category_effects(explanation[0])
    levels = [label.split(" (")[0] for label in labels(ax)]
    effect = dict(zip(levels, widths(ax), strict=True))
    own = explanation.data[0, 1]
    assert effect[own] == 0 and any(text.get_text() == "its own category" for text in ax.texts)
    assert effect["green"] - effect["red"] == 1
    ax = plots.category_effects(explanation, "colour")
    medians = np.asarray(ax.collections[-1].get_offsets())[:, 0]
    codes = explanation.values[:, 1] + 1
    np.testing.assert_allclose(np.sort(medians), np.sort([np.median(level - codes) for level in range(3)]))
    with pytest.raises(InputError, match=r"feature='size' does not have category effects.*colour"):
        plots.category_effects(explanation, "size")


def test_step_trace_draws_every_iteration_and_the_chosen_h():
    explanation = searched()
    above, below = plots.step_trace(explanation).child_axes
    tried = [line for line in below.lines if line.get_marker() == "o" and len(line.get_xdata()) > 1]
    np.testing.assert_allclose(tried[0].get_ydata(), explanation.arrays["trace_h"][0])
    np.testing.assert_allclose(tried[1].get_ydata(), explanation.arrays["trace_h"][1, :4])
    assert above.get_yscale() == "log"
    with pytest.raises(InputError, match="step='paper'"):
        plots.step_trace(made())


def test_stability_boxplot_carries_medians_and_counts_zeros():
    random = np.random.default_rng(0)
    scores = {
        "T": random.lognormal(size=99),
        "LIME": random.lognormal(3, 1, size=99),
        "constant": np.zeros(99),
    }
    ax = plots.stability_boxplot(scores, "ris")
    medians = [float(g.split("|")[1]) for g in map(Line2D.get_gid, ax.lines) if g and g.startswith("median")]
    np.testing.assert_allclose(medians, [np.median(scores["T"]), np.median(scores["LIME"])])
    assert ax.get_xscale() == "log" and labels(ax) == ["T", "LIME", "constant (99 at 0)"]


def test_stability_faithfulness_puts_each_explainer_at_its_place():
    scores = {"T": {"ris": np.array([1.0, 2, 3]), "pgi": np.array([0.1, 0.2, 0.6])}}
    scores["other"] = {"ris": np.array([10.0, 20, 30]), "pgi": np.zeros(3)}
    ax = plots.stability_faithfulness(scores)
    at = {line.get_gid(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines}
    assert at["T"] == pytest.approx((2.0, 0.3)) and at["other"] == pytest.approx((20.0, 0.0))
    assert ax.xaxis_inverted()  # the stable end is to the right


def test_timing_draws_medians_of_runs():
    ax = plots.timing({"T": {10: [1.0, 2.0, 9.0], 20: 3.0}, "SHAP": {10: 4.0, 20: 8.0}})
    lines = {line.get_gid(): line.get_ydata() for line in ax.lines}
    np.testing.assert_array_equal(lines["T"], [2.0, 3.0])
    assert {text.get_text() for text in ax.texts} == {"T", "SHAP"}
    with pytest.raises(InputError, match="nothing to draw"):
        plots.timing({})


def test_agreement_of_an_explainer_with_itself_is_one():
    explanations = {"T": made(), "same": made(), "other": made(seed=5)}
    for measure in ("feature", "sign", "spearman"):
        table = np.asarray(plots.agreement(explanations, measure, k=3).images[0].get_array())
        np.testing.assert_allclose(np.diag(table), 1)
        assert table[0, 1] == pytest.approx(1) and table[0, 2] < 1
        np.testing.assert_allclose(table, table.T)
    with pytest.raises(InputError, match="measure='x' is unknown"):
        plots.agreement(explanations, "x")
    with pytest.raises(InputError, match="differ in shape"):
        plots.agreement({"a": made(), "b": made(rows=3)})


@pytest.mark.parametrize("draw", LOCAL)
def test_local_plots_refuse_many_rows_and_outputs(draw):
    with pytest.raises(InputError, match=r"40 rows.*explanation\[0\]"):
        draw(made())
    with pytest.raises(InputError, match=r"2 outputs \(a, b\).*explanation\[\.\.\., 'a'\]"):
        draw(made(outputs=("a", "b"))[0])


@pytest.mark.parametrize("draw", [*LOCAL, *GLOBAL])
def test_plots_take_hard_cases_and_the_axes_they_are_given(draw):
    """All-zero, undefined, two features, names with markup and formulae, given axes."""
    odd = made(names=("$\\no{such$ <script>", "b\nc", *"defg"))
    zero, undefined = made(rows=4), made(rows=4)
    zero.arrays["values"][:] = 0
    zero.arrays["gradient"][:] = 0
    zero.arrays["predictions"][:] = 0.25
    undefined.arrays["values"][:] = np.nan
    for explanation in (odd, zero, undefined, made(features=2), made(rows=1)):
        one = explanation[0] if draw in LOCAL else explanation
        figure, ax = plt.subplots(figsize=(4, 3), layout="constrained")
        assert draw(one, ax=ax) is ax
        figure.canvas.draw()  # a formula in a name, or a warning, would raise here
        assert len(plt.get_fignums()) == 1  # no figure of its own
        plt.close(figure)


def test_a_hundred_thousand_rows_are_drawn():
    explanation = made(rows=100_000, features=3)
    for draw in (*GLOBAL, lambda given: plots.scatter(given, 0)):
        ax = draw(explanation)
        ax.figure.canvas.draw()
        assert ax.has_data()


def test_numbers_and_names_for_people():
    words = [style.number(v) for v in (0.0, 1e-9, 0.01234, 14.25, 4500, -3e8, np.nan, None, "red")]
    assert words == ["0", "1e−9", "0.01234", "14.25", "4500", "−300,000,000", "missing", "missing", "red"]
    assert [style.amount(v) for v in (0.28, -1.0, 0.0)] == ["+0.280", "−1.00", "0"]
    assert style.shorten("abcdefghij", 7) == "abcd…ij" and len(style.shorten("é" * 99)) == style.NAME_LENGTH


# ---------------------------------------------------------------- choices of features and colours


@pytest.mark.parametrize("draw", [plots.bar, plots.beeswarm, plots.heatmap])
def test_features_are_drawn_as_chosen(draw):
    ax = draw(made(rows=30), features=["доход", "age"])
    words = [label.get_text() for label in ax.get_yticklabels()]
    assert words == ["доход", "age"]


@pytest.mark.parametrize("draw", [plots.bar, plots.beeswarm, plots.heatmap])
@pytest.mark.parametrize(("features", "words"), [(["nothing"], "'nothing'"), ([], "features is empty")])
def test_features_that_are_not_there_are_refused(draw, features, words):
    with pytest.raises(InputError, match=words):
        draw(made(rows=30), features=features)


def test_colours_are_those_asked_for():
    one = plots.bar(made()[3], colours=("#112233", "#445566"))
    assert {matplotlib.colors.to_hex(bar.get_facecolor()) for bar in one.patches} == {"#112233", "#445566"}
    many = plots.bar(made(rows=30), colours="#112233")
    assert {matplotlib.colors.to_hex(bar.get_facecolor()) for bar in many.patches} == {"#112233"}
    classes = plots.bar(made(outputs=("a", "b")), colours=["#112233"])
    assert matplotlib.colors.to_hex(classes.patches[0].get_facecolor()) == "#112233"
    assert plots.heatmap(made(rows=30), colours="viridis").images[0].get_cmap().name == "viridis"
    dots = plots.beeswarm(made(rows=30), colours=["#000000", "#ffffff"]).collections[0].get_facecolor()
    assert np.ptp(dots[:, :3], axis=1).max() < 1e-9  # greys


def test_a_swarm_of_categories_alone_has_no_low_and_high():
    explanation = categorical(rows=50)
    ax = plots.beeswarm(explanation, features=["colour"])
    assert len({tuple(colour) for colour in ax.collections[0].get_facecolor()}) == 1
    assert ax.child_axes == []
    assert plots.beeswarm(explanation).child_axes != []


@pytest.mark.parametrize("draw", [plots.bar, plots.beeswarm, plots.heatmap])
def test_two_hundred_long_names_do_not_overlap(draw):
    names = tuple(f"{j}_a_feature_with_a_name_that_does_not_end_soon" for j in range(200))
    ax = draw(made(rows=30, features=200, names=names), features=range(200))
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels() if label.get_text()]
    boxes.sort(key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))


def test_cohorts_of_a_long_name_are_told_apart():
    long = "a_feature_with_a_name_that_does_not_end_soon"
    ax = plots.bar({f"{long} ≤ -0.02124": made(rows=30), f"{long} > -0.02124": made(rows=30)})
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(set(words)) == len(words) == 2
    assert all(len(word) < 36 for word in words)


@pytest.mark.parametrize("draw", [plots.bar, plots.beeswarm, plots.heatmap])
def test_long_names_are_told_apart(draw):
    """Names that differ only in their middle, where shortening cuts."""
    names = tuple(f"the content of the substance number {j} measured in the second week" for j in range(6))
    ax = draw(made(rows=30, names=names))
    words = [label.get_text() for label in ax.get_yticklabels() if label.get_text()]
    assert sum("number" in word for word in words) == 6
    ax.figure.canvas.draw()
    ticks = sorted((box.x0, box.x1) for box in map(Text.get_window_extent, ax.get_xticklabels()))
    assert all(left[1] + 2 < right[0] for left, right in pairwise(ticks))
    assert len(set(words)) == len(words)


def test_names_that_look_alike_keep_the_place_where_they_differ():
    names = [
        "short",
        f"{'a' * 40}1{'b' * 40}",
        f"{'a' * 40}2{'b' * 40}",
        f"{'a' * 40}2{'b' * 39}c",
        f"{'d' * 81}",
    ]
    words = style.told_apart(names, [20] * 5)
    assert words[0] == "short" and len(set(words)) == 5 and max(map(len, words)) <= 20
    assert "1b" in words[1]


def test_a_single_pair_has_a_slender_bar():
    found = interacting(40, 5)
    found.arrays["values"][:] = 0.0
    found.arrays["values"][:, 0, 1] = found.arrays["values"][:, 1, 0] = 1.0
    beside = plots.interactions(found).figure.axes[1]
    (bar,) = beside.patches
    low, high = beside.get_ylim()
    assert bar.get_height() < 0.3 * (high - low)


def test_dependence_says_how_many_of_the_rows_are_drawn():
    assert "2,000 of 2,500 rows" in plots.dependence(made(rows=2500), 0).get_title(loc="left")


@pytest.mark.parametrize("features", [5, 30, 200])
@pytest.mark.parametrize("rows", [1, 40])
def test_interactions_of_any_size_are_drawn(features, rows):
    found = interacting(rows, features)
    ax = plots.interactions(found, max_display=40)
    ax.figure.canvas.draw()
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        boxes = sorted(
            ((b.x0, b.x1) if labels[0] is ax.get_xticklabels()[0] else (b.y0, b.y1))
            for b in (label.get_window_extent() for label in labels)
        )
        assert all(low[1] <= high[0] + 1.5 for low, high in pairwise(boxes))


def test_interactions_of_several_outputs_are_refused_and_none_are_said():
    with pytest.raises(InputError, match=r"2 outputs.*interactions\[\.\.\., 'a'\]"):
        plots.interactions(interacting(outputs=("a", "b")))
    nothing = interacting()
    nothing.arrays["values"][:] = 0.0
    figure = plots.interactions(nothing).figure
    assert "no two features interact" in [text.get_text() for ax in figure.axes for text in ax.texts]
    nothing.arrays["values"][:] = np.nan
    assert plots.interactions(nothing).texts[0].get_text() == "no row could be explained"


def test_the_bar_of_the_others_does_not_add_up_all_bounds() -> None:
    """Shares sum exactly, so that their errors do not all point one way; a sum of bounds hid the picture."""
    from texplainer.plots.selection import Bars, fold

    bars = Bars(
        tuple("abcd"), np.array([9.0, 2.0, 1.0, 1.0]), np.array([1.0, 3.0, 4.0, 0.0]), np.zeros(4, bool)
    )
    assert fold(bars, 2).errors.tolist() == [1.0, 5.0]

"""The report as a file: what it holds, how large it is, that text in it stays text."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from page_subjects import EVIL, evaluation
from plot_subjects import categorical, loaded, made

import texplainer as tx
from texplainer import plots, report
from texplainer.explanation.text import number
from texplainer.report import notebook, payloads
from texplainer.report.notebook import beeswarm

SVG = "{http://www.w3.org/2000/svg}"


def content(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="content">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def unpacked(packed: dict) -> np.ndarray:
    kind = {"f4": "<f4", "u1": "u1"}[packed["type"]]
    return np.frombuffer(base64.b64decode(packed["bytes"]), kind).reshape(packed["shape"])


def test_the_page_holds_the_explanation(tmp_path):
    explanation = made()
    path = explanation.report(tmp_path / "deep" / "out.html", title="A title & more")
    page = path.read_text(encoding="utf-8")
    assert "<title>A title &amp; more</title>" in page
    (part,) = content(page)["parts"]
    local, shares = part["attributions"]
    np.testing.assert_allclose(unpacked(shares["values"])[:, :, 0], explanation.values, rtol=1e-6)
    with_attribution = explanation.with_attribution("slope")
    np.testing.assert_allclose(unpacked(local["values"])[:, :, 0], with_attribution.values, rtol=1e-6)
    np.testing.assert_allclose(
        unpacked(local["errors"])[:, :, 0], 0.1 * np.abs(with_attribution.values), rtol=1e-6
    )
    assert [local["question"], shares["question"]] == [
        "What would a small change do?",
        "Why this prediction?",
    ]
    assert local["axis"] == ["slope of yes per SD, averaged over a quarter SD"] and not local["adds_up"]
    np.testing.assert_allclose(unpacked(local["relative_change"])[:4], [0.02, 0.02, 0.02, 0.32], rtol=1e-6)
    np.testing.assert_allclose(unpacked(part["predictions"])[:, 0], explanation.predictions, rtol=1e-6)
    np.testing.assert_allclose(unpacked(part["data"][1]), explanation.data[:, 1], rtol=1e-6)
    assert part["features"] == list(explanation.feature_names)
    assert shares["stability_labels"] == {"stable": 38, "unstable": 2, "undefined": 0}
    mean = np.abs(explanation.values).mean(axis=0)
    np.testing.assert_allclose(np.array(shares["importance"]["mean"])[:, 0], mean)
    facts = dict(part["facts"])
    assert facts["engine"] == "closed-form" and facts["model evaluations"] == "520 (13 per row)"
    assert {"fingerprint of the data", "version of numpy", "version of python"} <= set(facts)


def test_a_loaded_explanation_shows_what_it_has_and_how_to_get_the_other():
    (part,) = content(report.page(loaded(made(attribution="slope"))))["parts"]
    assert [spec["name"] for spec in part["attributions"]] == ["slope"]
    assert "explainer(X, attribution='shapley')" in part["missing"]


def numbers(packed):
    """The numbers of a packed array, as the page reads them."""
    return np.frombuffer(base64.b64decode(packed["bytes"]), "<f4").astype(float)


def test_the_curves_are_the_model_s_predictions_and_end_in_the_row_s_slope():
    def model(rows):
        return rows[:, 0] ** 2 + 3 * rows[:, 1] * rows[:, 2] + np.sin(rows[:, 3]) + 0.01 * rows[:, 4]

    X = np.random.default_rng(0).normal(size=(60, 5))
    explanation = tx.TExplainer(model, X)(X[:30])
    found = payloads.explanation_payload(explanation)["curves"]
    assert len(found) == payloads.CURVE_ROWS
    contributions = explanation.with_attribution("shapley")
    for i, (curves,) in found.items():
        row = X[int(i)]
        largest = np.argsort(-np.abs(contributions.values[int(i)]))[: payloads.CURVE_FEATURES]
        assert [one["feature"] for one in curves] == [explanation.feature_names[j] for j in largest]
        for j, one in zip(largest, curves, strict=True):
            moved = np.tile(row, (len(numbers(one["x"])), 1))
            moved[:, j] = numbers(one["x"])
            np.testing.assert_allclose(numbers(one["y"]), model(moved), rtol=1e-5, atol=1e-5)
            assert one["at"] == row[j] and np.isclose(one["prediction"], model(row[None])[0])
            assert np.isclose(one["slope"], explanation.arrays["gradient"][int(i), j, 0])


def test_without_its_explainer_a_report_has_no_curves(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    explanation = tx.TExplainer(lambda rows: rows.sum(axis=1), X)(X[:4])
    explanation[[1, 3]][:, ["x1"]].report(tmp_path / "some.html")  # rows and features keep their own curves
    part = payloads.explanation_payload(explanation[[1, 3]])
    assert [curves[0][0]["prediction"] for curves in part["curves"].values()] == [
        pytest.approx(X[i].sum()) for i in (1, 3)
    ]
    explanation.save(tmp_path / "saved.npz")
    assert payloads.explanation_payload(tx.Explanation.load(tmp_path / "saved.npz"))["curves"] is None
    assert "tx.plots.ice(explainer, row, feature)" in report.page(tx.Explanation.load(tmp_path / "saved.npz"))


def test_the_script_knows_no_reading_by_name():
    for package, names in (("texplainer.report", report.SCRIPTS), ("texplainer.app", ("app.js",))):
        for name in names:
            words = re.findall(r"""["'`](slope|shapley|variation)["'`]""", report.asset(name, package))
            assert words == [], name


def test_categories_are_told_apart():
    (part,) = content(report.page(categorical()))["parts"]
    (local,) = part["attributions"]
    assert local["levels"] == [False, True] and local["level_axis"][0].startswith("output with this category")
    assert part["categorical"] == [False, True]


def test_a_thousand_rows_stay_under_two_megabytes():
    page = report.page(made(rows=1000, features=30))
    assert len(page.encode()) < 2_000_000
    assert content(page)["parts"][0]["kept"] is None  # and none of them is left out


def test_more_is_thinned_evenly_and_says_so():
    explanation = made(rows=6000, features=30, outputs=("a", "b", "c"))
    page = report.page(explanation)
    (part,) = content(page)["parts"]
    kept = np.array(part["kept"])
    assert len(page.encode()) < 2_000_000 and part["rows"] == 6000
    assert kept[0] == 0 and kept[-1] == 5999 and np.ptp(np.diff(kept)) <= 1
    shares = part["attributions"][1]
    np.testing.assert_allclose(unpacked(shares["values"]), explanation.values[kept], rtol=1e-6)
    mean = np.abs(explanation.values).mean(axis=0)  # of all rows
    np.testing.assert_allclose(shares["importance"]["mean"], mean)


def test_names_and_data_cannot_leave_their_script():
    explanation = made(names=(EVIL, *"bcdef"))
    page = report.page({EVIL: explanation}, title=EVIL)
    assert EVIL not in page and "<script>window" not in page
    assert content(page)["parts"][0]["features"][0] == EVIL  # it is still the same text
    assert page.count("<script") == 2 and page.count("</script") == 2


def test_the_page_asks_nothing_of_the_network():
    page = report.page(made())
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert not re.search(r"\b(fetch|XMLHttpRequest|import\(|WebSocket|EventSource)\b", page)
    assert "default-src 'none'" in page


def test_text_columns_missing_cells_and_nan_values_are_held():
    (part,) = content(report.page(categorical()))["parts"]
    levels, codes = part["data"][1]["levels"], part["data"][1]["codes"]
    assert [levels[c] for c in codes] == list(categorical().data[:, 1])
    broken = made(rows=3)
    broken.arrays["values"][1] = np.nan
    broken.arrays["predictions"][1] = np.nan
    assert np.isnan(
        unpacked(content(report.page(loaded(broken)))["parts"][0]["attributions"][0]["values"])[1]
    ).all()


def test_pictures_go_in_as_images():
    page = report.page(made(), pictures={"a waterfall": plots.waterfall(made()[0]).figure})
    plt.close("all")
    (picture,) = content(page)["pictures"]
    assert picture["svg"].startswith("data:image/svg+xml;base64,")


def test_the_page_holds_the_evaluation(tmp_path):
    subject = evaluation()
    page = report.write(subject, tmp_path / "evaluation.html").read_text(encoding="utf-8")
    (part,) = content(page)["parts"]
    assert EVIL not in page and part["explainers"][2] == EVIL
    assert part["summary"][2][0] is None and part["boxes"][2][0] is None
    known = subject.scores[0, 0]
    np.testing.assert_allclose(
        part["boxes"][0][0]["at"], np.quantile(known, [0.05, 0.25, 0.5, 0.75, 0.95, 1])
    )
    np.testing.assert_allclose(np.diag(np.array(part["agreement"], dtype=float)), 1)


def test_reports_are_the_same_every_time():
    assert report.page(made()) == report.page(made())


def test_fingerprints_of_model_and_data_are_shown():
    explanation = made()
    other = made(seed=1)
    known = replace(explanation, settings={"fingerprints": {"model": {"sha256": "ab" * 32}}})
    facts = dict(payloads.facts(known))
    assert facts["fingerprint of the model"] == "ab" * 8
    assert facts["fingerprint of the data"] != dict(payloads.facts(other))["fingerprint of the data"]


def test_notebooks_show_a_table_without_scripts():
    html = made(names=(EVIL, *"bcdef"))._repr_html_()
    assert "<table>" in html and "<script" not in html and "Explanation of 40 rows" in html
    assert "positive" in html and "positive" not in made(attribution="variation")._repr_html_()
    html = notebook.evaluation(evaluation())
    assert "<script" not in html and "RIS max ↓" in html and html.count("<b>") == 2


def test_a_notebook_shows_many_rows_as_a_picture_and_a_table():
    explanation = made(names=(EVIL, *"bcdef"))
    picture, rest = explanation._repr_html_().split("<svg", 1)[1].split("</svg>")
    rows = ElementTree.fromstring(f"<svg {picture}</svg>")
    dots = [dot for path in rows.iter(f"{SVG}path") for dot in re.findall(r"M(\S+) (\S+)h0", path.get("d"))]
    assert len(dots) == explanation.values.size and "<pre" not in rest
    names = [text.text for text in rows.iter(f"{SVG}text")][:6]
    table = explanation.importance()
    assert names[1:] == list(table["feature"])[1:] and names[0].startswith(EVIL[:10])
    for size in table["mean_abs"]:
        assert number(size) in rest
    assert "<svg" not in explanation[:0]._repr_html_()


def test_dots_of_a_swarm_keep_the_order_of_the_values():
    explanation = made(names=tuple("abcdef"))
    (line,) = [i for i, name in enumerate(explanation.feature_names) if name == "a"]
    picture = beeswarm(explanation, [line], explanation.feature_names)
    x = sorted(float(x) for x in re.findall(r"M(\S+) \S+h0", picture))
    values = np.sort(explanation.arrays["values"][:, line, 0])
    assert np.corrcoef(x, values)[0, 1] > 0.9999


def test_a_notebook_shows_one_row_with_cells_values_and_error_bars():
    row = made(attribution="slope", scale="log-odds", outputs=("1",))[3]
    html = row._repr_html_()
    assert f"class 1: {1 / (1 + np.exp(-float(row.predictions))):.1%} (log-odds" in html
    assert "slope per SD: unstable, changes by 32% if features move by 5% of an SD (kink" in html
    assert f"{row.data[0]:.4g}" in html and ">+1.00 ± 0.1" in html and "<script" not in html
    assert "* a category" in categorical()[0]._repr_html_()


@pytest.mark.parametrize("draw", ["waterfall", "beeswarm", "bar", "scatter", "heatmap"])
def test_shap_draws_our_explanations(draw):
    """SHAP's own plots take what to_shap() gives."""
    shap = pytest.importorskip("shap", reason="needs shap")
    explanation = made(names=("age", "income", *"cdef")).to_shap()
    one = (
        explanation[0] if draw == "waterfall" else explanation[:, "age"] if draw == "scatter" else explanation
    )
    try:
        getattr(shap.plots, draw)(one, show=False)
        plt.gcf().canvas.draw()
        assert any(ax.has_data() for ax in plt.gcf().axes)
    finally:
        plt.close("all")


def test_an_explanation_of_unknown_cost_is_told_and_reported(tmp_path):
    """TreeSHAP does not count what it asks of the model."""
    explanation = tx.Explanation.build(
        np.ones((3, 2)), data=np.ones((3, 2)), diagnostics={"evaluations": np.full(3, np.nan)}
    )
    assert "evaluations" not in str(explanation)
    assert "model evaluations" not in explanation.report(tmp_path / "page.html").read_text()


@pytest.fixture(scope="module")
def pictures():
    """Three images by a function of two outputs."""
    images = np.random.default_rng(0).random((3, 6, 6))
    model = lambda x: np.stack([x.mean(axis=(1, 2)), x[:, :3].mean(axis=(1, 2))], axis=1)  # noqa: E731
    return tx.ImageExplainer(model, segments=(2, 2), baseline=0.0)(images)


def test_images_are_shown_as_pictures(pictures, tmp_path):
    path = pictures.report(tmp_path / "images.html")
    (part,) = content(path.read_text(encoding="utf-8"))["parts"]
    assert part["kind"] == "images" and part["rows"] == 3 and part["kept"] == [0, 1, 2]
    assert [spec["name"] for spec in part["attributions"]] == ["slope", "shapley"]
    assert all(len(shown) == 2 for shown in part["images"])
    address = part["images"][0][0]["picture"]
    assert base64.b64decode(address.partition("base64,")[2])[:4] == b"\x89PNG"
    best = pictures.arrays["predicted_class"][0]
    assert f"class {best}" in part["images"][0][0]["prediction"]
    assert path.stat().st_size < 400_000


def test_many_images_are_thinned(pictures, monkeypatch):
    monkeypatch.setattr(payloads, "MOST_IMAGES", 2)
    part = payloads.images_payload(replace(pictures, live=None))
    assert part["kept"] == [0, 2] and len(part["images"]) == 2
    assert "attribution='shapley'" in part["missing"] and len(part["images"][0]) == 1

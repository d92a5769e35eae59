"""The report in a real Chromium: from disk, without network, hover, sort, filter, outputs, dark, print."""

from __future__ import annotations

import json

import chromium
import numpy as np
import pandas as pd
import pytest
from page_subjects import EVIL, evaluation
from plot_subjects import categorical, made
from sklearn.ensemble import HistGradientBoostingClassifier

import texplainer as tx
from texplainer import report
from texplainer.explanation.text import row_tables
from texplainer.reasons import codes

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed"),
]
ROWS = "[...document.querySelectorAll('section.explanation .scroll tbody tr.pickable')]"
NAMES = (EVIL, "income", "größe", "$x$", "e", "a_very_long_feature_name_that_never_ends")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = chromium.Browser(str(tmp_path_factory.mktemp("profile")))
    yield running
    running.close()


@pytest.fixture
def opened(browser, tmp_path):
    explanation = made(outputs=("yes", "no"), names=NAMES)
    path = report.write({EVIL: explanation, "scores": evaluation()}, tmp_path / "report.html")
    page = browser.page()
    page.open(path.as_uri(), "document.querySelectorAll('svg.chart .bar').length > 10")
    yield page, explanation, path
    assert page.complaints() == []
    assert page.requests() == [path.as_uri()]  # itself and nothing else
    assert page.run("window.hacked") is None


def bars(page, holder, spec=0):
    """The bars of the charts of one kind: of the first attribution, or of the one beside it."""
    script = f"[...document.querySelectorAll('{holder}')[{spec}].querySelectorAll('.bar')].map(b => [Number(b.dataset.value), b.getBoundingClientRect().width])"
    return np.array(page.run(script))


def test_it_draws_the_numbers(opened):
    page, explanation, _ = opened
    found = bars(page, ".bars", 1)
    np.testing.assert_allclose(bars(page, ".bars")[:, 0], 1 / np.arange(1, 7), rtol=1e-6)  # local
    mean = np.sort(np.abs(explanation[..., "yes"].values).mean(axis=0))[::-1]
    np.testing.assert_allclose(found[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(found[:, 1] / found[0, 1], mean / mean[0], atol=0.02)
    assert page.run("document.querySelector('h2').textContent") == EVIL


def table_of(page, selector):
    script = f"[...document.querySelectorAll('{selector} tr')].map(r => [...r.cells].map(c => c.textContent))"
    return [[cell.replace("−", "-") for cell in row] for row in page.run(script)]


@pytest.mark.parametrize("kind", ["log-odds", "category", "bounds"])
def test_a_row_has_the_numbers_that_python_prints(browser, tmp_path, kind):
    explainer, X = explained(kind)
    both = explainer(X, attribution=("slope", "shapley"))
    both.save(tmp_path / "both.npz")  # a loaded result holds both
    path = report.write(tx.Explanation.load(tmp_path / "both.npz"), tmp_path / "report.html")
    page = browser.page()
    page.open(path.as_uri(), "document.querySelectorAll('.two-columns tr').length > 2")
    for r in (0, 3):
        page.run(f"{ROWS}[{r}].click()")
        (python,) = row_tables(both[r])
        found = table_of(page, ".two-columns")
        assert [[*line[:2], *line[3:]] for line in found] == [[*line] for line in python.lines()]
        notes = page.run("[...document.querySelectorAll('.two-columns .note')].map(n => n.textContent)")
        assert notes == python.notes()
        headline = page.run("document.querySelector('.headline').textContent").replace("−", "-")
        assert headline == python.prediction
        assert page.run("document.querySelector('.row-card h3').textContent") == f"Row {both.index[r]}"
        for sign, toward in ((0, "up"), (1, "down")):
            page.run(
                f"(() => {{ const s = document.querySelector('.reasons-card select'); s.selectedIndex = {sign}; s.dispatchEvent(new Event('change')); }})()"
            )
            reasons = both[[r]].reasons(toward=toward)
            shown = [[line[0], line[1], line[-1]] for line in table_of(page, ".reasons-list")[1:]]
            cells = codes._cells(reasons[0])
            assert shown == [[c[0].replace(" ", ""), c[1], c[-1]] for c in cells]
    assert page.complaints() == []


def explained(kind):
    random = np.random.default_rng(5)
    X = pd.DataFrame(random.normal(size=(60, 13)) * 1200, columns=[f"x{j}" for j in range(13)])
    X.index = [f"C-{i}" for i in range(60)]
    if kind == "bounds":

        def bent(rows):
            return (
                np.tanh(np.asarray(rows) / 1000).sum(axis=1)
                + np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1] / 1e6
            )

        return tx.TExplainer(bent, X, max_evals=84), X[:5]
    if kind == "category":
        X["colour"] = pd.Categorical(random.choice(["red", "blue"], 60))
    y = (X["x0"] + X["x1"].abs() / 2 > 300) | (X["x2"] > 1000)
    model = HistGradientBoostingClassifier(max_iter=15, categorical_features="from_dtype").fit(X, y)
    return tx.TExplainer(model, X), X[:5]


def test_hovering_a_bar_shows_its_value(opened):
    page, explanation, _ = opened
    page.hover(".row .bar-row")
    words = page.until("document.querySelector('#tip.shown') && document.querySelector('#tip').textContent")
    row = explanation.with_attribution("slope")[..., "yes"][0]
    strongest = int(np.argmax(np.abs(row.values)))
    assert words.startswith(explanation.feature_names[strongest]) and "slope" in words


def test_columns_sort_both_ways(opened):
    page, explanation, _ = opened
    column = "document.querySelectorAll('section.explanation thead')[0].querySelectorAll('button')[1]"
    for direction, order in (("descending", -1), ("ascending", 1)):
        page.run(f"{column}.click()")
        assert page.run(f"{column}.parentNode.getAttribute('aria-sort')") == direction
        shown = [int(text) for text in page.run(f"{ROWS}.map(r => r.cells[0].textContent)")]
        predictions = explanation[..., "yes"].predictions[shown]
        assert np.all(np.diff(predictions) * order >= 0) and len(shown) == 40


def test_rows_are_filtered_by_word_and_by_value(opened):
    page, explanation, _ = opened

    def matching(words):
        script = f"""(() => {{ const f = document.querySelector('input[type=search]'); f.value = {json.dumps(words)};
            f.dispatchEvent(new Event('input')); return {ROWS}.map(r => Number(r.cells[0].textContent)); }})()"""
        return page.run(script)

    assert matching("unstable") == [3, 23]
    assert matching("income > 0.5") == np.nonzero(explanation.data[:, 1] > 0.5)[0].tolist()
    said = "document.querySelector('section.explanation .message[role=status]').textContent"
    assert matching("no such thing") == [] and "No row has the identifier" in page.run(said)
    assert matching("incom > 0.5") == [] and "Did you mean “income”?" in page.run(said)
    assert matching("income > many") == [] and "“many” is not a number" in page.run(said)
    assert matching("row 7") == [7] and page.run(said) == "1 of 40 rows"
    assert len(matching("")) == 40


def test_picking_a_row_and_an_output_redraws_the_waterfall(opened):
    page, explanation, _ = opened
    page.run(f"{ROWS}[3].click()")
    chips = page.run("document.querySelector('.row').parentNode.querySelector('.chip').textContent")
    assert chips == "unstable, relative change 32%: kink in 'age'"
    np.testing.assert_allclose(
        bars(page, ".row", 1)[:, 0], sorted(explanation.values[3, :, 0], key=abs, reverse=True), rtol=1e-5
    )
    picker = "document.querySelector('select[aria-label=output]')"
    page.run(f"{picker}.selectedIndex = 1; {picker}.dispatchEvent(new Event('change'))")
    np.testing.assert_allclose(
        bars(page, ".row", 1)[:, 0], sorted(explanation.values[3, :, 1], key=abs, reverse=True), rtol=1e-5
    )


def test_the_evaluation_sorts_and_changes_its_metric(opened):
    page, _, _ = opened
    before = bars(page, ".boxes")
    picker = "document.querySelector('select[aria-label=metric]')"
    page.run(f"{picker}.selectedIndex = 1; {picker}.dispatchEvent(new Event('change'))")
    after = bars(page, ".boxes")
    np.testing.assert_allclose(after[0, 0], np.median(evaluation().scores[0, 1]), rtol=1e-6)
    assert len(before) == 2 and len(after) == 3  # one explainer has no first metric


def test_nothing_is_stretched_on_narrow_paper(opened):
    page, _, _ = opened
    page.send("Emulation.setEmulatedMedia", media="print")
    shape = "c.offsetWidth / c.offsetHeight * c.height / c.width"
    page.run("document.querySelectorAll('canvas').forEach(c => { c.parentElement.style.width = '300px'; })")
    np.testing.assert_allclose(
        page.run(f"[...document.querySelectorAll('canvas')].map(c => {shape})"), 1.0, atol=0.02
    )


def test_dark_and_print(opened):
    page, _, _ = opened
    back, canvas = (
        "getComputedStyle(document.body).backgroundColor",
        "document.querySelector('.swarm canvas').toDataURL()",
    )
    page.media(prefers_color_scheme="light")
    light, bright = page.run(back), page.run(canvas)
    page.run("dispatchEvent(new Event('beforeprint'))")
    paper = page.run(canvas)
    page.run("dispatchEvent(new Event('afterprint'))")
    page.media(prefers_color_scheme="dark")
    assert page.run(back) != light
    page.until(f"{canvas} !== {json.dumps(bright)}")  # a canvas is painted anew
    dark = page.run(canvas)
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(canvas) == paper  # paper is white, and of one width
    assert page.run("document.querySelector('.swarm canvas').width") == 2 * 720
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run(canvas) == dark
    pdf = page.send("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 10_000


def test_it_fits_a_phone(opened):
    page, _, _ = opened
    page.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    page.until("document.querySelector('.bars svg').getBoundingClientRect().width < 400")
    assert page.run("document.documentElement.scrollWidth") <= 400


def test_the_curves_follow_the_row(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5))
    frame = pd.DataFrame(X, columns=[EVIL, "income", "größe", "$x$", "kind"])
    frame["kind"] = pd.Categorical(np.where(X[:, 4] > 0, EVIL, "b"))
    path = tx.TExplainer(lambda rows: rows[EVIL] * rows["income"] + (rows["kind"] == "b"), frame)(
        frame[:20]
    ).report(tmp_path / "r.html")
    page = browser.page()
    page.open(path.as_uri(), "document.querySelectorAll('.curves svg').length === 4")
    drawn = "document.querySelector('.curves').innerHTML"
    first = page.run(drawn)
    assert page.run("document.querySelectorAll('.curves .here').length") == 4
    rows = "document.querySelectorAll('section.explanation .scroll tbody tr.pickable')"
    page.run(f"{rows}[19].click()")
    assert page.run(drawn) != first and page.run("document.querySelectorAll('.curves svg').length") == 4
    marks = "[...document.querySelectorAll('.curves svg')].map(one => [...one.querySelectorAll('.soft.end')].map(t => t.textContent))"
    assert all(
        len(set(one)) == len(one) for one in page.run(marks)
    )  # also where the model ignores the feature
    page.run(f"{rows}[2].click()")
    assert "Not for this row" in page.run("document.querySelector('.curves').textContent")
    assert page.complaints() == [] and page.run("window.hacked") is None


def test_text_columns_and_undefined_rows_are_shown(browser, tmp_path):
    broken = made(rows=4)
    broken.arrays["values"][1] = np.nan
    broken.arrays["stability"][:] = ["stable", "undefined", "stable", "stable"]
    page = browser.page()
    path = report.write({"text": categorical(), "broken": broken}, tmp_path / "r.html")
    page.open(path.as_uri(), "document.querySelectorAll('svg.chart').length >= 4")
    page.run(
        "document.querySelectorAll('section.explanation')[1].querySelectorAll('tbody tr.pickable')[1].click()"
    )
    assert "does not have attributions" in page.run("document.querySelectorAll('.row')[2].textContent")
    picker = "document.querySelector('select[aria-label=feature]')"
    page.run(f"{picker}.selectedIndex = 1; {picker}.dispatchEvent(new Event('change'))")
    assert page.complaints() == []


def test_of_shares_the_smallest_are_one_bar_and_of_slopes_none(browser, tmp_path):
    explanation = made(features=30)
    page = browser.page()
    page.open(
        report.write(explanation, tmp_path / "r.html").as_uri(),
        "[...document.querySelectorAll('.bars')].filter(b => b.textContent).length > 1",  # drawn, not only there
    )
    local, shares = page.run("[...document.querySelectorAll('.bars')].map(b => b.textContent)")
    assert "the other 15" in shares
    assert "the other" not in local
    mean = np.sort(np.abs(explanation.values).mean(axis=0))[::-1]
    np.testing.assert_allclose(bars(page, ".bars", 1)[-1, 0], mean[15:].sum(), rtol=1e-6)
    heard = page.run(
        """[...document.querySelectorAll('.swarm canvas')].map((canvas) => {
          const box = canvas.getBoundingClientRect(), said = new Set();
          for (let x = 0; x < box.width; x += 4) {
            const at = { clientX: box.left + x, clientY: box.top + 11 * 34 + 17, bubbles: true };
            canvas.dispatchEvent(new MouseEvent("mousemove", at));
            said.add(document.querySelector("#tip, .tip")?.textContent || "");
          }
          return [...said].join(" ");
        })"""
    )
    assert "the other 19 features" in heard[1]
    assert "the other" not in heard[0]
    assert page.complaints() == []

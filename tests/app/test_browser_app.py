"""The explorer in a real Chromium: what-if, comparisons, wrong values, wrong tokens, foreign pages."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import chromium
import pytest
from page_subjects import NAMES, fitted

import texplainer as tx
from texplainer import app
from texplainer.explanation.text import row_tables

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed"),
]
READY = "document.querySelector('#prediction') && document.querySelectorAll('#bars .bar').length > 2"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = chromium.Browser(str(tmp_path_factory.mktemp("profile")))
    yield running
    running.close()


@pytest.fixture(scope="module")
def address():
    model, rows = fitted((16, 16))
    explainer = tx.TExplainer(model, rows, feature_names=NAMES)
    other = tx.TExplainer(model, rows, feature_names=NAMES, attribution="shapley")
    with app.running(app.create(explainer, rows[:30], others={"shapley": other})) as where:
        yield where


@pytest.fixture
def opened(browser, address):
    page = browser.page()
    page.open(address, READY)
    yield page
    assert page.complaints() == []
    host = address.split("?")[0]
    assert all(url.startswith(host) for url in page.requests())


def figures(page):
    return page.run("['prediction', 'surrogate'].map(id => document.getElementById(id).textContent)")


def drawn(page):
    return page.run("[...document.querySelectorAll('#bars .bar')].map(b => b.dataset.value)")


def slide(page, feature, value):
    page.run(
        f"""(() => {{ const s = document.querySelectorAll('input[type=range]')[{feature}]; s.value = {value};
        s.dispatchEvent(new Event('input')); }})()"""
    )


def test_a_slider_moves_prediction_surrogate_and_bars(opened):
    before, bars = figures(opened), drawn(opened)
    slide(opened, 1, 0.7)
    opened.until(f"document.getElementById('prediction').textContent !== '{before[0]}'")
    assert figures(opened)[1] != before[1] and drawn(opened) != bars
    opened.click("#reset")
    opened.until(f"document.getElementById('prediction').textContent === '{before[0]}'")
    assert figures(opened) == before and drawn(opened) == bars


def test_many_quick_moves_end_at_the_last_one(opened):
    for i in range(30):
        slide(opened, 0, -1 + i / 15)
    field = "document.querySelectorAll('.control input[type=text]')[0].value"
    opened.until(
        f"document.querySelector('#bars').textContent.includes('age = ' + TX.cellWords(Number({field})))"
    )
    assert float(opened.run(field)) == pytest.approx(-1 + 29 / 15, abs=0.02)


def test_a_wrong_value_gets_a_message_and_the_page_lives(opened):
    field = "document.querySelectorAll('.control input[type=text]')[0]"
    opened.run(f"{field}.value = 'old'; {field}.dispatchEvent(new Event('change'))")
    opened.until(
        "document.getElementById('message').textContent.includes(\"'old' in 'age' is not a number\")"
    )
    opened.run(f"{field}.value = '0.5'; {field}.dispatchEvent(new Event('change'))")
    opened.until("document.querySelector('#bars').textContent.includes('age = 0.5')")
    assert opened.run("document.getElementById('message').textContent") == ""
    # a refused question is an expected 422, which Chromium writes to its console
    opened.browser.events[:] = [e for e in opened.browser.events if e["method"] != "Log.entryAdded"]


def test_rows_explainers_and_small_changes_are_compared(opened):
    opened.until("document.querySelectorAll('.pair .bar').length === 6")
    for mode, words in (("explainer", "different units"), ("stability", "nearby rows")):
        opened.click(f"button[data-mode={mode}]")
        opened.until(f"document.getElementById('note').textContent.includes('{words}')")
    opened.until("document.querySelectorAll('.pair .bar').length === 3")
    assert opened.run("document.querySelectorAll('.pair .whisker').length") > 0


def test_the_global_view_opens_a_row(opened):
    opened.click("#overview")
    opened.until("document.querySelectorAll('.rows-card tbody tr.pickable').length === 30")
    opened.run("document.querySelectorAll('.rows-card tbody tr.pickable')[7].click()")
    opened.until("document.getElementById('surrogate').parentNode.textContent.includes('row 7')")
    assert opened.run("document.getElementById('row').value") == "7"


def test_names_are_text(opened):
    assert opened.run("[...document.querySelectorAll('.control label')].map(l => l.textContent)") == list(
        NAMES
    )


def test_it_fits_a_phone(opened):
    opened.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    opened.until("document.querySelector('#bars svg').getBoundingClientRect().width < 400")
    assert opened.run("document.documentElement.scrollWidth") <= 400


def test_two_tabs_do_not_disturb_each_other(browser, address):
    one, two = browser.page(), browser.page()
    for page in (one, two):
        page.open(address, READY)
    before = figures(two)
    slide(one, 1, 0.9)
    one.until(f"document.getElementById('prediction').textContent !== '{before[0]}'")
    assert figures(two) == before


def test_a_wrong_token_is_refused(browser, address):
    page = browser.page()
    page.open(address.split("?")[0] + "?token=wrong", "document.body.textContent.includes('Refused')")
    assert page.run("document.querySelector('script')") is None


def test_the_token_leaves_the_address_and_a_reload_keeps_it(browser, address):
    page, where = browser.page(), address.split("?")[0]
    for visited in (address, where):
        page.open(visited, READY)
        assert page.run("location.href") == where


def test_a_foreign_page_cannot_ask(browser, address):
    """Another origin with the right token, even so."""

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>foreign</title>")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = browser.page()
        page.open(f"http://127.0.0.1:{server.server_port}/", "document.title === 'foreign'")
        host, token = address.split("/?token=")
        read = f"""fetch('{host}/api/about', {{method: 'POST', body: '{{}}', headers: {{'x-token': '{token}',
            'content-type': 'application/json'}}}}).then(() => 'answered', () => 'refused')"""
        assert page.run(read) == "refused"
        blind = f"fetch('{host}/?token={token}', {{mode: 'cors'}}).then(r => 'answered', () => 'refused')"
        assert page.run(blind) == "refused"
        framed = f"""new Promise(done => {{ const f = document.createElement('iframe'); f.src = '{address}';
            f.onload = () => {{ let seen = false; try {{ seen = Boolean(f.contentDocument && f.contentDocument.querySelector('main')); }} catch {{ }} done(seen); }}; document.body.append(f); }})"""
        assert page.run(framed) is False
    finally:
        server.shutdown()
        server.server_close()


def test_the_row_is_the_table_that_python_prints(browser):
    model, rows = fitted((16, 16))
    explainer = tx.TExplainer(model, rows, feature_names=NAMES)
    with app.running(app.create(explainer, rows[:30])) as where:
        page = browser.page()
        page.open(where, READY)
        (python,) = row_tables(explainer(rows[:1]))
        found = page.run(
            "[...document.querySelectorAll('#told tr')].map(r => [...r.cells].map(c => c.textContent.replace(/−/g, '-')))"
        )
        assert [[*line[:2], *line[3:]] for line in found] == [[*line] for line in python.lines()]
        assert page.complaints() == []


def test_a_click_on_a_feature_draws_its_curve(opened):
    assert not opened.run("document.querySelectorAll('.curve').length")
    opened.click("#told tbody tr")
    opened.until("document.querySelectorAll('.curve .line, .curve .dot').length > 0")
    assert opened.run("document.querySelectorAll('.curve .here').length") == 1


def test_recourse_is_proposed_and_can_be_tried(opened):
    before = figures(opened)[0]
    opened.click("#recourse")
    opened.until("document.querySelectorAll('#proposals .proposal').length > 0")
    said = opened.run("document.querySelector('#proposals .proposal b').textContent")
    opened.click("#proposals .proposal button")
    opened.until(f"document.getElementById('prediction').textContent !== '{before}'")
    assert figures(opened)[0] in said.replace("-", "−")


def test_rows_are_found_by_condition_and_a_typo_is_an_error(browser, address):
    page = browser.page()
    page.open(address, READY)

    def find(words):
        page.run(
            f"(() => {{ const f = document.getElementById('find'); f.value = '{words}'; f.dispatchEvent(new Event('change')); }})()"
        )

    find("7")
    page.until("document.getElementById('row').value === '7'")
    find("no such row")
    page.until("document.getElementById('finding').textContent.includes('no row has the identifier')")
    assert page.run("document.getElementById('row').value") == "7"


def test_a_phone_does_not_scroll_sideways(browser, address):
    page = browser.page()
    page.send("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
    page.open(address, READY)
    assert page.run("document.documentElement.scrollWidth") == 390
    assert page.run("document.querySelector('.answers').getBoundingClientRect().top < 300")

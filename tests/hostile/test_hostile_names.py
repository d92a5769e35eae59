"""Hostile names in a real Chromium: no script runs, nothing is wider than the window, the pages work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import texplainer as tx
from texplainer import app, report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed"),
]
NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "$",
    "$\\frac{a}{$ {{7*7}} ${7*7}",
    "many words " + "without an end " * 200,
    "x" * 3000,
    "مرحبا بالعالم \u202eabc",
    "👩‍👩‍👧‍👦🎉" * 20,
    "javascript:alert(1)",
    "\"><svg onload='alert(1)'>",
)
CLASSES = np.array(["<script>alert(1)</script>", "نعم 👍 $"])
LEVELS = ("<img src=x onerror=alert(1)>", "y" * 3000, "$", "لا", "🎉")
WIDTHS = (1280, 400)
#: what the tests' configuration sets for one session
SHARED = ("TEXPLAINER_TEST_FILES", "TMPDIR", "MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    running = chromium.Browser(str(tmp_path_factory.mktemp("profile")))
    yield running
    running.close()


@pytest.fixture(scope="module")
def subject() -> tuple[tx.TExplainer, Any]:
    """A classifier whose columns, levels and classes are all hostile."""
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(120, len(NAMES))), columns=list(NAMES))
    table[NAMES[2]] = random.choice(LEVELS, size=120)
    encoder = make_column_transformer((OneHotEncoder(), [NAMES[2]]), remainder="passthrough")
    target = CLASSES[(table[NAMES[0]] + (table[NAMES[2]] == "$") > 0).astype(int)]
    model = make_pipeline(encoder, LogisticRegression()).fit(table, target)
    return tx.TExplainer(model, table), table


def watched(browser: chromium.Browser) -> chromium.Page:
    """A tab that remembers every dialog, in case one opens."""
    page = browser.page()
    page.send("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.hacked = 1; }")
    return page


def sound(page: chromium.Page, name: str) -> None:
    """No script of a name ran, no element of one was made, and nothing is wider than the window."""
    assert page.run("window.hacked") is None
    assert page.run("document.querySelectorAll('img[src=x], svg[onload]').length") == 0
    for width in WIDTHS:
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        page.until(f"innerWidth === {width} && document.querySelector('svg').getBoundingClientRect().width <= {width}")  # fmt: skip
        if shots := os.environ.get("SCREENSHOTS"):
            page.picture(Path(shots) / f"{name}-{width}.png")
        assert page.run("document.documentElement.scrollWidth") <= width
        tall = page.run("Math.max(...[...document.querySelectorAll('th, td, label, h1, h2, h3, option, .chip, select')].map(n => n.getBoundingClientRect().height))")  # fmt: skip
        assert tall < 300, f"a name takes {tall} pixels of height"
    assert page.complaints() == []


def test_the_report(browser: chromium.Browser, subject: Any, tmp_path: Path) -> None:
    explainer, table = subject
    explanation = explainer(table[:30])
    path = report.write({NAMES[0]: explanation, NAMES[5]: explanation[:5]}, tmp_path / "report.html")
    page = watched(browser)
    page.open(path.as_uri(), "document.querySelectorAll('svg.chart .bar').length > 10")
    page.hover(".row .bar-row")
    bars = page.run(
        "[...document.querySelectorAll('.row')[0].querySelectorAll('.bar-row text')].map(t => t.textContent)"
    )
    turned = next(words for words in bars if "مرحبا" in words)
    assert turned.startswith("\u2068") and "\u202e" not in turned and "\u2069 = " in turned
    page.run("document.querySelectorAll('section.explanation tbody tr.pickable')[3].click()")
    assert page.run("document.querySelector('h2').textContent") == NAMES[0]
    sound(page, "report")


def test_the_explorer(browser: chromium.Browser, subject: Any) -> None:
    explainer, table = subject
    page = watched(browser)
    with app.running(app.create(explainer, table[:30])) as address:
        page.open(address, "document.querySelectorAll('#bars .bar').length > 2")
        shown = page.run("[...document.querySelectorAll('.control label')].map(l => l.textContent)")
        assert shown[0] == NAMES[0] and len(shown) == len(NAMES)
        sound(page, "explorer")
        page.click("#overview")
        page.until("document.querySelectorAll('tbody tr.pickable:not([data-feature])').length === 30")
        sound(page, "overview")


def test_the_tests_leave_nothing_in_the_home_folder(tmp_path: Path) -> None:
    """Chromium keeps a cache beside its profile, in the user's folder of caches."""
    own = {name: value for name, value in os.environ.items() if name not in SHARED}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_the_report"]
    home = {
        "HOME": str(tmp_path)
    }  # temporary files lie in the system's folder: the path of a socket is short
    done = subprocess.run(command, env={**own, **home}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-500:]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

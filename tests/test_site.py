"""The documentation site in a real Chromium: every page, wide and narrow, light and dark, from the disk."""

from __future__ import annotations

from pathlib import Path

import chromium
import pytest

SITE = Path(__file__).parents[1] / "site"
#: 404.html is for servers: it knows only their addresses
PAGES = sorted({p.relative_to(SITE).as_posix() for p in SITE.rglob("*.html")} - {"404.html"}) or [
    "index.html"
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.found() is None, reason="Chromium is not installed"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="there is no site yet; run make docs"),
]
MISSING = "[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)"
#: how far the page can be scrolled sideways
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = chromium.Browser(str(tmp_path_factory.mktemp("profile")))
    yield running
    running.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(browser, name, size, scheme):
    page = browser.page()
    width, height = SIZES[size]
    page.send(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
    )
    page.media(prefers_color_scheme=scheme)
    page.open((SITE / name).as_uri(), "document.readyState === 'complete' && !!document.querySelector('h1')")
    page.run("for (const i of document.images) i.loading = 'eager'")
    page.until("[...document.images].every(i => i.complete)")
    assert page.run(MISSING) == []
    assert page.run(SIDEWAYS) <= 0
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []  # nothing from elsewhere
    dark = page.run("document.body.dataset.mdColorScheme") == "slate"
    assert dark == (scheme == "dark")
    page.run("localStorage.clear()")  # the theme remembers the scheme
    page.send("Page.close")


def test_searching_works_without_a_server(browser):
    page = browser.page()
    page.open(
        (SITE / "index.html").as_uri(), "document.readyState === 'complete' && !!document.querySelector('h1')"
    )
    page.click("label[for='__search']")
    page.run(
        "const box = document.querySelector('.md-search__input'); box.focus(); box.value = 'relative change';"
        " box.dispatchEvent(new Event('keyup', {bubbles: true}));"
        " box.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    found = page.until(
        "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href).filter(a => a.includes('html'))"
        ".join(' ')"
    )
    assert "glossary.html" in found
    assert page.complaints() == []
    page.send("Page.close")

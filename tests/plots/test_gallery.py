"""The gallery's page is what its code says, and every plot is in it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from texplainer import plots

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "examples" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(gallery):
    assert (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8") == gallery.page()


def test_every_plot_has_its_picture(gallery):
    assert {draw.__name__ for draw in gallery.PICTURES} >= set(plots.__all__)
    for draw in gallery.PICTURES:
        assert (ROOT / "docs" / "gallery" / f"{draw.__name__}.png").stat().st_size > 5000


def test_its_code_can_be_pasted(gallery):
    setup, *blocks = re.findall(r"^```python\n(.*?)^```", gallery.page(), re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(setup, names)
    for block in blocks:
        code = compile(block, "gallery.md", "exec")  # a `return` would not compile
        own = set(code.co_names) & {make.__name__ for make in gallery.SUBJECTS}
        assert own <= set(names)
    exec(next(block for block in blocks if "irises()" in block), names)

"""The gallery's page is what its code says, and every plot is in it."""

from __future__ import annotations

import importlib.util
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

"""Shared by all tests: where the real data is, and no plots on a screen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products on busy cores lose to their own threads

_DATA = Path(os.environ.get("TEXPLAINER_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data sets."""
    if not _DATA.is_dir():
        pytest.skip("the real data sets are not here; set TEXPLAINER_DATA to their folder")
    return _DATA

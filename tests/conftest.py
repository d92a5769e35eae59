"""Shared by all tests: where the real data is, no plots on a screen, one temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products on busy cores lose to their own threads

#: the temporary files of the session and of its workers and subprocesses: torch, Dask, Matplotlib, Chromium, pytest
_OWN = "TEXPLAINER_TEST_FILES" not in os.environ
if _OWN:
    _FILES = tempfile.mkdtemp(prefix="tests-")
    os.environ["TEXPLAINER_TEST_FILES"] = os.environ["TMPDIR"] = _FILES
    os.environ["MPLCONFIGDIR"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = _FILES
    tempfile.tempdir = None  # it is looked up again


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Nothing of the library's own stays in the temporary folder."""
    if _OWN:
        left = sorted(path.name for path in Path(_FILES).glob("texplainer*"))
        if left:
            print(f"\nthe tests left temporary files of texplainer: {', '.join(left)}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """Remove the temporary files."""
    if _OWN:
        shutil.rmtree(_FILES, ignore_errors=True)


_DATA = Path(os.environ.get("TEXPLAINER_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data sets."""
    if not _DATA.is_dir():
        pytest.skip("the real data sets are not here; set TEXPLAINER_DATA to their folder")
    return _DATA

"""The wheel and the source archive hold what they must, and say the same as the code."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import architecture as house
import pytest

import texplainer as tx

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    return zipfile.ZipFile(next(built.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel):
    name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    return HeaderParser().parsestr(wheel.read(name).decode())


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = [p for p in house.SOURCE.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {f"texplainer/{p.relative_to(house.SOURCE).as_posix()}" for p in source} <= set(wheel.namelist())
    assert "texplainer/py.typed" in wheel.namelist()
    assert any(name.endswith("assets/page.html") for name in wheel.namelist())


def test_the_wheel_holds_nothing_else(wheel):
    folders = {name.split("/")[0] for name in wheel.namelist()}
    assert folders == {"texplainer", f"texplainer-{tx.__version__}.dist-info"}


def test_the_version_is_taken_from_one_place(metadata):
    assert metadata["Version"] == tx.__version__
    for path in ("pyproject.toml", "CITATION.cff"):
        assert f'"{tx.__version__}"' not in (ROOT / path).read_text(), f"{path} repeats the version"


def test_the_metadata_says_what_users_look_for(metadata):
    python = [c.rpartition(" :: ")[2] for c in metadata.get_all("Classifier") if "Python :: 3." in c]
    assert python == ["3.11", "3.12", "3.13"]
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_source_archive_can_be_tested_and_built(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "Makefile",
        "constraints.txt",
    }
    assert wanted <= inside
    assert {
        "src/texplainer/__init__.py",
        "tests/conftest.py",
        "docs/guide.md",
        "experiments/__main__.py",
    } <= inside


def test_no_address_of_a_home_that_does_not_exist():
    """The project has no public home yet: nothing may send people to one."""
    pages = [
        ROOT / "README.md",
        ROOT / "pyproject.toml",
        ROOT / "CITATION.cff",
        *(ROOT / "docs").glob("*.md"),
    ]
    for page in pages:
        assert not re.search(r"https?://\S*texplainer", page.read_text(encoding="utf-8")), page.name


def test_extras_hold_together():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"texplainer\[(.*?)\]", extras["all"][0]).group(1).split(",")
    # mlflow holds other packages back, see the Makefile
    assert set(named) == set(extras) - {"all", "dev", "docs", "mlflow", "ray", "spark", "zoo"}

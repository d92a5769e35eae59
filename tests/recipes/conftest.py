"""What a recipe of CONTRIBUTING.md needs: one file more in a package, and a job to try it on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import model_shelf
import pytest

from texplainer import cli


@pytest.fixture
def add_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str, str], str]:
    """Put a file into a package of texplainer for the length of a test; give its module's name."""

    def add(package: str, name: str, text: str) -> str:
        folder = tmp_path / package
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        parent = importlib.import_module(package)
        monkeypatch.setattr(parent, "__path__", [*parent.__path__, str(folder)])
        monkeypatch.setattr(parent, name, None, raising=False)  # so that the import leaves no trace
        monkeypatch.delitem(sys.modules, f"{package}.{name}", raising=False)
        importlib.invalidate_caches()
        added.append(f"{package}.{name}")
        return f"{package}.{name}"

    added: list[str] = []
    yield add
    for module in added:
        sys.modules.pop(module, None)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model.skops and data.csv, which is where commands run."""
    folder = tmp_path / "job"
    folder.mkdir()
    model_shelf.skops(folder)
    model_shelf.table().to_csv(folder / "data.csv", index=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line in this process, its options read from the tables as they are now; gives the exit code."""

    def run(*words: str) -> int:
        for name in [name for name in sys.modules if name.startswith("texplainer.cli.")]:
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(cli, name.rpartition(".")[2], raising=False)
        with pytest.raises(SystemExit) as left:
            cli.main(list(words))
        return int(left.value.code or 0)

    return run

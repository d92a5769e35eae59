"""The short form of the fuzz: a few of everything, none of it may go wrong."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import hostile_fuzz as fuzz
import hostile_kills
import hostile_page
import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="children are forked"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz")
    fuzz.prepare(path)
    return path


def test_flipped_bytes_are_refused_or_harmless(folder: Path) -> None:
    counts: Counter[str] = Counter()
    for found in fuzz.flips(folder, 150, seed=1).values():
        counts.update(found)
    assert sum(counts.values()) == 150
    assert set(counts) <= {"refused", "read", "read, the same"}


def test_random_arguments_are_explained_or_refused() -> None:
    counts = fuzz.arguments(60, seed=1)
    assert set(counts) == {"explained", "refused"}


def test_no_pickle_is_executed(folder: Path) -> None:
    counts = fuzz.pickles(folder)
    assert set(counts) == {"refused", "executed"} and counts["executed"] == 0 and counts["refused"] > 20


def test_killed_runs_lose_and_repeat_nothing(folder: Path) -> None:
    counts = hostile_kills.kill_runs(folder, 6, seed=1, places={"serial": 2, "file": 2, "processes": 1})
    assert {"serial", "file", "processes"} == set(counts)
    for found in counts.values():
        assert not any(found.get(word) for word in fuzz.BAD), counts
        assert found["killed"] >= 1 and found["finished"] >= 1, counts


def test_the_page_takes_the_counts(tmp_path: Path) -> None:
    page = tmp_path / "trust.md"
    page.write_text("# Trust\n<!-- fuzz: begin -->\nold\n<!-- fuzz: end -->\nby hand\n")  # fmt: skip
    kills = {"serial": {"killed": 4, "lost": 0}, "dask": {"killed": 3}}
    counts = {"flips": {"x.npz": {"refused": 3, "crashed": 1}}, "pickles": {"executed": 0}, "arguments": {"refused": 2}, "forgeries": {"found": 5}, "kills": kills, "seconds": 7}  # fmt: skip
    hostile_page.write_page(page, counts)
    text = page.read_text()
    assert "old" not in text and "by hand" in text and "| x.npz | 4 | 3 |" in text
    assert "| all | 7 | 0 |" in text
    assert not fuzz.sound(counts) and fuzz.sound({**counts, "flips": {"x.npz": {"refused": 3}}})
    assert not fuzz.sound({**counts, "flips": {}, "kills": {"serial": {"lost": 1}}})

"""Odd paths, full disks and odd tables on disk: a result is whole, or a sentence names the file."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import texplainer as tx
from texplainer.errors import InputError
from texplainer.files import formats

pytest.importorskip("pyarrow")
X = np.random.default_rng(5).normal(size=(40, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
EXPLAINER = tx.TExplainer(LinearRegression().fit(FRAME, FRAME.a - FRAME.b), FRAME)
FOUND = EXPLAINER(FRAME[:6])


def returns(path: Any) -> None:
    FOUND.save(path)
    np.testing.assert_array_equal(tx.Explanation.load(path).values, FOUND.values)


#: names inside a folder that are written and read
NAMES = (
    "a b/r e s.npz", "\u00fcn\u00ef/\u65e5\u672c.npz", "\U0001f600.parquet", "a\nb.npz", "a'b\"c.npz", "-r.npz", "x/../r.npz",
    "A.NPZ", "[a]*.npz", "a\udcff.npz", "two.dots.npz", "deep/er/still/r.arrow", " .npz", "%s{}.jsonl", "r.csv",
)  # fmt: skip
#: paths -> words of the sentence; "{}" is the folder
REFUSED = {
    "longer than a name may be": ("{}/" + "a" * 300 + ".npz", "cannot be written: File name too long"),
    "a null character": ("{}/a\0.npz", "null character"),
    "a folder": ("{}", "has the suffix|is a folder"),
    "a folder with the suffix": ("{}/folder.npz", "is a folder"),
    "no suffix": ("{}/plain", "has the suffix ''"),
    "two suffixes": ("{}/a.npz.gz", "has the suffix '.gz'"),
    "only a suffix": ("{}/.npz", "has the suffix ''"),
    "an address": ("https://example.org/x.npz", "is an address"),
    "a bucket": ("s3://bucket/x.npz", "is an address"),
    "the address of a file": ("file:///tmp/x.npz", "is an address"),
    "empty": ("", "has the suffix"),
    "a device": ("/dev/null", "has the suffix"),
    "a file as folder": ("{}/file/x.npz", "file cannot be used: (Not a directory|File exists)"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_written_under_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    returns(tmp_path / name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_path_that_cannot_be_written_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").write_text("x")
    path, words = REFUSED[name]
    with pytest.raises(InputError, match=words):
        FOUND.save(path.format(tmp_path))
    assert not Path("https:").exists() and not Path("s3:").exists()


@pytest.mark.parametrize("path", [None, 3, b"x.npz", object()])
def test_what_is_not_a_path_is_refused(path: Any) -> None:
    with pytest.raises(InputError, match="is not a path"):
        FOUND.save(path)


def test_the_home_folder_is_not_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    returns("~/r.npz")
    assert (tmp_path / "r.npz").is_file() and not (tmp_path / "~").exists()


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights elsewhere")
@pytest.mark.parametrize("kind", ["file", "dangling", "loop"])
def test_a_symbolic_link_is_replaced_and_not_followed(kind: str, tmp_path: Path) -> None:
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    if kind == "file":
        target.write_bytes(b"old")
    link.symlink_to(link if kind == "loop" else target)
    returns(link)
    assert not link.is_symlink()
    assert not target.exists() or target.read_bytes() == b"old"


class Full:
    """A sink on a full disk."""

    def __init__(self, sink: Any) -> None:
        self.sink = sink

    def write(self, *given: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def abandon(self) -> None:
        self.sink.abandon()


@pytest.mark.parametrize("suffix", sorted(formats.FORMATS))
def test_a_full_disk_is_reported_and_leaves_nothing(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / f"r{suffix}", formats.FORMATS[suffix]
    monkeypatch.setitem(formats.FORMATS, suffix, replace(real, open=lambda part: Full(real.open(part))))
    with pytest.raises(InputError, match=r"r\.\w+ cannot be written: No space left"):
        FOUND.save(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_device_that_is_full_is_reported(tmp_path: Path) -> None:
    from texplainer.files.paths import writing

    with pytest.raises(InputError, match="cannot be written: No space left"), writing(tmp_path / "r"), open("/dev/full", "wb", 0) as file:  # fmt: skip
        file.write(b"x")


#: what lies under a name that is read -> words of the sentence
DAMAGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing": (lambda p: None, "there is no file"),
    "an empty file": (lambda p: p.write_bytes(b""), "is empty"),
    "a folder": (lambda p: p.mkdir(), "is a folder"),
    "an endless device": (lambda p: p.symlink_to("/dev/zero"), "there is no file"),
    "a pipe": (os.mkfifo if hasattr(os, "mkfifo") else lambda p: None, "there is no file"),
    "text": (lambda p: p.write_text("hello"), "is not a (saved explanation|zip archive)"),
    "another format": (lambda p: shutil.copy(_saved(p.with_name("w.arrow")), p), "is not a (saved explanation|zip archive)"),
}  # fmt: skip


def _saved(path: Path) -> Path:
    FOUND.save(path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_not_a_result_is_refused(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r{suffix}"
    DAMAGED[name][0](path)
    with pytest.raises(InputError, match=DAMAGED[name][1]):
        tx.Explanation.load(path)


TEXT = FRAME.to_csv(index=False)
#: the bytes of a table on disk -> its rows
READ: dict[str, tuple[bytes, int]] = {
    "plain": (TEXT.encode(), 40),
    "byte order mark": (b"\xef\xbb\xbf" + TEXT.encode(), 40),
    "carriage returns and line feeds": (TEXT.replace("\n", "\r\n").encode(), 40),
    "carriage returns": (TEXT.replace("\n", "\r").encode(), 40),
    "another order": (FRAME[["c", "a", "b"]].to_csv(index=False).encode(), 40),
    "no line feed at the end": (TEXT.rstrip("\n").encode(), 40),
    "text in a number": (b"a,b,c\n1,2,x\n1,2,3\n", 2),
    "infinite": (b"a,b,c\n1,2,inf\n1,2,3\n", 2),
}
#: the bytes of a table on disk -> words of the sentence
UNREAD: dict[str, tuple[bytes, str]] = {
    "UTF-16": (TEXT.encode("utf-16"), "is not a .csv table, or is damaged"),
    "a name twice": (b"a,a,b,c\n1,2,3,4\n", "names the columns 'a' twice"),
    "ragged": (b"a,b,c\n1,2,3\n1,2\n", "Expected 3 columns, got 2"),
    "empty": (b"", "is empty"),
    "only a header": (b"a,b,c\n", "has no rows"),
    "a column less": (b"a,b\n1,2\n", "'c'"),
}


def run_on(content: bytes, folder: Path) -> Any:
    source = folder / "a b" / "d \u00fc.csv"
    source.parent.mkdir()
    source.write_bytes(content)
    return tx.run(EXPLAINER, source, folder / "out put", on="serial")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READ)
def test_a_table_on_disk_is_explained_as_its_frame(name: str, tmp_path: Path) -> None:
    content, rows = READ[name]
    assert run_on(content, tmp_path).rows == rows
    (part,) = (tmp_path / "out put").glob("part-*.parquet")
    found = pd.read_parquet(part)
    assert len(found) == rows
    if rows == 40:
        predictions = found.filter(regex="^predictions").to_numpy()
        np.testing.assert_allclose(np.ravel(predictions), np.ravel(EXPLAINER(FRAME).predictions), rtol=1e-12)


@pytest.mark.parametrize("name", UNREAD)
def test_a_table_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    content, words = UNREAD[name]
    with pytest.raises(InputError, match=words):
        run_on(content, tmp_path)


@pytest.mark.parametrize("kind", ["file", "the data itself", "foreign parts"])
def test_a_run_does_not_write_where_something_else_lies(kind: str, tmp_path: Path) -> None:
    data, place = tmp_path / "d.csv", tmp_path / "out"
    data.write_text(TEXT)
    if kind == "file":
        place.write_text("x")
    elif kind == "foreign parts":
        place.mkdir()
        (place / "part-0.parquet").write_text("x")
    target = data if kind == "the data itself" else place
    with pytest.raises(InputError, match=r"cannot be written: File exists|but not _manifest"):
        tx.run(EXPLAINER, data, target, on="serial")
    assert data.read_text() == TEXT

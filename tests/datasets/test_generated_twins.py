"""The real tables' loaders on small generated files with the same traits: these need no data."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from texplainer import datasets
from texplainer.datasets import real
from texplainer.datasets.dataset import table_digest

ROWS = 60
GERMAN_CELLS = {
    "Sex": ("male", "female"),
    "Housing": ("own", "free", "rent"),
    "Saving accounts": ("little", "moderate", "quite rich", "rich", "NA"),
    "Checking account": ("little", "moderate", "rich", "NA"),
    "Purpose": ("car", "radio/TV", "education", "business"),
}
CREDIT_CELLS = {
    "Home": ("owner", "rent", "parents", ""),
    "Marital": ("single", "married", "widow", ""),
    "Records": ("no", "yes", "unknown"),
    "Job": ("fixed", "freelance", "partime", ""),
}


def lines(header: list[str], columns: list[list[str]]) -> bytes:
    return "\n".join(map(",".join, [header, *map(list, zip(*columns, strict=True))])).encode() + b"\n"


def numbers(random: np.random.Generator, gaps: bool = False) -> list[str]:
    cells = [f"{v:.4f}" for v in random.normal(size=ROWS)]
    return ["" if gaps and i % 9 == 4 else cell for i, cell in enumerate(cells)]


def words(random: np.random.Generator, of: tuple[str, ...]) -> list[str]:
    return [*of, *random.choice(of, ROWS - len(of)).tolist()]


def generated(name: str) -> bytes:
    """A file in the format of a real table, of 60 rows."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, ROWS)
    if name == "banknote":
        columns = [numbers(random) for _ in real.BANKNOTE]
        return lines([*real.BANKNOTE, "class"], [*columns, [str(c) for c in classes]])
    if name == "german":  # whole numbers, texts, "NA" where the customer has no account
        columns = [
            words(random, GERMAN_CELLS[key])
            if key in GERMAN_CELLS
            else random.integers(1, 70, ROWS).astype(str).tolist()
            for key in real.GERMAN
        ]
        return lines([*real.GERMAN, "Risk"], [*columns, np.where(classes, "good", "bad").tolist()])
    if name == "heloc":  # codes of missing cells, rows without any information
        names = [*(f"count{i}" for i in range(21)), *real.HELOC_CATEGORIES]
        cells = random.integers(0, 9, (ROWS, 23))
        cells[random.random((ROWS, 23)) < 0.1] = -7
        cells[::7] = -9
        rows = [[str(v) for v in column] for column in cells.T]
        return lines(["RiskPerformance", *names], [np.where(classes, "Good", "Bad").tolist(), *rows])
    if name == "higgs":
        width = datasets.ENTRIES[name].features
        columns = [[str(c) for c in classes], *(numbers(random) for _ in range(width))]
        return gzip.compress(lines(["class", *(f"f{i}" for i in range(width))], columns), mtime=0)
    entry = real.FURTHER[name]
    texts = CREDIT_CELLS if name == "credit_data" else {"kind": ("a", "b", "c")}
    plain = ["Income", *(f"x{i}" for i in range(entry.features - len(texts) - 1))]
    columns = [numbers(random, gaps=True), *(numbers(random) for _ in plain[1:])]
    columns += [words(random, of) for of in texts.values()]
    target = numbers(random) if entry.task == "regression" else words(random, ("bad", "good"))
    return lines([*plain, *texts, entry.target], [*columns, target])


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with a generated file for every real table, each with its own checksum."""
    monkeypatch.setenv("TEXPLAINER_DATA", str(tmp_path))
    for name, source in list(real.SOURCES.items()):
        content = generated(name)
        (tmp_path / source.file).write_bytes(content)
        plain = gzip.decompress(content) if source.file.endswith(".gz") else content
        known = frozenset({table_digest(*source.local(plain))})
        monkeypatch.setitem(real.SOURCES, name, replace(source, checksums=known))
    return tmp_path


@pytest.mark.parametrize("name", real.SOURCES)
def test_a_table_is_split_scaled_and_encoded(name: str, twins: Path) -> None:
    data, entry = datasets.load(name), datasets.ENTRIES[name]
    assert len(data.columns) == entry.features
    assert len(data.target) == (ROWS - len(range(0, ROWS, 7)) if name == "heloc" else ROWS)
    assert sorted(np.concatenate([data.train_rows, data.test_rows])) == list(range(len(data.target)))
    assert data.X_train.shape == (len(data.train_rows), len(data.feature_names))
    assert data.X_test.shape == (len(data.test_rows), len(data.feature_names))
    assert np.isfinite(data.X_train).all() and np.isfinite(data.X_test).all()
    assert data.X_train.min() == 0.0 and data.X_train.max() <= 1.0 + 1e-12
    assert {column for group in data.groups.values() for column in group} <= set(data.feature_names)
    assert data.source and data.licence and len(data.checksum) == 64


def test_missing_cells_and_categories_are_kept(twins: Path) -> None:
    german = datasets.load("german")
    assert set(german.columns["Checking account"]) == {"", "little", "moderate", "rich"}
    heloc = datasets.load("heloc")
    assert all(np.isnan(heloc.columns[f"count{i}"]).any() for i in range(21))
    assert set(heloc.groups) == set(real.HELOC_CATEGORIES)
    credit = datasets.load("credit_data")
    assert credit.class_names == ("bad", "good") and set(credit.groups) == set(CREDIT_CELLS)
    assert np.isnan(credit.columns["Income"]).any() and not np.isnan(credit.X_train).any()
    assert datasets.load("concrete").task == "regression"
    assert f"{ROWS} of the paper's 98,050" in datasets.load("higgs").note


def test_the_publishers_formats_hold_the_same_content() -> None:
    body = generated("banknote").split(b"\n", 1)[1].replace(b"\n", b"\r\n")
    banknote, heloc = real.SOURCES["banknote"], real.SOURCES["heloc"]
    assert table_digest(*banknote.upstream(body)) == table_digest(*banknote.local(generated("banknote")))
    first, *rest = generated("heloc").decode().splitlines()
    extended = "\n".join([first + ",Probabilities", *(line + ",0.5" for line in rest)]).encode()
    assert table_digest(*heloc.upstream(extended)) == table_digest(*heloc.local(generated("heloc")))


def test_german_is_decoded_from_codes() -> None:
    """Every cell is written as a code of the publisher's twenty attributes, and read back."""
    header, *records = [line.split(",") for line in generated("german").decode().splitlines()]
    coded = []
    for record in records:
        attributes = ["0"] * 21
        for name, cell in zip(header[:-1], record, strict=False):
            at, codes = real.GERMAN[name]
            meant = "" if cell == "NA" else cell
            attributes[at] = next((code for code, word in codes.items() if word == meant), cell)
        attributes[-1] = "1" if record[-1] == "good" else "2"
        coded.append(" ".join(attributes))
    decoded = real.german_upstream("\n".join(coded).encode())
    expected = real.german_local(generated("german"))
    jobs = decoded[0].pop("Job"), expected[0].pop("Job")  # of 70 generated numbers only four have codes
    assert len(jobs[0]) == len(jobs[1])
    assert table_digest(*decoded) == table_digest(*expected)


def test_an_altered_file_is_refused(twins: Path) -> None:
    path = twins / "banknote.csv"
    content = path.read_text()
    at = content.index("0.")
    path.write_text(content[:at] + "9" + content[at + 1 :])
    with pytest.raises(datasets.ChecksumError, match="is not the data set 'banknote'"):
        datasets.load("banknote")

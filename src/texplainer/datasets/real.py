"""Real data: the paper's four tables, further ones, and those that come with scikit-learn.

The paper's (Banknote, German Credit, HELOC, HIGGS) come unscaled and unencoded; their shapes follow from the few
rules written here (HELOC: rows without any information are dropped, special codes mean "missing"; German: nine of
UCI's twenty attributes, decoded).

The further ones (mixed columns, missing cells, several classes, regression) are plain CSV files with one column to
predict, read from the folder `TEXPLAINER_DATA`; R's packages mlbench and modeldata hold the same tables. A
column is numeric if every cell that is not empty is a number; an empty cell is a missing one.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from texplainer.datasets.dataset import Array, Content, Source, Table, fetch, local_path

BANKNOTE = ("variance", "skewness", "curtosis", "entropy")
HELOC_CATEGORIES = ("MaxDelq2PublicRecLast12M", "MaxDelqEver")
NO_INFORMATION, SPECIAL = -9.0, (-7.0, -8.0, -9.0)
# Position of each of the nine attributes in UCI's german.data, with the meaning of its codes.
GERMAN: dict[str, tuple[int, dict[str, str]]] = {
    "Age": (12, {}),
    "Sex": (8, {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}),
    "Job": (16, {"A171": "0", "A172": "1", "A173": "2", "A174": "3"}),
    "Housing": (14, {"A151": "rent", "A152": "own", "A153": "free"}),
    "Saving accounts": (
        5,
        {"A61": "little", "A62": "moderate", "A63": "quite rich", "A64": "rich", "A65": ""},
    ),
    "Checking account": (0, {"A11": "little", "A12": "moderate", "A13": "rich", "A14": ""}),
    "Credit amount": (4, {}),
    "Duration": (1, {}),
    "Purpose": (
        3,
        {
            **{"A40": "car", "A41": "car", "A42": "furniture/equipment", "A43": "radio/TV"},
            **{"A44": "domestic appliances", "A45": "repairs", "A46": "education", "A47": "vacation/others"},
            **{"A48": "education", "A49": "business", "A410": "vacation/others"},
        },
    ),
}
GERMAN_NUMERIC = ("Age", "Job", "Credit amount", "Duration")
HIGGS_MISSING = "?"


def banknote(*, download: bool = True) -> Table:
    """Wavelet statistics of genuine (0) and forged (1) banknotes."""
    columns, target = fetch(SOURCES["banknote"], download=download)
    return described("banknote", columns, target, ("genuine", "forged"))


def german(*, download: bool = True) -> Table:
    """German Credit, the nine-attribute variant: bad (0) or good (1) risk."""
    columns, target = fetch(SOURCES["german"], download=download)
    return described("german", columns, target, ("bad", "good"))


def heloc(*, download: bool = True) -> Table:
    """FICO's home equity lines of credit: bad (0) or good (1) repayment.

    Rows that are -9 in every feature carry no information and go (588 of 10,459); the codes -7, -8 and -9
    left are missing values. Two of the features are categories.
    """
    columns, target = fetch(SOURCES["heloc"], download=download)
    known = ~np.all([column == NO_INFORMATION for column in columns.values()], axis=0)
    cleaned: dict[str, Array] = {}
    for name, column in columns.items():
        kept = np.where(np.isin(column[known], SPECIAL), np.nan, column[known])
        cleaned[name] = as_levels(kept) if name in HELOC_CATEGORIES else kept
    return described("heloc", cleaned, target[known], ("bad", "good"))


def higgs(*, download: bool = True) -> Table:
    """Give simulated collisions: background (0) or Higgs signal (1), OpenML's table 23512 or a part of it.

    A part is enlarged by further events of the UCI original, if `TEXPLAINER_DATA` has them.
    """
    columns, target = fetch(SOURCES["higgs"], download=download)
    note = "" if len(target) == HIGGS_ROWS else f"{len(target):,} of the paper's {HIGGS_ROWS:,} rows"
    if note and local_path(HIGGS_EXTRA):
        more, labels = fetch(HIGGS_EXTRA)
        columns = {name: np.concatenate([column, more[name]]) for name, column in columns.items()}
        target = np.concatenate([target, labels])
        note += f" and {len(labels):,} more events of the same simulation"
    return described("higgs", columns, target, ("background", "signal"), note)


def described(
    name: str, columns: Mapping[str, Array], target: Array, classes: tuple[str, str], note: str = ""
) -> Table:
    """Put the source's page and licence beside its content."""
    source = SOURCES[name]
    return Table(name, columns, target, "classification", classes, None, source.page, source.licence, note)


def as_levels(column: Array) -> Array:
    """Write category codes as text."""
    return np.array(["" if np.isnan(value) else f"{value:.0f}" for value in column])


# Readers: bytes -> (columns, target). ---------------------------------------------------------------------


def banknote_rows(records: Iterable[Sequence[str]]) -> Content:
    """Split records into four features and a class."""
    table = np.array(list(records), dtype=float)
    return dict(zip(BANKNOTE, table[:, :-1].T, strict=True)), table[:, -1].astype(int)


def german_columns(columns: dict[str, list[str]], good: list[bool]) -> Content:
    """Turn the numeric ones of the nine attributes into numbers."""
    arrays = {
        name: np.array(cells, dtype=float) if name in GERMAN_NUMERIC else np.array(cells)
        for name, cells in columns.items()
    }
    return arrays, np.array(good).astype(int)


def german_local(data: bytes) -> Content:
    """Read the nine-attribute file."""
    header, *records = csv_records(data)
    cells = {name: ["" if r[j] == "NA" else r[j] for r in records] for j, name in enumerate(header[:-1])}
    return german_columns(cells, [record[-1] == "good" for record in records])


def german_upstream(data: bytes) -> Content:
    """Decode UCI's twenty-attribute file."""
    records = [line.split() for line in data.decode().splitlines() if line.strip()]
    cells = {name: [codes.get(r[at], r[at]) for r in records] for name, (at, codes) in GERMAN.items()}
    return german_columns(cells, [record[-1] == "1" for record in records])


def heloc_rows(data: bytes) -> Content:
    """Read the raw challenge data."""
    header, *records = csv_records(data)
    names = header[1:24]  # the copy at the public address has a column of predictions after the 23 features
    table = np.array([record[1:24] for record in records], dtype=float)
    good = np.array([record[0] == "Good" for record in records])
    return dict(zip(names, table.T, strict=True)), good.astype(int)


def higgs_local(data: bytes) -> Content:
    """Read the part of the table that comes as CSV."""
    header, body = data.decode().split("\n", 1)
    table = np.loadtxt(io.StringIO(body), delimiter=",")
    return dict(zip(header.strip().split(",")[1:], table[:, 1:].T, strict=True)), table[:, 0].astype(int)


def higgs_arff(data: bytes) -> Content:
    """Read OpenML's ARFF file."""
    head, body = data.decode().split("@DATA" if b"@DATA" in data else "@data", 1)
    names = [
        line.split()[1].strip("'\"") for line in head.splitlines() if line.lower().startswith("@attribute")
    ]
    table = np.loadtxt(io.StringIO(body.replace(HIGGS_MISSING, "nan").strip()), delimiter=",", comments="%")
    return dict(zip(names[1:], table[:, 1:].T, strict=True)), table[:, 0].astype(int)


def openml_file(description: bytes) -> tuple[str, str]:
    """(file address, MD5) from OpenML's description of a data set."""
    entry = json.loads(description)["data_set_description"]
    return entry["url"], entry["md5_checksum"]


def csv_records(data: bytes) -> list[list[str]]:
    """Split CSV into records."""
    return [record for record in csv.reader(io.StringIO(data.decode())) if record]


HIGGS_ROWS = 98_050
UCI = "https://archive.ics.uci.edu"
SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="banknote",
            file="banknote.csv",
            url=f"{UCI}/ml/machine-learning-databases/00267/data_banknote_authentication.txt",
            page=f"{UCI}/dataset/267/banknote+authentication",
            licence="CC BY 4.0",
            local=lambda data: banknote_rows(csv_records(data)[1:]),
            upstream=lambda data: banknote_rows(csv_records(data)),
            checksums=frozenset({"811ad677d18348682d8ac4f2c14edde92bfff459f6e8e5a8686b070af70f48f4"}),
        ),
        Source(
            name="german",
            file="german_credit.csv",
            url=f"{UCI}/ml/machine-learning-databases/statlog/german/german.data",
            page=f"{UCI}/dataset/144/statlog+german+credit+data",
            licence="CC BY 4.0",
            local=german_local,
            upstream=german_upstream,
            checksums=frozenset({"05f7a3c357bf861070b52893108aa279872045de22841cb229faa67025b7fff5"}),
        ),
        Source(
            name="heloc",
            file="heloc.csv",
            url="https://raw.githubusercontent.com/IBM/rulebenchmark/501a6171b852e77d83b9af5a66a7cf1a656a1505/"
            "data/heloc.csv",
            page="https://community.fico.com/s/explainable-machine-learning-challenge",
            licence="FICO's own terms",
            local=heloc_rows,
            upstream=heloc_rows,
            checksums=frozenset({"06387eb8c502a509614e5b32731a039f7816230da67b97d525d1236f04d4da46"}),
        ),
        Source(
            name="higgs",
            file="higgs_98k_subset35k.csv.gz",
            url="https://www.openml.org/api/v1/json/data/23512",
            page="https://www.openml.org/d/23512",
            licence="CC BY 4.0",
            local=higgs_local,
            upstream=higgs_arff,
            checksums=frozenset({"3fda34f086fa2dca18465cd7780eadbf528bcfe7479fa33f51faafa0dbecce4c"}),
            published=openml_file,
        ),
    )
}
HIGGS_EXTRA = replace(
    SOURCES["higgs"],
    name="higgs_extra",
    file="higgs_uci_extra.csv.gz",
    checksums=frozenset({"59db8ab7aa15f0578f89849a692ad65abc6b046ba467e49c2b8ccd25d96a2c91"}),
)


@dataclass(frozen=True)
class FurtherTable:
    """One table: what it is, its size, what is predicted, where it comes from."""

    about: str
    rows: int
    features: int
    target: str
    task: str
    page: str
    licence: str
    checksum: str


MLBENCH = "https://cran.r-project.org/package=mlbench"
MODELDATA = "https://cran.r-project.org/package=modeldata"
FROM_UCI = "UCI; R package GPL-2"

# fmt: off
FURTHER: dict[str, FurtherTable] = {
    "pima": FurtherTable(
        "diabetes among Pima women, missing cells", 768, 8, "diabetes", "classification", MLBENCH, FROM_UCI,
        "bd5a46fff53165a5c4170ef5e25cfc7d566990f0162f72ac07a015f3d1c4668d"),
    "vehicle": FurtherTable(
        "four kinds of vehicle by silhouette", 846, 18, "Class", "classification", MLBENCH, FROM_UCI,
        "52258de94c3ad8be9251eaf15109ed32aedf5b7d1a821621ba98e0537866ec14"),
    "satellite": FurtherTable(
        "six kinds of soil seen from space", 6435, 36, "classes", "classification", MLBENCH, FROM_UCI,
        "a41349a055384d11174c0aec644c3eaddf8b1bec362f8459f9cdba59e38a5106"),
    "credit_data": FurtherTable(
        "a lender's credit scoring, mixed, missing cells", 4454, 13, "Status", "classification", MODELDATA, "MIT",
        "db779709a3c0df76052860ab55f5b8da818bc87d3308fdaf62de0c9659a21e17"),
    "mlc_churn": FurtherTable(
        "customers of a telephone company, mixed", 5000, 19, "churn", "classification", MODELDATA, "MIT",
        "4b51c885f06341e2f985dcc60bf3ff814a79ddc31a6dd0291e10534491d8c049"),
    "concrete": FurtherTable(
        "strength of concrete, a regression", 1030, 8, "compressive_strength", "regression", MODELDATA, "UCI; MIT",
        "4b1cbcac0af6a1c9c55b23d441a42240905d923dfe17f08c06e5ffe06f4dbc4a"),
    "ames": FurtherTable(
        "prices of houses, many categories, a regression", 2930, 73, "Sale_Price", "regression", MODELDATA, "MIT",
        "8f9e2d92fd2f84f0203588211bba2976262b2a3c8bca374ba9cdcddb628cb01d"),
    "penguins": FurtherTable(
        "three species of penguin, mixed, missing cells", 344, 6, "species", "classification", MODELDATA, "CC0",
        "4ec3328f08f1681094bba98b3cb7bfaaaf12d408fe4659e247d2eec34f9d9a9c"),
}
# fmt: on


def further(name: str, *, download: bool = True) -> Table:
    """One of the tables, as its file gives it."""
    entry, source = FURTHER[name], SOURCES[name]
    columns, target = fetch(source, download=download)
    classes, codes = np.unique(target, return_inverse=True)
    known = entry.task == "classification"
    return Table(
        name=name,
        columns=columns,
        target=codes if known else target.astype(float),
        task="classification" if known else "regression",
        class_names=tuple(map(str, classes)) if known else (),
        source=entry.page,
        licence=entry.licence,
    )


def read_table(data: bytes, target: str) -> Content:
    """Read a CSV file with a header into columns and the column to predict."""
    header, *records = [record for record in csv.reader(io.StringIO(data.decode())) if record]
    cells = dict(zip(header, map(list, zip(*records, strict=True)), strict=True))
    wanted = np.array(cells.pop(target))
    return {name: _column(column) for name, column in cells.items()}, wanted


def _column(cells: list[str]) -> Array:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)


def _source(name: str, entry: FurtherTable) -> Source:
    def read(data: bytes) -> Content:
        return read_table(data, entry.target)

    checksums = frozenset({entry.checksum})
    return Source(name, f"{name}.csv", "", entry.page, entry.licence, read, read, checksums)


SOURCES |= {name: _source(name, entry) for name, entry in FURTHER.items()}


BUNDLED = ("iris", "wine", "breast_cancer", "digits", "diabetes")


def bundled(name: str) -> Table:
    """One of scikit-learn's own sets, unscaled."""
    datasets = importlib.import_module("sklearn.datasets")
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, f"load_{name}")(**options)
    classes = tuple(str(label) for label in bunch.get("target_names", ()))
    return Table(
        name=name,
        columns={
            str(key): np.asarray(column, float)
            for key, column in zip(bunch.feature_names, bunch.data.T, strict=True)
        },
        target=bunch.target,
        task="classification" if classes else "regression",
        class_names=classes,
        source="bundled with scikit-learn",
        licence="BSD-3-Clause",
    )

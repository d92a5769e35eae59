"""Real tables beyond the paper's, for the wide evaluation: mixed columns, missing cells, classes, regression.

They are plain CSV files with one column to predict, read from the folder `TEXPLAINER_DATA`; R's packages
mlbench and modeldata hold the same tables. A column is numeric if every cell that is not empty is a number;
an empty cell is a missing one.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from texplainer.datasets.dataset import Array, Table
from texplainer.datasets.store import Content, Source, fetch


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
UCI = "UCI; R package GPL-2"

FURTHER: dict[str, FurtherTable] = {
    "pima": FurtherTable(
        "diabetes among Pima women, missing cells",
        768,
        8,
        "diabetes",
        "classification",
        MLBENCH,
        UCI,
        "bd5a46fff53165a5c4170ef5e25cfc7d566990f0162f72ac07a015f3d1c4668d",
    ),
    "vehicle": FurtherTable(
        "four kinds of vehicle by silhouette",
        846,
        18,
        "Class",
        "classification",
        MLBENCH,
        UCI,
        "52258de94c3ad8be9251eaf15109ed32aedf5b7d1a821621ba98e0537866ec14",
    ),
    "satellite": FurtherTable(
        "six kinds of soil seen from space",
        6435,
        36,
        "classes",
        "classification",
        MLBENCH,
        UCI,
        "a41349a055384d11174c0aec644c3eaddf8b1bec362f8459f9cdba59e38a5106",
    ),
    "credit_data": FurtherTable(
        "a lender's credit scoring, mixed, missing cells",
        4454,
        13,
        "Status",
        "classification",
        MODELDATA,
        "MIT",
        "db779709a3c0df76052860ab55f5b8da818bc87d3308fdaf62de0c9659a21e17",
    ),
    "mlc_churn": FurtherTable(
        "customers of a telephone company, mixed",
        5000,
        19,
        "churn",
        "classification",
        MODELDATA,
        "MIT",
        "4b51c885f06341e2f985dcc60bf3ff814a79ddc31a6dd0291e10534491d8c049",
    ),
    "concrete": FurtherTable(
        "strength of concrete, a regression",
        1030,
        8,
        "compressive_strength",
        "regression",
        MODELDATA,
        "UCI; MIT",
        "4b1cbcac0af6a1c9c55b23d441a42240905d923dfe17f08c06e5ffe06f4dbc4a",
    ),
    "ames": FurtherTable(
        "prices of houses, many categories, a regression",
        2930,
        73,
        "Sale_Price",
        "regression",
        MODELDATA,
        "MIT",
        "8f9e2d92fd2f84f0203588211bba2976262b2a3c8bca374ba9cdcddb628cb01d",
    ),
    "penguins": FurtherTable(
        "three species of penguin, mixed, missing cells",
        344,
        6,
        "species",
        "classification",
        MODELDATA,
        "CC0",
        "4ec3328f08f1681094bba98b3cb7bfaaaf12d408fe4659e247d2eec34f9d9a9c",
    ),
}


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


SOURCES: dict[str, Source] = {name: _source(name, entry) for name, entry in FURTHER.items()}

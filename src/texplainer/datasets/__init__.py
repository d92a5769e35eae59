"""Data sets by name: the paper's, synthetics with known truth, scikit-learn's own, and further real ones.

`load("heloc")` gives a `Dataset`: split, filled, encoded, scaled, with its source, licence and checksum.
`table()` lists them all with their state. To add one: a function that returns a `Table` and one line in
`ENTRIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from texplainer.datasets import real, synthetic
from texplainer.datasets.dataset import (
    SPLIT_SEED,
    ChecksumError,
    Dataset,
    DatasetUnavailable,
    Scaler,
    Table,
    cache_folder,
    prepare,
    state,
)
from texplainer.datasets.real import BUNDLED, bundled
from texplainer.errors import InputError

__all__ = [
    "SPLIT_SEED",
    "ChecksumError",
    "Dataset",
    "DatasetUnavailable",
    "Scaler",
    "Table",
    "cache_folder",
    "load",
    "names",
    "prepare",
    "table",
]


@dataclass(frozen=True)
class Entry:
    """One line of the list: what it is, how large, how to make it."""

    about: str
    rows: int
    features: int
    make: Callable[..., Table]


ENTRIES: dict[str, Entry] = {
    "4ft": Entry(
        "the paper's 4-FT: two informative features, two of noise", 1000, 4, synthetic.four_features
    ),
    "20ft": Entry(
        "the paper's 20-FT: ten clusters, weights per cluster",
        1000,
        20,
        partial(synthetic.clusters, "20ft", features=20),
    ),
    "16ft": Entry(
        "the paper's 16-FT, for running times", 1000, 16, partial(synthetic.clusters, "16ft", features=16)
    ),
    "mixed": Entry("four numbers, three categories, additive log-odds", 1000, 7, synthetic.mixed),
    "mixed_interaction": Entry(
        "the same with a slope that depends on a category",
        1000,
        7,
        partial(synthetic.mixed, interaction=1.5, name="mixed_interaction"),
    ),
    "applications": Entry(
        "invented credit applications: numbers, text, missing values", 2000, 8, synthetic.applications
    ),
    "banknote": Entry("genuine or forged banknotes", 1372, 4, real.banknote),
    "german": Entry("German Credit, nine attributes", 1000, 9, real.german),
    "heloc": Entry("FICO home equity lines of credit", 9871, 23, real.heloc),
    "higgs": Entry("Higgs boson signal or background", real.HIGGS_ROWS, 28, real.higgs),
    "iris": Entry("three species of iris", 150, 4, partial(bundled, "iris")),
    "wine": Entry("three cultivars of wine", 178, 13, partial(bundled, "wine")),
    "breast_cancer": Entry("malignant or benign tumours", 569, 30, partial(bundled, "breast_cancer")),
    "digits": Entry("handwritten digits, 8 x 8 pixels", 1797, 64, partial(bundled, "digits")),
    "diabetes": Entry("progress of diabetes, a regression", 442, 10, partial(bundled, "diabetes")),
    **{
        name: Entry(one.about, one.rows, one.features, partial(real.further, name))
        for name, one in real.FURTHER.items()
    },
}


def names() -> tuple[str, ...]:
    """List the names `load` knows."""
    return tuple(ENTRIES)


def load(name: str, *, seed: int = SPLIT_SEED, download: bool = True) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : one of `names()`; case, spaces, hyphens and underscores do not matter ("20-FT" is "20ft").
    seed : of the 80/20 split.
    download : whether a real set that is not at hand may be downloaded into the cache.

    Raises
    ------
    InputError : for an unknown name.
    DatasetUnavailable : when the data is not at hand and cannot be downloaded.
    ChecksumError : when the data found is not the data expected.
    """
    wanted = {plain_name(key): key for key in ENTRIES}.get(plain_name(name))
    if wanted is None:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(ENTRIES)}")
    options = {"download": download} if wanted in real.SOURCES else {}
    return prepare(ENTRIES[wanted].make(**options), seed=seed)


def table() -> list[dict[str, str | int]]:
    """List the data sets with their state: generated, bundled, cached, in TEXPLAINER_DATA or to download."""
    records: list[dict[str, str | int]] = []
    for name, entry in ENTRIES.items():
        source = real.SOURCES.get(name)
        kind = "generated" if name not in BUNDLED else "bundled with scikit-learn"
        records.append(
            {
                "name": name,
                "about": entry.about,
                "rows": entry.rows,
                "features": entry.features,
                "state": state(source) if source else kind,
                "licence": source.licence
                if source
                else ("BSD-3-Clause" if name in BUNDLED else synthetic.LICENCE),
                "source": source.page if source else kind,
            }
        )
    return records


def plain_name(name: str) -> str:
    return "".join(letter for letter in str(name).casefold() if letter.isalnum())

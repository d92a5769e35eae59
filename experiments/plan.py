"""What is to be run: experiments by name, their sizes, and the hash of each configuration.

An experiment expands into one or several runs (the boxplots repeat theirs), each with a configuration in
plain JSON. The hash of that configuration decides whether a result on disk is still the answer to the
question asked now. The paper's experiments are in experiments.py, the wide evaluation's in wide/.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from texplainer import __version__
from texplainer.errors import InputError

Kind = Literal[
    "stability", "faithfulness", "authors", "boxplots", "running_time", "ablation", "wide", "gated"
]

STABILITY = ("ris", "ros", "res", "ris_skipped", "ros_skipped", "ris_norm", "ros_norm", "pgi", "infidelity")
FAITHFULNESS = (
    *("pgi", "pgi_mean", "pgi_marginal", "pgi_kept", "pgu", "pgu_openxai"),
    *("infidelity", "infidelity_background", "lap"),
)
WIDE = (
    *("ris", "ros", "ris_norm", "res", "background", "seed", "misplaced", "local_rank"),
    *("pgi", "pgi_mean", "pgi_marginal", "pgu", "infidelity", "lap"),
)
METRICS_OF: dict[Kind, tuple[str, ...]] = {
    "stability": STABILITY,
    "faithfulness": FAITHFULNESS,
    "authors": ("ris_skipped", "ros_skipped"),
    "boxplots": ("ris", "ros"),
    "running_time": (),
    "ablation": ("ris", "ros", "ris_skipped", "ros_skipped"),
    "wide": WIDE,
    "gated": ("truth_mass", "misplaced", "local_rank", "ris_norm", "infidelity", "pgi_mean"),
}
#: raised whenever an attribution is defined anew: earlier results no longer answer what is asked
#: (1: slopes over a wide neighbourhood, shares along straight lines; 2: narrow kernels, Shapley values; 3: slopes
#: along one feature)
DEFINITIONS = 3
#: of lines that were defined anew since (4: variation counts rare values)
NEWER_LINES = {"T-Explainer variation": 4}
WITH_CONTROLS: tuple[Kind, ...] = ("stability", "faithfulness", "wide", "gated")
CONTROL_LINES = ("constant", "zero", "random")


@dataclass(frozen=True)
class Sizes:
    """How much is run."""

    name: str
    rows: int  # explained in each table
    neighbours: int  # of each row
    runs: int  # repeated explanations for RES
    references: int  # background rows SHAP averages over: its cost is proportional to them
    samples: int  # LIME draws around a row
    boxplot_rows: int
    repetitions: int  # of the boxplots
    tasks: tuple[int, ...]  # numbers of explanations that are timed
    timing_references: int  # as `references`; exact Shapley values need 2^16 evaluations for each
    seeds: int = 1  # of data, model and rows, in the wide evaluation
    train_rows: int | None = None  # None: all of them
    epochs: int | None = None  # None: the paper's


# Many data sets with few rows each, since tests and intervals are over data sets; three seeds.
AUTHORS_ROWS = 150  # 40 rows are too few for a mean of ratios on 20-FT
TRAININGS = 5  # of a network, another split and another draw of synthetic tables: what their chance decides
REPEATED: tuple[Kind, ...] = ("boxplots", "authors")
#: fewer rows for the machine: SHAP and the other estimators ask it for 100 background rows per coalition
SVM_EXPLAINED = 4
TASKS = tuple(range(10, 101, 10))
FULL = Sizes("full", 40, 10, 3, 100, 5000, 20, 10, TASKS, 10)
QUICK = Sizes("quick", 3, 2, 2, 5, 200, 3, 2, (1, 2), 2, train_rows=300, epochs=20)
WIDE_FULL = Sizes("wide", 12, 4, 2, 100, 5000, 0, 1, (), 0, seeds=3, train_rows=2000)
WIDE_QUICK = Sizes("wide-quick", 3, 2, 2, 5, 200, 0, 1, (), 0, seeds=2, train_rows=200, epochs=20)


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what is measured, of which model, on which data, by which lines."""

    name: str
    kind: Kind
    model: str
    dataset: str
    title: str
    lines: tuple[str, ...]
    k: tuple[int, ...] = ()  # how many top features the prediction gap removes; () = as evaluate does
    paper: str | None = None  # its label among the paper's tables
    seed: int = 0  # of data, model and rows


@dataclass(frozen=True)
class Run:
    """One piece of work with one result on disk."""

    experiment: Experiment
    sizes: Sizes
    part: int = 0

    @property
    def name(self) -> str:
        """The name its files carry."""
        repeated = self.experiment.kind in REPEATED
        return f"{self.experiment.name}_{self.part}" if repeated else self.experiment.name

    @property
    def rows(self) -> int:
        """How many rows are explained."""
        if self.experiment.kind == "authors" and self.sizes.name == "full":
            return AUTHORS_ROWS
        if self.experiment.model == "svm":
            return min(SVM_EXPLAINED, self.sizes.rows)
        return self.sizes.boxplot_rows if self.experiment.kind == "boxplots" else self.sizes.rows

    @property
    def references(self) -> int:
        """The background rows SHAP averages over."""
        timed = self.experiment.kind == "running_time"
        return self.sizes.timing_references if timed else self.sizes.references

    @property
    def seed(self) -> int:
        """Of everything random in the run."""
        return self.experiment.seed + self.part

    @property
    def configuration(self) -> dict[str, Any]:
        """All that decides the result, in plain JSON types."""
        known = {
            "texplainer": __version__,
            "definitions": definitions_of(self.experiment.lines),
            "run": self.name,
            "experiment": asdict(self.experiment),
            "metrics": METRICS_OF[self.experiment.kind],
            "sizes": asdict(self.sizes),
            "rows": self.rows,
            "seed": self.seed,
        }
        return json.loads(json.dumps(known))

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits of the configuration's SHA-256."""
        return configuration_hash(self.configuration)


def definitions_of(lines: Sequence[str]) -> int:
    """The newest definition that lines are explained by."""
    return max([DEFINITIONS, *(NEWER_LINES.get(line, 0) for line in lines)])


def configuration_hash(configuration: dict[str, Any]) -> str:
    """Hash a configuration, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:16]


def expand(experiments: Mapping[str, Experiment], names: Sequence[str], sizes: Sizes) -> list[Run]:
    """Expand experiments (all of them if none is named) into runs, in their order."""
    unknown = [name for name in names if name not in experiments]
    if unknown:
        raise InputError(f"unknown experiment {unknown[0]!r}; known are {', '.join(experiments)}")
    chosen = [experiment for name, experiment in experiments.items() if name in names or not names]
    return [
        Run(experiment, sizes, part)
        for experiment in chosen
        for part in range(repetitions(experiment, sizes))
    ]


def repetitions(experiment: Experiment, sizes: Sizes) -> int:
    """How many runs an experiment has."""
    if experiment.kind == "authors":
        return min(TRAININGS, sizes.repetitions)
    return sizes.repetitions if experiment.kind == "boxplots" else 1

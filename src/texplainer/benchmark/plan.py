"""What is to be run: the paper's experiments by name, their sizes, and the hash of each configuration.

An experiment is one table or figure of the paper, under the label the paper gives it. It expands into one or
several runs (the boxplots repeat theirs), each with a configuration in plain JSON. The hash of that
configuration decides whether a result on disk is still the answer to the question asked now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from texplainer import __version__
from texplainer.errors import InputError

Kind = Literal["stability", "faithfulness", "boxplots", "running_time"]

STABILITY = ("ris", "ros", "res", "ris_norm", "ros_norm", "pgi", "infidelity")
FAITHFULNESS = (
    *("pgi", "pgi_mean", "pgi_marginal", "pgi_kept", "pgu"),
    *("infidelity", "infidelity_background", "lap"),
)
METRICS: dict[Kind, tuple[str, ...]] = {
    "stability": STABILITY,
    "faithfulness": FAITHFULNESS,
    "boxplots": ("ris", "ros"),
    "running_time": (),
}
FEW, MANY = (1, 2, 3), (1, 3, 5, 7, 9)  # the paper's k for four features, and for more

PAPER_ROWS = ("T-Explainer", "SHAP", "LIME", "Integrated Gradients", "Input x Gradient", "DeepLIFT")
NETWORK_ROWS = (
    *("T-Explainer", "T-Explainer (paper)", "SHAP", "SHAP (probability)", "LIME", "LIME (not discretised)"),
    *("Integrated Gradients", "Input x Gradient", "DeepLIFT", "LRP", "Gradient"),
)
TREE_ROWS = (
    *("T-Explainer", "T-Explainer (paper)", "TreeSHAP", "TreeSHAP (probability)"),
    *("LIME", "LIME (not discretised)"),
)
CONTROLS = ("constant", "zero", "random")
BOXPLOT_ROWS = ("T-Explainer", "T-Explainer (paper)", *PAPER_ROWS[1:])
TIMING_ROWS = ("T-Explainer", "T-Explainer (paper)", "SHAP (default)", "KernelSHAP", "SHAP (exact)")
EXPLAINERS: dict[tuple[Kind, bool], tuple[str, ...]] = {
    ("stability", False): NETWORK_ROWS,
    ("stability", True): TREE_ROWS,
    ("faithfulness", False): NETWORK_ROWS,
    ("boxplots", False): BOXPLOT_ROWS,
    ("running_time", False): TIMING_ROWS,
}


@dataclass(frozen=True)
class Sizes:
    """How much is run."""

    name: str
    rows: int  # explained in each table
    neighbours: int  # of each row
    runs: int  # repeated explanations for RES
    references: int  # background rows SHAP averages over: its cost is proportional to them
    boxplot_rows: int
    repetitions: int  # of the boxplots
    tasks: tuple[int, ...]  # numbers of explanations that are timed
    timing_references: int  # as `references`; exact Shapley values need 2^16 evaluations for each
    train_rows: int | None = None  # None: all of them
    epochs: int | None = None  # None: the paper's


FULL = Sizes(
    "full",
    rows=50,
    neighbours=10,
    runs=5,
    references=25,
    boxplot_rows=20,
    repetitions=10,
    tasks=tuple(range(10, 101, 10)),
    timing_references=10,
)
QUICK = Sizes(
    "quick",
    rows=3,
    neighbours=2,
    runs=2,
    references=5,
    boxplot_rows=3,
    repetitions=2,
    tasks=(1, 2),
    timing_references=2,
    train_rows=300,
    epochs=20,
)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    kind: Kind
    model: str
    dataset: str
    title: str
    paper: str | None = None  # its label among the paper's tables

    @property
    def trees(self) -> bool:
        """Whether the model is one of the tree ensembles."""
        return self.model.startswith("xgb")

    @property
    def k(self) -> tuple[int, ...]:
        """How many top features the prediction gap removes, as in the paper."""
        return FEW if self.dataset in ("4ft", "banknote") else MANY


@dataclass(frozen=True)
class Run:
    """One piece of work with one result on disk."""

    experiment: Experiment
    sizes: Sizes
    part: int = 0
    seed: int = field(default=0)

    @property
    def name(self) -> str:
        """The name its files carry."""
        return (
            self.experiment.name
            if self.experiment.kind != "boxplots"
            else f"{self.experiment.name}_{self.part}"
        )

    @property
    def explainers(self) -> tuple[str, ...]:
        """The explainers compared."""
        return EXPLAINERS[self.experiment.kind, self.experiment.trees]

    @property
    def rows(self) -> int:
        """The test rows explained."""
        return self.sizes.boxplot_rows if self.experiment.kind == "boxplots" else self.sizes.rows

    @property
    def references(self) -> int:
        """The background rows SHAP averages over."""
        timed = self.experiment.kind == "running_time"
        return self.sizes.timing_references if timed else self.sizes.references

    @property
    def configuration(self) -> dict[str, Any]:
        """All that decides the result, in plain JSON types."""
        return json.loads(
            json.dumps(
                {
                    "texplainer": __version__,
                    "run": self.name,
                    "experiment": asdict(self.experiment),
                    "k": self.experiment.k,
                    "metrics": METRICS[self.experiment.kind],
                    "explainers": self.explainers,
                    "sizes": asdict(self.sizes),
                    "seed": self.seed + self.part,
                }
            )
        )

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits of the configuration's SHA-256."""
        return configuration_hash(self.configuration)


def configuration_hash(configuration: dict[str, Any]) -> str:
    """Hash a configuration, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(configuration, sort_keys=True).encode()).hexdigest()[:16]


def plan(names: Sequence[str] = (), sizes: Sizes = FULL) -> list[Run]:
    """Expand experiments (all of them if none is named) into runs, in the paper's order."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InputError(f"unknown experiment {unknown[0]!r}; known are {', '.join(EXPERIMENTS)}")
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in names or not names]
    return [
        Run(experiment, sizes, part)
        for experiment in chosen
        for part in range(sizes.repetitions if experiment.kind == "boxplots" else 1)
    ]


MODEL_TITLES = {
    "3hnn": "3H-NN",
    "5hnn64": "5H-64-NN",
    "5hnn128": "5H-128-NN",
    "xgb": "XRFC",
    "xgbrf": "XRFC (forest)",
}
DATASET_TITLES = {
    **{"4ft": "4-FT", "20ft": "20-FT", "16ft": "16-FT", "banknote": "Banknote Authentication"},
    **{"german": "German Credit", "heloc": "HELOC", "higgs": "HIGGS"},
}


def experiment(name: str, kind: Kind, model: str, dataset: str, paper: str | None = None) -> Experiment:
    """Describe an experiment; its title follows from its parts."""
    subject = {
        "stability": "Stability of explanations of",
        "faithfulness": "Faithfulness of explanations of",
        "boxplots": "RIS and ROS, repeated, of",
        "running_time": "Running time of explanations of",
    }[kind]
    title = f"{subject} {MODEL_TITLES[model]} on {DATASET_TITLES[dataset]}"
    return Experiment(name, kind, model, dataset, title, paper)


TABLES = (
    # label, model, data set, whether the paper has a faithfulness table beside it
    ("xrfc_4ft", "xgb", "4ft", False),
    ("3hnn_4ft", "3hnn", "4ft", True),
    ("xrfc_20ft", "xgb", "20ft", False),
    ("3hnn_20ft", "3hnn", "20ft", True),
    ("3hnn_bba", "3hnn", "banknote", True),
    ("3hnn_ger", "3hnn", "german", True),
    ("3hnn_hel", "3hnn", "heloc", True),
    ("5hnn_hel", "5hnn128", "heloc", True),
    ("3hnn_hig", "3hnn", "higgs", True),
    ("5hnn_hig", "5hnn64", "higgs", True),
)
EXPERIMENTS: dict[str, Experiment] = {
    entry.name: entry
    for entry in (
        *(experiment(label, "stability", model, data, label) for label, model, data, _ in TABLES),
        *(
            experiment(f"faith_{label}", "faithfulness", model, data, f"faith_{label}")
            for label, model, data, faithful in TABLES
            if faithful
        ),
        # The other reading of XRFC, compared with the same table of the paper.
        experiment("xrfc_4ft_forest", "stability", "xgbrf", "4ft", "xrfc_4ft"),
        experiment("xrfc_20ft_forest", "stability", "xgbrf", "20ft", "xrfc_20ft"),
        experiment("boxplots", "boxplots", "3hnn", "20ft"),
        experiment("running_time", "running_time", "3hnn", "16ft"),
    )
}

"""The paper's experiments: ten stability tables, eight of faithfulness, boxplots, running times.

Each stands under the label the paper gives it. Algorithm 1 has two lines in every table, as printed and in
its authors' set-up (three where there are categories), and an ablation of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments import lines
from experiments.plan import FULL, Experiment, Kind, Run, Sizes, expand

FEW, MANY = (1, 2, 3), (1, 3, 5, 7, 9)  # the paper's k for four features, and for more
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
SUBJECTS: dict[Kind, str] = {
    "stability": "Stability of explanations of",
    "faithfulness": "Faithfulness of explanations of",
    "authors": "Algorithm 1 in its authors' set-up, on training rows, of",
    "boxplots": "RIS and ROS, repeated, of",
    "running_time": "Running time of explanations of",
    "ablation": "Algorithm 1, part by part, on",
}
WITH_CATEGORIES = ("german", "heloc")


def shown_lines(kind: Kind, model: str, dataset: str) -> tuple[str, ...]:
    """Which lines an experiment shows."""
    if kind == "boxplots":
        return lines.BOXPLOT_LINES
    if kind == "running_time":
        return lines.TIMING_LINES
    if kind == "ablation":
        return tuple(lines.ABLATION)
    if kind == "authors":
        return (lines.AUTHORS,)
    shown = lines.TREE_LINES if model.startswith("xgb") else lines.NETWORK_LINES
    return (*shown, lines.INDUCED) if dataset in WITH_CATEGORIES else shown


def experiment(name: str, kind: Kind, model: str, dataset: str, paper: str | None = None) -> Experiment:
    """Describe an experiment; its title follows from its parts."""
    title = f"{SUBJECTS[kind]} {MODEL_TITLES[model]} on {DATASET_TITLES[dataset]}"
    k = FEW if dataset in ("4ft", "banknote") else MANY
    return Experiment(name, kind, model, dataset, title, shown_lines(kind, model, dataset), k, paper)


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
        # Training rows, and the first ten draws of the same class with standard deviation 0.001.
        *(experiment(f"authors_{label}", "authors", model, data, label) for label, model, data, _ in TABLES),
        # The other model of XRFC, compared with the same table of the paper.
        experiment("xrfc_4ft_forest", "stability", "xgbrf", "4ft", "xrfc_4ft"),
        experiment("xrfc_20ft_forest", "stability", "xgbrf", "20ft", "xrfc_20ft"),
        experiment("authors_xrfc_4ft_forest", "authors", "xgbrf", "4ft", "xrfc_4ft"),
        experiment("authors_xrfc_20ft_forest", "authors", "xgbrf", "20ft", "xrfc_20ft"),
        experiment("boxplots", "boxplots", "3hnn", "20ft"),
        experiment("running_time", "running_time", "3hnn", "16ft"),
        *(experiment(f"ablation_{data}", "ablation", "3hnn", data) for data in ("4ft", "20ft", "banknote")),
    )
}


def plan(names: Sequence[str] = (), sizes: Sizes = FULL) -> list[Run]:
    """Expand experiments of the paper (all of them if none is named) into runs, in the paper's order."""
    return expand(EXPERIMENTS, names, sizes)

"""The wide evaluation's runs: every data set with every kind of model, and the gated functions, three seeds.

A seed decides the split, the model's own randomness, the rows that are explained and all that is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.gated import GATED
from experiments.lines import WIDE_LINES
from experiments.plan import WIDE_FULL, Experiment, Run, Sizes, expand
from experiments.wide.models import FAMILY, WIDE_MODELS

#: binary, several classes, regression; mixed columns and missing cells in german, heloc, credit_data, ...
WIDE_DATASETS = (
    *("4ft", "20ft", "banknote", "german", "heloc", "higgs", "breast_cancer", "pima", "credit_data"),
    *("mlc_churn", "wine", "vehicle", "satellite", "penguins", "diabetes", "concrete"),
)


def wide_experiments(seeds: int) -> dict[str, Experiment]:
    """Name every run of the wide evaluation."""
    found: dict[str, Experiment] = {}
    for data in WIDE_DATASETS:
        for model in WIDE_MODELS:
            for seed in range(seeds):
                name, title = f"{data}_{model}_{seed}", f"{model} on {data}, seed {seed}"
                shown = WIDE_LINES[FAMILY[model]]
                found[name] = Experiment(name, "wide", model, data, title, shown, seed=seed)
    for gated in GATED:
        for seed in range(seeds):
            name, title = f"gated_{gated}_{seed}", f"the gated function {gated!r}, seed {seed}"
            found[name] = Experiment(
                name, "gated", "function", gated, title, WIDE_LINES["function"], seed=seed
            )
    return found


def wide_plan(names: Sequence[str] = (), sizes: Sizes = WIDE_FULL) -> list[Run]:
    """Expand the wide evaluation; a name may also be the beginning of several ("banknote")."""
    known = wide_experiments(sizes.seeds)
    chosen = [one for name in names for one in known if one == name or one.startswith(f"{name}_")]
    unknown = [name for name in names if not any(o == name or o.startswith(f"{name}_") for o in known)]
    return expand(known, [*chosen, *unknown], sizes)

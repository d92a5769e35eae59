"""Recourse beside dice-ml: validity, size, share of rows solved, evaluations of the model, time.

    python benchmarks/recourse.py              writes docs/results/recourse.md

Needs dice-ml, which may live in an environment of its own, and the data sets on this machine. Every explainer gets
the same model, rows, fixed columns and number of proposals. Everything it returns is judged by the model here.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread each, so that times can be compared
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from conditions import measured_on
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import texplainer as tx

OUT = Path(__file__).parents[1] / "docs" / "results" / "recourse.md"
COUNT = 3  # proposals a row
TRAINING, BACKGROUND = 3000, 500


@dataclass(frozen=True)
class Case:
    """A data set: its file, the adverse class, the columns nobody can change, the model."""

    name: str
    file: str
    outcome: str
    adverse: str
    fixed: tuple[str, ...]
    model: Callable[[], Any]
    words: str


CASES = (
    Case(
        "credit_data",
        "credit_data.csv",
        "Status",
        "bad",
        ("Age", "Marital", "Records"),
        lambda: HistGradientBoostingClassifier(max_iter=80, random_state=0),
        "boosted trees",
    ),
    Case(
        "mlc_churn",
        "mlc_churn.csv",
        "churn",
        "yes",
        ("state", "area_code", "account_length"),
        lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
        "random forest",
    ),
    Case(
        "heloc",
        "heloc.csv",
        "RiskPerformance",
        "Bad",
        ("MSinceOldestTradeOpen", "ExternalRiskEstimate"),
        lambda: MLPClassifier((32, 32), alpha=0.1, max_iter=150, random_state=0),
        "network",
    ),
)


class Counted:
    """A model of raw frames that counts the rows it predicts; class 1 is the favourable one."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.classes_ = model, 0, model.classes_

    def predict_proba(self, frame: Any) -> np.ndarray:
        """Probabilities of both classes."""
        self.rows += len(frame)
        return self.model.predict_proba(frame)

    def predict(self, frame: Any) -> np.ndarray:
        """The likelier class."""
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


@dataclass
class Tally:
    """What one method did on one data set; sizes are of each row's smallest valid proposal."""

    rows: int = 0
    solved: int = 0
    proposals: int = 0
    valid: int = 0
    sizes: list[float] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    evaluations: int = 0
    seconds: float = 0.0
    by_row: dict[int, float] = field(default_factory=dict)


def prepared(case: Case, data: Path) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """The table, its outcome (1: favourable) and the fitted model."""
    table = pd.read_csv(data / case.file).dropna().reset_index(drop=True)
    outcome = (table.pop(case.outcome) != case.adverse).astype(int).to_numpy()
    order = np.random.default_rng(0).permutation(len(table))
    table, outcome = table.iloc[order].reset_index(drop=True), outcome[order]
    texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    table = table.astype({name: float for name in table if name not in texts})
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts), remainder=StandardScaler()
    )
    model = make_pipeline(encode, case.model()).fit(table[:TRAINING], outcome[:TRAINING])
    return table, outcome, model


def methods(
    case: Case, table: pd.DataFrame, outcome: np.ndarray, model: Counted
) -> Iterator[tuple[str, Any]]:
    """Name and function from one row to a table of proposals, or None."""
    explainer = tx.TExplainer(lambda frame: model.predict_proba(frame)[:, 1], table[:BACKGROUND])
    yield (
        "texplainer, as a function",
        lambda row: _proposals(explainer.recourse(row, (">", 0.5), fixed=case.fixed)),
    )
    whole = tx.TExplainer(model.model, table[:BACKGROUND])
    yield "texplainer", lambda row: _counted(model, whole.recourse(row, 1, fixed=case.fixed))

    import dice_ml

    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    known = table[:TRAINING].assign(outcome=outcome[:TRAINING])
    data = dice_ml.Data(dataframe=known, continuous_features=numbers, outcome_name="outcome")
    free = [name for name in table if name not in case.fixed]
    for method in ("random", "genetic"):
        found = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
        yield f"dice-ml, {method}", lambda row, found=found, method=method: _dice(found, row, free, method)


def _proposals(found: Any) -> pd.DataFrame | None:
    return found.rows if found.found else None


def _counted(model: Counted, found: Any) -> pd.DataFrame | None:
    model.rows += found.evaluations  # it was given the model itself, and counts by itself
    return found.rows if found.found else None


def _dice(found: Any, row: pd.DataFrame, free: list[str], method: str) -> pd.DataFrame | None:
    from raiutils.exceptions import UserConfigValidationException

    seeded = {"random_seed": 0} if method == "random" else {}
    try:
        made = found.generate_counterfactuals(
            row, total_CFs=COUNT, desired_class=1, features_to_vary=free, verbose=False, **seeded
        )
    except (UserConfigValidationException, ValueError):
        return None
    frame = made.cf_examples_list[0].final_cfs_df
    return None if frame is None or not len(frame) else frame[list(row.columns)].astype(row.dtypes.to_dict())


def judged(
    tally: Tally, at: int, row: pd.DataFrame, frame: pd.DataFrame | None, case: Case, facts: Any
) -> None:
    """Count one row's proposals: reached, inside the range, fixed columns as they were."""
    model, table, sd = facts
    tally.rows += 1
    if frame is None:
        return
    own = row.iloc[0]
    reached = model.predict(frame) == 1
    sizes = []
    for n in range(len(frame)):
        new = frame.iloc[n]
        moved = [name for name in table if new[name] != own[name] and not _same(new[name], own[name])]
        inside = all(
            table[name].min() <= new[name] <= table[name].max()
            if name in sd
            else new[name] in set(table[name])
            for name in moved
        )
        tally.proposals += 1
        if reached[n] and inside and not set(moved) & set(case.fixed):
            tally.valid += 1
            size = sum(abs(new[name] - own[name]) / sd[name] if name in sd else 1.0 for name in moved)
            sizes.append((size, len(moved)))
    if sizes:
        size, changed = min(sizes)
        tally.solved += 1
        tally.sizes.append(size)
        tally.changed.append(changed)
        tally.by_row[at] = size


def _same(new: Any, old: Any) -> bool:
    """Whether two numbers differ by no more than rounding does; dice-ml rounds all columns."""
    return isinstance(new, float) and abs(new - old) <= 1e-3 * max(1.0, abs(old))


def measured(case: Case, data: Path, rows: int) -> dict[str, Tally]:
    """All methods on one data set."""
    table, outcome, model = prepared(case, data)
    counted = Counted(model)
    rest = table[TRAINING:]
    adverse = rest[model.predict(rest) == 0].iloc[:rows]
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    seen = table[:TRAINING]
    own = tx.TExplainer(model, table[:BACKGROUND])
    sd = {name: float(own.background.sigma[list(table).index(name)]) for name in numbers}
    out = {}
    for name, propose in methods(case, table, outcome, counted):
        tally = out[name] = Tally()
        propose(adverse.iloc[[0]])  # what is built or compiled once is not timed
        for i in range(len(adverse)):
            row = adverse.iloc[[i]].reset_index(drop=True)
            counted.rows, began = 0, time.perf_counter()
            frame = propose(row)
            tally.seconds += time.perf_counter() - began
            tally.evaluations += counted.rows
            judged(tally, i, row, frame, case, (model, seen, sd))
        print(f"{case.name:12} {name:26} {line(tally)}", flush=True)
    return out


def line(tally: Tally) -> str:
    """The figures of one method as cells."""
    valid = f"{tally.valid / tally.proposals:.0%}" if tally.proposals else "–"
    size = f"{np.median(tally.sizes):.2f}" if tally.sizes else "–"
    changed = f"{np.mean(tally.changed):.1f}" if tally.changed else "–"
    return f"{tally.solved / tally.rows:.0%} | {valid} | {size} | {changed} | {tally.evaluations / tally.rows:,.0f}"


def page(results: dict[str, dict[str, Tally]], rows: int) -> str:
    """The page of results."""
    lines = [
        "# Recourse beside dice-ml",
        "",
        "How small and how costly are the changes that turn a decision? Solved and valid are best high, the others",
        "low.",
    ]
    for case in CASES:
        if case.name not in results:
            continue
        found = results[case.name]
        lines += ["", f"## {case.name}, {case.words}", "", f"Fixed: {', '.join(case.fixed)}.", ""]
        lines += [
            "| method | solved | valid | size | changed | evaluations | time |",
            "|---|---|---|---|---|---|---|",
        ]
        unit = found["texplainer"].seconds
        lines += [f"| {name} | {line(tally)} | {tally.seconds / unit:.1f} |" for name, tally in found.items()]
        for name, tally in found.items():
            both = sorted(set(tally.by_row) & set(found["texplainer"].by_row))
            if name.startswith("dice") and both:
                smaller = sum(found["texplainer"].by_row[i] < tally.by_row[i] for i in both)
                words = f"texplainer's proposal is the smaller one in {smaller} of the {len(both)} rows"
                lines += ["", f"{words} that both it and {name} solve."]
    lines += [
        "",
        "## How",
        "",
        f"{rows} rows of each data set that the model decides against, {COUNT} proposals a row, the same fixed columns "
        "for every method. `python benchmarks/recourse.py` makes this page.",
        "",
        "- *solved*: rows with at least one valid proposal.",
        "- *valid*: proposals that the model accepts, inside the range of the training rows, with the fixed columns "
        "unchanged.",
        "- *size*: median over solved rows of the smallest valid proposal, in SDs; a switch of a category counts 1.",
        "- *changed*: features that this proposal changes, on average.",
        "- *evaluations*: rows predicted by the model, per row explained.",
        "- *time*: relative to texplainer on the same rows. The machine was shared; read it as an order of magnitude.",
        "",
        f"dice-ml {version('dice-ml')} with its defaults; `random` has `random_seed=0`. texplainer is given the model "
        "itself; 'as a function' it is given only `predict_proba`. Differences below 0.1% of a value are not "
        "counted as changes, because dice-ml rounds. texplainer's proposals keep a distance that moves by 5% of an SD "
        "do not undo where it can find one; dice-ml has no such demand. The size in SDs is what texplainer minimises; "
        "the genetic search of dice-ml weighs distances by the MAD of each column. dice-ml asks for fewer evaluations.",
        "",
        measured_on("dice-ml", "pandas"),
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("TEXPLAINER_DATA", "data")),
        help="folder of the CSV files",
    )
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--only", default=None, help="one data set, and no page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = [case for case in CASES if arguments.only in (None, case.name)]
    results = {case.name: measured(case, arguments.data, arguments.rows) for case in cases}
    if arguments.only is None:
        OUT.write_text(page(results, arguments.rows), encoding="utf-8")
    else:
        print(page(results, arguments.rows))


if __name__ == "__main__":
    main()

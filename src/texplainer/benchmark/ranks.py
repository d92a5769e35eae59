"""Who comes first: average ranks over the tables, ours and the paper's, and where T-Explainer does not.

In each table the explainers are ranked by one criterion (1 = best, ties share their mean rank), and the ranks
are averaged over the tables. Controls do not compete. TreeSHAP stands for SHAP where the model is a tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from .plan import CONTROLS, PAPER_ROWS
from .results import Result
from .tables import Column, all_gaps, experiment_of, fold, number, paper_table, stability_columns

SAME = {"TreeSHAP": "SHAP", "TreeSHAP (probability)": "SHAP (probability)"}
OURS = "T-Explainer"
NOTHING = 1e-10  # the paper, too, takes smaller numbers as zero


@dataclass(frozen=True)
class Criterion:
    """What explainers are ranked by, over which kind of table."""

    label: str
    kind: str
    better: str

    def column(self, k: Sequence[int]) -> Column:
        """The column of a table with these k."""
        if self.label == "PGI":
            return Column("PGI", all_gaps(k), "mean", "high")
        if self.label == "Infidelity":
            return Column("Infidelity", ("infidelity",), "mean", "low")
        return next(column for column in stability_columns() if column.label == self.label)


CRITERIA = (
    Criterion("RIS mean", "stability", "low"),
    Criterion("ROS mean", "stability", "low"),
    Criterion("PGI", "faithfulness", "high"),
    Criterion("Infidelity", "faithfulness", "low"),
)


def ranked(numbers: Mapping[str, float], better: str) -> dict[str, float]:
    """Rank names by their numbers, 1 = best; an undefined number comes last."""
    sign = 1.0 if better == "low" else -1.0
    keys = [math.inf if math.isnan(value) else sign * value for value in numbers.values()]
    return dict(zip(numbers, rankdata(keys).tolist(), strict=True))


def scores(result: Result, criterion: Criterion, only: Sequence[str] | None = None) -> dict[str, float]:
    """Each competing explainer's number in one table."""
    column = criterion.column(experiment_of(result).k)
    names = dict.fromkeys(explainer for explainer, _ in result.scores if explainer not in CONTROLS)
    found = {SAME.get(name, name): fold(result, name, column) for name in names}
    return {name: value for name, value in found.items() if only is None or name in only}


def average_ranks(tables: Sequence[Mapping[str, float]], better: str) -> dict[str, float]:
    """Average each explainer's rank over the tables it is in."""
    collected: dict[str, list[float]] = {}
    for table in tables:
        for name, rank in ranked(table, better).items():
            collected.setdefault(name, []).append(rank)
    return {name: float(np.mean(own)) for name, own in collected.items()}


def of_kind(results: Sequence[Result], criterion: Criterion) -> list[Result]:
    """Pick the paper's own tables of a criterion's kind (the second reading of XRFC would count twice)."""
    return [r for r in results if (e := experiment_of(r)).kind == criterion.kind and e.paper == e.name]


def rank_table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Average rank per explainer and criterion, as text, best in bold."""
    columns = {
        c.label: average_ranks([scores(r, c) for r in of_kind(results, c)], c.better) for c in CRITERIA
    }
    names = sorted(
        {name for ranks in columns.values() for name in ranks}, key=lambda n: (columns_mean(columns, n), n)
    )
    body: list[list[str]] = []
    for name in names:
        cells = [name]
        for ranks in columns.values():
            text = f"{ranks[name]:.2f}" if name in ranks else "–"
            cells.append(f"**{text}**" if name in ranks and ranks[name] == min(ranks.values()) else text)
        body.append(cells)
    return ["Explainer", *columns], body


def columns_mean(columns: Mapping[str, Mapping[str, float]], name: str) -> float:
    """Mean of a name's ranks over the criteria it has."""
    return float(np.mean([ranks[name] for ranks in columns.values() if name in ranks]))


def comparison_table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Our average ranks beside the paper's, among the paper's explainers, over the same tables."""
    header, columns = ["Explainer"], []
    for criterion in CRITERIA:
        kept = of_kind(results, criterion)
        ours = [scores(r, criterion, PAPER_ROWS) for r in kept]
        theirs = [table for r in kept if (table := paper_scores(r, criterion))]
        header += [criterion.label, "paper"] if theirs else [criterion.label]
        columns += [
            average_ranks(tables, criterion.better) for tables in ([ours, theirs] if theirs else [ours])
        ]
    body = [[name, *(f"{c[name]:.2f}" if name in c else "–" for c in columns)] for name in PAPER_ROWS]
    return header, body


def paper_scores(result: Result, criterion: Criterion) -> dict[str, float]:
    """The paper's own numbers by a criterion (PGI: the mean over k); empty where it has none."""
    table = paper_table(experiment_of(result))
    rows = {SAME.get(name, name): row for name, row in table.items()}
    keys = [key for row in rows.values() for key in row if key.split("@")[0] == criterion.label]
    return (
        {name: float(np.mean([row[key] for key in row if key in keys])) for name, row in rows.items()}
        if keys
        else {}
    )


def agreement_table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Spearman correlation, per table, between our order of the paper's explainers and the paper's."""
    body = []
    for result in of_kind(results, CRITERIA[0]):
        found = [agreement(result, criterion) for criterion in CRITERIA[:2]]
        body.append([result.name, *("–" if math.isnan(value) else f"{value:+.2f}" for value in found)])
    return ["Table", *(criterion.label for criterion in CRITERIA[:2])], body


def agreement(result: Result, criterion: Criterion) -> float:
    """Correlate our order of the paper's explainers with the paper's; NaN with fewer than three."""
    ours, theirs = scores(result, criterion, PAPER_ROWS), paper_scores(result, criterion)
    shared = [name for name in theirs if not math.isnan(ours.get(name, math.nan))]
    return spearman([ours[n] for n in shared], [theirs[n] for n in shared]) if len(shared) > 2 else math.nan


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation; NaN if either side is all ties."""
    a, b = (rankdata(side) - (len(side) + 1) / 2 for side in (first, second))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else math.nan


def summary(results: Sequence[Result]) -> list[str]:
    """Say in sentences who comes first by each criterion, and how our orders compare with the paper's."""
    sentences = []
    for criterion in CRITERIA:
        tables = [scores(r, criterion) for r in of_kind(results, criterion)]
        if not tables:
            continue
        averages = average_ranks(tables, criterion.better)
        leader = min(averages, key=lambda name: (averages[name], name))
        firsts = sum(
            places[OURS] == min(places.values()) for t in tables if (places := ranked(t, criterion.better))
        )
        text = f"{criterion.label}: {OURS} has average rank {averages[OURS]:.2f} and is first in {firsts} of "
        text += f"{len(tables)} tables; "
        others = f"the lowest average rank is that of {leader} ({averages[leader]:.2f})."
        sentences.append(text + ("no explainer has a lower average rank." if leader == OURS else others))
    for criterion in CRITERIA[:2]:
        found = [agreement(r, criterion) for r in of_kind(results, criterion)]
        known = [value for value in found if not math.isnan(value)]
        if known:
            sentences.append(
                f"{criterion.label}: our order of the paper's explainers correlates with the paper's by "
                f"{np.mean(known):+.2f} on average; {sum(v > 0.5 for v in known)} of {len(known)} tables are "
                "above 0.5."
            )
    return sentences


def losses(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Every table and criterion in which T-Explainer is not first: its rank, to whom, by how much."""
    header = ["Table", "Criterion", "Rank", "T-Explainer", "First", "Its score", "Ratio"]
    body = []
    for criterion in CRITERIA:
        for result in of_kind(results, criterion):
            numbers = scores(result, criterion)
            places = ranked(numbers, criterion.better)
            if OURS not in places or places[OURS] == min(places.values()):
                continue
            first = min(places, key=lambda name: places[name])
            worse, better = sorted((numbers[OURS], numbers[first]), reverse=True)
            ratio = f"{worse / better:.2f}" if better > NOTHING else "–"
            place = f"{places[OURS]:g} of {len(places)}"
            cells = [
                result.name,
                criterion.label,
                place,
                number(numbers[OURS]),
                first,
                number(numbers[first]),
            ]
            body.append([*cells, ratio])
    return header, body

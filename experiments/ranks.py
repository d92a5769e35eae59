"""Ranks over the paper's tables: Algorithm 1 beside the paper's own, and every line among its like.

In each table the explainers are ranked by one criterion (1 = best, ties share their mean rank). Controls do
not compete. Beside the paper's digits stands the paper's method: as printed under the clipped RIS and ROS,
and in its authors' set-up with exact zeros skipped and, where there are categories, with their induction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from experiments.lines import AUTHORS, INDUCED, LINES, OURS, PRINTED, question_of
from experiments.pages.document import TableCells
from experiments.plan import CONTROL_LINES
from experiments.results import Result
from experiments.statistics import RankTest, average_ranks, over_data_sets, rank_test, ranked
from experiments.tables import (
    GridColumn,
    experiment_of,
    interval_of,
    mean_gap,
    paper_table,
    stability_columns,
    summarise_rows,
    with_interval,
)
from texplainer.metrics.evaluation import printed_number

PAPER_ROWS = ("T-Explainer", "SHAP", "LIME", "Integrated Gradients", "Input x Gradient", "DeepLIFT")
SAME = {"TreeSHAP": "SHAP"}  # where the model is a tree
NOTHING = 1e-10  # the paper, too, takes smaller numbers as zero
FACTOR = 2.0  # how near is called reproduced


@dataclass(frozen=True)
class Criterion:
    """What explainers are ranked by, over which kind of table."""

    label: str
    kind: str
    better: str
    column: Callable[[Sequence[int]], GridColumn]  # of a table with these k


def _stability(label: str) -> Criterion:
    column = next(one for one in stability_columns() if one.label == label)
    return Criterion(label, "stability", "low", lambda k: column)


def _gap(metric: str, label: str) -> Criterion:
    return Criterion(label, "faithfulness", "high", lambda k: mean_gap(k, metric, label))


RIS, ROS = _stability("RIS mean"), _stability("ROS mean")
RIS_SKIPPED, ROS_SKIPPED = _stability("RIS mean, zeros skipped"), _stability("ROS mean, zeros skipped")
INFIDELITY = Criterion(
    "Infidelity", "faithfulness", "low", lambda k: GridColumn("Infidelity", ("infidelity",), "mean", "low")
)
CRITERIA = (
    *(RIS, ROS, _stability("RIS* median")),
    *(_gap("pgi", "PGI zero"), _gap("pgi_mean", "PGI mean"), _gap("pgi_marginal", "PGI marginal")),
    INFIDELITY,
)
#: how the paper's method is set up -> its line (the first that a table has), and the criteria the paper's
#: columns are compared by
SETUPS: dict[str, tuple[tuple[str, ...], dict[str, Criterion]]] = {
    "as printed": ((PRINTED,), {"RIS mean": RIS, "ROS mean": ROS}),
    "authors' set-up": ((INDUCED, AUTHORS), {"RIS mean": RIS_SKIPPED, "ROS mean": ROS_SKIPPED}),
}
HEADLINES = ("RIS mean", "ROS mean")


def of_kind(results: Sequence[Result], criterion: Criterion) -> list[Result]:
    """Pick the paper's own tables of a criterion's kind (the second attribution of XRFC would count twice)."""
    return [r for r in results if (e := experiment_of(r)).kind == criterion.kind and e.paper == e.name]


def table_scores(result: Result, criterion: Criterion, question: str = "") -> dict[str, float]:
    """Each competing explainer's number in one table; only those that answer the question, if given."""
    column = criterion.column(experiment_of(result).k)
    names = dict.fromkeys(name for name, _ in result.scores if name not in CONTROL_LINES)
    kept = [name for name in names if not question or question_of(name) == question]
    return {name: summarise_rows(result, name, column) for name in kept}


def _one_name(table: Mapping[str, float]) -> dict[str, float]:
    """The numbers with TreeSHAP counted as SHAP, so that tables of trees and of networks compare."""
    return {SAME.get(name, name): value for name, value in table.items()}


# Among their like. -----------------------------------------------------------------------------------------


def question_tests(results: Sequence[Result], question: str) -> dict[str, RankTest]:
    """A rank test over data sets per criterion, among the lines that answer a question.

    Variation competes with the absolute values of all lines.
    """
    among = "" if question == "variation" else question
    found: dict[str, RankTest] = {}
    for criterion in CRITERIA:
        tables = {
            (experiment_of(r).dataset, r.name): _one_name(table_scores(r, criterion, among))
            for r in of_kind(results, criterion)
        }
        test = rank_test(list(over_data_sets(tables, criterion.better).values()), criterion.better)
        if test is not None:
            found[criterion.label] = test
    return found


def rank_table(tests: Mapping[str, RankTest]) -> TableCells:
    """Average ranks per line and criterion; bold = best, in round brackets what is not separable from it."""
    names = list(dict.fromkeys(name for test in tests.values() for name in test.average))
    names.sort(
        key=lambda name: float(np.mean([t.average[name] for t in tests.values() if name in t.average]))
    )
    body = [[name, *(rank_cell(test, name) for test in tests.values())] for name in names]
    body.append(["critical difference", *(f"{test.critical:.2f}" for test in tests.values())])
    body.append(["Friedman p", *(printed_number(test.p_value) for test in tests.values())])
    body.append(["explainers, data sets", *(f"{len(t.average)}, {t.blocks}" for t in tests.values())])
    return ["Average rank", *tests], body


def rank_cell(test: RankTest, name: str) -> str:
    """One average rank as text."""
    if name not in test.average:
        return "–"
    text = f"{test.average[name]:.2f}"
    if name == test.first:
        return f"**{text}**"
    return f"({text})" if name in test.beside(test.first) else text


def losses(results: Sequence[Result]) -> TableCells:
    """Every table and criterion in which an attribution of ours is not first among its like, and to whom."""
    header = ["Attribution", "Table", "Criterion", "Rank", "Its score", "First", "First's score", "Ratio"]
    body = []
    for spec in OURS:
        among = "" if question_of(spec) == "variation" else question_of(spec)
        for criterion in CRITERIA:
            for result in of_kind(results, criterion):
                numbers = table_scores(result, criterion, among)
                places = ranked(numbers, criterion.better)
                if spec not in places or places[spec] == min(places.values()):
                    continue
                first = min(places, key=lambda name: places[name])
                worse, better = sorted((numbers[spec], numbers[first]), reverse=True)
                ratio = f"{worse / better:.2f}" if better > NOTHING else "–"
                place = f"{places[spec]:g} of {len(places)}"
                shown = (printed_number(numbers[spec]), first, printed_number(numbers[first]))
                body.append([spec, result.name, criterion.label, place, *shown, ratio])
    return header, body


# Beside the paper. -----------------------------------------------------------------------------------------


def method_line(result: Result, setup: str) -> str:
    """The line that is the paper's method in a table: its authors induced where there are categories."""
    shown = {name for name, _ in result.scores}
    return next((name for name in SETUPS[setup][0] if name in shown), "")


def beside_the_paper(result: Result, criterion: Criterion, setup: str) -> dict[str, float]:
    """Our numbers under the names of the paper's lines, the paper's method in the given set-up."""
    method = method_line(result, setup)
    found: dict[str, float] = {}
    for name, value in table_scores(result, criterion).items():
        paper = LINES[name].paper if name in LINES else ""
        if paper and (paper != "T-Explainer" or name == method):
            found[SAME.get(paper, paper)] = value
    return found


def paper_scores(result: Result, criterion: Criterion) -> dict[str, float]:
    """The paper's own numbers by a criterion; empty where it has none."""
    wanted = criterion.column(experiment_of(result).k).paper
    table = paper_table(experiment_of(result))
    return {SAME.get(name, name): row[wanted] for name, row in table.items() if wanted and wanted in row}


def setup_ranks(results: Sequence[Result], label: str, setup: str) -> dict[str, float]:
    """Average ranks of the paper's explainers by our numbers."""
    criterion = SETUPS[setup][1][label]
    kept = of_kind(results, criterion)
    return average_ranks([beside_the_paper(result, criterion, setup) for result in kept], "low")


def printed_ranks(results: Sequence[Result], label: str) -> dict[str, float]:
    """Average ranks that follow from the paper's own tables."""
    tables = [paper_scores(r, SETUPS["as printed"][1][label]) for r in of_kind(results, RIS)]
    return average_ranks([table for table in tables if table], "low")


def comparison_table(results: Sequence[Result]) -> TableCells:
    """Average ranks among the paper's explainers, in both set-ups, beside those of the paper's own tables."""
    columns: dict[str, dict[str, float]] = {}
    for label in HEADLINES:
        columns |= {f"{label}, {setup}": setup_ranks(results, label, setup) for setup in SETUPS}
        columns[f"{label}, paper"] = printed_ranks(results, label)
    body = [
        [name, *(f"{c[name]:.2f}" if name in c else "–" for c in columns.values())] for name in PAPER_ROWS
    ]
    return ["Explainer", *columns], body


def method_scores(result: Result, label: str, setup: str) -> tuple[float, float]:
    """The paper's method in one table: our number, and the paper's."""
    criterion = SETUPS[setup][1][label]
    ours = beside_the_paper(result, criterion, setup).get("T-Explainer", math.nan)
    return ours, paper_scores(result, criterion).get("T-Explainer", math.nan)


def method_interval(result: Result, label: str, setup: str) -> tuple[float, float]:
    """The bootstrap interval over rows of the paper's method in one table."""
    column = SETUPS[setup][1][label].column(experiment_of(result).k)
    return interval_of(result, method_line(result, setup), column) or (math.nan, math.nan)


def reproduction_table(results: Sequence[Result]) -> TableCells:
    """The paper's method table by table: both set-ups with intervals, the paper's digits, and the ratio."""
    header = ["Table"]
    for label in HEADLINES:
        header += [f"{label}: paper", *(f"{setup} (ratio)" for setup in SETUPS)]
    body = []
    for result in of_kind(results, RIS):
        cells = [result.name]
        for label in HEADLINES:
            pairs = {setup: method_scores(result, label, setup) for setup in SETUPS}
            cells.append(printed_number(pairs["as printed"][1]))
            for setup, (own, printed) in pairs.items():
                value = with_interval(own, method_interval(result, label, setup))
                cells.append(f"{value} ({own / printed:.2g})")
        body.append(cells)
    return header, body


def training_rows_table(results: Sequence[Result]) -> TableCells:
    """Algorithm 1 measured as its authors' code did, beside the paper's digits, and what reaches them."""
    header, body = ["Table"], []
    for label in HEADLINES:
        header += [f"{label}: paper", "ours", "ratio", "trained again", f"within a factor {FACTOR:g}?"]
    for parts in trainings(results):
        cells = [line_name(parts)]
        for label in HEADLINES:
            one = trained(parts, label)
            spread = (
                f"{printed_number(min(one.again))} to {printed_number(max(one.again))}" if one.again else "–"
            )
            shown = with_interval(one.own, one.interval)
            cells += [printed_number(one.printed), shown, f"{one.own / one.printed:.2g}", spread]
            cells.append(one.reached or "**no**")
        body.append(cells)
    return header, body


@dataclass(frozen=True)
class Trained:
    """One line: the paper's number, ours at the paper's seeds with its interval over rows, and trained again."""

    printed: float
    own: float
    interval: tuple[float, float]
    again: tuple[float, ...]

    @property
    def near(self) -> bool:
        """Whether the number counts as reproduced."""
        return is_near(self.own, self.printed)

    @property
    def reached(self) -> str:
        """Whether it is within the factor, or else what reaches that far; "" if nothing does."""
        if self.near:
            return "yes"
        low, high = self.printed / FACTOR, self.printed * FACTOR
        hits = sum(is_near(one, self.printed) for one in self.again)
        if hits:
            return f"other trainings: {hits} of {len(self.again)}"
        if min(self.own, *self.again) <= high and low <= max(self.own, *self.again):
            return "other trainings: on both sides"
        return "interval over rows" if self.interval[0] <= high and low <= self.interval[1] else ""


def trained(parts: Sequence[Result], label: str) -> Trained:
    """One line's numbers by one headline."""
    column = SETUPS["authors' set-up"][1][label].column(experiment_of(parts[0]).k)
    own, *again = (summarise_rows(part, AUTHORS, column) for part in parts)
    interval = interval_of(parts[0], AUTHORS, column) or (own, own)
    return Trained(paper_table(experiment_of(parts[0]))["T-Explainer"][label], own, interval, tuple(again))


def line_name(parts: Sequence[Result]) -> str:
    """The line's name: the paper's table, and the model where it has two."""
    return experiment_of(parts[0]).name.removeprefix("authors_")


def trainings(results: Sequence[Result]) -> list[list[Result]]:
    """The runs of each table, the paper's seeds first."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(experiment_of(result).name, []).append(result)
    return [sorted(parts, key=lambda one: one.configuration["run"]) for parts in found.values()]


def training_rows_sentences(results: Sequence[Result]) -> list[str]:
    """In how many of the paper's tables its number is met, and what reaches it in the others."""
    found = []
    for label in HEADLINES:
        tables: dict[str, list[list[Result]]] = {}
        for parts in trainings(results):
            tables.setdefault(experiment_of(parts[0]).paper or line_name(parts), []).append(parts)
        met, reached, missed = 0, [], []
        for name, lines in tables.items():
            found_by = [trained(parts, label).reached for parts in lines]
            if "yes" in found_by:
                met += 1
            elif any(found_by):
                reached.append(f"{name} ({next(filter(None, found_by)).partition(':')[0]})")
            else:
                missed.append(name)
        found.append(
            f"{label}: within a factor {FACTOR:g} of the paper's in {met} of {len(tables)} tables; of XRFC either "
            "model counts. Of the misses, another training or the interval over rows reaches that far in "
            f"{', '.join(reached) or 'none'}; out of reach: {', '.join(missed) or 'none'}."
        )
    return found


def is_near(own: float, printed: float) -> bool:
    """Whether a number counts as reproduced."""
    return 1 / FACTOR <= own / printed <= FACTOR


def agreement_table(results: Sequence[Result]) -> TableCells:
    """Spearman correlation, per table, between our order of the paper's explainers and the paper's."""
    asked = [(label, setup) for setup in SETUPS for label in HEADLINES]
    body = []
    for result in of_kind(results, RIS):
        found = [order_agreement(result, label, setup) for label, setup in asked]
        body.append([result.name, *("–" if math.isnan(value) else f"{value:+.2f}" for value in found)])
    return ["Table", *(f"{label}, {setup}" for label, setup in asked)], body


def order_agreement(result: Result, label: str, setup: str) -> float:
    """Correlate our order of the paper's explainers with the paper's; NaN with fewer than three."""
    criterion = SETUPS[setup][1][label]
    ours, theirs = beside_the_paper(result, criterion, setup), paper_scores(result, criterion)
    both = [name for name in theirs if not math.isnan(ours.get(name, math.nan))]
    return (
        order_correlation([ours[n] for n in both], [theirs[n] for n in both]) if len(both) > 2 else math.nan
    )


def order_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation; NaN if either side is all ties."""
    a, b = (rankdata(side) - (len(side) + 1) / 2 for side in (first, second))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else math.nan


def headlines(results: Sequence[Result]) -> list[str]:
    """Which headlines of the paper reproduce: its method's ranks, and how near its digits are."""
    return [headline(results, label, setup) for label in HEADLINES for setup in SETUPS]


def headline(results: Sequence[Result], label: str, setup: str) -> str:
    """One headline in words: the paper's method has the lowest average rank in the paper's own tables."""
    theirs = printed_ranks(results, label).get("T-Explainer", math.nan)
    ours = setup_ranks(results, label, setup)
    rank, first = ours.get("T-Explainer", math.nan), min(ours, key=lambda name: ours[name], default="")
    if first == "T-Explainer":
        stability = "the paper's headline reproduces"
    else:
        stability = f"the paper's headline does not reproduce ({first} is first with {ours[first]:.2f})"
    tables = of_kind(results, RIS)
    pairs = [method_scores(result, label, setup) for result in tables]
    near = sum(is_near(own, printed) for own, printed in pairs if printed > NOTHING)
    reached = sum(
        low <= FACTOR * printed and printed / FACTOR <= high
        for (low, high), (_, printed) in zip(
            (method_interval(result, label, setup) for result in tables), pairs, strict=True
        )
    )
    return (
        f"{label}, Algorithm 1 {setup}: {stability}; average rank {rank:.2f} among the paper's explainers, "
        f"where the paper's tables give {theirs:.2f}. Its number is within a factor {FACTOR:g} of the "
        f"paper's in {near} of {len(pairs)} tables, its 95% interval over rows reaches that far in {reached}."
    )

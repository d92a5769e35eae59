"""One page per question from the wide evaluation: where our attribution stands, at which cost, and how.

The first table has a row for every criterion, won or lost, and one more for each kind of model on which ours is
not first. Every figure is computed from the results. Complete tables go into the folder of the results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.lines import ON_PROBABILITY, QUESTIONS, Question
from experiments.pages import figures
from experiments.pages.document import PageBlock, TableCells, write_markdown
from experiments.plan import CONTROL_LINES, SVM_EXPLAINED
from experiments.ranks import rank_table
from experiments.results import Result, earlier_definitions, machine, measured_by
from experiments.statistics import (
    Numbers,
    RankTest,
    interval_over_blocks,
    over_data_sets,
    paired_difference,
    rank_test,
)
from experiments.tables import controls_sentence
from experiments.wide import blocks as wide
from experiments.wide.blocks import WideCriterion
from experiments.wide.models import FAMILY
from texplainer.metrics.evaluation import printed_number
from texplainer.metrics.evidence.explained import SAMPLE

#: kinds of models shown apart: some explainers exist for networks or boosted trees only
FAMILIES: dict[str, tuple[str, ...]] = {
    "all": tuple(FAMILY),
    "networks": tuple(name for name, family in FAMILY.items() if family == "network"),
    "boosted": ("boosted",),
}


@dataclass(frozen=True)
class QuestionPage:
    """A page: its file, our attribution, what it is judged by (the first criterion leads), who competes."""

    file: str
    question: Question
    spec: str
    criteria: tuple[WideCriterion, ...]

    @property
    def among(self) -> str:
        """The question of the lines compared; "" = every line, by absolute values."""
        return "" if self.question == "variation" else self.question

    def tables(self, results: Sequence[Result], criterion: WideCriterion) -> dict[tuple[str, str], Numbers]:
        """Number per line for each data set and model."""
        return wide.question_tables(results, criterion, self.among)

    def tests(self, results: Sequence[Result]) -> dict[str, RankTest]:
        """A rank test over data sets per criterion."""
        found = {
            c.label: rank_test(list(over_data_sets(self.tables(results, c), c.better).values()), c.better)
            for c in self.criteria
        }
        return {label: test for label, test in found.items() if test is not None}


PAGES = (
    QuestionPage(
        "compare_slope", "slope", "T-Explainer slope",
        (wide.LOCALITY, wide.CLOSER, wide.MISPLACED, wide.BACKGROUND, wide.SEED, wide.RIS_NORM, wide.RIS,
         wide.ROS, wide.INFIDELITY, wide.PGI_MEAN),
    ),
    QuestionPage(
        "compare_shapley", "shapley", "T-Explainer shapley",
        (wide.PGI_MEAN, wide.PGI_MARGINAL, wide.PGI_ZERO, wide.SUMS, wide.BACKGROUND, wide.SEED,
         wide.RIS_NORM, wide.RIS, wide.ROS, wide.LOCALITY),
    ),
    QuestionPage(
        "compare_variation", "variation", "T-Explainer variation",
        (wide.PGI_MEAN, wide.PGI_MARGINAL, wide.PGI_ZERO, wide.LOCALITY, wide.BACKGROUND, wide.RIS_NORM),
    ),
)  # fmt: skip


def write_question_pages(results: Sequence[Result], out: Path) -> list[Path]:
    """Write one page per question beside the folder of results, its complete tables into the folder."""
    written: list[Path] = []
    for page in PAGES:
        content = list(page_content(page, results, out))
        drawn = [value for kind, value in content if kind == "figure"]
        complete = write_markdown(list(complete_tables(page, results)), out / f"{page.file}.md")
        written += [write_markdown(content, out.with_name(f"{page.file}.md")), complete, *drawn]
    return written


def of_family(results: Sequence[Result], family: str) -> list[Result]:
    """The runs on data of some kinds of models."""
    experiments = [(r, r.configuration["experiment"]) for r in results]
    return [r for r, e in experiments if e["kind"] == "wide" and e["model"] in FAMILIES[family]]


def page_content(page: QuestionPage, results: Sequence[Result], out: Path) -> Iterable[PageBlock]:
    """Put a page together, block by block: the table, how it was made, what limits it."""
    yield "h1", f"{QUESTIONS[page.question]} {page.spec} beside other explainers"
    if earlier_definitions(results):
        yield "p", earlier_definitions(results)
    yield "table", standing_table(page, results)
    yield (
        "p",
        "Ranks are averages over data sets, 1 = best. The difference is ours minus the best other line's, "
        "with its 95% bootstrap interval over data sets. Separable: Friedman p < 0.05 and more than "
        "Nemenyi's critical difference apart. Networks and boosted trees have a row of their own where ours is "
        f"not first. [All rows, ranks and scores]({out.name}/{page.file}.md).",
    )
    yield "p", "What is measured; [metrics](../metrics.md) has the definitions:"
    yield "list", [f"{arrowed(c)}: {c.meaning}." for c in page.criteria]
    yield "h2", "Cost"
    yield "table", cost_table(page, results)
    yield (
        "p",
        f"Processor time, medians over runs, of calls of {results[0].configuration['sizes']['rows']} rows: the fixed "
        "cost of a call counts. One prediction is that of a row among some hundred. Costs of many rows: "
        "[Shapley values of trees](shapley.md), [slopes](slopes.md), [functions](blackbox.md).",
    )
    yield from cost_figure(page, of_family(results, "networks"), out)
    gated = [r for r in results if r.configuration["experiment"]["kind"] == "gated"]
    if gated:
        yield "h2", "Functions with known truth"
        yield "p", "Attribution mass on features that cannot matter within 0.75 SD, by function. Low is good."
        yield "table", gated_table(page, gated)
    yield "h2", "How"
    yield "p", introduction(results)
    yield "h2", "Limits"
    yield "list", list(limits(page, results))


def standing_table(page: QuestionPage, results: Sequence[Result], *, every: bool = False) -> TableCells:
    """Where our attribution stands by each criterion; a kind of models has a row where it lost, or if `every`."""
    header = ["Criterion", "models", "Rank", "Best other line", "its rank", "Ours", "Theirs"]
    body = []
    runs = {family: of_family(results, family) for family in FAMILIES}
    tests = {family: page.tests(own) for family, own in runs.items()}
    for criterion in page.criteria:
        for family, own in runs.items():
            tables = page.tables(own, criterion)
            test = tests[family].get(criterion.label)
            if test is None or page.spec not in test.average:
                continue
            if not every and family != "all" and leads(test, page.spec):
                continue
            other = next(name for name in test.average if name != page.spec)
            means = over_data_sets({k: {n: t[n] for n in (page.spec, other)} for k, t in tables.items()},
                                   criterion.better).values()  # fmt: skip
            both = [
                printed_number(interval_over_blocks([b[n] for b in means])[0]) for n in (page.spec, other)
            ]
            low_high = paired_difference(tables, criterion.better, page.spec, other)
            rank = f"{test.average[page.spec]:.2f} of {len(test.average)}"
            row = [arrowed(criterion), family, rank, other, f"{test.average[other]:.2f}", *both]
            body.append([*row, difference_text(*low_high), standing(test, page.spec)])
    return [*header, "Difference", "Result"], body


def arrowed(criterion: WideCriterion) -> str:
    """The criterion's label and which way is better."""
    return f"{criterion.label} {'↓' if criterion.better == 'low' else '↑'}"


def difference_text(mean: float, low: float, high: float) -> str:
    """A paired difference with its interval."""
    return f"{mean:+.2g} [{low:+.2g}, {high:+.2g}]"


def leads(test: RankTest, name: str) -> bool:
    """Whether no line has a lower average rank."""
    return test.average[name] <= test.average[test.first]


def standing(test: RankTest, name: str) -> str:
    """First or not, and from how many lines it is separable."""
    beside, others = test.beside(name), len(test.average) - 1
    if leads(test, name):
        if not beside:
            return "**first**, separable from all"
        return f"lowest rank, not separable from {len(beside)} of {others}"
    return f"not first, {'not ' if test.first in beside else ''}separable from {test.first}"


def introduction(results: Sequence[Result]) -> str:
    """Say how the numbers were made."""
    sizes = results[0].configuration["sizes"]
    experiments = [result.configuration["experiment"] for result in results]
    sets = sorted({e["dataset"] for e in experiments if e["kind"] == "wide"})
    models = list(dict.fromkeys(e["model"] for e in experiments if e["kind"] == "wide"))
    quick = " --quick" if sizes["name"] == "wide-quick" else ""
    return (
        f"Made by `python -m experiments --wide{quick}` with {measured_by(results)}: {len(sets)} data sets "
        f"({', '.join(sets)}), {len(models)} kinds of models ({', '.join(models)}; the SVM is passed as a "
        f"function), {sizes['seeds']} seeds of split, model and rows; {sizes['rows']} rows a run (SVM: "
        f"{min(SVM_EXPLAINED, sizes['rows'])}), "
        f"{sizes['neighbours']} neighbours each, at most {sizes['train_rows']} training rows and 500 of "
        f"background; SHAP averages over {sizes['references']} background rows, LIME draws "
        f"{sizes['samples']} samples. Seeds are averaged first, then the models of a data set; tests and "
        "intervals are over data sets. Missing cells are filled and categories one-hot encoded before the "
        "model, and explained as one feature each; a category of more than 12 levels is left out. The "
        f"vector an explainer shows is the one every metric judges. {machine(results)}"
    )


def limits(page: QuestionPage, results: Sequence[Result]) -> Iterable[str]:
    """What the numbers cannot say."""
    yield (
        'With few blocks and many lines Nemenyi\'s difference is large: "not separable" is not "equal". The '
        "bootstrap interval is not corrected for the number of comparisons."
    )
    yield (
        "A line must fit every model of a family to be ranked in it. TreeSHAP counts as SHAP on trees. A line "
        "that is undefined in a table gets the worst number of that table."
    )
    won = controls_as_good(page, of_family(results, "all"))
    if won:
        yield won
    if page.question == "shapley":
        yield from on_one_scale(page, results)
    if page.question == "shapley":
        yield (
            f"Background: two samples of up to {SAMPLE} rows. T-Explainer averages over all of a sample, SHAP over at "
            "most the rows named above, so that its values change more."
        )
    if page.question == "slope":
        yield (
            "The two-point difference is a measured change at 0.25 SD, so locality at r = 0.25 is nearly its own "
            "definition."
        )
    if any(c is wide.SUMS for c in page.criteria):
        yield (
            "The residual of the sum is no fault of the others: SHAP sums exactly to f(x) minus the mean over the rows "
            "it averages over, LIME and Integrated Gradients promise other sums. It shows what a sample of the "
            "background, or another baseline, leaves out."
        )
    skipped: dict[str, str] = {}
    for result in results:
        skipped |= result.record.get("skipped", {})
    for name, why in sorted(skipped.items()):
        yield f"{name} is missing in some runs: {why}"


def on_one_scale(page: QuestionPage, results: Sequence[Result]) -> Iterable[str]:
    """Prediction gaps change with the scale that is explained: the lines that share one, beside each other."""
    gaps = [c for c in page.criteria if c in (wide.PGI_MEAN, wide.PGI_MARGINAL, wide.PGI_ZERO)]
    pairs = {
        "on log-odds, networks": (page.spec, "SHAP (log-odds)"),
        "on the probability, all models": (ON_PROBABILITY, "SHAP"),
    }
    found = []
    for where, (ours, other) in pairs.items():
        tables = {c: page.tables(of_family(results, "all"), c) for c in gaps}
        if any({ours, other} <= set(table) for one in tables.values() for table in one.values()):
            apart = (
                f"{c.label} {difference_text(*paired_difference(t, c.better, ours, other))}"
                for c, t in tables.items()
            )
            found.append(f"{where} ({ours} minus {other}): {', '.join(apart)}")
    if found:
        yield (
            f"PGI counts changes of the probability. SHAP, shapiq and LIME explain it; {page.spec} explains the "
            "log-odds of networks, boosted trees and linear models. On one scale: "
            f"{'; '.join(found)}."
        )


def cost_figure(page: QuestionPage, results: Sequence[Result], out: Path) -> Iterable[PageBlock]:
    """The leading criterion against the cost, on networks."""
    if not results:
        return
    lead = page.criteria[0]
    means = line_means(page, results, lead)
    cost = {n: (wide.cost_of(results, n)[1], means.get(n, math.nan)) for n in competitors(page, results)}
    path = out / f"{page.file}_cost.svg"
    labels = ("milliseconds of processor time a row, networks", lead.label)
    figures.two_qualities(cost, labels, path, logarithmic="x")
    yield "figure", path


def competitors(page: QuestionPage, results: Sequence[Result]) -> list[str]:
    """Every line of the page, ours first."""
    tables = page.tables(results, page.criteria[0])
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    return sorted(names, key=lambda name: (not name.startswith("T-Explainer"), names.index(name)))


def line_means(page: QuestionPage, results: Sequence[Result], criterion: WideCriterion) -> dict[str, float]:
    """Mean over data sets of each line, over the models it fits."""
    return {name: found[0] for name, found in _intervals(page, results, criterion).items()}


def _intervals(
    page: QuestionPage, results: Sequence[Result], criterion: WideCriterion
) -> Mapping[str, tuple[float, float, float]]:
    tables = wide.question_tables(results, criterion, page.among, controls=True)
    names = dict.fromkeys(name for table in tables.values() for name in table)
    return {name: interval_over_blocks(wide.data_set_means(tables, name)) for name in names}


def controls_as_good(page: QuestionPage, results: Sequence[Result]) -> str:
    """Say which controls have a mean as good as the best line's, and by which criteria."""
    found: dict[str, list[str]] = {}
    for criterion in page.criteria:
        sign = 1 if criterion.better == "low" else -1
        means = {name: sign * mean for name, mean in line_means(page, results, criterion).items()}
        best = min((m for name, m in means.items() if name not in CONTROL_LINES and m == m), default=math.nan)
        for name in CONTROL_LINES:
            if means.get(name, math.nan) <= best:
                found.setdefault(name, []).append(criterion.label)
    return controls_sentence(found)


def cost_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Evaluations and processor time a row, and over the model's own prediction: medians over runs."""
    header = ["Line"]
    columns = []
    for family in ("networks", "boosted"):
        own = of_family(results, family)
        if own:
            header += [f"evaluations a row, {family}", "ms a row", "over one prediction"]
            columns.append(own)
    every = competitors(page, of_family(results, "all"))
    body = [[n, *(printed_number(v) for own in columns for v in wide.cost_of(own, n))] for n in every]
    return header, body


def gated_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Mass on features that cannot matter, per function."""
    tables = wide.question_tables(results, wide.TRUTH, page.among, controls=True)
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    body = [[n, *(printed_number(table.get(n)) for table in tables.values())] for n in names]
    return ["Line", *(data_set for data_set, _ in tables)], body


# Complete tables. ------------------------------------------------------------------------------------------


def complete_tables(page: QuestionPage, results: Sequence[Result]) -> Iterable[PageBlock]:
    """Average ranks of every line for each kind of models, means with intervals, paired differences."""
    yield "h1", f"{QUESTIONS[page.question]} Complete tables"
    yield "h2", f"Where {page.spec} stands"
    yield "table", standing_table(page, results, every=True)
    yield "p", "In the next tables, bold: the best; in round brackets: not separable from it."
    for family in FAMILIES:
        tests = page.tests(of_family(results, family))
        if tests:
            yield "h2", f"Average ranks over data sets, {family}"
            yield "table", rank_table(tests)
    every = of_family(results, "all")
    yield "h2", "Means over data sets"
    yield (
        "p",
        "With 95% bootstrap intervals over data sets; controls last. A line is averaged over the models it "
        "fits, so lines of different families are not comparable here.",
    )
    yield "table", score_table(page, every)
    yield "h2", f"{page.spec} minus each line"
    yield "p", "Paired over data sets, on the models that both fit, with 95% bootstrap intervals."
    yield "table", difference_table(page, every)


def score_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Means over data sets with intervals, controls below."""
    columns = {arrowed(c): _intervals(page, results, c) for c in page.criteria}
    body = []
    for name in [*competitors(page, results), *CONTROL_LINES]:
        cells = [f"*{name}*" if name in CONTROL_LINES else name]
        for found in columns.values():
            mean, low, high = (printed_number(value) for value in found.get(name, (None, None, None)))
            cells.append(mean if low == high else f"{mean} [{low}, {high}]")
        body.append(cells)
    return ["Line", *columns], body


def difference_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Paired differences of our attribution to each other line."""
    tables = {c.label: (page.tables(results, c), c.better) for c in page.criteria}
    others = [name for name in competitors(page, results) if name != page.spec]
    body = [
        [
            name,
            *(
                difference_text(*paired_difference(t, better, page.spec, name))
                for t, better in tables.values()
            ),
        ]
        for name in others
    ]
    return ["Against", *tables], body

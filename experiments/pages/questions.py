"""One page per question from the wide evaluation: where our attribution stands, at which cost, and how.

The table comes first and has a row for every criterion, won or lost; its last column names the kinds of models on which
ours is behind although it is not over all. Every figure is computed from the results. Complete tables go into the
folder of the results.
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
    paired_blocks,
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

    def tests(self, results: Sequence[Result], *, alone: bool = False) -> dict[str, RankTest]:
        """A rank test over data sets per criterion; `alone`: without our other lines, which would add distance."""
        found = {}
        for c in self.criteria:
            blocks = over_data_sets(self.tables(results, c), c.better).values()
            kept = [
                {n: v for n, v in b.items() if not alone or n == self.spec or is_other(n)} for b in blocks
            ]
            found[c.label] = rank_test(kept, c.better)
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
    found = standings(page, results)
    over_all = [one for one in found if one.family == "all"]
    yield "table", short_table(found)
    alike = on_one_scale(page, results) if page.question == "shapley" else ()
    yield "list", [*conclusions(over_all), *alike]
    yield (
        "p",
        "Rank: average over data sets, 1 = best, of ours and the other explainers that fit all four kinds of "
        "models. Difference: ours minus the best other's, with its 95% bootstrap "
        "interval over data sets. Behind: the interval, or Nemenyi's critical difference after a Friedman test "
        "(p < 0.05), says so. First: the ranks say so against every other, and the interval against the best. "
        f"[All lines, ranks and scores, also by kind of model, and all costs]({out.name}/{page.file}.md).",
    )
    yield "list", [f"{arrowed(c)}: {c.meaning}." for c in page.criteria]
    yield "h2", "Cost"
    named = named_lines(page, found)
    yield "table", cost_table(page, results, named)
    yield (
        "p",
        f"Of the lines named above. Processor time, medians over runs, of calls of "
        f"{results[0].configuration['sizes']['rows']} rows: the fixed cost of a call counts. Costs of many rows: "
        "[Shapley values of trees](shapley.md), [slopes](slopes.md), [functions](blackbox.md).",
    )
    yield from cost_figure(page, of_family(results, "networks"), out)
    yield "h2", "How"
    yield "p", introduction(results)
    yield "h2", "Limits"
    yield "list", list(limits(page, results))


@dataclass(frozen=True)
class Standing:
    """Where our attribution stands by one criterion on one kind of models, beside the best other explainer."""

    spec: str
    criterion: WideCriterion
    family: str
    test: RankTest
    other: str  # the best line that is not ours
    means: tuple[float, float]  # ours, the other's
    difference: tuple[float, float, float]

    @property
    def leads(self) -> bool:
        """Whether no other explainer has a lower average rank."""
        return self.test.average[self.spec] <= self.test.average[self.other]

    @property
    def beside(self) -> list[str]:
        """The other explainers whose ranks are not separable from ours."""
        return self.test.beside(self.spec)

    @property
    def behind(self) -> bool:
        """Whether the best other explainer is better beyond chance, by the interval or by the ranks."""
        _, low, high = self.difference
        against = low > 0 if self.criterion.better == "low" else high < 0
        later = self.test.average[self.spec] > self.test.average[self.other]
        return against or (later and self.other not in self.beside)

    @property
    def wins(self) -> bool:
        """First, and separable from every other explainer."""
        _, low, high = self.difference
        ahead = high < 0 if self.criterion.better == "low" else low > 0
        return self.leads and ahead and not self.beside

    @property
    def result(self) -> str:
        """First, behind or neither."""
        if self.wins:
            return "**first**, separable from all"
        if self.behind:
            return f"behind {self.other}"
        if self.leads:
            return f"lowest rank, not separable from {len(self.beside)} of {len(self.test.average) - 1}"
        return f"not first, not separable from {self.other}"


def is_other(name: str) -> bool:
    """Whether a line is another explainer's; Algorithm 1, the paper's, is."""
    return not name.startswith("T-Explainer")


def standings(page: QuestionPage, results: Sequence[Result]) -> list[Standing]:
    """Where our attribution stands by each criterion, on all models and on each kind."""
    found = []
    runs = {family: of_family(results, family) for family in FAMILIES}
    tests = {family: page.tests(own, alone=True) for family, own in runs.items()}
    for criterion in page.criteria:
        for family, own in runs.items():
            test = tests[family].get(criterion.label)
            if test is None or page.spec not in test.average:
                continue
            others = [name for name in test.average if is_other(name)]
            if not others:
                continue
            tables = page.tables(own, criterion)
            pair = (page.spec, others[0])
            blocks = paired_blocks(tables, criterion.better, *pair)
            ours, theirs = (interval_over_blocks([block[n] for block in blocks])[0] for n in pair)
            gap = paired_difference(tables, criterion.better, *pair)
            found.append(Standing(page.spec, criterion, family, test, others[0], (ours, theirs), gap))
    return found


def conclusions(found: Sequence[Standing]) -> Iterable[str]:
    """What wins, what loses, to whom and by how much, in words."""
    groups = {
        "First": [one for one in found if one.wins],
        "Lowest rank, but not separable from all": [
            o for o in found if o.leads and not o.wins and not o.behind
        ],
        "Behind": [one for one in found if one.behind],
        "Undecided": [one for one in found if not one.leads and not one.behind],
    }
    for words, group in groups.items():
        named = (
            f"{one.criterion.label} ({printed_number(one.means[0])}; {one.other} {printed_number(one.means[1])})"
            for one in group
        )
        yield f"{words}: {', '.join(named) or 'nowhere'}."


def short_table(found: Sequence[Standing]) -> TableCells:
    """A row for every criterion, over all models; kinds of models on which ours is behind in the last column."""
    header, body = standing_table([one for one in found if one.family == "all"])
    body = [[cells[0], *cells[2:]] for cells in body]
    for cells in body:
        lost = [o for o in found if o.family != "all" and o.behind and arrowed(o.criterion) == cells[0]]
        cells.append("; ".join(f"{one.family}: {one.other}" for one in lost) or "–")
    return [header[0], *header[2:], "Also behind, by kind of model"], body


def standing_table(found: Sequence[Standing]) -> TableCells:
    """The standings as a table, a row for each."""
    header = [
        "Criterion",
        "models",
        "Rank",
        "Best other",
        "its rank",
        "Ours",
        "Theirs",
        "Difference",
        "Result",
    ]
    body = []
    for one in found:
        average = one.test.average
        ranks = (f"{average[one.spec]:.2f} of {len(average)}", one.other, f"{average[one.other]:.2f}")
        means = (printed_number(mean) for mean in one.means)
        row = [arrowed(one.criterion), one.family, *ranks, *means, difference_text(*one.difference)]
        body.append([*row, one.result])
    return header, body


def named_lines(page: QuestionPage, found: Sequence[Standing]) -> list[str]:
    """Our attribution, and every line that the first table names."""
    named = {page.spec} | {one.other for one in found if one.family == "all" or one.behind}
    return sorted(named, key=lambda name: (name != page.spec, name))


def arrowed(criterion: WideCriterion) -> str:
    """The criterion's label and which way is better."""
    return f"{criterion.label} {'↓' if criterion.better == 'low' else '↑'}"


def difference_text(mean: float, low: float, high: float) -> str:
    """A paired difference with its interval."""
    return f"{mean:+.2g} [{low:+.2g}, {high:+.2g}]"


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
            f"PGI counts changes of the probability. SHAP, shapiq and LIME explain it in this table; {page.spec} "
            "explains the log-odds of networks, boosted trees and linear models. On the same scale: "
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


def cost_table(page: QuestionPage, results: Sequence[Result], names: Sequence[str] = ()) -> TableCells:
    """Evaluations and processor time a row, and over the model's own prediction: medians over runs.

    Of some lines, or of all.
    """
    header = ["Line"]
    columns = []
    for family in ("networks", "boosted"):
        own = of_family(results, family)
        if own:
            header += [f"evaluations a row, {family}", "ms a row", "over one prediction"]
            columns.append(own)
    every = names or competitors(page, of_family(results, "all"))
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
    yield "table", standing_table(standings(page, results))
    gated = [r for r in results if r.configuration["experiment"]["kind"] == "gated"]
    if gated:
        yield "h2", "Functions with known truth"
        yield (
            "p",
            "Fraction of the values on features that cannot matter within 0.75 SD, by function. Low is good.",
        )
        yield "table", gated_table(page, gated)
    yield "h2", "Cost"
    yield "table", cost_table(page, results)
    yield "p", "One prediction is that of a row among some hundred."
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

"""One page per question from the wide evaluation: what is best at what, at which cost, and where we lose.

Every sentence and figure is computed from the results. "First" is said where the critical difference says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.lines import QUESTIONS, Question
from experiments.pages import figures
from experiments.pages.document import PageBlock, TableCells, write_blocks
from experiments.plan import CONTROL_LINES
from experiments.ranks import rank_table
from experiments.results import Result, earlier_definitions, measured_by
from experiments.statistics import RankTest, interval_over_tables, rank_test, wins
from experiments.tables import controls_sentence
from experiments.wide import blocks as wide
from experiments.wide.blocks import WideCriterion
from texplainer.metrics.rendering import printed_number


@dataclass(frozen=True)
class QuestionPage:
    """A page: its file, our attribution, what it is judged by (the first criterion leads), who competes."""

    file: str
    question: Question
    spec: str
    criteria: tuple[WideCriterion, ...]
    among: str  # "" = every line, by absolute values

    def tests(self, results: Sequence[Result]) -> dict[str, RankTest]:
        """A rank test per criterion over blocks of data set and model."""
        found: dict[str, RankTest] = {}
        for criterion in self.criteria:
            tables = wide.defined(wide.question_blocks(results, criterion, self.among))
            test = rank_test(tables, criterion.better)
            if test is not None:
                found[criterion.label] = test
        return found


PAGES = (
    QuestionPage(
        "slopes", "slope", "T-Explainer slope",
        (wide.LOCALITY, wide.CLOSER, wide.MISPLACED, wide.BACKGROUND, wide.SEED, wide.RIS_NORM, wide.RIS,
         wide.ROS, wide.INFIDELITY, wide.PGI_MEAN), "slope",
    ),
    QuestionPage(
        "shares", "share", "T-Explainer shapley",
        (wide.PGI_MEAN, wide.PGI_MARGINAL, wide.PGI_ZERO, wide.SUMS, wide.BACKGROUND, wide.SEED,
         wide.RIS_NORM, wide.RIS, wide.ROS, wide.LOCALITY), "share",
    ),
    QuestionPage(
        "effects", "effect", "T-Explainer variation",
        (wide.PGI_MEAN, wide.PGI_MARGINAL, wide.PGI_ZERO, wide.LOCALITY, wide.BACKGROUND, wide.RIS_NORM), "",
    ),
)  # fmt: skip


def write_question_pages(results: Sequence[Result], out: Path) -> list[Path]:
    """Write one page per question beside the folder of results; return what was written."""
    written: list[Path] = []
    for page in PAGES:
        content = list(page_content(page, results, out))
        drawn = [value for kind, value in content if kind == "figure"]
        written += [*write_blocks(content, out.with_name(page.file)), *drawn]
    return written


def page_content(page: QuestionPage, results: Sequence[Result], out: Path) -> Iterable[PageBlock]:
    """Put a page together, block by block."""
    data = [r for r in results if r.configuration["experiment"]["kind"] == "wide"]
    networks, boosted = (
        [r for r in data if r.configuration["experiment"]["model"] == kind] for kind in ("network", "boosted")
    )
    gated = [r for r in results if r.configuration["experiment"]["kind"] == "gated"]
    tests, with_gradients = page.tests(data), page.tests(networks)
    yield "h1", QUESTIONS[page.question]
    if earlier_definitions(results):
        yield "p", earlier_definitions(results)
    yield from (("p", sentence) for sentence in question_stability(page, tests, data))
    won = controls_as_good(page, data)
    if won:
        yield "p", won
    yield "p", introduction(results)
    yield "h2", "Average ranks, all models"
    yield "p", "Lines that every block has. Bold: the best; in round brackets: not separable from it."
    yield "table", rank_table(tests)
    yield "h2", "Average ranks, networks"
    yield "table", rank_table(with_gradients)
    yield from drawn_figures(page, tests or with_gradients, networks or data, out)
    yield "h2", "Scores"
    yield (
        "p",
        "Means over blocks of data set and model, with 95% bootstrap intervals over blocks; controls last. "
        "Lines that fit fewer models have fewer blocks, and their means are of other tables: compare them by "
        "the wins below.",
    )
    yield "table", score_table(page, data)
    yield "h2", f"{page.spec} against each line"
    yield "p", "Blocks won, lost, tied or undefined."
    yield "table", wins_table(page, data)
    for title, some in (("networks", networks), ("boosted trees", boosted)):
        if some:
            yield "h2", f"Cost, {title}"
            yield "table", cost_table(page, some)
    if gated:
        yield "h2", "Gated functions: the truth is known"
        yield (
            "p",
            "Share of attribution mass on features that cannot matter within 0.75 SDs, by function.",
        )
        yield "table", gated_table(page, gated)


def introduction(results: Sequence[Result]) -> str:
    """Say how the numbers were made."""
    sizes = results[0].configuration["sizes"]
    experiments = [result.configuration["experiment"] for result in results]
    sets = sorted({e["dataset"] for e in experiments if e["kind"] == "wide"})
    models = list(dict.fromkeys(e["model"] for e in experiments if e["kind"] == "wide"))
    quick = " --quick" if sizes["name"] == "wide-quick" else ""
    command = f"python -m experiments --wide{quick}"
    return (
        f"Made by `{command}` with {measured_by(results)}: {len(sets)} data sets ({', '.join(sets)}), "
        f"{len(models)} kinds of models ({', '.join(models)}; the SVM is handed over as a bare function), "
        f"{sizes['seeds']} seeds of split, model and rows; {sizes['rows']} rows a run, {sizes['neighbours']} "
        f"neighbours each, at most {sizes['train_rows']} training rows and 500 of background, SHAP against "
        f"{sizes['references']} rows, LIME with {sizes['samples']} samples (below their defaults, so that "
        "the whole fits two hours of two cores). Missing cells are filled and categories one-hot encoded "
        "before the model, and explained as one feature each; a category of more than 12 levels is left out. "
        "What an explainer shows is what every metric judges. Sums are held to the mean over the whole "
        "background: SHAP's own are exact against the rows it averages over, and the difference counts."
    )


def question_stability(
    page: QuestionPage, tests: dict[str, RankTest], results: Sequence[Result]
) -> Iterable[str]:
    """Say per criterion who is first, whether that is shown, and where our attribution stands."""
    for label, test in tests.items():
        first, own = test.first, test.average.get(page.spec)
        beside = test.beside(first)
        shown = "separable from all others" if not beside else f"not separable from {', '.join(beside)}"
        rank = f"{test.average[first]:.2f} of {len(test.average)}"
        text = f"{label}: {first} has the lowest average rank, {rank}, {shown}"
        if own is not None and first != page.spec:
            text += f"; {page.spec} has {own:.2f}"
        yield text + "."
    evaluations, milliseconds, ratio = wide.cost_of(results, page.spec)
    yield (
        f"{page.spec} costs {printed_number(evaluations)} evaluations and {printed_number(milliseconds)} "
        f"ms of processor time a row (medians), {printed_number(ratio)} times the model's own prediction."
    )


def drawn_figures(
    page: QuestionPage, tests: dict[str, RankTest], results: Sequence[Result], out: Path
) -> Iterable[PageBlock]:
    """The figures people look at first."""
    for place, criterion in enumerate(page.criteria[:2]):
        test = tests.get(criterion.label)
        if test is not None:
            yield "h3", f"{criterion.label}: critical differences"
            path = out / f"{page.file}_critical_{place}.svg"
            figures.critical_difference_diagram(test.average, test.critical, path)
            yield "figure", path
    lead, names = page.criteria[0], competitors(page, results)
    means = {c.label: block_means(page, results, c) for c in (lead, wide.RIS_NORM)}
    cost = {
        name: (wide.cost_of(results, name)[1], means[lead.label].get(name, float("nan"))) for name in names
    }
    yield "h3", "Cost against quality, networks"
    path = out / f"{page.file}_cost.svg"
    figures.two_qualities(cost, ("milliseconds of processor time a row", lead.label), path, logarithmic="x")
    yield "figure", path
    both = {n: (means["RIS*"].get(n, float("nan")), means[lead.label].get(n, float("nan"))) for n in names}
    yield "h3", f"{lead.label} against stability, networks"
    path = out / f"{page.file}_stability.svg"
    figures.two_qualities(both, ("RIS* (low is steady)", lead.label), path, logarithmic="x")
    yield "figure", path


def competitors(page: QuestionPage, results: Sequence[Result]) -> list[str]:
    """Every line of the page, ours first."""
    blocks = wide.question_blocks(results, page.criteria[0], page.among)
    names = list(dict.fromkeys(name for block in blocks.values() for name in block))
    return sorted(names, key=lambda name: (not name.startswith("T-Explainer"), names.index(name)))


def block_means(page: QuestionPage, results: Sequence[Result], criterion: WideCriterion) -> dict[str, float]:
    """Mean over blocks, per line."""
    return {name: found[0] for name, found in _over_blocks(page, results, criterion).items()}


def _over_blocks(
    page: QuestionPage, results: Sequence[Result], criterion: WideCriterion
) -> dict[str, tuple[float, float, float]]:
    blocks = wide.question_blocks(results, criterion, page.among, controls=True)
    names = dict.fromkeys(name for block in blocks.values() for name in block)
    return {n: interval_over_tables([block[n] for block in blocks.values() if n in block]) for n in names}


def score_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Means over blocks with intervals, controls below."""
    columns = {
        c.label + (" ↓" if c.better == "low" else " ↑"): _over_blocks(page, results, c) for c in page.criteria
    }
    blocks = wide.question_blocks(results, page.criteria[0], page.among, controls=True).values()
    body = []
    for name in [*competitors(page, results), *CONTROL_LINES]:
        cells = [f"*{name}*" if name in CONTROL_LINES else name, str(sum(name in block for block in blocks))]
        for found in columns.values():
            mean, low, high = (printed_number(value) for value in found.get(name, (None, None, None)))
            cells.append(mean if low == high else f"{mean} [{low}, {high}]")
        body.append(cells)
    return ["Line", "blocks", *columns], body


def controls_as_good(page: QuestionPage, results: Sequence[Result]) -> str:
    """Say which controls have a mean as good as the best line's, and by which criteria."""
    found: dict[str, list[str]] = {}
    for criterion in page.criteria:
        sign = 1 if criterion.better == "low" else -1
        means = {name: sign * mean for name, mean in block_means(page, results, criterion).items()}
        best = min((m for name, m in means.items() if name not in CONTROL_LINES and m == m), default=math.nan)
        for name in CONTROL_LINES:
            if means.get(name, math.nan) <= best:
                found.setdefault(name, []).append(criterion.label)
    return controls_sentence(found)


def wins_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Blocks our attribution wins, loses and ties against each other line."""
    others = [name for name in competitors(page, results) if name != page.spec]
    body = []
    for name in others:
        cells = [name]
        for criterion in page.criteria:
            tables = list(wide.question_blocks(results, criterion, page.among).values())
            won, lost, tied = wins(tables, criterion.better, page.spec, name)
            cells.append(f"{won} / {lost} / {tied}")
        body.append(cells)
    return ["Against", *(criterion.label for criterion in page.criteria)], body


def cost_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Evaluations and processor time a row, and over the model's own prediction: medians over runs."""
    header = ["Line", "evaluations a row", "ms of processor time a row", "over one prediction"]
    body = [[n, *map(printed_number, wide.cost_of(results, n))] for n in competitors(page, results)]
    return header, body


def gated_table(page: QuestionPage, results: Sequence[Result]) -> TableCells:
    """Mass on features that cannot matter, per function, of every line whatever it answers."""
    blocks = wide.question_blocks(results, wide.TRUTH, controls=True)
    names = list(dict.fromkeys(name for block in blocks.values() for name in block))
    body = [[n, *(printed_number(block.get(n)) for block in blocks.values())] for n in names]
    return ["Line", *(key.partition(",")[0] for key in blocks)], body

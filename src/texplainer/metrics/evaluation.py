"""The frozen result of an evaluation: every score of every row, the notes, and both as a table of text.

Numbers are printed as in the paper: scientific above 1e5, zero below 1e-10.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texplainer.errors import InputError
from texplainer.metrics import comparison
from texplainer.metrics.comparison import Difference, Ranks
from texplainer.metrics.scores.agreement import AGREEMENTS
from texplainer.metrics.table import ROW_STATISTICS
from texplainer.types import Array

FORMAT, VERSION = "texplainer-evaluation", 1


@dataclass(frozen=True)
class ScoreColumn:
    """One column of scores: a metric, or one part of it ("ris/max", "pgi/3")."""

    metric: str
    part: str
    label: str
    better: str
    family: str

    @property
    def name(self) -> str:
        """The metric's name, with its part."""
        return f"{self.metric}/{self.part}" if self.part else self.metric

    @property
    def fold(self) -> str:
        """How rows are aggregated to one number."""
        return self.part if self.part in ROW_STATISTICS else "mean"


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """Scores of several explainers on the same rows, neighbours and masks.

    Attributes
    ----------
    explainers
        Names, in the order given, controls last.
    columns
        The metrics.
    scores
        (explainers, columns, rows); NaN where a score is undefined or missing.
    values
        (explainers, rows, features), the attributions that were measured.
    controls
        The explainers that do not use the model.
    notes
        Explainer, or "explainer: metric", -> why scores are missing.
    neighbours
        (rows,), how many neighbours each row found.
    seconds, evaluations
        (explainers,), processor time for explaining the rows once; model evaluations per row.
    timing
        Seconds of the whole run: "explainers", "model", "harness", "total".
    settings
        All settings of the run.
    """

    explainers: tuple[str, ...]
    columns: tuple[ScoreColumn, ...]
    scores: Array
    values: Array
    feature_names: tuple[str, ...]
    controls: tuple[str, ...]
    notes: Mapping[str, str]
    neighbours: NDArray[np.int_]
    seconds: Array
    evaluations: Array
    timing: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    # ---------------------------------------------------------------- looking things up

    def index(self, explainer: str) -> int:
        """Position of an explainer."""
        if explainer not in self.explainers:
            known = ", ".join(self.explainers)
            raise InputError(f"explainer {explainer!r} is unknown; expected one of {known}.")
        return self.explainers.index(explainer)

    def columns_of(self, metric: str) -> list[int]:
        """Positions of a metric's columns ("pgi"), or of one part of it ("pgi/3")."""
        found = [j for j, c in enumerate(self.columns) if metric in (c.metric, c.name)]
        if not found:
            known = ", ".join(c.name for c in self.columns)
            raise InputError(f"metric {metric!r} is unknown; expected one of {known}.")
        return found

    def per_row(self, metric: str) -> dict[str, Array]:
        """Scores per row by explainer: of one part, of the first, or the mean over k ("pgi")."""
        found = self.columns_of(metric)
        counts = [j for j in found if self.columns[j].part.isdigit()]
        scores = self.scores[:, counts].mean(axis=1) if len(counts) > 1 else self.scores[:, found[0]]
        return dict(zip(self.explainers, scores, strict=True))

    def summary(self) -> Array:
        """One number per explainer and column, (explainers, columns), aggregated as the column defines."""
        out = np.full(self.scores.shape[:2], np.nan)
        for j, column in enumerate(self.columns):
            for i, scores in enumerate(self.scores[:, j]):
                known = scores[np.isfinite(scores)]
                if len(known):
                    out[i, j] = ROW_STATISTICS[column.fold](known)
        return out

    def best(self) -> NDArray[np.bool_]:
        """Mask of the best explainers of each column; controls never win."""
        summary = self.summary()
        signs = np.array([1.0 if c.better == "low" else -1.0 for c in self.columns])
        others = np.array([name not in self.controls for name in self.explainers])
        losses = np.where(others[:, None] & np.isfinite(summary), signs * summary, np.inf)
        return np.isfinite(losses) & (losses == losses.min(axis=0, initial=np.inf))

    # ---------------------------------------------------------------- statistics

    def compare(self, a: str, b: str, *, level: float = 0.95, seed: int = 0) -> list[Difference]:
        """Difference a - b per column, paired by row, with bootstrap intervals."""
        one, two = self.index(a), self.index(b)
        out = []
        for j, column in enumerate(self.columns):
            first, second = self.scores[one, j], self.scores[two, j]
            mean, low, high = comparison.paired_bootstrap(first, second, level=level, seed=seed)
            less, more = (a, b) if column.better == "low" else (b, a)
            better = less if high < 0 else more if low > 0 else ""
            rows = int(np.sum(np.isfinite(first) & np.isfinite(second)))
            out.append(Difference(column.name, float(mean), float(low), float(high), rows, better))
        return out

    def ranks(self, metric: str | None = None, *, controls: bool = False, level: float = 0.95) -> Ranks:
        """Average ranks over rows with the Friedman test and the critical difference, per column.

        Explainers without any score in a column are excluded from the whole table.
        """
        chosen = self.columns_of(metric) if metric else list(range(len(self.columns)))
        kept = [
            i
            for i, name in enumerate(self.explainers)
            if (controls or name not in self.controls)
            and np.isfinite(self.scores[i][chosen]).any(axis=1).all()
        ]
        tables = [comparison.row_ranks(self.scores[kept, j], self.columns[j].better) for j in chosen]
        tests = [comparison.friedman(table) for table in tables]
        return Ranks(
            tuple(self.explainers[i] for i in kept),
            tuple(self.columns[j].name for j in chosen),
            np.stack([t.mean(axis=1) if t.size else np.full(len(kept), np.nan) for t in tables], axis=1),
            np.array([t[0] for t in tests]),
            np.array([t[1] for t in tests]),
            np.array([comparison.critical_difference(len(kept), t.shape[1], level) for t in tables]),
            tuple(t.shape[1] for t in tables),
        )

    def agreement(self, kind: str = "feature", k: int = 3) -> Array:
        """Mean agreement of each pair of explainers, (explainers, explainers).

        `kind` is "feature", "rank", "sign", "signed_rank", "spearman" or "kendall".
        """
        if kind not in AGREEMENTS:
            raise InputError(f"kind={kind!r} is unknown; expected one of {', '.join(AGREEMENTS)}.")
        count, rows, features = self.values.shape
        if not 1 <= k <= features:
            raise InputError(f"k={k} of {features} features; expected between 1 and {features}.")
        ties = np.random.default_rng(0).random((rows, features))
        out = np.full((count, count), np.nan)
        for i in range(count):
            for j in range(i, count):
                both = np.isfinite(self.values[[i, j]]).all(axis=(0, 2))
                if both.any():
                    pair = self.values[i, both], self.values[j, both]
                    out[i, j] = out[j, i] = AGREEMENTS[kind](*pair, ties[both], k).mean()
        return out

    # ---------------------------------------------------------------- showing and keeping

    def table(self, metrics: Sequence[str] | None = None, *, style: str = "plain") -> Any:
        """Render a table: "plain" text, "markdown", or a "rich" table; the best in bold, controls below."""
        chosen = [j for name in metrics for j in self.columns_of(name)] if metrics else None
        return render(self, chosen, style)

    def plot(self, kind: str = "stability_boxplot", **options: Any) -> Any:
        """Draw with `texplainer.plots.<kind>`: "stability_boxplot" or "stability_faithfulness"."""
        from texplainer import plots

        draw = getattr(plots, kind, None)
        if draw is None:
            raise InputError(
                f"kind={kind!r} is unknown; expected 'stability_boxplot' or 'stability_faithfulness'."
            )
        return draw(self, **options)

    def to_frame(self) -> Any:
        """A pandas table, one line per explainer, column and row."""
        import pandas as pd

        e, c, r = (axis.reshape(-1) for axis in np.indices(self.scores.shape))
        return pd.DataFrame(
            {
                "explainer": np.array(self.explainers, dtype=object)[e],
                "metric": np.array([one.metric for one in self.columns], dtype=object)[c],
                "part": np.array([one.part for one in self.columns], dtype=object)[c],
                "row": r,
                "score": self.scores.reshape(-1),
                "better": np.array([one.better for one in self.columns], dtype=object)[c],
                "control": np.isin(np.array(self.explainers, dtype=object), self.controls)[e],
            }
        )

    def report(self, path: Any, *, title: str = "") -> Any:
        """Write one self-contained HTML page; return its path."""
        from texplainer import report

        return report.write(self, path, title=title)

    def _repr_html_(self) -> str:
        from texplainer.report import notebook

        return notebook.evaluation(self)

    def save(self, path: Any) -> None:
        """Write an npz archive of arrays and JSON; loading it does not use pickle."""
        words = {"format": FORMAT, "version": VERSION, "columns": [asdict(c) for c in self.columns]}
        for name in ("explainers", "feature_names", "controls", "notes", "timing", "settings"):
            value = getattr(self, name)
            words[name] = dict(value) if isinstance(value, Mapping) else list(value)
        header = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
        arrays = {name: getattr(self, name) for name in ARRAYS}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, header=header, **arrays)

    @classmethod
    def load(cls, path: Any) -> Evaluation:
        """Read what `save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as archive:
                words = json.loads(archive["header"].tobytes())
                arrays = {name: archive[name] for name in ARRAYS}
        except (KeyError, ValueError, OSError) as error:
            raise InputError(
                f"{path} is not a saved Evaluation ({error}); expected a file written by save()."
            ) from None
        if words.pop("format", "") != FORMAT or words.pop("version") > VERSION:
            raise InputError(f"{path} is not an Evaluation this version can read; update texplainer.")
        columns = tuple(ScoreColumn(**one) for one in words.pop("columns"))
        lists = {name: tuple(words.pop(name)) for name in ("explainers", "feature_names", "controls")}
        return cls(columns=columns, **lists, **words, **arrays)

    def __repr__(self) -> str:
        rows = self.scores.shape[2]
        return f"Evaluation of {len(self.explainers)} explainers on {rows} rows\n{self.table()}"


ARRAYS = ("scores", "values", "neighbours", "seconds", "evaluations")


WORTHLESS = (
    "Below the line: controls. They do not use the model. A constant explanation is perfectly stable but "
    "useless: read stability together with faithfulness."
)
MISSING = "–"
WIDEST = 9  # columns a block
TableLine = list[tuple[str, bool]]  # (text, whether it is the best)


@dataclass(frozen=True)
class TableBlock:
    """The columns of one family, with the explainers above the line and the controls below."""

    heads: list[str]
    ranked: list[TableLine]
    controls: list[TableLine]


def render(evaluation: Evaluation, columns: list[int] | None, style: str) -> Any:
    """Render in one of `STYLES`: a block of columns per family of metrics, one below the other."""
    if style not in STYLES:
        raise InputError(f"style={style!r} is unknown; expected one of {', '.join(STYLES)}.")
    chosen = list(range(len(evaluation.columns))) if columns is None else columns
    blocks, numbers = [], (evaluation.summary(), evaluation.best())
    for family in dict.fromkeys(evaluation.columns[j].family for j in chosen):
        own = [j for j in chosen if evaluation.columns[j].family == family]
        blocks += [_block(evaluation, own[i : i + WIDEST], *numbers) for i in range(0, len(own), WIDEST)]
    return STYLES[style](blocks, footnotes(evaluation))


def _block(evaluation: Evaluation, chosen: list[int], summary: Array, best: NDArray[np.bool_]) -> TableBlock:
    ranked, controls = [], []
    for i, name in enumerate(evaluation.explainers):
        cells = [(printed_number(summary[i, j]), bool(best[i, j])) for j in chosen]
        line = [(name, False), *cells, (printed_number(evaluation.seconds[i]), False)]
        (controls if name in evaluation.controls else ranked).append(line)
    family = evaluation.columns[chosen[0]].family
    return TableBlock([family, *(_head(evaluation, j) for j in chosen), "seconds"], ranked, controls)


def _head(evaluation: Evaluation, j: int) -> str:
    column = evaluation.columns[j]
    arrow = "↓" if column.better == "low" else "↑"
    return f"{column.label} {column.part}".strip() + f" {arrow}"


def printed_number(value: float | None) -> str:
    """Write a number as the paper does."""
    if value is None or not np.isfinite(value):
        return MISSING
    size = abs(value)
    if size < 1e-10:
        return "0"
    if size >= 1e5 or size < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def footnotes(evaluation: Evaluation) -> list[str]:
    """List notes on controls, missing neighbours, skipped explainers and undefined rows."""
    notes = [WORTHLESS] if evaluation.controls else []
    wanted = evaluation.settings.get("neighbours", 0)
    short = int(np.sum(evaluation.neighbours < wanted))
    if short:
        none = int(np.sum(evaluation.neighbours == 0))
        notes.append(
            f"{short} rows found fewer than {wanted} neighbours of their class, {none} of them none."
        )
    return [*notes, *(f"{who}: {why}" for who, why in evaluation.notes.items())]


def _plain(blocks: list[TableBlock], notes: list[str]) -> str:
    return "\n\n".join([*map(_plain_block, blocks), "\n".join(["* best", *notes])])


def _plain_block(block: TableBlock) -> str:
    star = [[f"{text}*" if bold else text for text, bold in line] for line in block.ranked]
    below = [[text for text, _ in line] for line in block.controls]
    widths = [max(len(row[j]) for row in [block.heads, *star, *below]) for j in range(len(block.heads))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    foot = [rule, *map(line, below)] if below else []
    return "\n".join([line(block.heads), rule, *map(line, star), *foot])


def _markdown(blocks: list[TableBlock], notes: list[str]) -> str:
    return "\n\n".join([*map(_markdown_block, blocks), "\n".join(f"- {note}" for note in notes)]).rstrip()


def _markdown_block(block: TableBlock) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    bold = [[f"**{text}**" if best else text for text, best in one] for one in block.ranked]
    below = [[f"*{one[0][0]}*", *(text for text, _ in one[1:])] for one in block.controls]
    rule = [line([MISSING * 3] * len(block.heads))] if below else []
    align = "|---|" + "---:|" * (len(block.heads) - 1)
    return "\n".join([line(block.heads), align, *map(line, bold), *rule, *map(line, below)])


def _rich(blocks: list[TableBlock], notes: list[str]) -> Any:
    from rich.console import Group
    from rich.text import Text

    return Group(*map(_rich_block, blocks), *(Text(note, style="dim") for note in notes))


def _rich_block(block: TableBlock) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for j, head in enumerate(block.heads):
        table.add_column(head, justify="left" if j == 0 else "right")
    for place, line in enumerate(block.ranked):
        cells = [f"[bold]{escape(text)}[/bold]" if bold else escape(text) for text, bold in line]
        table.add_row(*cells, end_section=place == len(block.ranked) - 1)
    for line in block.controls:
        table.add_row(*(escape(text) for text, _ in line), style="dim")
    return table


STYLES: dict[str, Callable[[list[TableBlock], list[str]], Any]] = {
    "plain": _plain,
    "markdown": _markdown,
    "rich": _rich,
}

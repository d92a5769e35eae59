"""Plan, results on disk, tables, ranks and the page, from handmade scores."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texplainer.benchmark import page, ranks, results, tables
from texplainer.benchmark.plan import (
    CONTROLS,
    EXPERIMENTS,
    FULL,
    METRICS,
    PAPER_ROWS,
    QUICK,
    Run,
    configuration_hash,
    plan,
)
from texplainer.benchmark.results import Result
from texplainer.errors import InputError


def handmade(name: str, **numbers: float) -> Result:
    """A result in which explainer `name` scores `number` on every score of its run, in each of three rows."""
    run = plan([name], QUICK)[0]
    scores: dict[tuple[str, str], np.ndarray] = {}
    for explainer in (*run.explainers, *CONTROLS):
        base = numbers.get(explainer.replace(" ", "_").replace("-", "_"), 9.0)
        for metric in METRICS[run.experiment.kind]:
            parts = {"ris": ("max", "mean"), "ros": ("max", "mean"), "res": ("max",)}.get(metric)
            if metric.startswith(("pgi", "pgu")):
                parts = tuple(str(k) for k in run.experiment.k)
            for part in parts or ("median",) if "norm" in metric else parts or ("",):
                scores[explainer, f"{metric}/{part}".rstrip("/")] = np.full(3, base)
    record = {
        "configuration": run.configuration,
        "model": {"name": run.experiment.model, "dataset": run.experiment.dataset, "accuracy": 0.9,
                  "train_accuracy": 1.0, "paper_accuracy": None},
        "dataset": {"rows": 10, "note": ""},
    }  # fmt: skip
    return Result(run.name, scores, record)


# The plan. -----------------------------------------------------------------------------------------------


def test_every_experiment_of_the_paper_is_there() -> None:
    printed = tables.paper_figures()
    kinds = {
        kind: [e.name for e in EXPERIMENTS.values() if e.kind == kind and e.paper == e.name]
        for kind in printed
    }
    assert {kind: sorted(names) for kind, names in kinds.items()} == {
        k: sorted(v) for k, v in printed.items()
    }
    assert [len(kinds["stability"]), len(kinds["faithfulness"])] == [10, 8]
    assert {"boxplots", "running_time"} <= set(EXPERIMENTS)


def test_plan_expands_repetitions_and_names_are_unique() -> None:
    runs = plan((), FULL)
    assert sum(run.experiment.kind == "boxplots" for run in runs) == 10
    assert len({run.name for run in runs}) == len(runs) == len({run.hash for run in runs})
    assert len({run.configuration["seed"] for run in plan(["boxplots"], FULL)}) == 10
    with pytest.raises(InputError, match="unknown experiment 'nothing'; known are xrfc_4ft"):
        plan(["nothing"])


def test_hash_depends_on_content_not_on_order() -> None:
    configuration = plan(["3hnn_20ft"], FULL)[0].configuration
    turned = dict(reversed(configuration.items()))
    assert configuration_hash(turned) == configuration_hash(configuration)
    assert configuration_hash(configuration | {"seed": 1}) != configuration_hash(configuration)
    assert json.loads(json.dumps(configuration)) == configuration
    assert plan(["3hnn_20ft"], QUICK)[0].hash != plan(["3hnn_20ft"], FULL)[0].hash


# Results on disk. ----------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.floats(-1e9, 1e9), st.just(math.nan)), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_scores_survive_the_file(values: list[float]) -> None:
    scores = {("A, b", "ris/max"): np.array(values), ("C", "ris/max"): np.ones(len(values))}
    back = results.from_csv(results.to_csv(scores))
    assert list(back) == list(scores)
    for key, column in scores.items():
        np.testing.assert_allclose(back[key], column, rtol=1e-6)
    assert results.to_csv(back) == results.to_csv(scores)


def test_a_run_is_finished_only_if_whole_and_of_this_configuration(tmp_path: Path) -> None:
    run = plan(["3hnn_20ft"], QUICK)[0]
    assert not results.finished(run, tmp_path)
    results.save(handmade("3hnn_20ft"), tmp_path)
    assert results.finished(run, tmp_path)
    assert not results.finished(plan(["3hnn_20ft"], FULL)[0], tmp_path)
    record = json.loads((tmp_path / "3hnn_20ft.json").read_text())
    assert record["hash"] == run.hash and "numpy" in record["versions"]
    with (tmp_path / "3hnn_20ft.csv").open("a") as file:  # half a rewrite
        file.write("x")
    assert not results.finished(run, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["3hnn_20ft.csv", "3hnn_20ft.json"]


COMMITTED = Path(__file__).parents[1] / "docs" / "results" / "paper"


@pytest.mark.parametrize("run", plan((), FULL), ids=lambda run: run.name)
def test_the_committed_results_are_those_of_this_code(run: Run) -> None:
    """A change of the configuration without a new full run must not go unnoticed."""
    assert results.finished(run, COMMITTED), (
        "run `texplainer bench --all -o docs/results/paper` and commit it"
    )
    assert json.loads((COMMITTED / f"{run.name}.json").read_text())["hash"] == run.hash


def test_the_committed_page_is_made_of_the_committed_results(tmp_path: Path) -> None:
    runs = plan((), FULL)
    blocks = list(page.content(runs, [results.load(run.name, COMMITTED) for run in runs], {}))
    made = page.as_markdown(blocks, tmp_path)
    committed = COMMITTED.with_name("paper.md").read_text()
    assert committed.startswith(made[: made.index("## Stability tables")])


def test_a_killed_save_leaves_no_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Die between the scores and the record: the run counts as not done, and nothing is left lying about."""

    class Killed(BaseException):
        pass

    written: list[str] = []
    original = Path.write_text

    def write_text(self: Path, *args: object, **options: object) -> int:
        written.append(self.name)
        if len(written) == 2:
            raise Killed
        return original(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(Killed):
        results.save(handmade("3hnn_20ft"), tmp_path)
    monkeypatch.undo()
    assert not results.finished(plan(["3hnn_20ft"], QUICK)[0], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["3hnn_20ft.csv"]


# Tables. -------------------------------------------------------------------------------------------------


def test_paper_figures_are_read_cell_by_cell() -> None:
    table = tables.paper_table(EXPERIMENTS["3hnn_hel"])
    assert table["LIME"] == {
        "RIS max": 509.7,
        "RIS mean": 3.84,
        "ROS max": 3.7e5,
        "ROS mean": 626.5,
        "RES max": 0.093,
    }
    assert tables.paper_table(EXPERIMENTS["faith_3hnn_bba"])["T-Explainer"]["PGI@3"] == 0.9563
    assert tables.paper_table(EXPERIMENTS["running_time"]) == {}
    for kind in tables.paper_figures().values():
        for table in kind.values():
            assert all(len(row) == len(table["columns"]) for row in table["rows"].values())


def test_grid_puts_the_papers_figures_beside_ours() -> None:
    grid = tables.grids(handmade("3hnn_20ft", T_Explainer=1.5, constant=0.0))[0]
    line = next(line for line in grid.lines if line.explainer == "T-Explainer")
    assert line.ours[:2] == (1.5, 1.5) and line.paper[:2] == (717.0, 26.2)
    header, body = tables.layout(grid)
    assert header[:5] == ["Explainer", "RIS max ↓", "paper", "RIS mean ↓", "paper"]
    assert body[0][:5] == ["T-Explainer", "**1.5**", "717", "**1.5**", "26.2"]
    assert next(row for row in body if row[0] == "*constant*")[:3] == [
        "*constant*",
        "0",
        "–",
    ]  # stable, not best


def test_folds_are_those_of_the_paper_and_skip_the_undefined() -> None:
    result = handmade("3hnn_20ft")
    scores = dict(result.scores)
    scores["LIME", "ris/max"] = np.array([1.0, np.nan, 5.0])
    scores["LIME", "ris/mean"] = np.array([1.0, np.nan, 5.0])
    scores["SHAP", "ris/max"] = np.full(3, np.nan)
    changed = Result(result.name, scores, result.record)
    largest, mean = tables.stability_columns()[:2]
    assert tables.fold(changed, "LIME", largest) == 5.0
    assert tables.fold(changed, "LIME", mean) == 3.0
    assert math.isnan(tables.fold(changed, "SHAP", largest))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (1e-12, "0"),
        (0.0, "0"),
        (2.5e6, "2.5e+06"),
        (13819.2, "13,819"),
        (5.97, "5.97"),
    ],
)
def test_numbers_are_written_as_in_the_paper(value: float | None, text: str) -> None:
    assert tables.number(value) == text


def test_html_escapes_and_marks() -> None:
    text = tables.to_html(["a<b"], [["**1**"], ["*Zero*"]])
    assert "<th>a&lt;b</th>" in text and "<td><b>1</b></td>" in text and "<td><i>Zero</i></td>" in text


# Ranks. --------------------------------------------------------------------------------------------------


def test_the_papers_own_average_ranks() -> None:
    """Known from its tables: 1.4 for mean RIS, 1.5 for mean ROS."""
    names = [e.name for e in EXPERIMENTS.values() if e.kind == "stability" and e.paper == e.name]
    made = [handmade(name) for name in names]
    for criterion, expected in zip(ranks.CRITERIA, (1.4, 1.5), strict=False):
        own = ranks.average_ranks([ranks.paper_scores(r, criterion) for r in made], "low")
        assert own["T-Explainer"] == pytest.approx(expected)
        assert set(own) == set(PAPER_ROWS)  # TreeSHAP counts as SHAP


def test_ranks_share_ties_and_put_the_undefined_last() -> None:
    assert ranks.ranked({"a": 2.0, "b": 1.0, "c": 2.0, "d": math.nan}, "low") == {
        "b": 1,
        "a": 2.5,
        "c": 2.5,
        "d": 4,
    }
    assert ranks.ranked({"a": 2.0, "b": 1.0}, "high") == {"a": 1, "b": 2}


def test_controls_never_compete_and_losses_name_the_winner() -> None:
    made = [handmade("3hnn_20ft", T_Explainer=2.0, LIME=1.0, constant=0.0)]
    assert not set(ranks.scores(made[0], ranks.CRITERIA[0])) & set(CONTROLS)
    _, body = ranks.losses(made)
    assert ["3hnn_20ft", "RIS mean", "2 of 11", "2", "LIME", "1", "2.00"] in body
    assert ranks.losses([handmade("3hnn_20ft", T_Explainer=0.5)])[1] == []


def test_summary_counts_firsts_and_names_the_leader() -> None:
    won, lost = handmade("3hnn_20ft", T_Explainer=0.5), handmade("3hnn_4ft", T_Explainer=2.0, LIME=1.0)
    first, *_ = ranks.summary([won, lost])
    assert first == (
        "RIS mean: T-Explainer has average rank 1.50 and is first in 1 of 2 tables; "
        "no explainer has a lower average rank."
    )
    assert "the lowest average rank is that of LIME (1.00)" in ranks.summary([lost])[0]


def test_rank_agreement_is_perfect_with_the_papers_own_order() -> None:
    theirs = tables.paper_table(EXPERIMENTS["3hnn_20ft"])
    numbers = {name.replace(" ", "_").replace("-", "_"): row["RIS mean"] for name, row in theirs.items()}
    _, body = ranks.agreement_table([handmade("3hnn_20ft", **numbers)])
    assert body[0][1] == "+1.00"
    assert len(theirs) == len(PAPER_ROWS)


# The page. -----------------------------------------------------------------------------------------------


def test_page_holds_every_table_and_is_the_same_each_time(tmp_path: Path) -> None:
    made = [
        handmade(name, T_Explainer=2.0, LIME=1.0) for name in ("3hnn_20ft", "faith_3hnn_20ft", "xrfc_4ft")
    ]
    times = {
        ("T-Explainer", "seconds"): np.array([1.0, 2.0]),
        ("KernelSHAP", "seconds"): np.array([3.0, 8.0]),
    }
    clock = Result("running_time", times, {**handmade("running_time").record, "tasks": [1, 2]})
    boxes = [
        Result(f"boxplots_{i}", handmade("boxplots").scores, handmade("boxplots").record) for i in range(2)
    ]
    out = tmp_path / "paper"
    for _ in range(2):
        written = page.write_page(plan((), QUICK), [*made, clock, *boxes], out)
        texts = [path.read_text() for path in written]
        assert {path.name for path in written} == {
            "paper.md",
            "paper.html",
            "boxplots.svg",
            "running_time.svg",
        }
    assert texts == [path.read_text() for path in written]
    markdown, html = texts[:2]
    for part in (
        "`3hnn_20ft`",
        "`faith_3hnn_20ft`",
        "Average ranks",
        "not first",
        "paper/boxplots.svg",
        "4.00",
    ):
        assert part in markdown
    assert not any("<dc:date>" in text for text in texts)
    assert html.count("<svg") == 2 and "http" not in html.split("<svg")[0]


def test_run_without_repetitions_keeps_its_name() -> None:
    assert Run(EXPERIMENTS["3hnn_20ft"], QUICK).name == "3hnn_20ft"
    assert Run(EXPERIMENTS["boxplots"], QUICK, 3).name == "boxplots_3"

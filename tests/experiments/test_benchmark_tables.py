"""Plan, results on disk, tables, ranks and the page, from handmade scores."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_info

import experiments
from experiments import ranks, results, runs, statistics, tables
from experiments.lines import (
    AUTHORS,
    BOXPLOT_LINES,
    INDUCED,
    LINES,
    NETWORK_LINES,
    ON_PROBABILITY,
    PRINTED,
    WIDE_LINES,
    Setting,
    build_explainers,
    question_of,
)
from experiments.pages import document, paper, questions
from experiments.paper import EXPERIMENTS, plan
from experiments.plan import (
    CONTROL_LINES,
    DEFINITIONS,
    FULL,
    METRICS_OF,
    QUICK,
    WIDE_FULL,
    Run,
    configuration_hash,
    definitions_of,
)
from experiments.ranks import PAPER_ROWS
from experiments.results import Result
from experiments.wide import blocks
from experiments.wide.experiments import WIDE_DATASETS, wide_plan
from texplainer import datasets
from texplainer.errors import InputError

PARTS = {"ris": ("max", "mean"), "ros": ("max", "mean"), "res": ("max",), "lap": ("mean",)}


def parts_of(metric: str, k: tuple[int, ...]) -> tuple[str, ...]:
    if metric.startswith(("pgi", "pgu")) and metric != "pgu_openxai":
        return tuple(str(one) for one in k)
    if "norm" in metric:
        return ("median",)
    return PARTS.get(metric.removesuffix("_skipped"), ("",))


def handmade(name: str, numbers: dict[str, float] | None = None, part: int = 0) -> Result:
    """A result in which an explainer scores its number on every score of its run, in each of three rows."""
    run = plan([name], QUICK)[part]
    scores: dict[tuple[str, str], np.ndarray] = {}
    for explainer in (*run.experiment.lines, *CONTROL_LINES):
        base = (numbers or {}).get(explainer, 9.0)
        for metric in METRICS_OF[run.experiment.kind]:
            for part in parts_of(metric, run.experiment.k):
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


def test_a_record_names_the_kernels_that_round() -> None:
    known = results.this_machine()["processor"]
    kernels = {one.get("architecture") for one in threadpool_info()} - {None}
    assert kernels and all(f"BLAS kernel {name}" in known for name in kernels)


def test_a_run_is_finished_only_if_whole_and_of_this_configuration(tmp_path: Path) -> None:
    run = plan(["3hnn_20ft"], QUICK)[0]
    assert not results.finished(run, tmp_path)
    results.write_result(handmade("3hnn_20ft"), tmp_path)
    assert results.finished(run, tmp_path)
    assert not results.finished(plan(["3hnn_20ft"], FULL)[0], tmp_path)
    record = json.loads((tmp_path / "3hnn_20ft.json").read_text())
    assert record["hash"] == run.hash and "numpy" in record["versions"]
    with (tmp_path / "3hnn_20ft.csv").open("a") as file:  # half a rewrite
        file.write("x")
    assert not results.finished(run, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["3hnn_20ft.csv", "3hnn_20ft.json"]


COMMITTED = Path(__file__).parents[2] / "docs" / "results" / "paper"


def test_the_committed_results_are_those_of_this_code_or_the_page_says_which_code_made_them() -> None:
    """A change of the configuration without a new full run must not go unnoticed."""
    page = COMMITTED.with_name("paper.md").read_text()
    old = [run.name for run in plan((), FULL) if not results.finished(run, COMMITTED)]
    if old:
        assert "**Measured with version" in page[:1000], (
            "run `python -m experiments --all --jobs 2 -o docs/results/paper` and commit it, or say on the page "
            "with which version it was measured"
        )
        return
    runs = plan((), FULL)
    content = list(paper.content(runs, [results.read_run(run.name, COMMITTED) for run in runs], {}))
    made = document.as_markdown(content, COMMITTED.parent)
    assert page.split("## How")[1] == made.split("## How")[1]


@pytest.mark.parametrize("path", sorted(COMMITTED.glob("*.json")), ids=lambda path: path.stem)
def test_committed_results_are_whole(path: Path) -> None:
    record = json.loads(path.read_text())
    assert record["hash"] == configuration_hash(record["configuration"])
    digest = hashlib.sha256(path.with_suffix(".csv").read_bytes()).hexdigest()
    assert digest == record["scores_sha256"]


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
        results.write_result(handmade("3hnn_20ft"), tmp_path)
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


def test_grid_puts_the_papers_figures_beside_the_papers_method() -> None:
    numbers = {"T-Explainer slope": 1.5, PRINTED: 3.0, AUTHORS: 4.0, "constant": 0.0}
    grid = tables.grids(handmade("3hnn_20ft", numbers))[0]
    lines = {line.explainer: line for line in grid.lines}
    labels = [column.label for column in grid.columns]
    clipped, skipped = labels.index("RIS mean"), labels.index("RIS mean, zeros skipped")
    assert lines[PRINTED].paper[clipped] == 26.2 and lines[PRINTED].paper[skipped] is None
    assert lines[AUTHORS].paper[clipped] is None and lines[AUTHORS].paper[skipped] == 26.2
    assert set(lines["T-Explainer slope"].paper) == {None}  # our own method is not the paper's
    header, body = tables.grid_cells(grid)
    assert header[:4] == ["Explainer", "answers", "RIS max ↓", "paper"]
    assert body[0][:4] == ["T-Explainer slope", "slope", "**1.5**", "–"]
    control = next(row for row in body if row[0] == "*constant*")
    assert control[:4] == ["*constant*", "", "0", "–"]  # stable, not best


def test_cells_carry_bootstrap_intervals_over_rows() -> None:
    result = handmade("3hnn_20ft")
    scores = dict(result.scores)
    scores["LIME", "ris/mean"] = np.array([1.0, 2.0, 3.0])
    column = next(c for c in tables.stability_columns() if c.label == "RIS mean")
    changed = Result(result.name, scores, result.record)
    low, high = tables.interval_of(changed, "LIME", column) or (0.0, 0.0)
    assert 1.0 <= low < 2.0 < high <= 3.0
    assert tables.interval_of(changed, "LIME", tables.stability_columns()[0]) is None  # a maximum has none
    assert tables.with_interval(2.0, (low, high)).startswith("2 [")
    assert tables.with_interval(2.0, (2.0, 2.0), best=True) == "**2**"


def test_a_control_that_wins_is_named_under_its_table() -> None:
    made = tables.grids(handmade("3hnn_20ft", {"constant": 0.0, "zero": 10.0}))[0]
    said = tables.control_wins(made)
    assert (
        "constant in RIS max, RIS mean" in said and "zero in PGI." in said
    )  # low is steady, high is faithful
    assert "zero in RIS" not in said
    beaten = {"constant": 10.0, "zero": 10.0, "random": 10.0}
    assert tables.control_wins(tables.fill_grid(handmade("3hnn_20ft", beaten), "", made.columns[:2])) == ""


def test_folds_are_those_of_the_paper_and_skip_the_undefined() -> None:
    result = handmade("3hnn_20ft")
    scores = dict(result.scores)
    scores["LIME", "ris/max"] = np.array([1.0, np.nan, 5.0])
    scores["LIME", "ris/mean"] = np.array([1.0, np.nan, 5.0])
    scores["SHAP", "ris/max"] = np.full(3, np.nan)
    changed = Result(result.name, scores, result.record)
    largest, mean = tables.stability_columns()[:2]
    assert tables.summarise_rows(changed, "LIME", largest) == 5.0
    assert tables.summarise_rows(changed, "LIME", mean) == 3.0
    assert math.isnan(tables.summarise_rows(changed, "SHAP", largest))


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
    assert tables.printed_number(value) == text


# Ranks. --------------------------------------------------------------------------------------------------


def test_the_papers_own_average_ranks() -> None:
    """Known from its tables: 1.4 for mean RIS, 1.5 for mean ROS."""
    names = [e.name for e in EXPERIMENTS.values() if e.kind == "stability" and e.paper == e.name]
    made = [handmade(name) for name in names]
    for label, expected in (("RIS mean", 1.4), ("ROS mean", 1.5)):
        own = ranks.printed_ranks(made, label)
        assert own["T-Explainer"] == pytest.approx(expected)
        assert set(own) == set(PAPER_ROWS)  # TreeSHAP counts as SHAP


def test_the_papers_method_stands_beside_the_paper_and_ours_does_not() -> None:
    made = handmade("3hnn_20ft", {PRINTED: 26.2, AUTHORS: 100.0, "T-Explainer slope": 1.0})
    assert ranks.beside_the_paper(made, ranks.RIS, "as printed")["T-Explainer"] == 26.2
    assert ranks.beside_the_paper(made, ranks.RIS_SKIPPED, "authors' set-up")["T-Explainer"] == 100.0
    assert set(ranks.beside_the_paper(made, ranks.RIS, "as printed")) == set(PAPER_ROWS)
    printed, authors = ranks.headlines([made])[:2]
    assert "average rank 6.00" in printed and "in 1 of 1 tables" in printed
    assert "in 0 of 1 tables" in authors
    _, body = ranks.reproduction_table([made])
    assert body[0][:4] == ["3hnn_20ft", "26.2", "26.2 (1)", "100 (3.8)"]


def test_the_authors_induce_where_there_are_categories() -> None:
    made = handmade("3hnn_ger", {AUTHORS: 400.0, INDUCED: 49.4})
    assert ranks.method_scores(made, "RIS mean", "authors' set-up") == (49.4, 49.4)
    assert ranks.method_scores(handmade("3hnn_20ft", {AUTHORS: 7.0}), "RIS mean", "authors' set-up")[0] == 7.0


def test_a_headline_says_whether_it_reproduces_and_how_far_its_interval_reaches() -> None:
    first, other = (ranks.headline([handmade("3hnn_20ft", {AUTHORS: value})], "RIS mean", "authors' set-up")
                    for value in (8.0, 60.0))  # fmt: skip
    assert "the paper's headline reproduces" in first and "does not reproduce (SHAP is first" in other
    wide = handmade("3hnn_20ft")
    wide.scores[AUTHORS, "ris_skipped/mean"][:] = [1.0, 20.0, 300.0]  # type: ignore[index]
    text = ranks.headline([wide], "RIS mean", "authors' set-up")
    assert "in 0 of 1 tables" in text and "reaches that far in 1." in text


def test_a_table_that_was_trained_again_says_what_is_chance() -> None:
    parts = [
        handmade("authors_3hnn_20ft", {AUTHORS: number}, part) for part, number in enumerate((100.0, 26.2))
    ]
    other = [
        handmade("authors_3hnn_4ft", {AUTHORS: number}, part) for part, number in enumerate((100.0, 90.0))
    ]
    _, body = ranks.training_rows_table([*parts[::-1], *other])
    assert body[0][:6] == [
        "3hnn_20ft",
        "26.2",
        "100",
        "3.8",
        "26.2 to 26.2",
        "other trainings: 1 of 1",
    ]
    assert body[1][5] == "**no**"
    ris, _ = ranks.training_rows_sentences([*parts, *other])
    assert "in 0 of 2 tables" in ris
    assert "reaches that far in 3hnn_20ft (other trainings); out of reach: 3hnn_4ft." in ris


def test_a_miss_is_reached_by_trainings_before_rows() -> None:
    def reached(own: float, interval: tuple[float, float], *again: float) -> str:
        return ranks.Trained(10.0, own, interval, again).reached

    assert reached(19.0, (19.0, 19.0), 90.0) == "yes"
    assert reached(90.0, (1.0, 99.0), 80.0, 15.0) == "other trainings: 1 of 2"
    assert reached(90.0, (80.0, 99.0), 1.0) == "other trainings: on both sides"
    assert reached(90.0, (12.0, 99.0), 80.0) == "interval over rows"
    assert reached(90.0, (80.0, 99.0), 80.0) == ""


def test_a_table_is_drawn_and_split_again() -> None:
    first, again = (runs.drawn_again("4ft", part) for part in (0, 1))
    assert np.array_equal(first.X_train, datasets.load("4ft").X_train)
    # the extremes are scaled to 0 and 1
    assert np.isin(again.X_train[:, 0], first.X_train[:, 0]).mean() < 0.01


def test_ranks_share_ties_and_put_the_undefined_last() -> None:
    found = statistics.ranked({"a": 2.0, "b": 1.0, "c": 2.0, "d": math.nan}, "low")
    assert found == {"b": 1, "a": 2.5, "c": 2.5, "d": 4}
    assert statistics.ranked({"a": 2.0, "b": 1.0}, "high") == {"a": 1, "b": 2}


def test_rank_test_by_hand() -> None:
    """Three explainers in the same order on five tables: Friedman 10, p = exp(-5); CD = 2.343 sqrt(3*4/30)."""
    test = statistics.rank_test(
        [{"a": 1.0, "b": 2.0, "c": 3.0, "d": 0.0}] * 4 + [{"a": 1.0, "b": 2.0, "c": 3.0}], "low"
    )
    assert test is not None and test.average == {"a": 1.0, "b": 2.0, "c": 3.0}  # d is not everywhere
    assert test.p_value == pytest.approx(np.exp(-5)) and test.critical == pytest.approx(
        2.343 * 0.4**0.5, abs=2e-3
    )
    assert test.first == "a" and test.beside("a") == ["b"] and test.beside("b") == ["a", "c"]
    assert statistics.rank_test([{"a": 1.0, "b": 2.0}], "low") is None


def test_a_data_set_is_one_block_however_many_models_it_has() -> None:
    tables = {("d", "m"): {"a": 1.0, "b": 2.0, "c": 5.0}, ("d", "n"): {"a": 5.0, "b": math.nan},
              ("e", "m"): {"a": 0.0, "b": 1.0}, ("e", "n"): {"a": math.nan, "b": math.nan}}  # fmt: skip
    found = statistics.over_data_sets(tables, "low")
    assert found == {
        "d": {"a": 3.0, "b": 3.5},
        "e": {"a": 0.0, "b": 1.0},
    }  # undefined: the worst of its table
    many = {(f"d{i}", str(j)): {"a": 1.0, "b": 2.0, "c": 3.0} for i in range(4) for j in range(20)}
    test = statistics.rank_test(list(statistics.over_data_sets(many, "low").values()), "low")
    assert (
        test is not None and test.blocks == 4 and test.beside("a") == ["b"]
    )  # 80 blocks would separate them


def test_nothing_is_separable_where_friedmans_test_does_not_reject() -> None:
    test = statistics.RankTest({"a": 1.0, "b": 3.0}, 0.2, 0.5, 9)
    assert test.beside("a") == ["b"]
    assert statistics.RankTest({"a": 1.0, "b": 3.0}, 0.01, 0.5, 9).beside("a") == []


def test_paired_differences_are_over_data_sets_and_the_models_both_fit() -> None:
    tables = {("d", "m"): {"a": 1.0, "b": 2.0}, ("d", "n"): {"a": 9.0}, ("e", "m"): {"a": 1.0, "b": 4.0}}
    mean, low, high = statistics.paired_difference(tables, "low", "a", "b")
    assert (mean, low, high) == (-2.0, -3.0, -1.0)


def test_like_is_ranked_with_like_and_controls_never_compete() -> None:
    made = [handmade(name, {"T-Explainer slope": 2.0, "LIME continuous": 1.0, "constant": 0.0, "LIME": 0.5})
            for name in ("3hnn_20ft", "3hnn_4ft")]  # fmt: skip
    tests = ranks.question_tests(made, "slope")
    assert tests["RIS mean"].first == "LIME continuous"
    assert not set(tests["RIS mean"].average) & {*CONTROL_LINES, "LIME", "T-Explainer shapley"}
    assert "LIME" in ranks.question_tests(made, "variation")["RIS mean"].average  # effects meet all
    header, body = ranks.losses(made[:1])
    assert header[0] == "Attribution"
    slopes = [row for row in body if row[0] == "T-Explainer slope" and row[2] == "RIS mean"]
    assert slopes == [
        ["T-Explainer slope", "3hnn_20ft", "RIS mean", "2 of 10", "2", "LIME continuous", "1", "2.00"]
    ]
    _, cells = ranks.rank_table(tests)
    assert cells[-1][1] == "10, 2"  # explainers and tables are on the page


def test_rank_agreement_is_perfect_with_the_papers_own_order() -> None:
    theirs = tables.paper_table(EXPERIMENTS["3hnn_20ft"])
    ours = {name: row["RIS mean"] for name, line in LINES.items() if (row := theirs.get(line.paper))}
    _, body = ranks.agreement_table([handmade("3hnn_20ft", ours)])
    assert body[0][1] == "+1.00"


# The wide evaluation. ------------------------------------------------------------------------------------


def test_the_wide_plan_is_wide() -> None:
    runs = wide_plan((), WIDE_FULL)
    assert len(WIDE_DATASETS) >= 14 and len({run.name for run in runs}) == len(runs)
    assert {run.experiment.seed for run in runs} == {0, 1, 2}
    assert len({run.experiment.model for run in runs}) == 5  # four kinds, and functions
    assert (
        len(wide_plan(["banknote"], WIDE_FULL)) == 12 and len(wide_plan(["banknote_svm_1"], WIDE_FULL)) == 1
    )
    with pytest.raises(InputError, match="unknown experiment 'nothing'"):
        wide_plan(["nothing"], WIDE_FULL)


def test_environments_divide_the_runs_by_the_kind_of_model() -> None:
    runs = wide_plan((), WIDE_FULL)
    parts = [
        experiments.of_models(runs, models)
        for models in (["network"], ["boosted", "linear", "svm", "function"])
    ]
    assert sorted(run.name for part in parts for run in part) == sorted(run.name for run in runs)
    assert experiments.of_models(runs, ()) == runs
    with pytest.raises(InputError, match="no run has the model 'tree'; these have network, boosted"):
        experiments.of_models(runs, ["tree"])


def test_the_machine_explains_fewer_rows() -> None:
    rows = {run.experiment.model: run.configuration["rows"] for run in wide_plan(["wine"], WIDE_FULL)}
    assert rows == {"network": 12, "boosted": 12, "linear": 12, "svm": 4}


def test_every_line_says_which_question_it_answers() -> None:
    for names in WIDE_LINES.values():
        assert all(question_of(name) in ("slope", "shapley", "variation") for name in names)
    assert question_of("constant") == ""
    assert {LINES[name].question for name in ("Gradient", "LIME continuous", AUTHORS)} == {"slope"}
    assert {LINES[name].question for name in ("SHAP", "LIME", "DeepLIFT", "TreeSHAP")} == {"shapley"}


@pytest.mark.parametrize(("task", "scale"), [("classification", "probability"), ("regression", "raw")])
def test_our_shapley_values_have_a_line_on_the_scale_of_shap(task: str, scale: str) -> None:
    X = np.random.default_rng(3).normal(size=(200, 3))
    target = X[:, 0] + X[:, 1] * X[:, 2]
    kind, y = (Ridge, target) if task == "regression" else (LogisticRegression, target > 0)
    setting = Setting(kind().fit(X, y), X, ("a", "b", "c"), output=None if task == "regression" else 1)
    assert all(ON_PROBABILITY in names for names in WIDE_LINES.values())
    found = build_explainers([ON_PROBABILITY], setting)[ON_PROBABILITY](X[:5])
    predict = (
        setting.model.predict
        if task == "regression"
        else lambda rows: setting.model.predict_proba(rows)[:, 1]
    )
    assert found.scale == scale
    sums = np.asarray(found.values).reshape(5, 3).sum(axis=1)
    np.testing.assert_allclose(sums, predict(X[:5]) - predict(X).mean(), atol=1e-9)


def test_gaps_are_compared_on_one_scale() -> None:
    made = []
    for data in ("wine", "vehicle"):
        scores = {
            (line, f"{gap}/1"): np.full(2, value)
            for gap in ("pgi", "pgi_mean", "pgi_marginal")
            for line, value in {
                "T-Explainer shapley": 1.0, ON_PROBABILITY: 4.0, "SHAP": 3.5, "SHAP (log-odds)": 1.25
            }.items()
        }  # fmt: skip
        run = wide_plan([f"{data}_network_0"], WIDE_FULL)[0]
        made.append(Result(run.name, scores, {"configuration": run.configuration}))
    page = next(one for one in questions.PAGES if one.question == "shapley")
    said = " ".join(questions.on_one_scale(page, made))
    assert "(T-Explainer shapley minus SHAP (log-odds)): PGI mean -0.25 [-0.25, -0.25]" in said
    assert f"({ON_PROBABILITY} minus SHAP): PGI mean +0.5 [+0.5, +0.5]" in said


def test_seeds_are_averaged_before_blocks_are_compared() -> None:
    made = []
    for run, value in zip(wide_plan(["wine_boosted"], WIDE_FULL), (1.0, 2.0, 6.0), strict=True):
        scores = {
            (name, "local_rank/0.75"): np.full(3, value) for name in ("T-Explainer slope", "LIME continuous")
        }
        scores["TreeSHAP", "local_rank/0.75"] = np.full(3, 1.0)
        made.append(Result(run.name, scores, {"configuration": run.configuration, "skipped": {}}))
    found = blocks.question_tables(made, blocks.LOCALITY, "slope")
    assert found == {("wine", "boosted"): {"T-Explainer slope": 3.0, "LIME continuous": 3.0}}
    assert blocks.question_tables(made, blocks.LOCALITY, "shapley") == {("wine", "boosted"): {"SHAP": 1.0}}


# The page. -----------------------------------------------------------------------------------------------


def test_page_holds_every_table_and_is_the_same_each_time(tmp_path: Path) -> None:
    made = [
        handmade(name, {AUTHORS: 2.0, "LIME": 1.0}) for name in ("3hnn_20ft", "faith_3hnn_20ft", "xrfc_4ft")
    ]
    times = {
        ("T-Explainer slope", "seconds"): np.array([1.0, 2.0]),
        ("KernelSHAP", "seconds"): np.array([3.0, 8.0]),
        (PRINTED, "seconds"): np.array([2.0, 3.0]),
        ("SHAP", "seconds"): np.array([2.0, 4.0]),
    }
    clock = Result("running_time", times, {**handmade("running_time").record, "tasks": [1, 2]})
    boxes = [
        Result(f"boxplots_{i}", handmade("boxplots").scores, handmade("boxplots").record) for i in range(2)
    ]
    out = tmp_path / "paper"
    for _ in range(2):
        written = paper.write_page(plan((), QUICK), [*made, clock, *boxes], out)
        texts = [path.read_text() for path in written]
    assert {path.name for path in written} == {"paper.md", "tables.md", "boxplots.svg", "running_time.svg"}
    assert texts == [path.read_text() for path in written]
    page, complete = texts[:2]
    for part in ("Average rank", "paper/boxplots.svg", "4.00"):
        assert part in page
    assert f"{PRINTED} 2 rows. Derivatives" in page  # where it crosses SHAP
    for part in ("`3hnn_20ft`", "`faith_3hnn_20ft`", "not first", "slope is faster from"):
        assert part in complete
    assert page.index("|") < page.index("## How") < page.index("## Limits")  # the table comes first
    assert "with texplainer" in page  # which version measured it
    assert not any("<dc:date>" in text for text in texts)


def test_a_page_says_that_its_attributions_were_defined_otherwise() -> None:
    now = handmade("3hnn_20ft")
    before = {key: value for key, value in now.configuration.items() if key != "definitions"}
    old = Result(now.name, now.scores, {**now.record, "configuration": before})
    assert results.earlier_definitions([now]) == ""
    assert "version 0" in results.earlier_definitions([now, old])
    pages = [list(paper.content(plan((), QUICK), [one], {})) for one in (now, old)]
    assert "earlier definition" not in str(pages[0]) and "**Measured with version" in str(pages[1][1])


def test_a_line_defined_anew_makes_only_its_own_runs_anew() -> None:
    by_line = {line: definitions_of([line]) for line in LINES}
    assert by_line["T-Explainer variation"] > by_line["T-Explainer slope"] == DEFINITIONS
    assert definitions_of(NETWORK_LINES) > definitions_of(BOXPLOT_LINES)


def test_run_without_repetitions_keeps_its_name() -> None:
    assert Run(EXPERIMENTS["3hnn_20ft"], QUICK).name == "3hnn_20ft"
    assert Run(EXPERIMENTS["boxplots"], QUICK, 3).name == "boxplots_3"

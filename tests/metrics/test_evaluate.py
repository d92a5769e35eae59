"""One pass for all: fair, deterministic, isolated, and never lost at the end of a long run."""

import io
import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

import texplainer as tx
from texplainer.errors import InputError
from texplainer.metrics import METRICS, comparison
from texplainer.metrics.table import choose_metrics

X = np.random.default_rng(0).random((300, 5))
Y = (X @ [2.0, -1.5, 1.0, 0.0, 0.0] + X[:, 0] * X[:, 1] > 0.9).astype(int)
ROWS = X[:12]
QUICK = {"neighbours": 3, "runs": 3}


@pytest.fixture(scope="module")
def model():
    settings = {"solver": "sgd", "learning_rate_init": 0.05, "max_iter": 800, "random_state": 0}
    return MLPClassifier((16, 16), **settings).fit(X, Y)


@pytest.fixture(scope="module")
def explainer(model):
    return tx.TExplainer(model, X)


@pytest.fixture(scope="module")
def everything(model, explainer):
    pytest.importorskip("shap")
    pytest.importorskip("captum")
    pytest.importorskip("lime")
    built = {
        "T-Explainer": explainer,
        "SHAP": tx.explainers.shap(model, X, algorithm="kernel", references=40),
        "LIME": tx.explainers.lime(model, X, samples=100),
        "LIME unseeded": tx.explainers.lime(model, X, samples=100, seed=None),
        "DeepLIFT": tx.explainers.deeplift(model, X),
        **tx.explainers.suite(model, X, ["shap_tree"]),
    }
    truth = np.tile([2.0, -1.5, 1.0, 0.0, 0.0], (len(ROWS), 1))
    return built, tx.evaluate(built, ROWS, metrics="all", truth=truth, **QUICK)


def same(one, two):
    return np.array_equal(one, two, equal_nan=True)


def test_every_metric_scores_every_explainer(everything):
    _, found = everything
    assert {column.metric for column in found.columns} == set(METRICS)
    for name in ("T-Explainer", "SHAP", "LIME", "DeepLIFT"):
        known = np.isfinite(found.scores[found.index(name)]).any(axis=1)
        gaps = {column.metric for column, there in zip(found.columns, known, strict=True) if not there}
        assert gaps <= {"infidelity_surrogate"}, name  # only a Taylor explanation has a local model
    assert found.scores.shape == (9, len(found.columns), len(ROWS))
    assert np.isfinite(found.evaluations[: found.index("DeepLIFT")]).all()
    assert (found.seconds[:5] > 0).all()


def test_a_misfit_is_skipped_with_its_reason(everything):
    _, found = everything
    assert found.notes["shap_tree"].startswith("skipped: TreeSHAP cannot explain a MLPClassifier")
    assert np.isnan(found.scores[found.index("shap_tree")]).all()


def test_run_stability_is_exactly_zero_where_it_should_be(everything):
    _, found = everything
    res = found.per_row("res/max")
    for name in ("T-Explainer", "SHAP", "LIME", "DeepLIFT"):
        assert (res[name] == 0.0).all(), name
    assert (res["LIME unseeded"] > 0).all()


def test_controls_win_no_faithfulness_metric(everything, model):
    # 100 rows, as in the paper: on a dozen, a random order removes the better features in some cell by chance
    built = {name: everything[0][name] for name in ("T-Explainer", "SHAP", "DeepLIFT")}
    built["slopes"] = tx.TExplainer(model, X, attribution="gradient")
    found = tx.evaluate(built, X[:100], metrics="faithfulness")
    summary = found.summary()
    assert found.controls == ("constant", "zero", "random")
    ranked = [i for i, name in enumerate(found.explainers) if name not in found.controls]
    for j, column in enumerate(found.columns):
        if column.family == "faithfulness":
            sign = 1.0 if column.better == "low" else -1.0
            best = np.nanmin(sign * summary[ranked, j])
            for name in ("constant", "zero") if column.metric != "infidelity_surrogate" else ():
                assert best < sign * summary[found.index(name), j], (column.name, name)
    assert not found.best()[[found.index(name) for name in found.controls]].any()


def test_the_table_makes_plain_what_controls_are_worth(everything):
    _, found = everything
    for style in ("plain", "markdown"):
        text = found.table(style=style)
        assert text.index("T-Explainer") < text.index("constant")
        assert "useless" in text and "read stability together with faithfulness" in text
        assert "skipped" in text
    assert "**" in found.table(style="markdown") and "*" in found.table(["ris", "pgi"])
    assert found.summary()[found.index("constant"), found.columns_of("ris/max")[0]] == 0.0
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found.table(style="rich"))
    assert "T-Explainer" in console.export_text()


def test_same_seed_same_evaluation_and_nobody_influences_another(everything, model, explainer):
    built, found = everything
    few = {name: built[name] for name in ("LIME unseeded", "T-Explainer")}
    truth = np.tile([2.0, -1.5, 1.0, 0.0, 0.0], (len(ROWS), 1))
    again = tx.evaluate(few, ROWS, metrics="all", truth=truth, **QUICK)
    assert again.columns == found.columns
    for name in (*few, "constant", "random"):
        assert same(again.scores[again.index(name)], found.scores[found.index(name)]), name
        assert same(again.values[again.index(name)], found.values[found.index(name)])
    other = tx.evaluate(few, ROWS, metrics=["ris"], seed=1, **QUICK)
    assert not same(other.per_row("ris")["T-Explainer"], found.per_row("ris")["T-Explainer"])


def test_the_global_generators_are_left_alone(model, explainer):
    torch = pytest.importorskip("torch")

    def vandal(table):
        np.random.seed(1), random.seed(1), torch.manual_seed(1)
        return np.random.rand(*np.shape(table))

    before = np.random.get_state()[1].copy(), random.getstate(), torch.random.get_rng_state()
    found = tx.evaluate({"T": explainer, "vandal": vandal}, ROWS, metrics=["res", "ris"], **QUICK)
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert before[1] == random.getstate() and torch.equal(before[2], torch.random.get_rng_state())
    np.random.seed(99)  # what the user does with the generator does not matter either
    assert same(
        found.scores,
        tx.evaluate({"T": explainer, "vandal": vandal}, ROWS, metrics=["res", "ris"], **QUICK).scores,
    )


def test_an_explainer_that_fails_loses_its_own_cells_only(model, explainer):
    def half(table):  # fails on neighbours, not on rows
        if len(table) > len(ROWS):
            raise RuntimeError("out of memory")
        return np.asarray(table)

    bad = {
        "T": explainer,
        "raises": lambda table: 1 / 0,
        "wrong shape": lambda table: np.ones((len(table), 2)),
        "wrong rows": lambda table: np.ones((1, 5)),
        "NaN": lambda table: np.where(np.arange(len(table))[:, None] == 3, np.nan, np.asarray(table)),
        "half": half,
    }
    found = tx.evaluate(bad, ROWS, metrics=["ris", "ros", "pgi", "complexity"], **QUICK)
    alone = tx.evaluate({"T": explainer}, ROWS, metrics=["ris", "ros", "pgi", "complexity"], **QUICK)
    assert same(found.scores[0], alone.scores[0])
    assert "ZeroDivisionError" in found.notes["raises"]
    assert "shape (1, 2)" in found.notes["wrong shape"] or "2)" in found.notes["wrong shape"]
    assert "1 rows for 12" in found.notes["wrong rows"]
    assert "1 of 12 rows" in found.notes["NaN"]
    assert np.isnan(found.per_row("pgi")["NaN"]).tolist() == [i == 3 for i in range(12)]
    assert "out of memory" in found.notes["half: RIS"]
    assert np.isfinite(found.per_row("pgi")["half"]).all() and np.isnan(found.per_row("ris")["half"]).all()
    assert "out of memory" in found.table()


def test_no_neighbour_is_a_gap_not_a_crash(explainer):
    found = tx.evaluate(
        {"T": explainer}, ROWS, metrics=["ris", "ros", "ris_norm", "pgi"], max_distance=1e-12, **QUICK
    )
    assert (found.neighbours == 0).all()
    assert np.isnan(found.per_row("ris")["T"]).all() and np.isfinite(found.per_row("pgi")["T"]).all()
    assert "12 rows found fewer than 3 neighbours" in found.table()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metrics": ["riss"]}, "did you mean 'ris'"),
        ({"metrics": ["deletoin"]}, "did you mean 'deletion'"),
        ({"k": (9,)}, "between 1 and 5"),
        ({"k": (0, 1)}, "between 1 and 5"),
        ({"mask": "noise"}, "zero, mean, marginal, gaussian"),
        ({"metrics": ["truth_error"]}, "pass truth="),
        ({"controls": ["placebo"]}, "unknown controls"),
        ({"neighbours": 0, "metrics": ["ris"]}, "a whole number of at least 1"),
    ],
)
def test_wrong_settings_are_named_before_the_run(explainer, wrong, words):
    with pytest.raises(InputError, match=words):
        tx.evaluate({"T": explainer}, ROWS, **{**QUICK, **wrong})


def test_explainers_without_a_model_need_one(model):
    with pytest.raises(InputError, match="pass model"):
        tx.evaluate({"mine": lambda table: table}, ROWS)
    with pytest.raises(InputError, match="at least one callable"):
        tx.evaluate({"mine": 3}, ROWS)
    found = tx.evaluate({"mine": lambda table: table}, ROWS, model=model, background=X, metrics=["pgi"])
    assert np.isfinite(found.per_row("pgi")["mine"]).all()


def test_default_k_follows_the_paper(explainer):
    assert [c.part for c in tx.evaluate([explainer], ROWS, metrics="pgi").columns] == ["1", "2", "3"]


def test_compare_and_ranks(everything):
    _, found = everything
    differences = {d.column: d for d in found.compare("T-Explainer", "LIME")}
    ris = differences["ris/max"]
    one, two = found.per_row("ris/max")["T-Explainer"], found.per_row("ris/max")["LIME"]
    assert ris.mean == pytest.approx(np.mean(one - two)) and ris.low <= ris.mean <= ris.high
    swapped = {d.column: d for d in found.compare("LIME", "T-Explainer")}["ris/max"]
    assert swapped.mean == pytest.approx(-ris.mean) and swapped.better == ris.better
    ranks = found.ranks("pgi")
    assert ranks.average.sum(axis=0) == pytest.approx(
        np.full(3, len(ranks.explainers) * (len(ranks.explainers) + 1) / 2)
    )
    assert "constant" not in ranks.explainers and "shap_tree" not in ranks.explainers
    assert "constant" in found.ranks("pgi", controls=True).explainers


def test_the_statistics_against_known_values():
    # Demsar 2006, table 5: q 0.05 for 4 classifiers is 2.569; CD = 2.569 sqrt(4*5/(6*14)) = 1.25 for 14 sets.
    assert comparison.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    # three explainers in the same order on 5 rows: chi2 = 12*5/(3*4) * (1 + 4 + 9 - 3*16/4) = 10.
    ranks = comparison.row_ranks(np.tile([[1.0], [2.0], [3.0]], (1, 5)), "low")
    assert comparison.friedman(ranks)[0] == pytest.approx(10.0)
    assert comparison.row_ranks(np.array([[1.0], [2.0]]), "high").tolist() == [[2.0], [1.0]]
    # a constant difference has no SD; a difference of zero on average is not shown
    assert comparison.paired_bootstrap(np.arange(9.0) + 1, np.arange(9.0)) == pytest.approx([1.0, 1.0, 1.0])
    mean, low, high = comparison.paired_bootstrap(np.tile([1.0, -1.0], 50), np.zeros(100))
    assert low < mean == 0 < high


def test_agreement_between_explainers(everything):
    _, found = everything
    for kind in ("feature", "rank", "sign", "signed_rank", "spearman", "kendall"):
        table = found.agreement(kind, k=2)
        assert table[0, 0] == pytest.approx(1.0) and table == pytest.approx(table.T, nan_ok=True)
    with pytest.raises(InputError, match="between 1 and 5"):
        found.agreement(k=6)


def test_save_and_load(everything, tmp_path):
    _, found = everything
    found.save(tmp_path / "run.npz")
    again = tx.Evaluation.load(tmp_path / "run.npz")
    assert same(again.scores, found.scores) and same(again.values, found.values)
    assert again.columns == found.columns and again.notes == found.notes and again.settings == found.settings
    assert again.table() == found.table()
    (tmp_path / "other.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a saved Evaluation"):
        tx.Evaluation.load(tmp_path / "other.npz")


def test_the_frame_holds_every_score(everything):
    pytest.importorskip("pandas")
    _, found = everything
    frame = found.to_frame()
    assert len(frame) == found.scores.size
    picked = frame[(frame.explainer == "LIME") & (frame.metric == "pgi") & (frame.part == "2")]
    assert same(picked.score.to_numpy(), found.per_row("pgi/2")["LIME"])
    assert set(frame[frame.control].explainer) == set(found.controls)


def test_one_hot_groups_are_one_feature_for_everyone():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 400)
    table = np.column_stack([rng.random((400, 2)), np.eye(3)[level]])
    labels = (table[:, 0] + np.array([0.5, 0.0, -0.5])[level] > 0.5).astype(int)
    model = LogisticRegression(C=100).fit(table, labels)
    explainer = tx.TExplainer(model, table, categorical={"g": [2, 3, 4]})
    seen = []

    def mine(rows):
        seen.append(np.asarray(rows)[:, 2:])
        return np.asarray(rows)

    found = tx.evaluate(
        {"T": explainer, "mine": mine}, table[:8], metrics=["ris", "pgi", "infidelity", "lap"], flip=0.5, sigma=0.01,
        **QUICK,
    )  # fmt: skip
    assert found.feature_names == ("x0", "x1", "g")
    assert found.values.shape == (5, 8, 3)
    assert same(found.values[1, :, 2], np.ones(8)), "columns of a group are added up"
    assert (np.vstack(seen).sum(axis=1) == 1).all(), "nobody meets a row that cannot exist"
    assert np.isfinite(found.scores[0]).all()


def test_regressors_have_neighbours_and_directions_too():
    model = LinearRegression().fit(X, X @ [3.0, -2.0, 1.0, 0.0, 0.0])
    found = tx.evaluate([tx.TExplainer(model, X, attribution="gradient")], ROWS, metrics="all", **QUICK)
    summary = dict(zip((c.name for c in found.columns), found.summary()[0], strict=True))
    assert summary["ris/max"] == pytest.approx(0.0, abs=1e-9)  # the gradient of a linear model does not move
    assert summary["infidelity"] == pytest.approx(0.0, abs=1e-20)
    assert summary["lap/mean"] == 1.0  # f(x) - f(mean) = sum of w (x - mean)
    assert summary["deletion"] < summary["insertion"]
    assert "no hidden layer" in found.table()


def test_a_line_of_the_table_says_what_it_is():
    for name, metric in METRICS.items():
        assert metric.better in ("low", "high") and metric.reference and metric.convention, name
    assert set(choose_metrics("stability")) == {n for n, m in METRICS.items() if m.family == "stability"}


@pytest.mark.parametrize("kind", ["stability_boxplot", "stability_faithfulness"])
def test_an_evaluation_draws_itself(everything, kind):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    _, found = everything
    _, ax = pyplot.subplots()
    assert found.plot(kind, ax=ax) is ax
    pyplot.close("all")
    with pytest.raises(InputError, match="stability_boxplot"):
        found.plot("pie")


def test_infidelity_judges_what_is_shown_and_the_local_model_has_a_metric_of_its_own():
    """f = 2a - b: slopes (2, -1) predict every small step, whatever the values beside them say."""
    rows = np.random.default_rng(0).uniform(size=(12, 2))

    def model(x: np.ndarray) -> np.ndarray:
        return 2 * x[:, 0] - x[:, 1]

    def ranked(x: np.ndarray) -> tx.Explanation:
        slopes = np.tile([2.0, -1.0], (len(x), 1))[:, :, None]
        return tx.Explanation.build(9 + 0 * slopes, data=x, gradient=slopes, feature_names=("x0", "x1"))

    def bare(x: np.ndarray) -> tx.Explanation:
        return tx.Explanation.build(9 + 0 * np.asarray(x), data=x, feature_names=("x0", "x1"))

    explainers = {"T": tx.TExplainer(model, rows, smoothing=0), "with": ranked, "without": bare}
    found = tx.evaluate(explainers, rows, metrics=["infidelity", "infidelity_surrogate"])
    shown, beside = (found.per_row(name) for name in ("infidelity", "infidelity_surrogate"))
    assert same(shown["with"], shown["without"]) and shown["with"].mean() > 1
    assert beside["with"].mean() < 1e-12 and beside["T"].mean() < 1e-9
    assert np.isnan(beside["without"]).all()
    assert "does not contain a local model" in found.notes["without: Infidelity (local model)"]


def test_the_page_lists_every_metric():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    for name, metric in METRICS.items():
        cells = (metric.label, metric.better, metric.family, metric.convention, metric.reference)
        shown = [cell.replace("|", "\\|").replace("*", "&#42;") for cell in cells]
        row = f"| {' | '.join([f'`{name}`', *shown])} |"
        assert row in page, f"docs/metrics.md lacks the row\n{row}"

"""An attribution: one file in attributions/, one row in ATTRIBUTIONS; a category is among the columns."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.attributions.attribution import Attribution
from texplainer.attributions.table import ATTRIBUTIONS
from texplainer.categories import swaps

FILE = '''
import numpy as np
from texplainer.attributions.attribution import AttributionResult

def tenfold(place):
    """Ten times the derivative, and no doubt about it."""
    gradient = place.engine.gradient(place.rows)
    values = 10 * gradient.values
    still = np.zeros((len(values), values.shape[2]))
    return AttributionResult(values, 10 * gradient.error, still, gradient.evaluations, gradient.values)
'''
MODEL = """
import numpy as np

def score(table):
    return 2 * table["size"].to_numpy() + (table["colour"] == "red").to_numpy()
"""
TABLE = pd.DataFrame(
    {"size": np.linspace(-1, 1, 60), "colour": np.array(["red", "green", "blue"])[np.arange(60) % 3]}
)


def score(table):
    return 2 * table["size"].to_numpy() + (table["colour"] == "red").to_numpy()


@pytest.fixture(autouse=True)
def row(add_file, monkeypatch):
    module = import_module(add_file("texplainer.attributions", "tenfold", FILE))
    spec = Attribution(
        question="And ten times that?",
        compute=module.tenfold,
        unit="slope",
        signed=True,
        adds_up=False,
        axis="ten times the change of {what}",
        level_axis="ten times {what} with this category",
        feature_unit="ten units more",
        level_unit="this category, tenfold",
        category=lambda swap: 10 * swaps.against_average(swap),
        head="ten slopes",
        beside="slope",
    )
    monkeypatch.setitem(ATTRIBUTIONS, "tenfold", spec)


@pytest.fixture
def explanation():
    return tx.TExplainer(score, TABLE, attribution="tenfold")(TABLE[:6])


def test_the_explainer_computes_it_with_its_categories(explanation):
    assert explanation.attribution == "tenfold"
    assert explanation[:, "size"].values.ravel() == pytest.approx(20.0)
    red = TABLE["colour"][:6] == "red"
    assert explanation[:, "colour"].values.ravel() == pytest.approx(np.where(red, 20 / 3, -10 / 3))
    assert tuple(explanation.units) == ("ten units more", "this category, tenfold")
    assert "tenfold" in str(explanation)


def test_another_reading_is_asked_of_the_same_explainer():
    explainer = tx.TExplainer(score, TABLE)
    asked = explainer(TABLE[:6], attribution="tenfold")
    assert asked[:, "size"].values.ravel() == pytest.approx(20.0)


def test_it_is_evaluated_in_its_own_unit(explanation):
    explainers = {name: tx.TExplainer(score, TABLE, attribution=name) for name in ("tenfold", "gradient")}
    found = tx.evaluate(explainers, TABLE[:6], metrics=["pgi", "complexity"])
    for metric in ("pgi", "complexity"):
        scores = found.per_row(metric)
        assert np.isfinite(scores["tenfold"]).all()
        np.testing.assert_allclose(scores["tenfold"], scores["gradient"])  # ten times it ranks the same


def test_it_is_drawn_with_its_words_and_stacked_as_shares(explanation):
    assert tx.plots.bar(explanation[0]).get_xlabel().startswith("ten times the change of")
    assert tx.plots.waterfall(explanation[0]).get_title(loc="left") == "Shapley values of this row"


def test_a_printed_row_has_its_column_and_marks_its_category(explanation):
    lines = str(explanation[0]).splitlines()
    head = next(line for line in lines if "feature" in line)
    assert head.rstrip().endswith("ten slopes")
    colour, size = (next(line for line in lines if name in line.split()) for name in ("colour", "size"))
    assert colour.rstrip().endswith("*") and not size.rstrip().endswith("*")


def test_it_is_reported(explanation, tmp_path):
    page = explanation.report(tmp_path / "page.html").read_text()
    assert '"name":"tenfold"' in page and "And ten times that?" in page
    assert '"name":"slope"' in page  # the one its row wants beside it


def test_the_command_line_knows_it(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tenfold_model.py").write_text(MODEL)
    TABLE.to_csv("data.csv", index=False)
    words = ("tenfold_model:score", "data.csv", "--attribution", "tenfold")
    assert command("explain", *words, "-o", "result.npz") == 0
    assert tx.Explanation.load("result.npz").attribution == "tenfold"
    assert command("explain", "--help") == 0
    assert "And ten times that?" in " ".join(capsys.readouterr().out.split())

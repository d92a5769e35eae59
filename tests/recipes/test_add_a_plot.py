"""A plot: one file in plots/explanations/ or plots/evaluations/, one line in PLOTS."""

from __future__ import annotations

import plot_subjects
import pytest

import texplainer as tx
from texplainer.plots import PLOTS

FILE = '''
from texplainer.plots import selection, style

def dots(explanation, *, ax=None):
    """Draw one row's attributions as dots."""
    bars = selection.row_bars(explanation, 10)
    ax = style.canvas(ax)
    ax.plot(bars.values, range(len(bars.values)), "o")
    return ax

def tally(evaluation, *, ax=None):
    """Write how many explainers were compared."""
    return style.empty(style.canvas(ax), str(len(evaluation.explainers)))
'''


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    module = add_file("texplainer.plots.explanations", "dots", FILE)
    monkeypatch.setitem(PLOTS, "dots", module)
    monkeypatch.setitem(PLOTS, "tally", module)


def test_a_new_plot_draws_what_it_is_given():
    ax = tx.plots.dots(plot_subjects.made()[0])
    assert len(ax.lines[0].get_xdata()) == 6
    assert "dots" in dir(tx.plots)


def test_an_evaluation_draws_it_by_name():
    X = [[0.0], [1.0], [2.0]]
    found = tx.evaluate({"a": tx.TExplainer(lambda rows: rows[:, 0], X)}, X, metrics=["complexity"])
    assert found.plot("tally").texts[0].get_text() == str(len(found.explainers))

"""Another explainer: one file in explainers/, one line in EXPLAINERS."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import texplainer as tx
from texplainer.explainers import EXPLAINERS

FILE = '''
import numpy as np
from texplainer.explainers.base import OtherExplainer, task_of

def distance(model, background, **choice):
    """Explain a row by its distance from the background's mean."""
    task = task_of(model, background, **choice)
    return OtherExplainer("distance", task, lambda rows: (rows - task.background.mean, np.ones(len(rows))))
'''


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    monkeypatch.setitem(
        EXPLAINERS, "distance", import_module(add_file("texplainer.explainers", "from_mean", FILE)).distance
    )


def test_a_new_explainer_explains_and_is_evaluated():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = lambda rows: rows @ [1.0, -3.0, 2.0]  # noqa: E731
    explanation = tx.explainers.distance(model, X)(X[:5])
    assert explanation.values == pytest.approx(X[:5] - X.mean(axis=0))
    assert tx.plots.bar(explanation[0]).patches
    found = tx.evaluate(tx.explainers.suite(model, X, ["distance"]), X[:5], metrics=["pgi"])
    assert np.isfinite(found.per_row("pgi")["distance"]).all()


def test_a_new_explainer_is_known_to_the_command_line(job, command, capsys):
    words = ("--rows", "3", "--explainers", "distance", "--metrics", "complexity")
    assert command("evaluate", "model.skops", "data.csv", *words) == 0
    assert "distance" in capsys.readouterr().out

"""A metric: one function of arrays in metrics/scores/, one line in METRICS."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.metrics.table import METRICS, Metric, choose_metrics, of_values


def largest(values):
    """The largest |value| of a row."""
    return np.abs(values).max(axis=1)


@pytest.fixture(autouse=True)
def line(monkeypatch):
    metric = Metric("Largest", of_values(largest), "high", "complexity", "largest |e|", "nobody")
    monkeypatch.setitem(METRICS, "largest", metric)


@pytest.fixture
def evaluation():
    X = np.random.default_rng(0).normal(size=(40, 3))
    explain = tx.TExplainer(lambda rows: rows @ [1.0, -3.0, 2.0], X, attribution="gradient")
    return tx.evaluate({"ours": explain}, X[:5], metrics=["largest"])


def test_a_new_metric_is_measured_and_shown(evaluation, tmp_path):
    assert evaluation.per_row("largest")["ours"] == pytest.approx(3.0)
    assert "Largest" in evaluation.table()
    assert "Largest" in evaluation.plot("stability_boxplot", metric="largest").get_xlabel()
    assert '"label":"Largest"' in evaluation.report(tmp_path / "page.html").read_text()
    assert "largest" in choose_metrics("all")


def test_a_new_metric_is_known_to_the_command_line(job, command, capsys):
    words = ("--rows", "3", "--explainers", "t-explainer", "--metrics", "largest")
    assert command("evaluate", "model.skops", "data.csv", *words) == 0
    assert "Largest" in capsys.readouterr().out

"""A model library: one file in models/libraries/, one line in LIBRARIES."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.execution.manifest import model_digest
from texplainer.files.audit import software
from texplainer.models.libraries import LIBRARIES

FILE = '''
import json
import numpy as np
from texplainer.models.libraries import Library, ModelFile, ModelAdapter

def outlet(model, schema):
    """Its classifiers tell the log-odds of "yes"."""
    margin = lambda table: np.column_stack([-model.odds(table), model.odds(table)])
    probability = lambda table: 1 / (1 + np.exp(-margin(table)))
    scales = {"log-odds": margin, "probability": probability}
    return ModelAdapter("abacus", "classification", scales, "log-odds", ("no", "yes"), {"no": 0, "yes": 1})

def read(path, threads):
    import abacus
    return abacus.Reckoner(**json.loads(path.read_text()))

LIBRARY = Library(
    "abacus",
    outlet,
    categories=lambda model, names: ["colour"],
    feature_names=lambda model: ["size", "colour"],
    content=vars,
    files={".beads": ModelFile("abacus", read, openings=(b"{",))},
)
'''
TABLE = pd.DataFrame({"size": np.linspace(-1, 1, 60), "colour": np.arange(60) % 3})


class Reckoner:
    """A model of the library "abacus": no callable, no predict, its own word for categories."""

    __module__ = "abacus.models"

    def __init__(self, slope=2.0):
        self.slope = slope

    def odds(self, table):
        table = np.asarray(table, dtype=float)
        return self.slope * table[:, 0] + (table[:, 1] == 2)


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    package = ModuleType("abacus")
    package.Reckoner, package.__version__ = Reckoner, "1.2"
    monkeypatch.setitem(sys.modules, "abacus", package)
    add_file("texplainer.models.libraries", "abacus", FILE)
    monkeypatch.setitem(LIBRARIES, "abacus", "abacus")


def test_a_model_of_a_new_library_is_explained_with_its_categories():
    explainer = tx.TExplainer(Reckoner(), TABLE, scale="log-odds", attribution="gradient")
    explanation = explainer(TABLE[:6])
    assert explainer.predictor.kind == "abacus"
    assert explanation.output_names == ("yes",)
    assert explanation[:, "size"].values.ravel() == pytest.approx(2.0)
    assert set(explanation.categories) == {"colour"}


def test_a_model_of_a_new_library_is_evaluated():
    explainer = tx.TExplainer(Reckoner(), TABLE)
    found = tx.evaluate({"ours": explainer}, TABLE[:6], metrics=["pgi"])
    assert np.isfinite(found.per_row("pgi")["ours"]).all()


def test_its_files_are_read_by_the_command_line(job, command, capsys):
    TABLE.assign(note=1.0).to_csv("data.csv", index=False)  # one column more than the model names
    (job / "model.beads").write_text('{"slope": 3.0}')
    for out in ("result.npz", "shards/"):
        words = ("--scale", "log-odds", "--attribution", "gradient", "-o", out)
        assert command("explain", "model.beads", "data.csv", *words) == 0
    found = tx.Explanation.load("result.npz")
    assert found.feature_names == ("size", "colour")
    assert found[:, "size"].values.ravel() == pytest.approx(3.0)
    assert software()["abacus"] == "1.2"
    (job / "other.beads").write_text("PK")
    assert command("explain", "other.beads", "data.csv", "-o", "x.npz") == 3
    assert "a .beads model starts with" in capsys.readouterr().err


def test_its_models_are_told_apart_by_their_content():
    digests = {model_digest(tx.TExplainer(Reckoner(slope), TABLE)) for slope in (2.0, 2.0, 3.0)}
    assert len(digests) == 2

"""A model library: one file in models/libraries/, one line in LIBRARIES."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import texplainer as tx
from texplainer.models.libraries import LIBRARIES

FILE = '''
import numpy as np
from texplainer.models.libraries.library import Library, Outlet

def outlet(model, schema):
    """Its classifiers tell the log-odds of "yes"."""
    margin = lambda table: np.column_stack([-model.odds(table), model.odds(table)])
    probability = lambda table: 1 / (1 + np.exp(-margin(table)))
    scales = {"margin": margin, "probability": probability}
    return Outlet("abacus", "classification", scales, "margin", ("no", "yes"), {"no": 0, "yes": 1})

LIBRARY = Library("abacus", outlet, categories=lambda model, names: ["colour"])
'''
TABLE = pd.DataFrame({"size": np.linspace(-1, 1, 60), "colour": np.arange(60) % 3})


class Reckoner:
    """A model of the library "abacus": no callable, no predict, its own word for categories."""

    __module__ = "abacus.models"

    def odds(self, table):
        table = np.asarray(table, dtype=float)
        return 2 * table[:, 0] + (table[:, 1] == 2)


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    add_file("texplainer.models.libraries", "abacus", FILE)
    monkeypatch.setitem(LIBRARIES, "abacus", "abacus")


def test_a_model_of_a_new_library_is_explained_with_its_categories():
    explainer = tx.TExplainer(Reckoner(), TABLE, scale="margin", attribution="sensitivity")
    explanation = explainer(TABLE[:6])
    assert explainer.predictor.kind == "abacus"
    assert explanation.output_names == ("yes",)
    assert explanation[:, "size"].values.ravel() == pytest.approx(2.0)
    assert set(explanation.categories) == {"colour"}


def test_a_model_of_a_new_library_is_evaluated():
    explainer = tx.TExplainer(Reckoner(), TABLE)
    found = tx.evaluate({"ours": explainer}, TABLE[:6], metrics=["pgi"])
    assert np.isfinite(found.per_row("pgi")["ours"]).all()

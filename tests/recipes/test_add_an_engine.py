"""An engine: one file in gradients/, one line in ENGINES."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import InputError
from texplainer.gradients.choose import ENGINES

FILE = '''
import numpy as np
from texplainer.errors import Unsupported
from texplainer.gradients.engine import Engine, Gradient

def build(predictor, background, settings):
    """The gradient of a model that says it is linear."""
    slope = getattr(predictor.model, "slope", None)
    if slope is None:
        raise Unsupported("the model does not tell its slope.")

    def gradient(rows):
        values = np.broadcast_to(np.asarray(slope)[None, :, None], (*rows.shape, 1)).copy()
        none = np.zeros(rows.shape)
        return Gradient(values, np.zeros(values.shape), none + np.nan, none.astype(int), none[:, 0].astype(int))

    return Engine("told", "the model tells its slope", gradient)
'''
X = np.random.default_rng(0).normal(size=(40, 3))


class Linear:
    slope = (1.0, -3.0, 2.0)

    def __call__(self, rows):
        return np.asarray(rows) @ self.slope


@pytest.fixture(autouse=True)
def line(add_file):
    add_file("texplainer.gradients", "told", FILE)
    others = dict(ENGINES)
    ENGINES.clear()
    ENGINES.update({"told": "told", **others})  # first: the cheapest exact one
    yield
    ENGINES.clear()  # in their order, which is the order they are tried in
    ENGINES.update(others)


def test_a_new_engine_is_chosen_where_it_fits_and_named():
    explanation = tx.TExplainer(Linear(), X, attribution="gradient")(X[:4])
    assert explanation.engine == "told"
    assert explanation.values == pytest.approx(np.tile(Linear.slope, (4, 1)))


def test_a_new_engine_can_be_asked_for_and_refuses_with_its_reason():
    assert tx.TExplainer(Linear(), X, engine="told").engine.name == "told"
    with pytest.raises(InputError, match="does not tell its slope"):
        tx.TExplainer(lambda rows: rows[:, 0], X, engine="told")
    assert tx.TExplainer(lambda rows: rows[:, 0], X).engine.name == "finite-difference"


def test_the_command_line_offers_it(command, capsys):
    assert command("explain", "--help") == 0
    assert "|told|" in "".join(capsys.readouterr().out.split())

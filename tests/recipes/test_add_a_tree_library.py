"""A tree library: one file in gradients/trees/readers/, one line in TREE_READERS."""

from __future__ import annotations

import numpy as np
import pytest

import texplainer as tx
from texplainer.gradients.trees.readers.table import TREE_READERS

FILE = '''
import numpy as np
from texplainer.gradients.trees.ensemble import Tree, assemble

def load(model):
    """One stump a feature: its value below the threshold, its value above."""
    trees = [
        Tree(
            left=np.array([1, -1, -1]),
            right=np.array([2, -1, -1]),
            column=np.array([feature, 0, 0]),
            threshold=np.array([threshold, 0.0, 0.0]),
            missing_left=np.zeros(3, dtype=bool),
            value=np.array([[0.0], [low], [high]]),
        )
        for feature, (threshold, low, high) in enumerate(model.stumps)
    ]
    return assemble(trees, features=len(trees), base=np.zeros(1), link="identity")
'''
X = np.random.default_rng(0).normal(size=(80, 3))


class Stumps:
    """An ensemble of the library "soroban"."""

    __module__ = "soroban.trees"
    stumps = ((0.0, -1.0, 1.0), (0.5, 0.0, 3.0), (0.0, 0.0, 0.0))

    def __call__(self, rows):
        return sum(np.where(rows[:, j] <= t, low, high) for j, (t, low, high) in enumerate(self.stumps))


@pytest.fixture(autouse=True)
def line(add_file, monkeypatch):
    add_file("texplainer.gradients.trees.readers", "soroban", FILE)
    monkeypatch.setitem(TREE_READERS, "soroban.Stumps", ("soroban", "load"))


def test_an_ensemble_of_a_new_library_is_differentiated_exactly():
    explanation = tx.TExplainer(Stumps(), X, attribution="gradient")(X[:10])
    assert explanation.engine == "tree"
    assert (explanation.values[:, 2] == 0).all()  # the third stump says nothing
    assert (explanation.values[:, :2] >= 0).all() and explanation.values[:, 1].max() > 0

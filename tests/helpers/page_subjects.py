"""What the explorer and the report are tried on, with and without a browser."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from texplainer.metrics.evaluation import Evaluation, ScoreColumn

NAMES = ("age", "income", "<script>")


def fitted(hidden: tuple[int, ...] = ()):
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 3))
    target = (rows @ [1.0, -2.0, 0.5] > 0).astype(int)
    model = MLPClassifier(hidden, max_iter=30, random_state=0) if hidden else LogisticRegression()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, target), rows


EVIL = "</script><script>window.hacked=1</script>"


def evaluation(names: tuple[str, ...] = ("T", "LIME", EVIL)) -> Evaluation:
    random = np.random.default_rng(0)
    columns = (
        ScoreColumn("ris", "max", "RIS", "low", "stability"),
        ScoreColumn("pgi", "1", "PGI", "high", "faithfulness"),
    )
    scores = random.lognormal(size=(3, 2, 30))
    scores[2, 0] = np.nan
    return Evaluation(
        names,
        columns,
        scores,
        random.normal(size=(3, 30, 6)),
        tuple("abcdef"),
        (names[2],),
        {names[2]: "it failed"},
        np.full(30, 10),
        np.array([0.1, 0.2, np.nan]),
        np.array([13.0, 500.0, np.nan]),
    )

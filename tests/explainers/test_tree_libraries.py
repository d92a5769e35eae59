"""The boosters' own values and other tree libraries, against sums they must keep and shap's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from texplainer import explainers
from texplainer.errors import Unsupported


def booster(library: str, classes: int) -> tuple[Any, np.ndarray]:
    rows = np.random.default_rng(3).normal(size=(300, 5))
    score = rows[:, 0] * rows[:, 1] + rows[:, 2]
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    module = pytest.importorskip(library)
    kind = module.XGBClassifier if library == "xgboost" else module.LGBMClassifier
    quiet = {} if library == "xgboost" else {"verbose": -1}
    return kind(n_estimators=15, max_depth=3, n_jobs=1, **quiet).fit(rows, labels), rows


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("output", [0, 1])
def test_own_contributions_are_those_of_path_dependent_treeshap(library: str, output: int) -> None:
    pytest.importorskip("shap")
    model, rows = booster(library, 2)
    own, path = (
        explainers.EXPLAINERS[name](model, rows, output=output, scale="log-odds")(rows[:20]).values
        for name in ("own_contributions", "shap_tree_path")
    )
    np.testing.assert_allclose(own, path, atol=1e-5)


def test_own_contributions_of_several_classes_belong_to_the_class_asked_for() -> None:
    model, rows = booster("xgboost", 3)
    found = [
        explainers.own_contributions(model, rows, output=k, scale="raw")(rows[:20]).values.sum(axis=1)
        for k in range(3)
    ]
    margin = model.predict(rows[:20], output_margin=True)
    gaps = margin - np.array(found).T
    np.testing.assert_allclose(
        gaps, np.broadcast_to(gaps[:1], gaps.shape), atol=1e-4
    )  # a base for each class


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("name", ["woodelf", "treeig"])
def test_values_sum_to_the_score_minus_the_backgrounds_mean(name: str, library: str) -> None:
    pytest.importorskip(name)
    model, rows = booster(library, 2)
    explain = explainers.EXPLAINERS[name](model, rows[:50], output=1)
    found = explain(rows[:20])
    expected = explain.explained(rows[:20]) - explain.explained(rows[:50]).mean()
    np.testing.assert_allclose(found.values.sum(axis=1), expected, atol=1e-4)


def test_what_they_cannot_explain_is_refused_with_the_remedy() -> None:
    model, rows = booster("xgboost", 2)
    with pytest.raises(Unsupported, match="pass scale='log-odds'"):
        explainers.own_contributions(model, rows, output=1, scale="probability")
    with pytest.raises(Unsupported, match="explains XGBoost and LightGBM models"):
        explainers.own_contributions(lambda table: table[:, 0], rows, scale="raw")

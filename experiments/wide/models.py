"""Four kinds of models for the wide evaluation, fitted fresh for each seed: they train in seconds.

A network (the paper's 3H-NN), boosted trees, a linear model, and a support vector machine that is
handed over as a bare function: a black box.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from texplainer.datasets import Dataset
from texplainer.types import Array

ROUNDS = 300  # of the networks


@dataclass(frozen=True)
class BlackBox:
    """A fitted model of which nothing is known but what it answers."""

    name: str
    function: Callable[[Array], Array]

    def __call__(self, rows: Array) -> Array:
        """Predict."""
        return self.function(rows)


def _network(classes: bool, seed: int, rounds: int | None) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPClassifier if classes else MLPRegressor
    settings = {"learning_rate_init": 0.01, "max_iter": rounds or ROUNDS, "random_state": seed}
    return kind(hidden_layer_sizes=(64, 64, 64), early_stopping=True, **settings)


def _boosted(classes: bool, seed: int, rounds: int | None) -> Any:
    import xgboost

    kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    return kind(n_estimators=rounds or 200, max_depth=4, learning_rate=0.1, random_state=seed, n_jobs=1)


def _linear(classes: bool, seed: int, rounds: int | None) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression(max_iter=2000) if classes else Ridge()


def _machine(classes: bool, seed: int, rounds: int | None) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC, SVR

    whole: Any = False  # one machine, not one a fold
    return CalibratedClassifierCV(SVC(), ensemble=whole) if classes else SVR()


#: name -> (classifier?, seed, rounds) -> unfitted model
WIDE_MODELS: dict[str, Callable[[bool, int, int | None], Any]] = {
    "network": _network,
    "boosted": _boosted,
    "linear": _linear,
    "svm": _machine,
}
#: which lines are shown
FAMILY = {"network": "network", "boosted": "trees", "linear": "other", "svm": "function"}


def fit_wide(name: str, dataset: Dataset, seed: int, rounds: int | None) -> tuple[Any, dict[str, Any]]:
    """Fit a model; give what is explained and its record."""
    from threadpoolctl import threadpool_limits

    classes = dataset.task == "classification"
    model = WIDE_MODELS[name](classes, seed, rounds)
    target = dataset.y_train if classes else _scaled(dataset, dataset.y_train)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that would go on learning, a probability soon deprecated
        model.fit(dataset.X_train, target)
        test = dataset.y_test if classes else _scaled(dataset, dataset.y_test)
        score = float(model.score(dataset.X_test, test))
    record = {"name": name, "dataset": dataset.name, "score": round(score, 6), "task": dataset.task}
    if name != "svm":
        return model, record
    return BlackBox("svm", model.predict_proba if classes else model.predict), record


def _scaled(dataset: Dataset, target: Array) -> Array:
    """A regression's target in its SD: a network learns it then, and outputs compare."""
    return (target - dataset.y_train.mean()) / dataset.y_train.std()

"""The small real data sets that come with scikit-learn, as tables."""

from __future__ import annotations

import importlib

import numpy as np

from texplainer.datasets.dataset import Table

BUNDLED = ("iris", "wine", "breast_cancer", "digits", "diabetes")


def bundled(name: str) -> Table:
    """One of scikit-learn's own sets, unscaled."""
    datasets = importlib.import_module("sklearn.datasets")
    options = {"scaled": False} if name == "diabetes" else {}
    bunch = getattr(datasets, f"load_{name}")(**options)
    classes = tuple(str(label) for label in bunch.get("target_names", ()))
    return Table(
        name=name,
        columns={
            str(key): np.asarray(column, float)
            for key, column in zip(bunch.feature_names, bunch.data.T, strict=True)
        },
        target=bunch.target,
        task="classification" if classes else "regression",
        class_names=classes,
        source="bundled with scikit-learn",
        licence="BSD-3-Clause",
    )

"""Make an explainer ready for other processes, or say why it cannot go there.

It travels as model, background and arguments and is built anew where it arrives. Plain pickle decides whether
it can travel; what is defined in a script or notebook travels by value.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from importlib import import_module
from typing import Any

from texplainer.errors import InputError
from texplainer.execution.worker import PickledJob, ShardJob, as_a_worker
from texplainer.explainer import TExplainer
from texplainer.models.libraries import library_called


def unpacked_explainer(explainer: TExplainer, batch_rows: int | None = None) -> TExplainer:
    """Return the explainer as a worker rebuilds it; `batch_rows` may be reduced.

    It is pickled even if it stays in this process: pickling turns views into contiguous arrays, and matrix
    products can round differently for them.
    """
    arguments = dict(explainer.arguments)
    with contextlib.suppress(Exception):  # what cannot travel stays as it is
        arguments = pickle.loads(_cloudpickle().dumps(arguments))
    if batch_rows is not None:
        arguments["batch_rows"] = batch_rows
    with as_a_worker():
        return TExplainer(**arguments)


def check_travels(explainer: TExplainer) -> None:
    """Raise before the run starts if the explainer cannot leave this process."""
    try:
        pickle.dumps(explainer)
    except Exception as error:
        model: Any = explainer.predictor.model
        name = getattr(model, "__qualname__", type(model).__qualname__)
        remedy = library_called(explainer.predictor.kind).remedy
        raise InputError(
            f"the model {name} cannot be sent to other processes ({type(error).__name__}: {error}). "
            f"{remedy}, or use on='serial'."
        ) from error


def pack_job(job: ShardJob) -> PickledJob:
    """A job in bytes."""
    blob = _cloudpickle().dumps(job)
    return PickledJob(hashlib.sha256(blob).hexdigest()[:16], blob)


def _cloudpickle() -> Any:
    """The pickler joblib brings along: a package of its own, or part of older versions."""
    try:
        return import_module("cloudpickle")
    except ImportError:
        return import_module("joblib.externals.cloudpickle")

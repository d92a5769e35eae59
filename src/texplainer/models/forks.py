"""Models whose threads do not survive a fork.

OpenMP starts its threads at the first prediction. A forked child inherits the pool but not its threads, and the
next prediction waits for them for ever. The child is recognised before it calls the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from texplainer.errors import InputError

#: how the type of such a model begins, with its package
OPENMP = ("lightgbm", "xgboost", "torch", "skorch", "sklearn.ensemble._hist_gradient_boosting")
_used: set[str] = set()
_inherited: set[str] = set()

if hasattr(os, "register_at_fork"):  # there is none on Windows, and no fork either
    os.register_at_fork(after_in_child=lambda: _inherited.update(_used))


def guarded(call: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:
    """The same function; in a forked child it raises an error if the model was used before the fork."""
    while getattr(model, "steps", None):
        model = model.steps[-1][1]
    owner = next((name for base in type(model).__mro__ if (name := _openmp(base.__module__))), None)
    if owner is None or getattr(model, "n_jobs", None) == 1 or os.environ.get("OMP_NUM_THREADS") == "1":
        return call

    def checked(table: Any) -> Any:
        if owner in _inherited:
            raise InputError(
                f"this process was forked after a model of {owner.split('.')[0]} was used: its threads do not "
                "exist here, and a prediction would never end. Start processes with "
                "multiprocessing.get_context('spawn'), or use the model only after the fork."
            )
        _used.add(owner)
        return call(table)

    return checked


def _openmp(module: str) -> str | None:
    return next((name for name in OPENMP if module == name or module.startswith(name + ".")), None)

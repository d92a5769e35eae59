"""Validation of arguments; a message names the value and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Set
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.support.names import describe

LONGEST = 120  # characters of a value that a message shows


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _names(value: Any) -> bool:
    unordered = (str, bytes, Set, Mapping)
    if value is None:
        return True
    listed = np.ndim(value) == 1 if isinstance(value, np.ndarray) else hasattr(value, "__len__")
    return listed and not isinstance(value, unordered) and len(value) > 0 and not any(map(_no_name, value))


def _no_name(value: Any) -> bool:
    return value is None or np.ndim(value) > 0 or bool(value != value)


def _known_bounds(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return True
    try:
        return not np.isnan(np.concatenate([np.ravel(np.asarray(side, dtype=float)) for side in value])).any()
    except (TypeError, ValueError):
        return True  # anything that is not a pair of numbers gets another message


def _groups(value: Any) -> bool:
    return not isinstance(value, Mapping) or all(hasattr(wish, "__iter__") for wish in value.values())


def _positive(value: Any) -> bool:
    return _whole(value) and value >= 1


def _size(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(value >= 0)


def _texts(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, dict)) and all(isinstance(v, str) for v in value)


def _counts(value: Any) -> bool:
    return value is None or (hasattr(value, "__iter__") and all(map(_whole, value)))


Check = tuple[Callable[[Any], bool], str]
#: argument -> whether a value will do, and what is expected
CHECKS: dict[str, Check] = {
    "batch_rows": (_positive, "a whole number of at least 1"),
    "max_evals": (lambda v: v is None or _positive(v), "None or a whole number of at least 1"),
    "retries": (lambda v: _whole(v) and v >= 0, "a whole number of at least 0"),
    "cache": (
        lambda v: v is None or isinstance(v, (bool, MutableMapping)),
        "True, a dict to keep predictions in, or None",
    ),
    "step": (lambda v: not isinstance(v, (bool, np.ndarray)), "'auto', 'paper' or a number"),
    "scale": (lambda v: isinstance(v, str), "'auto' or the name of one scale"),
    "engine": (lambda v: isinstance(v, str), "'auto' or the name of one engine"),
    "feature_names": (_names, "a list with one name per column, in their order"),
    "id_column": (
        lambda v: not isinstance(v, (list, set, dict, np.ndarray)),
        "the name of one column, or None",
    ),
    "output": (
        lambda v: not isinstance(v, (list, tuple, np.ndarray)) or np.size(np.asarray(v, dtype=object)) > 0,
        "at least one output, or None",
    ),
    "bounds": (_known_bounds, "numbers; use -inf and inf for no limit"),
    "categorical": (_groups, "for each name a list of columns or one of nominal, ordinal, numeric"),
}


#: the same for an evaluation
EVALUATION_CHECKS: dict[str, Check] = {
    "metrics": (lambda v: isinstance(v, str) or _texts(v), "names of metrics, a family, 'default' or 'all'"),
    "k": (_counts, "whole numbers of features such as (1, 3, 5), or None"),
    "neighbours": (_positive, "a whole number of at least 1"),
    "sigma": (lambda v: v is None or _size(v), "a number of at least 0"),
    "flip": (lambda v: _size(v) and v <= 1, "a fraction between 0 and 1"),
    "runs": (_positive, "a whole number of at least 1"),
    "controls": (_texts, "names of controls, () for none"),
    "seed": (lambda v: _whole(v) and v >= 0, "a whole number of at least 0"),
    "batch_rows": (_positive, "a whole number of at least 1"),
}


def check_arguments(arguments: Mapping[str, Any], checks: Mapping[str, Check] = CHECKS) -> None:
    """Reject values that would fail later or be ignored."""
    for name, (fine, expected) in checks.items():
        if name in arguments and not fine(arguments[name]):
            shown = repr(arguments[name])
            shown = describe(arguments[name]) if len(shown) > LONGEST else shown
            raise InputError(f"{name}={shown} is invalid; expected {expected}.")

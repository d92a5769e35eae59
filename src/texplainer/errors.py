"""The errors and warnings a user can meet; a message names the value found, the expectation, the remedy."""

from __future__ import annotations


class InputError(ValueError):
    """A table or an argument is not what is needed."""


class ModelError(RuntimeError):
    """The model failed, or answered with something that is no prediction."""


class BackgroundWarning(UserWarning):
    """The background data is too poor to learn a feature's SD or range from."""


class LazyTableWarning(UserWarning):
    """A table that was not yet computed is computed, whole."""


class UndefinedRowsWarning(UserWarning):
    """Some rows could not be explained; the others were."""


class ModelWarning(UserWarning):
    """The model does something that explanations cannot mend: it answers differently the second time."""


class EngineWarning(UserWarning):
    """An exact engine was wanted but another one is used."""


class ScaleWarning(UserWarning):
    """The columns' scales are not what a method supposes them to be."""


class Unsupported(ValueError):
    """An engine or another explainer does not fit a model; the message says why."""

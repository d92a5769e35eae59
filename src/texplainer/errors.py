"""Errors and warnings; each message names the value found, what was expected, and the remedy."""

from __future__ import annotations


class InputError(ValueError):
    """A table or an argument is invalid."""


class ModelError(RuntimeError):
    """The model failed, or returned something that is not a prediction."""


class BackgroundWarning(UserWarning):
    """The background is too small or constant, so a feature's SD or range cannot be estimated."""


class LazyTableWarning(UserWarning):
    """A lazy table was collected completely."""


class UndefinedRowsWarning(UserWarning):
    """Some rows could not be explained; the others were explained."""


class ModelWarning(UserWarning):
    """The model is not deterministic, or has another property that makes explanations unreliable."""


class EngineWarning(UserWarning):
    """An exact engine was requested, but another one is used."""


class ScaleWarning(UserWarning):
    """The columns' scales do not meet a method's assumption."""


class Unsupported(ValueError):
    """An engine or another explainer does not support a model; the message gives the reason."""

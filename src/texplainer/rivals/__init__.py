"""Other explainers behind the same callable as TExplainer: SHAP, LIME, Captum's methods, and controls.

`rivals.shap(model, background)` and its siblings build one; `suite` builds several by name and keeps the
reason of each that does not fit the model. To add one: a function (model, background, **choice) -> Rival, and
one line in `RIVALS`. The libraries are imported when a rival of theirs is built.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from texplainer.errors import InputError, Unsupported

from .captum import METHODS, captum
from .controls import constant, from_function, random, zero
from .lime import lime
from .rival import Rival, Skipped
from .shap import shap
from .twin import twin

integrated_gradients = partial(captum, method="integrated_gradients")
input_x_gradient = partial(captum, method="input_x_gradient")
deeplift = partial(captum, method="deeplift")
lrp = partial(captum, method="lrp")
gradient = partial(captum, method="gradient")
saliency = partial(captum, method="saliency")

#: name -> (model, background, **choice) -> Rival
RIVALS: dict[str, Callable[..., Rival]] = {
    "shap": shap,
    "shap_exact": partial(shap, algorithm="exact"),
    "shap_kernel": partial(shap, algorithm="kernel"),
    "shap_permutation": partial(shap, algorithm="permutation"),
    "shap_tree": partial(shap, algorithm="tree"),
    "shap_tree_margin": partial(shap, algorithm="tree", scale="margin"),
    "shap_gradient": partial(shap, algorithm="gradient"),
    "shap_deep": partial(shap, algorithm="deep"),
    "shap_labels": partial(shap, labels=True),
    "lime": lime,
    "lime_continuous": partial(lime, discretize=False),
    "lime_unseeded": partial(lime, seed=None),
    "integrated_gradients": integrated_gradients,
    "input_x_gradient": input_x_gradient,
    "deeplift": deeplift,
    "lrp": lrp,
    "gradient": gradient,
    "saliency": saliency,
    "constant": constant,
    "zero": zero,
    "random": random,
}

#: the paper's comparison
PAPER = ("shap", "lime", "integrated_gradients", "input_x_gradient", "deeplift")


def suite(
    model: Any, background: Any, names: Iterable[str] = PAPER, **choice: Any
) -> dict[str, Rival | Skipped]:
    """Build several rivals by name; one that does not fit the model is kept as `Skipped`, with its reason."""
    built: dict[str, Rival | Skipped] = {}
    for name in names:
        if name not in RIVALS:
            close = difflib.get_close_matches(name, RIVALS, 1, cutoff=0.3)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(RIVALS)}."
            raise InputError(f"unknown rival {name!r}; {hint}")
        try:
            built[name] = RIVALS[name](model, background, **choice)
        except Unsupported as reason:
            built[name] = Skipped(name, str(reason))
    return built


__all__ = [
    "METHODS",
    "PAPER",
    "RIVALS",
    "Rival",
    "Skipped",
    "captum",
    "constant",
    "deeplift",
    "from_function",
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "lime",
    "lrp",
    "random",
    "saliency",
    "shap",
    "suite",
    "twin",
    "zero",
]

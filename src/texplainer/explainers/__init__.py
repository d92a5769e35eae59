"""Other explainers behind the same callable as TExplainer: SHAP, LIME, Captum's, two-point differences, controls.

`explainers.shap(model, background)` and its siblings build one; `suite` builds several by name and keeps the
reason of each that does not fit the model. To add one: a function (model, background, **choice) ->
OtherExplainer, and one line in `EXPLAINERS`. Those of images are in images.py. A library is imported when an
explainer of it is built.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from texplainer.errors import InputError, Unsupported
from texplainer.explainers.base import OtherExplainer, Skipped, constant, from_function, random, zero
from texplainer.explainers.captum import METHODS, captum, gradient_shap, smoothgrad, torch_network
from texplainer.explainers.images import IMAGE_EXPLAINERS, OtherImageExplainer, image_suite
from texplainer.explainers.lime import lime
from texplainer.explainers.shap import shap
from texplainer.explainers.shapley_estimators import lightshap, shapiq
from texplainer.explainers.tree_libraries import own_contributions, treeig, woodelf
from texplainer.explainers.two_point import two_point

integrated_gradients = partial(captum, method="integrated_gradients")
input_x_gradient = partial(captum, method="input_x_gradient")
deeplift = partial(captum, method="deeplift")
lrp = partial(captum, method="lrp")
gradient = partial(captum, method="gradient")
saliency = partial(captum, method="saliency")

#: name -> (model, background, **choice) -> OtherExplainer. A method's own defaults and its better settings are lines of
#: their own; what draws at random has a line without a seed. `OtherExplainer.attribution` is the question it answers.
EXPLAINERS: dict[str, Callable[..., OtherExplainer]] = {
    "shap": shap,
    "shap_25": partial(shap, references=25),
    "shap_unseeded": partial(shap, seed=None),
    "shap_exact": partial(shap, algorithm="exact"),
    "shap_kernel": partial(shap, algorithm="kernel"),
    "shap_kernel_unseeded": partial(shap, algorithm="kernel", seed=None),
    "shap_permutation": partial(shap, algorithm="permutation"),
    "shap_tree": partial(shap, algorithm="tree"),
    "shap_tree_margin": partial(shap, algorithm="tree", scale="log-odds"),
    "shap_tree_path": partial(shap, algorithm="tree_path", scale="log-odds"),
    "shap_gradient": partial(shap, algorithm="gradient"),
    "shap_deep": partial(shap, algorithm="deep"),
    "shap_labels": partial(shap, labels=True),
    "shapiq": shapiq,
    "shapiq_leverage": partial(shapiq, estimator="LeverageSHAP"),
    "lightshap": lightshap,
    "own_contributions": own_contributions,
    "woodelf": woodelf,
    "treeig": treeig,
    "lime": lime,
    "lime_unseeded": partial(lime, seed=None),
    "lime_continuous": partial(lime, discretize=False),
    "lime_continuous_unseeded": partial(lime, discretize=False, seed=None),
    "integrated_gradients": integrated_gradients,
    "integrated_gradients_mean": partial(integrated_gradients, baseline="mean"),
    "integrated_gradients_probability": partial(integrated_gradients, scale="probability"),
    "integrated_gradients_mean_probability": partial(
        integrated_gradients, baseline="mean", scale="probability"
    ),
    "gradient_shap": gradient_shap,
    "gradient_shap_default": partial(gradient_shap, samples=5, seed=None),
    "input_x_gradient": input_x_gradient,
    "deeplift": deeplift,
    "deeplift_mean": partial(deeplift, baseline="mean"),
    "lrp": lrp,
    "gradient": gradient,
    "gradient_probability": partial(gradient, scale="probability"),
    "saliency": saliency,
    "smoothgrad": smoothgrad,
    "smoothgrad_default": partial(smoothgrad, noise=1.0, samples=5, seed=None),
    "two_point": two_point,
    "constant": constant,
    "zero": zero,
    "random": random,
}

#: the paper's comparison
PAPER = ("shap", "lime", "integrated_gradients", "input_x_gradient", "deeplift")


def suite(
    model: Any, background: Any, names: Iterable[str] = PAPER, **choice: Any
) -> dict[str, OtherExplainer | Skipped]:
    """Build other explainers by name; an unsupported one becomes a `Skipped` with the reason."""
    built: dict[str, OtherExplainer | Skipped] = {}
    for name in names:
        if name not in EXPLAINERS:
            close = difflib.get_close_matches(name, EXPLAINERS, 1, cutoff=0.3)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(EXPLAINERS)}."
            raise InputError(f"unknown explainer {name!r}; {hint}")
        try:
            built[name] = EXPLAINERS[name](model, background, **choice)
        except Unsupported as reason:
            built[name] = Skipped(name, str(reason))
    return built


def __getattr__(name: str) -> Any:
    """Every line of the table by its name: `explainers.shap_tree(model, background)`."""
    if name not in EXPLAINERS:
        raise AttributeError(f"module 'texplainer.explainers' has no attribute {name!r}")
    return EXPLAINERS[name]


def __dir__() -> list[str]:
    """What is public, and every line of the table."""
    return sorted({*__all__, *EXPLAINERS})


__all__ = [
    "EXPLAINERS",
    "IMAGE_EXPLAINERS",
    "METHODS",
    "PAPER",
    "OtherExplainer",
    "OtherImageExplainer",
    "Skipped",
    "captum",
    "constant",
    "deeplift",
    "from_function",
    "gradient",
    "gradient_shap",
    "image_suite",
    "input_x_gradient",
    "integrated_gradients",
    "lightshap",
    "lime",
    "lrp",
    "own_contributions",
    "random",
    "saliency",
    "shap",
    "shapiq",
    "smoothgrad",
    "suite",
    "torch_network",
    "treeig",
    "two_point",
    "woodelf",
    "zero",
]

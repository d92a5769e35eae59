"""Captum's methods that draw samples: SmoothGrad and Gradient SHAP, seeded row by row.

SmoothGrad (Smilkov et al., 2017) averages the gradient over noise around x; its authors take noise of 10 to
20% of the inputs' range and 50 samples, Captum's default is noise of 1 and 5 samples. Gradient SHAP (Lundberg
and Lee, 2017; Erion et al., 2021) averages gradients at random places between x and random background rows,
times the way; Captum's default is 5 samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from texplainer.explainers.base import (
    SHARES,
    SLOPE,
    Attribute,
    OtherExplainer,
    evenly_spaced,
    needs,
    rebuildable,
)
from texplainer.explainers.captum import Differentiable, differentiable, quiet_hooks, try_one_row
from texplainer.support.random_state import isolated
from texplainer.types import Array


@rebuildable
def smoothgrad(
    model: Any,
    background: Any,
    *,
    scale: str = "log-odds",
    noise: float = 0.15,
    samples: int = 50,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with SmoothGrad: Captum's NoiseTunnel around the plain gradient.

    Parameters
    ----------
    scale : "log-odds" (the logit) or "probability".
    noise : standard deviation of the noise, as a fraction of each feature's range in the background.
    samples : gradients averaged per row.
    seed : each row starts from it; None leaves the draws to torch's global generator.
    **choice : `output`, `feature_names`, as for TExplainer.
    """
    library = needs("captum.attr")
    subject = differentiable(model, background, scale, **choice)
    width = np.ptp(subject.task.background.rows, axis=0)
    width = subject.tensor(np.where(width > 0, width, 1.0))
    # Captum has one noise for all features: the gradient is taken in units of each feature's range
    tunnel = library.NoiseTunnel(library.Saliency(lambda units: subject.network(units * width)))

    def one(row: Array) -> Any:
        units = (subject.tensor(row[None]) / width).requires_grad_()
        found = tunnel.attribute(
            units, nt_type="smoothgrad", nt_samples=samples, stdevs=noise, target=subject.target, abs=False
        )
        return found / width

    settings = {"method": "smoothgrad", "noise": noise, "samples": samples, "seed": seed}
    return _other("SmoothGrad", subject, one, SLOPE, settings)


@rebuildable
def gradient_shap(
    model: Any,
    background: Any,
    *,
    scale: str = "log-odds",
    samples: int = 200,
    references: int = 100,
    seed: int | None = 0,
    **choice: Any,
) -> OtherExplainer:
    """Explain with Captum's Gradient SHAP against rows of the background, at most `references` of them.

    The other parameters are those of `smoothgrad`.
    """
    library = needs("captum.attr")
    subject = differentiable(model, background, scale, **choice)
    rows = subject.tensor(evenly_spaced(subject.task.background.rows, references))
    explainer = library.GradientShap(subject.network)

    def one(row: Array) -> Any:
        table = subject.tensor(row[None], differentiable=True)
        return explainer.attribute(table, rows, n_samples=samples, target=subject.target)

    settings = {"method": "gradient_shap", "samples": samples, "references": len(rows), "seed": seed}
    return _other("Gradient SHAP", subject, one, SHARES, settings)


def _other(
    name: str,
    subject: Differentiable,
    one: Callable[[Array], Any],
    attribution: str,
    settings: dict[str, Any],
) -> OtherExplainer:
    attribute = _row_by_row(one, settings["seed"], settings["samples"])
    try_one_row(attribute, subject.task, name)
    return OtherExplainer(
        name, subject.task, attribute, attribution, settings=settings, predict=subject.predict,
        scale=subject.scale,
    )  # fmt: skip


def _row_by_row(one: Callable[[Array], Any], seed: int | None, cost: int) -> Attribute:
    """Explain rows one at a time, each from the same random state if there is a seed."""

    def attribute(rows: Array) -> tuple[Array, Array]:
        values = np.empty(rows.shape)
        for i, row in enumerate(rows):
            with quiet_hooks():
                if seed is None:
                    found = one(row)
                else:
                    with isolated(seed):
                        found = one(row)
            values[i] = found.detach().double().numpy()[0]
        return values, np.full(len(rows), float(cost))

    return attribute

"""The lines of the tables: every explainer under the name it is shown by, built for one model.

To add one: one entry in `BUILDERS` and its name in `plan.EXPLAINERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from texplainer import TExplainer, rivals
from texplainer.gradients import Unsupported
from texplainer.rivals import Skipped
from texplainer.signatures import Array, Explain


@dataclass(frozen=True)
class Setting:
    """What every explainer of a table is given: the same model, background and names."""

    model: Any
    background: Array  # (rows, features)
    references: int  # the most background rows SHAP averages over: its cost is proportional to them
    feature_names: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]

    def rival(self, build: Callable[..., Any], **choice: Any) -> Explain:
        """Build a rival explainer on this setting."""
        return build(self.model, self.background, feature_names=self.feature_names, **choice)

    def shap(self, **choice: Any) -> Explain:
        """Build one of SHAP's explainers, unseeded, as a user meets it."""
        return self.rival(rivals.shap, references=self.references, seed=None, **choice)

    def taylor(self, **choice: Any) -> Explain:
        """Build a T-Explainer that knows the one-hot groups."""
        groups = dict(self.groups) or None
        return TExplainer(
            self.model, self.background, feature_names=self.feature_names, categorical=groups, **choice
        )


BUILDERS: dict[str, Callable[[Setting], Explain]] = {
    "T-Explainer": lambda s: s.taylor(),
    # Algorithm 1 of the paper; it knows columns only, so a group's value is the sum of its columns'.
    "T-Explainer (paper)": lambda s: TExplainer(
        s.model,
        s.background,
        feature_names=s.feature_names,
        categorical=(),
        step="paper",
        attribution="sensitivity",
        smoothing=0,
        engine="finite-difference",
    ),
    # The paper's SHAP explained hard labels.
    "SHAP": lambda s: s.shap(labels=True),
    "SHAP (probability)": lambda s: s.shap(),
    "SHAP (default)": lambda s: s.shap(),
    "SHAP (exact)": lambda s: s.shap(algorithm="exact"),
    "KernelSHAP": lambda s: s.shap(algorithm="kernel"),
    "TreeSHAP": lambda s: s.rival(rivals.shap, algorithm="tree", scale="margin", references=s.references),
    "TreeSHAP (probability)": lambda s: s.rival(rivals.shap, algorithm="tree", references=s.references),
    "LIME": lambda s: s.rival(rivals.lime, seed=None),
    "LIME (not discretised)": lambda s: s.rival(rivals.lime, seed=None, discretize=False),
    "Integrated Gradients": lambda s: s.rival(rivals.integrated_gradients),
    "Input x Gradient": lambda s: s.rival(rivals.input_x_gradient),
    "DeepLIFT": lambda s: s.rival(rivals.deeplift),
    "LRP": lambda s: s.rival(rivals.lrp),
    "Gradient": lambda s: s.rival(rivals.gradient),
}


def build(names: Sequence[str], setting: Setting) -> dict[str, Explain]:
    """Build explainers by name; one that does not fit the model is kept with its reason."""
    built: dict[str, Explain] = {}
    for name in names:
        try:
            built[name] = BUILDERS[name](setting)
        except Unsupported as reason:
            built[name] = Skipped(name, str(reason))
    return built

"""The lines of the tables: every explainer under the name it is shown by, with the question it answers.

"slope": what a small change of the feature does; "shapley": its contribution to f(x) - E f; "variation": how
much the prediction depends on it, without a sign. Explainers are compared with those that answer the same
question. To add a line: one entry in `LINES`, and its name in the set-ups that show it (below).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from texplainer import Refitted, TExplainer
from texplainer.errors import InputError, Unsupported
from texplainer.explainers import EXPLAINERS, Skipped
from texplainer.gradients.finite_difference.paper import Algorithm1
from texplainer.types import Array, Explain

Question = Literal["slope", "shapley", "variation"]
QUESTIONS: dict[Question, str] = {
    "slope": "What would a small change do?",
    "shapley": "Why this prediction?",
    "variation": "How much does the prediction depend on this feature?",
}


@dataclass(frozen=True)
class Setting:
    """What every explainer of a table is given: the same model, background and names."""

    model: Any
    background: Array  # (rows, features)
    feature_names: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    training: tuple[Array, Array] | None = None  # what the model was fitted on
    output: int | None = None  # of several
    references: int = 100  # the most background rows SHAP averages over: its cost is proportional to them
    samples: int = 5000  # LIME draws around a row

    def other(self, name: str, **choice: Any) -> Explain:
        """Build a line of the table of other explainers."""
        return EXPLAINERS[name](
            self.model, self.background, feature_names=self.feature_names, output=self.output, **choice
        )

    def shap(self, name: str = "shap", references: int | None = None, **choice: Any) -> Explain:
        """Build one of SHAP's, with at most as many background rows as the set-up allows."""
        return self.other(name, references=min(references or self.references, self.references), **choice)

    def trees(self, name: str, *scales: str) -> Explain:
        """Build an explainer of trees on the first of the scales that it knows for the model."""
        build = self.other if name == "own_contributions" else self.shap  # it has no background rows
        return on_first(partial(build, name), *scales)

    def lime(self, name: str) -> Explain:
        """Build one of LIME's."""
        return self.other(name, samples=self.samples)

    def attribution(self, attribution: str, **choice: Any) -> Explain:
        """Build one of T-Explainer's attributions, which know the one-hot groups."""
        groups = dict(self.groups) or None
        return self.taylor(attribution=attribution, categorical=groups, **choice)

    def algorithm_1(self, **choice: Any) -> Explain:
        """Build the paper's method; it knows columns only, so a group's value is the sum of its columns'."""
        given = {"categorical": (), "step": "paper", "attribution": "gradient", "smoothing": 0}
        return self.taylor(**given | {"engine": "finite-difference"} | choice)

    def taylor(self, **choice: Any) -> Explain:
        """Build a T-Explainer."""
        return TExplainer(
            self.model, self.background, feature_names=self.feature_names, output=self.output, **choice
        )

    def induced(self) -> Explain:
        """Build the authors' set-up with the paper's induction of categories."""
        if not self.groups or self.training is None:
            raise Unsupported("the table has no one-hot groups, or its training part is not at hand.")
        return replace(self, model=Refitted(self.model, *self.training)).algorithm_1(
            categorical=dict(self.groups)
        )


def on_first(build: Callable[..., Explain], *scales: str) -> Explain:
    """Build an explainer on the first of the scales that the model has."""
    for scale in scales[:-1]:
        try:
            return build(scale=scale)
        except (Unsupported, InputError):
            continue
    return build(scale=scales[-1])


@dataclass(frozen=True)
class ExplainerLine:
    """One line: the question it answers, how it is built, the line of the paper's tables it stands beside."""

    question: Question
    build: Callable[[Setting], Explain]
    paper: str = ""


def _other(question: Question, name: str, paper: str = "") -> ExplainerLine:
    return ExplainerLine(question, lambda s: s.other(name), paper)


def _variant(**choice: Any) -> ExplainerLine:
    return ExplainerLine("slope", lambda s: s.algorithm_1(**choice))


OURS = ("T-Explainer slope", "T-Explainer shapley", "T-Explainer variation", "T-Explainer gradient")
ON_PROBABILITY = "T-Explainer shapley (probability)"
CAPPED = Algorithm1(capped=True)
PRINTED, AUTHORS, INDUCED = "Algorithm 1 (printed)", "Algorithm 1 (authors)", "Algorithm 1 (induction)"

LINES: dict[str, ExplainerLine] = {
    "T-Explainer slope": ExplainerLine("slope", lambda s: s.attribution("slope")),
    "T-Explainer shapley": ExplainerLine("shapley", lambda s: s.attribution("shapley")),
    # on the scale on which SHAP is shown: the probability if the model has one
    ON_PROBABILITY: ExplainerLine(
        "shapley", lambda s: on_first(partial(s.attribution, "shapley"), "probability", "auto")
    ),
    "T-Explainer variation": ExplainerLine("variation", lambda s: s.attribution("variation")),
    "T-Explainer gradient": ExplainerLine("slope", lambda s: s.attribution("gradient")),
    # as the text has it: probabilities, perturbations inside the data's range
    PRINTED: ExplainerLine("slope", lambda s: s.algorithm_1(scale="probability", step=CAPPED), "T-Explainer"),
    # as its authors' code has it: log-odds, no cap
    AUTHORS: ExplainerLine("slope", lambda s: s.algorithm_1(), "T-Explainer"),
    INDUCED: ExplainerLine("slope", lambda s: s.induced(), "T-Explainer"),
    "Two-point difference": _other("slope", "two_point"),
    "Gradient": _other("slope", "gradient"),
    "Gradient (probability)": _other("slope", "gradient_probability"),
    "SmoothGrad": _other("slope", "smoothgrad"),
    "SmoothGrad (default)": _other("slope", "smoothgrad_default"),
    "LIME continuous": ExplainerLine("slope", lambda s: s.lime("lime_continuous")),
    "LIME continuous (unseeded)": ExplainerLine("slope", lambda s: s.lime("lime_continuous_unseeded")),
    # the paper's SHAP explained hard labels
    "SHAP (labels)": ExplainerLine("shapley", lambda s: s.shap("shap_labels", 25, seed=None), "SHAP"),
    "SHAP": ExplainerLine("shapley", lambda s: s.shap()),
    "SHAP (log-odds)": ExplainerLine("shapley", lambda s: s.shap(scale="log-odds")),
    "SHAP (25 rows)": ExplainerLine("shapley", lambda s: s.shap("shap_25", 25)),
    "SHAP (unseeded)": ExplainerLine("shapley", lambda s: s.shap("shap_unseeded", 25)),
    "KernelSHAP": ExplainerLine("shapley", lambda s: s.shap("shap_kernel", 25)),
    "SHAP (exact)": ExplainerLine("shapley", lambda s: s.shap("shap_exact")),
    "TreeSHAP": ExplainerLine("shapley", lambda s: s.trees("shap_tree", "auto", "raw")),
    "TreeSHAP (margin)": ExplainerLine("shapley", lambda s: s.shap("shap_tree_margin"), "TreeSHAP"),
    "TreeSHAP (path)": ExplainerLine(
        "shapley", lambda s: s.trees("shap_tree_path", "log-odds", "auto", "raw")
    ),
    # what XGBoost and LightGBM return themselves
    "pred_contribs": ExplainerLine("shapley", lambda s: s.trees("own_contributions", "log-odds", "raw")),
    "Woodelf": ExplainerLine("shapley", lambda s: s.trees("woodelf", "log-odds", "raw")),
    "treeig": ExplainerLine("shapley", lambda s: s.trees("treeig", "log-odds", "raw")),
    "shapiq (RegressionMSR)": ExplainerLine("shapley", lambda s: s.shap("shapiq")),
    "LeverageSHAP": ExplainerLine("shapley", lambda s: s.shap("shapiq_leverage")),
    "lightshap": ExplainerLine("shapley", lambda s: s.shap("lightshap")),
    "LIME": ExplainerLine("shapley", lambda s: s.lime("lime")),
    "LIME (unseeded)": ExplainerLine("shapley", lambda s: s.lime("lime_unseeded"), "LIME"),
    "Integrated Gradients": _other("shapley", "integrated_gradients", "Integrated Gradients"),
    "Integrated Gradients (mean)": _other("shapley", "integrated_gradients_mean"),
    "Integrated Gradients (probability)": _other("shapley", "integrated_gradients_probability"),
    # expected gradients: Integrated Gradients from background rows
    "Gradient SHAP": _other("shapley", "gradient_shap"),
    "Gradient SHAP (default)": _other("shapley", "gradient_shap_default"),
    "Input x Gradient": _other("shapley", "input_x_gradient", "Input x Gradient"),
    "DeepLIFT": _other("shapley", "deeplift", "DeepLIFT"),
    "DeepLIFT (mean)": _other("shapley", "deeplift_mean"),
    "LRP": _other("shapley", "lrp"),
}

#: Algorithm 1 with one thing changed at a time, from its authors' set-up
ABLATION: dict[str, ExplainerLine] = {
    AUTHORS: LINES[AUTHORS],
    PRINTED: LINES[PRINTED],
    "on the probability": _variant(scale="probability"),
    "inside the data's range": _variant(step=CAPPED),
    "C = 0.05": _variant(step=Algorithm1(c=0.05)),
    "C = 5": _variant(step=Algorithm1(c=5.0)),
    "h_max = 0.1": _variant(step=Algorithm1(h_max=0.1)),
    "h_max = 10": _variant(step=Algorithm1(h_max=10.0)),
    "without theta": _variant(step=Algorithm1(theta=False)),
}
LINES |= ABLATION

# Which lines a set-up shows. -------------------------------------------------------------------------------

_LIME_SLOPES = ("LIME continuous", "LIME continuous (unseeded)")
_SLOPES = ("Gradient", "Gradient (probability)", "SmoothGrad", "SmoothGrad (default)", *_LIME_SLOPES)
_SHAPLEY = ("SHAP (labels)", "SHAP", "SHAP (25 rows)", "SHAP (unseeded)", "LIME", "LIME (unseeded)")
_CAPTUM = (
    *("Integrated Gradients", "Integrated Gradients (mean)", "Integrated Gradients (probability)"),
    *("Gradient SHAP", "Gradient SHAP (default)", "Input x Gradient", "DeepLIFT", "DeepLIFT (mean)", "LRP"),
)
_TREE_SHAPLEY = ("TreeSHAP", "TreeSHAP (margin)", "TreeSHAP (path)", "LIME", "LIME (unseeded)")
_PAPER = (PRINTED, AUTHORS)
NETWORK_LINES = (*OURS, *_PAPER, *_SLOPES, *_SHAPLEY, *_CAPTUM)
TREE_LINES = (*OURS, *_PAPER, *_LIME_SLOPES, *_TREE_SHAPLEY)
BOXPLOT_LINES = (
    *("T-Explainer slope", "T-Explainer shapley", *_PAPER, "SHAP (labels)", "LIME (unseeded)"),
    *("Integrated Gradients", "Input x Gradient", "DeepLIFT"),
)
TIMING_LINES = (
    *OURS,
    *_PAPER,
    "SHAP",
    "KernelSHAP",
    "SHAP (exact)",
    "Integrated Gradients",
    "LIME continuous",
)
_ESTIMATORS = ("shapiq (RegressionMSR)", "LeverageSHAP", "lightshap")  # of Shapley values of any function
_EVERYWHERE = (
    *OURS,
    ON_PROBABILITY,
    AUTHORS,
    "Two-point difference",
    "LIME continuous",
    "LIME continuous (unseeded)",
    "LIME",
)
WIDE_LINES = {
    "network": (
        *(*_EVERYWHERE, "Gradient", "SmoothGrad", "SHAP", "SHAP (log-odds)", "Integrated Gradients"),
        *("Integrated Gradients (mean)", "Gradient SHAP", "DeepLIFT (mean)", *_ESTIMATORS),
    ),
    "trees": (*_EVERYWHERE, "TreeSHAP", "TreeSHAP (path)", "pred_contribs", "Woodelf", "treeig"),
    "other": (*_EVERYWHERE, "SHAP"),
    "function": (*_EVERYWHERE, "SHAP", *_ESTIMATORS),
}


def build_explainers(names: Sequence[str], setting: Setting) -> dict[str, Explain]:
    """Build explainers by name; one that does not fit the model is kept with its reason."""
    built: dict[str, Explain] = {}
    for name in names:
        try:
            built[name] = LINES[name].build(setting)
        except (Unsupported, InputError) as reason:
            built[name] = Skipped(name, str(reason))
    return built


def question_of(name: str) -> str:
    """The question a line answers; controls answer none."""
    return LINES[name].question if name in LINES else ""

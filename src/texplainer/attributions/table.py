"""The table of attributions. Each answers one question.

To add one: a function from an `ExplainContext` to an `AttributionResult` in a file of its own, and a row
here. Explainer, command line, metrics, plots, report and explorer read the row.
"""

from __future__ import annotations

from texplainer.attributions.attribution import Attribution
from texplainer.attributions.replaced import QUANTILES
from texplainer.attributions.shapley import path_base, shapley, shapley_path, way_of_shapley
from texplainer.attributions.slope import gradient, slope
from texplainer.attributions.variation import variation
from texplainer.categories import swaps
from texplainer.errors import InputError

CONTRIBUTION = "contribution"
ATTRIBUTIONS: dict[str, Attribution] = {
    "slope": Attribution(
        question="What would a small change do?",
        compute=slope,
        unit="sd",
        signed=True,
        adds_up=False,
        axis="slope of {what} per SD, averaged over a quarter SD",
        level_axis="{what} with this category, against the average one",
        feature_unit="per SD",
        head="slope per SD",
        level_unit="this category",
        category=swaps.sd_or_average,
        neighbourhood=True,
    ),
    "shapley": Attribution(
        question="Why this prediction?",
        compute=shapley,
        unit="share",
        signed=True,
        adds_up=True,
        axis="contribution to {what}",
        level_axis="contribution to {what}",
        feature_unit="contribution",
        level_unit="contribution",
        head=CONTRIBUTION,
        category=None,
        beside="slope",
        how=way_of_shapley,
    ),
    "shapley_path": Attribution(
        question="Why this prediction, by the training rows that each tree counted?",
        compute=shapley_path,
        unit="share",
        signed=True,
        adds_up=True,
        axis="path-dependent contribution to {what}",
        level_axis="path-dependent contribution to {what}",
        feature_unit="contribution",
        level_unit="contribution",
        head=CONTRIBUTION,
        category=None,
        beside="slope",
        how=lambda engine: "exact path-dependent Shapley values of the trees, from their covers",
        base=path_base,
        trees_only=True,
    ),
    "variation": Attribution(
        question="How much does the prediction depend on this feature?",
        compute=variation,
        unit="sd",
        signed=False,
        adds_up=False,
        axis="typical change of {what} under the feature's other values",
        level_axis="typical change of {what} under the other categories",
        feature_unit="its other values",
        level_unit="its other categories",
        category=swaps.root_mean_square,
        how=lambda engine: f"predictions with {QUANTILES} quantiles of every column in its place",
    ),
    "gradient": Attribution(
        question="What is the derivative at this point?",
        compute=gradient,
        unit="slope",
        signed=True,
        adds_up=False,
        axis="change of {what} per unit of the feature",
        level_axis="{what} with this category, against the average one",
        feature_unit="per unit",
        level_unit="this category",
        category=swaps.slope_or_average,
    ),
}


#: attributions of every model
GENERAL = tuple(name for name, spec in ATTRIBUTIONS.items() if not spec.trees_only)
DEFAULT = "slope"
PAPER = "gradient"  # what a given step asks for: the paper's derivative


def attribution_of(name: object, step: object = "auto") -> str:
    """Check the name of an attribution; "auto" is the default, or the derivative where a step is given."""
    if isinstance(name, str) and name == "auto":
        return DEFAULT if isinstance(step, str) and step == "auto" else PAPER
    if not isinstance(name, str) or name not in ATTRIBUTIONS:
        raise InputError(
            f"attribution={name!r} is unknown; expected 'auto' or one of {', '.join(ATTRIBUTIONS)}."
        )
    return name


def attributions_of(names: object, step: object = "auto") -> tuple[str, ...]:
    """Check the name of an attribution or several, each once."""
    several = names if isinstance(names, (list, tuple)) else (names,)
    if not several:
        raise InputError(
            f"attribution={names!r} is empty; expected one or several of {', '.join(ATTRIBUTIONS)}."
        )
    found = tuple(dict.fromkeys(attribution_of(name, step) for name in several))
    own = [name for name in found if ATTRIBUTIONS[name].base is not None]
    if own and len(found) > 1:
        raise InputError(
            f"attribution={names!r}: {own[0]!r} has a base value of its own and cannot be kept with others in "
            "one result. Ask for it in a call of its own."
        )
    return found


# ------------------------------------------------------------------ words for people

#: scale -> the explained quantity; other scales are the output itself
_QUANTITIES = {"probability": "probability of {}", "log-odds": "log-odds of {}"}


def quantity(scale: str, output: str) -> str:
    """The explained quantity as text: "log-odds of benign"."""
    named = f"class {output}" if output.isdigit() else output
    return _QUANTITIES.get(scale, "{}").replace("{}", named)


def axis_words(name: str, what: str, scale: str, *, level: bool = False) -> str:
    """The axis label of an attribution, for numeric features or for categories (`level`); `what` is the quantity."""
    spec = ATTRIBUTIONS.get(name)
    words = f"{name} of {{what}}" if spec is None else spec.level_axis if level else spec.axis
    return words.replace("{what}", f"the {what}" if scale in _QUANTITIES else what)


def shown_beside(name: str) -> str:
    """The attribution a report shows with another."""
    return ATTRIBUTIONS[name].beside if name in ATTRIBUTIONS else Attribution.beside


def adds_up(name: str) -> bool:
    """Whether base value + values = f(x); True for values of other explainers that are not in the table."""
    return name not in ATTRIBUTIONS or ATTRIBUTIONS[name].adds_up


def head(name: str) -> str:
    """The head of an attribution's column where a row is shown."""
    return (name in ATTRIBUTIONS and ATTRIBUTIONS[name].head) or name


def columns_in_order() -> list[str]:
    """The attributions in the order of their columns: contributions first."""
    return sorted(ATTRIBUTIONS, key=lambda name: not adds_up(name))


def marks_categories(name: str) -> bool:
    """Whether the values of categories are of another kind than those of numbers, which are slopes."""
    return name in ATTRIBUTIONS and ATTRIBUTIONS[name].category is not None and ATTRIBUTIONS[name].signed


def signed(name: str) -> bool:
    """Whether the sign of a value means something."""
    return name not in ATTRIBUTIONS or ATTRIBUTIONS[name].signed

"""The readings: one question, one vector, one name.

To add one: a function from a `Place` to `Found` in a file of its own, and a row here. Explainer, command
line, metrics, plots, report and explorer read the row.
"""

from __future__ import annotations

from texplainer.categories import swaps
from texplainer.errors import InputError
from texplainer.readings.effect import effect
from texplainer.readings.reading import Reading
from texplainer.readings.references import QUANTILES
from texplainer.readings.shares import shares, way_of_shares
from texplainer.readings.slopes import local, sensitivity

READINGS: dict[str, Reading] = {
    "local": Reading(
        question="What does the model react to, here?",
        compute=local,
        unit="spread",
        signed=True,
        adds_up=False,
        axis="change of {what} for one spread more",
        level_axis="{what} with this level, against the average level",
        feature_unit="one spread more",
        level_unit="this level",
        category=swaps.spread_or_average,
        neighbourhood=True,
    ),
    "shares": Reading(
        question="Where does this prediction come from?",
        compute=shares,
        unit="share",
        signed=True,
        adds_up=True,
        axis="share of {what} above its mean",
        level_axis="share of {what} above its mean",
        feature_unit="share of the prediction",
        level_unit="share of the prediction",
        category=None,
        beside="local",
        how=way_of_shares,
    ),
    "effect": Reading(
        question="How much hangs on this feature's value?",
        compute=effect,
        unit="spread",
        signed=False,
        adds_up=False,
        axis="typical change of {what} under the feature's other values",
        level_axis="typical change of {what} under the other levels",
        feature_unit="its other values",
        level_unit="its other levels",
        category=swaps.root_mean_square,
        how=lambda engine: f"predictions with {QUANTILES} quantiles of every column in its place",
    ),
    "sensitivity": Reading(
        question="What is the derivative at this point?",
        compute=sensitivity,
        unit="slope",
        signed=True,
        adds_up=False,
        axis="change of {what} per unit of the feature",
        level_axis="{what} with this level, against the average level",
        feature_unit="one unit more",
        level_unit="this level",
        category=swaps.slope_or_average,
    ),
}


DEFAULT = "local"
PAPER = "sensitivity"  # what a given step asks for: the paper's derivative


def reading_of(name: object, step: object = "auto") -> str:
    """Check the name of a reading; "auto" is the default, or the derivative where a step is given."""
    if isinstance(name, str) and name == "auto":
        return DEFAULT if isinstance(step, str) and step == "auto" else PAPER
    if not isinstance(name, str) or name not in READINGS:
        raise InputError(f"attribution={name!r} is unknown; expected 'auto' or one of {', '.join(READINGS)}.")
    return name


# ------------------------------------------------------------------ words for people

#: scale -> the explained quantity; other scales are the output itself
_QUANTITIES = {"probability": "probability of {}", "margin": "log-odds of {}"}


def quantity(scale: str, output: str) -> str:
    """The explained quantity in words: "log-odds of benign"."""
    named = f"class {output}" if output.isdigit() else output
    return _QUANTITIES.get(scale, "{}").replace("{}", named)


def axis_words(name: str, what: str, scale: str, *, level: bool = False) -> str:
    """What a value of a reading means, of a number or of a category's level; `what` is the quantity."""
    reading = READINGS.get(name)
    words = f"{name} of {{what}}" if reading is None else reading.level_axis if level else reading.axis
    return words.replace("{what}", f"the {what}" if scale in _QUANTITIES else what)


def shown_beside(name: str) -> str:
    """The reading a report shows with another."""
    return READINGS[name].beside if name in READINGS else Reading.beside


def adds_up(name: str) -> bool:
    """Whether base value + values = f(x); a vector of unknown kind is taken at its word."""
    return name not in READINGS or READINGS[name].adds_up


def signed(name: str) -> bool:
    """Whether the sign of a value means something."""
    return name not in READINGS or READINGS[name].signed

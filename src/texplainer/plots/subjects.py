"""Which argument each plot accepts. For any other, the error names what was expected and how to get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from texplainer.errors import InputError
from texplainer.explanation.from_shap import from_shap, is_shap
from texplainer.support.messages import describe, refuse_keywords

Draw = TypeVar("Draw", bound=Callable[..., Any])


def is_explanation(subject: Any) -> bool:
    """Whether it holds what an Explanation holds."""
    return hasattr(subject, "arrays") and hasattr(subject, "feature_names")


def _explanations(subject: Any) -> bool:
    return isinstance(subject, Mapping) and all(is_explanation(one) for one in subject.values())


def _either(subject: Any) -> bool:
    return is_explanation(subject) or _explanations(subject)


def _scores(subject: Any) -> bool:
    return isinstance(subject, Mapping) or hasattr(subject, "per_row")


def _compared(subject: Any) -> bool:
    return hasattr(subject, "agreement") or (_explanations(subject) and len(subject) > 0)


EXPLAINED = "an Explanation. Pass what explainer(X) returns, or Explanation.build(values, data=X)"
EVALUATED = "an Evaluation, or scores by explainer's name. Pass what texplainer.evaluate returns"
TIMES = "seconds by explainer and number of rows, {'T-Explainer': {10: 0.02}}. Measure and pass them"
#: plot -> whether a subject will do, and what is expected; the others draw one Explanation
SUBJECTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "agreement": (
        _compared,
        "an Evaluation, or Explanations of the same rows by explainer's name. Pass these",
    ),
    "bar": (_either, EXPLAINED),
    "ice": (
        lambda subject: hasattr(subject, "predictor") and hasattr(subject, "background"),
        "a TExplainer. Pass the explainer itself, a row and a feature",
    ),
    "interactions": (
        lambda subject: hasattr(subject, "strongest"),
        "Interactions. Pass what explainer.interactions(X) returns",
    ),
    "stability_boxplot": (_scores, EVALUATED),
    "stability_faithfulness": (_scores, EVALUATED),
    "timing": (lambda subject: isinstance(subject, Mapping), TIMES),
}


def checked(draw: Draw) -> Draw:
    """Check a plot's argument before drawing, and give it the keyword `show`, as shap's plots have."""
    name = draw.__name__
    fine, expected = SUBJECTS.get(name, (is_explanation, EXPLAINED))
    own = signature(draw)
    known = [*own.parameters, "show"]

    @wraps(draw)
    def plot(*given: Any, show: bool = False, **words: Any) -> Any:
        if given and is_shap(given[0]):
            given = (from_shap(given[0]), *given[1:])
        subjects = given or [
            words[key] for key in ("explanation", "subject", "interactions", "explainer") if key in words
        ]
        if len(subjects) and not fine(subjects[0]):
            raise InputError(f"plots.{name} got {describe(subjects[0])}; expected {expected}.")
        refuse_keywords(f"plots.{name}", {key: words[key] for key in words if key not in known}, known)
        ax = draw(*given, **words)
        if show:
            import matplotlib.pyplot as plt

            plt.show()
        return ax

    keyword = Parameter("show", Parameter.KEYWORD_ONLY, default=False, annotation=bool)
    plot.__signature__ = own.replace(parameters=[*own.parameters.values(), keyword])  # type: ignore[attr-defined]
    return plot  # type: ignore[return-value]

"""scikit-learn, related libraries, and objects with the interface of its estimators.

The categorical columns of a pipeline are those of its encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from texplainer.errors import InputError
from texplainer.models.libraries import (
    Library,
    ModelAdapter,
    at,
    detects_outliers,
    no_model,
    split,
    transformed,
)
from texplainer.models.perceptron import Layers
from texplainer.models.scales import label_log_odds, log_odds, sigmoid_log_odds, softmax_log_odds, two_sided
from texplainer.tables import native
from texplainer.tables.schema import Schema

#: libraries whose models remember that they were fitted with names
TELL_NAMES = ("sklearn", "imblearn", "xgboost", "lightgbm")
ENCODERS = {"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"}


def estimator(model: Any, schema: Schema) -> ModelAdapter:
    """Adapt a fitted estimator through its methods."""
    check_fitted(model)
    wanted = _wanted(model, schema)
    return replace(_by_methods(model), schema=wanted)


def _by_methods(model: Any) -> ModelAdapter:
    if detects_outliers(model):  # how far from an outlier
        return ModelAdapter("sklearn", "regression", {"raw": model.decision_function}, "raw", ("score",))
    if hasattr(model, "predict_proba") and not _is_a(model, "RegressorMixin"):
        return _probabilistic(model)
    if hasattr(model, "decision_function"):
        scores = partial(_decision, model)
        return classifier(model, "sklearn", {"log-odds": scores, "raw": scores}, "log-odds")
    if hasattr(model, "classes_"):  # labels are all it gives: 1 for the predicted class, 0 for the others
        return classifier(model, "sklearn", {"raw": partial(_indicators, model, model.classes_)}, "raw")
    if not hasattr(model, "predict"):
        raise no_model(model)
    clusters = np.unique(getattr(model, "labels_", ())) if _is_a(model, "ClusterMixin") else ()
    if len(clusters):  # numbers of clusters are names: 1 for the cluster a row falls into
        names = tuple(f"cluster {c}" for c in clusters)
        return ModelAdapter(
            "sklearn", "clusters", {"raw": partial(_indicators, model, clusters)}, "raw", names
        )
    return ModelAdapter("sklearn", "regression", {"raw": model.predict}, "raw")


def _is_a(model: Any, mixin: str) -> bool:
    return any(base.__name__ == mixin for base in type(split(model)[1]).__mro__)


def check_fitted(model: Any) -> None:
    """Reject an estimator that is not fitted, in the same words for every library."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if type(model).__module__.split(".")[0] not in TELL_NAMES:  # others keep what they learnt otherwise
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InputError(
            f"the {type(model).__name__} is not fitted; expected a fitted one. Call its fit(X, y) first."
        ) from None
    except (TypeError, AttributeError):  # no estimator to scikit-learn's liking
        pass


def _wanted(model: Any, schema: Schema) -> Schema | None:
    """Choose the input type: a frame if the model was fitted with names, otherwise an array."""
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is not None:
        fits = schema.kind == "array" and len(fitted) == schema.width
        return replace(schema, kind="pandas", names=tuple(str(n) for n in fitted)) if fits else None
    first = model.steps[0][1] if hasattr(model, "steps") else model
    tells = type(first).__module__.split(".")[0] in TELL_NAMES  # a user's own class may well want its frame
    return replace(schema, kind="array") if tells and schema.kind != "array" and not schema.levels else None


# ---------------------------------------------------------------- classifiers


def _probabilistic(model: Any) -> ModelAdapter:
    """Use a classifier's own log-odds if its type has them, otherwise those of its probabilities."""
    scales: dict[str, Callable[[Any], Any]] = {"probability": partial(_probabilities, model)}
    before, last = split(model)
    exact = type(last).__module__.startswith("sklearn.") and type(last).__name__ in LINKS
    link = LINKS[type(last).__name__](last) if exact else None  # a subclass may compute anything
    if link is not None:
        scores, odds = link
        run = partial(transformed, before, lambda t: np.asarray(scores(t)))
        scales |= {"log-odds": lambda t: odds(run(t)), "raw": lambda t: two_sided(run(t))}
        return classifier(model, "sklearn", scales, "log-odds")
    odds = label_log_odds if _labels_of(model) is not None else log_odds
    scales["log-odds"] = lambda t: odds(_probabilities(model, t))
    if hasattr(model, "decision_function"):
        scales["raw"] = partial(_decision, model)
    return classifier(model, "sklearn", scales, "probability")


def classifier(
    model: Any, kind: str, scales: Mapping[str, Callable[[Any], Any]], default: str = "probability"
) -> ModelAdapter:
    """Name the outputs of a classifier by its classes."""
    several = _labels_of(model)
    if several is not None:
        return ModelAdapter(kind, "multilabel", scales, default, several)
    classes = _classes(model)
    names = tuple(str(c) for c in classes)
    labels = {c.item() if isinstance(c, np.generic) else c: i for i, c in enumerate(classes)}
    return ModelAdapter(kind, "classification", scales, default, names, labels)


def _classes(model: Any) -> list[Any]:
    """The class labels that a model names; none if what it holds is not a list of them."""
    found: Any = getattr(model, "classes_", None)
    found = found.ravel() if isinstance(found, np.ndarray) else found
    return list(found) if hasattr(found, "__iter__") else []


def _labels_of(model: Any) -> tuple[str, ...] | None:
    """Return output names of a multi-target classifier, None for a single target."""
    classes, last = getattr(model, "classes_", ()), split(model)[1]
    if isinstance(classes, list) and classes and np.ndim(classes[0]) > 0:  # one array of classes each
        return tuple(
            f"y{i}={c}" if len(own) != 2 else f"y{i}"
            for i, own in enumerate(classes)
            for c in (own if len(own) != 2 else own[1:])
        )
    network = getattr(last, "out_activation_", "") == "logistic" and getattr(last, "n_outputs_", 1) > 1
    apart = getattr(last, "multilabel_", False) is True
    kind = getattr(getattr(last, "_label_binarizer", None), "y_type_", "")  # RidgeClassifier's are 0 and 1
    if kind == "multilabel-indicator" and hasattr(last, "coef_"):
        return tuple(f"y{i}" for i in range(len(last.coef_)))
    return tuple(f"y{c}" for c in classes) if network or apart else None


def _indicators(model: Any, classes: Any, table: Any) -> np.ndarray:
    return (np.asarray(model.predict(table))[:, None] == np.asarray(classes)).astype(float)


def _probabilities(model: Any, table: Any) -> np.ndarray:
    raw = model.predict_proba(table)
    if (
        isinstance(raw, list) and raw and np.ndim(raw[0]) == 2
    ):  # several targets: the positive class of the binary ones, all of the others
        return np.hstack([p[:, 1:] if p.shape[1] == 2 else p for p in raw])
    return np.asarray(raw) if isinstance(raw, list) else raw


def _decision(model: Any, table: Any) -> np.ndarray:
    return two_sided(np.asarray(model.decision_function(table)))


#: a fitted model's last step -> its scores, and the log-odds that follow from them
Link = tuple[Callable[[Any], np.ndarray], Callable[[np.ndarray], np.ndarray]]


def _by_softmax(model: Any) -> Link:
    return model.decision_function, softmax_log_odds


def _logistic(model: Any) -> Link:
    # before scikit-learn 1.8 one logistic model a class was a choice
    apart = getattr(model, "multi_class", "") == "ovr" or getattr(model, "solver", "") == "liblinear"
    return model.decision_function, sigmoid_log_odds if apart else softmax_log_odds


def _stochastic(model: Any) -> Link | None:
    return (model.decision_function, sigmoid_log_odds) if model.loss == "log_loss" else None


def _boosting(model: Any) -> Link:
    steepness = 2.0 if getattr(model, "loss", "") == "exponential" else 1.0
    return model.decision_function, lambda z: softmax_log_odds(steepness * z)


def _adaptive_boosting(model: Any) -> Link:
    return model.decision_function, lambda z: softmax_log_odds(z / (len(model.classes_) - 1))


def _network(model: Any) -> Link:
    layers = Layers(model)
    labels = model.out_activation_ == "logistic" and model.n_outputs_ > 1
    return (
        lambda t: layers.scores(_dense(t)),
        (lambda z: z) if labels else softmax_log_odds,
    )


def _dense(table: Any) -> np.ndarray:
    """Numbers of a table, which an encoder before the network may have made sparse."""
    return np.asarray(native.dense(table) if native.is_sparse(table) else table, dtype=np.float64)


def _bayes(model: Any) -> Link:
    return model.predict_joint_log_proba, softmax_log_odds


#: types with log-odds of their own
LINKS: dict[str, Callable[[Any], Link | None]] = {
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), _logistic),
    **dict.fromkeys(("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"), _by_softmax),
    "SGDClassifier": _stochastic,
    "MLPClassifier": _network,
    **dict.fromkeys(("GradientBoostingClassifier", "HistGradientBoostingClassifier"), _boosting),
    "AdaBoostClassifier": _adaptive_boosting,
    **dict.fromkeys(("GaussianNB", "BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"), _bayes),
}


# ---------------------------------------------------------------- columns of categories


def encoded(model: Any, names: tuple[str, ...]) -> list[str]:
    """Return the columns that pass through an encoder of categories."""
    if type(model).__module__.startswith("category_encoders"):  # it encodes the columns it was given
        return [name for name in names if name in {str(c) for c in model.cols or ()}]
    if type(model).__name__ in ENCODERS:
        return list(names)
    if hasattr(model, "transformers_"):  # ColumnTransformer
        parts = [
            (transformer, _chosen(columns, names))
            for _, transformer, columns in model.transformers_
            if not isinstance(transformer, str)
        ]
        return [name for transformer, own in parts for name in encoded(transformer, own)]
    if hasattr(model, "steps"):  # imputers before an encoder leave the columns as they are
        known = [step for _, step in model.steps if type(step).__name__ in ENCODERS]
        return encoded(known[0] if known else model.steps[0][1], names)
    mask = getattr(model, "is_categorical_", None)  # histogram gradient boosting
    return at(np.flatnonzero(mask), names) if mask is not None else []


def _chosen(columns: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Resolve a ColumnTransformer's choice of columns: names, positions, a slice or a mask."""
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, slice):
        columns = list(columns)
        if not columns or isinstance(columns[0], str):
            return tuple(columns)
    return tuple(str(n) for n in np.array(names, dtype=object)[columns])


def without_encoder(model: Any) -> Any:
    """Return a Pipeline without its first step, the encoder of categories."""
    if not hasattr(model, "steps") or len(model.steps) < 2:
        return model
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*(step for _, step in model.steps[1:]))


#: delegating meta-estimators -> the attribute that holds the inner estimator
WRAPPERS = {
    **dict.fromkeys(
        ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"),
        "best_estimator_",
    ),
    "FrozenEstimator": "estimator",
    **dict.fromkeys(("TunedThresholdClassifierCV", "FixedThresholdClassifier"), "estimator_"),
}


def delegate_of(model: Any) -> Any:
    """Return the estimator inside a delegating meta-estimator, also at the end of a Pipeline."""
    name, module = type(model).__name__, type(model).__module__
    if module.startswith("sklearn.") and name in WRAPPERS:
        return getattr(model, WRAPPERS[name], model)
    if name != "Pipeline":
        return model
    from sklearn.pipeline import Pipeline

    steps = [step for step in model.steps if not hasattr(step[1], "fit_resample")]  # asleep when predicting
    last = delegate_of(steps[-1][1])
    if type(model) is Pipeline and last is model.steps[-1][1]:
        return model
    return Pipeline([*steps[:-1], (steps[-1][0], last)])


LIBRARY = Library(
    "sklearn",
    estimator,
    categories=encoded,
    feature_names=lambda model: getattr(model, "feature_names_in_", None),
    unwrapped=delegate_of,
    without_encoder=without_encoder,
    engines=lambda model: ("closed-form", "tree"),
)

"""Continuous categories by refitting: the paper's continuity induction, and target encoding.

Induction (paper, "Handling Categorical Data"): noise U(-delta, delta) is added to every one-hot column of the
training set, every column is scaled to [0, 1], and a clone of the model is fitted to that copy. The
T-Explainer runs on the clone, which has derivatives with respect to the one-hot columns. The explained row's
columns are 0 and 1, without noise. Target encoding, the alternative the paper names, replaces each category
by its expected target, shrunk to the overall mean for rare categories.

In both cases a category is a pattern of continuous columns, P[c]. The derivative g of the clone with respect
to them predicts the effect of a change of category: Delta_c = g . (P[c] - P[own]). The clone is another
model; its disagreement with the original is measured on the training set and reported.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from texplainer.background.summary import Background, data_bounds
from texplainer.categories.detect import Categories, features_of
from texplainer.categories.swaps import Feature
from texplainer.errors import InputError
from texplainer.gradients.choose import choose, folded_engine
from texplainer.gradients.engine import Engine, Settings
from texplainer.models import predictor as prediction
from texplainer.models.libraries import library_of
from texplainer.models.predictor import Predictor
from texplainer.tables import native
from texplainer.tables.onehot import ColumnGroup, OneHotLayout
from texplainer.tables.schema import Schema
from texplainer.types import Array

DELTA = 0.1
DISAGREEMENT = 0.1  # share of the training rows past which the explanation is of another model
PRIOR_ROWS = 10.0  # a level seen in so many rows has its expected target half from them


class RefitWarning(UserWarning):
    """The refitted model disagrees with the original one on too many rows."""


@dataclass(frozen=True)
class Refitted:
    """A model whose clone, refitted on continuous categories, is to be explained in its place.

    Give it to `TExplainer` as the model. Categorical features then have derivatives, as in the paper. The
    explanation is of the clone; `explainer.refit` reports how far it disagrees with the original.

    Parameters
    ----------
    model
        A fitted estimator with `get_params` and `fit`.
    X, y
        The training data.
    method
        "induction" (the paper: one-hot columns with uniform noise) or "target" (target encoding).
    seed
        Of the noise of "induction".

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> import texplainer as tx
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0] * 25, "kind": ["a", "b", "b", "a"] * 25})
    >>> y = X["size"] + (X["kind"] == "b")
    >>> encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    >>> model = make_pipeline(encode, LinearRegression()).fit(X, y)
    >>> explainer = tx.TExplainer(tx.Refitted(model, X, y), X)
    >>> explainer.refit.method
    'induction'
    """

    model: Any
    X: Any
    y: Any
    method: str = "induction"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the method."""
        if self.method not in PATTERNS:
            raise InputError(f"method={self.method!r} is unknown; expected one of {', '.join(PATTERNS)}.")


@dataclass(frozen=True)
class RefitReport:
    """How the refitted model compares with the original on the training rows.

    `disagreement` is the fraction of rows with a different predicted class, for a regressor the root mean
    square difference in units of the original predictions' standard deviation; `original` and `refitted` are
    the two accuracies (R² of a regressor).
    """

    method: str
    disagreement: float
    original: float
    refitted: float
    seed: int
    delta: float = DELTA


def refit(
    predictor: Predictor, schema: Schema, request: Refitted, *, output: Any, scale: str, delta: float = DELTA
) -> tuple[Predictor, RefitReport]:
    """Fit a clone of the model on continuous categories; return it as a Predictor of the same codes."""
    method, seed = request.method, request.seed
    rows, y = schema.read(request.X), np.asarray(request.y)
    if len(rows) != len(y):
        raise InputError(f"X has {len(rows)} rows and y {len(y)} labels; expected equal numbers.")
    unknown = [i for i, label in enumerate(y.tolist()) if native.is_missing(label)]
    if unknown:
        raise InputError(
            f"{len(unknown)} of {len(y)} labels of y are missing, such as that of row {unknown[0]}; "
            "drop these rows of X and y."
        )
    wide, layout = PATTERNS[method](schema, rows, y)
    continuous = layout.to_cells(rows)  # (rows, wide columns)
    if method == "induction":
        cells = [c for group in layout.groups.values() for c in group.columns]
        noise = np.random.default_rng(seed).uniform(-delta, delta, (len(rows), len(cells)))
        continuous[:, cells] += noise
    fitted = _fitted(predictor, continuous, y)
    levels = dict(schema.levels)
    folded = Schema(schema.names, "array", levels, ordinal=schema.ordinal, inner=wide, layout=layout)
    clone = prediction.adapt(
        fitted, folded, rows[:8], output=output, scale=scale, batch_rows=predictor.batch_rows
    )
    report = replace(_compare(predictor, clone, rows, y), method=method, seed=seed, delta=delta)
    if report.disagreement > DISAGREEMENT:
        warnings.warn(
            f"the model refitted by {method!r} disagrees with the original by "
            f"{report.disagreement:.1%} on the training rows (more than {DISAGREEMENT:.0%}): the explanation "
            "is of another model. Pass the model itself to explain it without refitting.",
            RefitWarning,
            stacklevel=4,
        )
    return clone, report


def engine_and_categories(
    predictor: Predictor, background: Background, names: Sequence[str], engine: str, settings: Settings
) -> tuple[Engine, Categories]:
    """The engine of a refitted model, and its categories, whose effects are those of its derivatives."""
    schema, rows = predictor.schema, background.rows
    assert schema.inner is not None and schema.layout is not None
    bounds = None if settings.bounds is None else data_bounds(schema.wide(rows))
    discrete = settings.discrete.renumbered(schema.layout.places)
    settings = replace(settings, bounds=bounds, discrete=discrete)
    wide = replace(predictor, schema=schema.inner)
    whole = choose(wide, schema.wide(rows), engine, settings)
    features = features_of(schema, rows, names)
    effects = partial(linear_effects, whole, schema.layout, features)
    return folded_engine(whole, schema), Categories(features, effects, 2 * schema.inner.width)


def linear_effects(
    engine: Engine, layout: OneHotLayout, features: Sequence[Feature], rows: Array, f0: Array
) -> list[Array]:
    """Compute Delta_c = g . (P[c] - P[own]) for all categories, from the clone's gradient."""
    gradient = engine.gradient(layout.to_cells(rows)).values  # (rows, wide columns, outputs)
    out = []
    for feature in features:
        group = layout.groups[feature.column]
        g = gradient[:, group.columns]
        away = group.cells(feature.codes)[None] - group.cells(rows[:, feature.column])[:, None]
        out.append(np.einsum("rlc,rco->rlo", away, g))  # (rows, levels, outputs)
    return out


# ---------------------------------------------------------------- levels as continuous cells


def _one_hot_patterns(schema: Schema, rows: Array, y: np.ndarray) -> tuple[Schema, OneHotLayout]:
    return _widened(schema, {j: np.eye(len(levels)) for j, levels in schema.levels.items()}, {})


def _target_patterns(schema: Schema, rows: Array, y: np.ndarray) -> tuple[Schema, OneHotLayout]:
    """Encode each category by its shrunken mean target; with several classes, by their frequencies."""
    if y.dtype.kind in "fc" and len(np.unique(y)) > 20:
        targets = y[:, None].astype(float)
    else:
        classes = np.unique(y)
        classes = classes[1:] if len(classes) == 2 else classes
        targets = (y[:, None] == classes).astype(float)  # (rows, targets)
    overall = targets.mean(axis=0)
    patterns = {}
    for j, levels in schema.levels.items():
        mine = rows[:, j, None] == np.arange(len(levels))
        counts = mine.sum(axis=0)[:, None]
        patterns[j] = (mine.T.astype(float) @ targets + PRIOR_ROWS * overall) / (counts + PRIOR_ROWS)
    return _widened(schema, patterns, dict.fromkeys(patterns, overall))


PATTERNS = {"induction": _one_hot_patterns, "target": _target_patterns}


def _widened(
    schema: Schema, patterns: dict[int, Array], missing: dict[int, Array]
) -> tuple[Schema, OneHotLayout]:
    """Expand every categorical column to its patterns; a missing category has its own pattern."""
    places: list[int] = []
    names: list[str] = []
    groups: dict[int, ColumnGroup] = {}
    for j, name in enumerate(schema.names):
        places.append(len(names))
        if j not in patterns:
            names.append(name)
            continue
        width = patterns[j].shape[1]
        cells = tuple(range(len(names), len(names) + width))
        groups[j] = ColumnGroup(cells, patterns[j], missing.get(j, np.zeros(width)))
        names += [f"{name}: cell {c}" for c in range(width)]
    return Schema(tuple(names), "array", named=False), OneHotLayout(len(names), tuple(places), groups)


# ---------------------------------------------------------------- the clone


def _fitted(predictor: Predictor, continuous: Array, y: np.ndarray) -> Any:
    """Fit a clone on the continuous table, with each column scaled to [0, 1]."""
    from sklearn.base import clone
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    try:
        fresh = clone(_after_encoding(predictor))
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"a {type(predictor.model).__name__} cannot be cloned and refitted ({error}); expected an "
            "estimator with get_params and fit. Pass the model itself to explain it without refitting."
        ) from None
    holes = [SimpleImputer()] if np.isnan(continuous).any() else []
    return make_pipeline(*holes, MinMaxScaler(), fresh).fit(continuous, y)


def _after_encoding(predictor: Predictor) -> Any:
    """Return the model without its encoder of categories."""
    own = predictor.schema.inner or predictor.schema
    model = predictor.model
    return library_of(model).without_encoder(model) if own.levels else model


def _compare(original: Predictor, refitted: Predictor, rows: Array, y: np.ndarray) -> RefitReport:
    f, g = original.everything(rows), refitted.everything(rows)
    if original.task == "classification":
        labels = np.unique(y)
        score = [float(np.mean(labels[p.argmax(axis=1)] == y)) for p in (f, g)]
        return RefitReport("", float(np.mean(f.argmax(axis=1) != g.argmax(axis=1))), *score, seed=0)
    sd = max(float(f.std()), 1e-300)
    targets = y.reshape(len(y), -1)
    score = [float(1 - np.mean((p - targets) ** 2) / max(float(targets.var()), 1e-300)) for p in (f, g)]
    return RefitReport("", float(np.sqrt(np.mean((f - g) ** 2)) / sd), *score, seed=0)

"""What users of shap, scikit-learn and pandas write: each call is right, or one clear sentence says why not.

A case is a call that returns (found, expected), compared to round-off, or a call with the words that its error must
hold. An error must come from texplainer itself, not from a library below it.
"""

from __future__ import annotations

import copy
import io
import pickle
import traceback
import warnings
from functools import cached_property, partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import texplainer as tx


class World:
    """Models and tables of the cases, fitted when first needed."""

    rows = 120

    @cached_property
    def X(self):
        rng = np.random.default_rng(0)
        return pd.DataFrame(rng.normal(size=(self.rows, 3)), columns=["a", "b", "c"])

    @cached_property
    def array(self):
        return self.X.to_numpy()

    @cached_property
    def y(self):
        return (self.X.a + self.X.b * self.X.c > 0).astype(int)

    @cached_property
    def score(self):
        return 2 * self.X.a - self.X.b + 0.5

    @cached_property
    def linear(self):
        return LinearRegression().fit(self.X, self.score)

    @cached_property
    def logistic(self):
        return LogisticRegression().fit(self.X, self.y)

    @cached_property
    def forest(self):
        return RandomForestClassifier(6, max_depth=3, random_state=0).fit(self.X, self.y)

    @cached_property
    def names(self):
        return LogisticRegression().fit(self.X, np.where(self.y > 0, "yes", "no"))

    @cached_property
    def three(self):
        y = np.digitize(self.score, [-1, 1])
        return RandomForestClassifier(6, max_depth=3, random_state=0).fit(
            self.X, np.array(["u", "v", "w"])[y]
        )

    @cached_property
    def booster(self):
        xgboost = pytest.importorskip("xgboost")
        return xgboost.XGBClassifier(n_estimators=6, max_depth=2).fit(self.X, self.y)

    @cached_property
    def light(self):
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMClassifier(n_estimators=6, verbose=-1).fit(self.X, self.y)

    @cached_property
    def cat(self):
        catboost = pytest.importorskip("catboost")
        return catboost.CatBoostClassifier(iterations=6, verbose=False, allow_writing_files=False).fit(
            self.X, self.y
        )

    @cached_property
    def mixed(self):
        rng = np.random.default_rng(1)
        return self.X.assign(town=rng.choice(["x", "y", "z"], self.rows), owner=rng.random(self.rows) > 0.5)

    @cached_property
    def pipeline(self):
        columns = make_column_transformer(
            (StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(handle_unknown="ignore"), ["town", "owner"])
        )
        return make_pipeline(columns, LogisticRegression()).fit(self.mixed, self.y)

    @cached_property
    def ex(self):
        return tx.TExplainer(self.linear, self.X)

    @cached_property
    def e(self):
        return self.ex(self.X[:6])

    @cached_property
    def sh(self):
        return self.ex(self.X[:6], attribution="shapley")

    @cached_property
    def e3(self):
        return tx.TExplainer(self.three, self.X)(self.X[:6])

    @cached_property
    def shap(self):
        return pytest.importorskip("shap")

    @cached_property
    def pl(self):
        return pytest.importorskip("polars")

    @cached_property
    def pa(self):
        return pytest.importorskip("pyarrow")

    @cached_property
    def torch(self):
        return pytest.importorskip("torch")

    @cached_property
    def slopes(self):
        """The slopes of the linear model, per SD."""
        return np.tile(self.linear.coef_ * self.ex.background.sigma, (6, 1))

    @cached_property
    def contributions(self):
        return (self.X[:6] - self.X.mean()).to_numpy() * self.linear.coef_

    def predicts(self, explainer, rows, expected):
        """Predictions of the explanation, and its sum, beside the model's own."""
        found = explainer(rows, attribution="shapley")
        total = found.base_values + found.values.sum(axis=1)
        return np.stack([found.predictions, total]), np.stack([expected, expected])

    def logit(self, model, rows):
        p = model.predict_proba(rows)[:, 1]
        return np.log(p / (1 - p))


def plain(found):
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


# name -> call (right), or (call, words of the error)
CASES = {}

ONE_ROW = {
    "a Series": lambda w: w.X.iloc[3],
    "a dict": lambda w: dict(w.X.iloc[3]),
    "a list": lambda w: [*w.array[3]],
    "a tuple": lambda w: tuple(w.array[3]),
    "a row of shape (n,)": lambda w: w.array[3],
    "a row of shape (1, n)": lambda w: w.array[3:4],
    "a list of lists": lambda w: [[*w.array[3]]],
    "a list of dicts": lambda w: [dict(w.X.iloc[3])],
    "records": lambda w: w.X[3:4].to_dict("records"),
    "a dict of lists": lambda w: w.X[3:4].to_dict("list"),
    "a Series of object dtype": lambda w: w.X.iloc[3].astype(object),
    "a structured array": lambda w: w.X[3:4].to_records(index=False),
    "a tuple of itertuples": lambda w: next(w.X[3:4].itertuples(index=False)),
    "loc[3]": lambda w: w.X.loc[3],
    "loc[[3]]": lambda w: w.X.loc[[3]],
    "a matrix of object dtype": lambda w: w.array[3:4].astype(object),
    "float32": lambda w: w.array[3:4].astype(np.float32),
    "Fortran order": lambda w: np.asfortranarray(w.array)[3:4],
    "a masked array": lambda w: np.ma.array(w.array[3:4], mask=False),
    "a memoryview": lambda w: memoryview(np.ascontiguousarray(w.array[3:4])),
    "csr": lambda w: sparse.csr_matrix(w.array)[3:4],
    "coo": lambda w: sparse.coo_array(w.array[3:4]),
    "a sparse frame": lambda w: pd.DataFrame.sparse.from_spmatrix(
        sparse.csr_matrix(w.array[3:4]), columns=[*"abc"]
    ),
    "polars": lambda w: w.pl.DataFrame(w.X[3:4].to_dict("list")),
    "a lazy polars frame": lambda w: w.pl.DataFrame(w.X[3:4].to_dict("list")).lazy(),
    "arrow": lambda w: w.pa.table(w.X[3:4].to_dict("list")),
    "a record batch": lambda w: w.pa.RecordBatch.from_pydict(w.X[3:4].to_dict("list")),
    "a tensor": lambda w: w.torch.tensor(w.array[3:4]),
    "a tensor with gradients": lambda w: w.torch.tensor(w.array[3:4], requires_grad=True),
    "reordered columns": lambda w: w.X[["c", "a", "b"]][3:4],
    "nullable Float64": lambda w: w.X[3:4].astype("Float64"),
    "pyarrow dtypes": lambda w: w.pa and w.X[3:4].astype("double[pyarrow]"),
    "another index": lambda w: w.X[3:4].set_axis(["p"]),
    "a duplicated index": lambda w: w.X[3:4].set_axis([0]),
}
CASES |= {
    f"explain {name}": partial(lambda make, w: w.predicts(w.ex, make(w), w.linear.predict(w.X[3:4])), make)
    for name, make in ONE_ROW.items()
}
BACKGROUNDS = {
    "a frame": lambda w: w.X,
    "an array": lambda w: w.array,
    "a list of lists": lambda w: w.array.tolist(),
    "a list of dicts": lambda w: w.X.to_dict("records"),
    "a dict of arrays": lambda w: {name: w.X[name].to_numpy() for name in w.X},
    "a structured array": lambda w: w.X.to_records(index=False),
    "polars": lambda w: w.pl.DataFrame(w.X.to_dict("list")),
    "arrow": lambda w: w.pa.table(w.X.to_dict("list")),
    "csr": lambda w: sparse.csr_matrix(w.array),
    "a tensor": lambda w: w.torch.tensor(w.array),
    "shap.sample": lambda w: w.shap.sample(w.X, 119),
    "shap.utils.sample": lambda w: w.shap.utils.sample(w.array, 119),
    "shap.maskers.Independent": lambda w: w.shap.maskers.Independent(w.X, max_samples=500),
    "float32": lambda w: w.X.astype(np.float32),
    "integer column names": lambda w: w.X.set_axis(range(3), axis=1),
}
CASES |= {
    f"background {name}": partial(
        lambda make, w: w.predicts(
            tx.TExplainer(lambda t: np.asarray(t) @ [2.0, -1.0, 0.0], make(w)),
            w.array[:3],
            w.array[:3] @ [2.0, -1.0, 0.0],
        ),
        make,
    )
    for name, make in BACKGROUNDS.items()
}

MODELS = {
    "a fitted estimator": lambda w: w.logistic,
    "GridSearchCV": lambda w: GridSearchCV(w.logistic, {"C": [1.0]}, cv=2).fit(w.X, w.y),
    "a Pipeline": lambda w: make_pipeline(StandardScaler(), LogisticRegression()).fit(w.X, w.y),
    "a Pipeline that returns pandas": lambda w: (
        make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform="pandas").fit(w.X, w.y)
    ),
    "CalibratedClassifierCV": lambda w: CalibratedClassifierCV(w.logistic, cv=2).fit(w.X, w.y),
    "VotingClassifier": lambda w: VotingClassifier(
        [("a", w.logistic), ("b", GaussianNB())], voting="soft"
    ).fit(w.X, w.y),
    "XGBClassifier": lambda w: w.booster,
    "LGBMClassifier": lambda w: w.light,
    "CatBoostClassifier": lambda w: w.cat,
    "a copied model": lambda w: copy.deepcopy(w.forest),
    "a pickled model": lambda w: pickle.loads(pickle.dumps(w.forest)),
    "predict_proba": lambda w: w.forest.predict_proba,
    "model.predict_proba of a Pipeline": lambda w: (
        make_pipeline(StandardScaler(), LogisticRegression()).fit(w.X, w.y).predict_proba
    ),
    "a lambda around predict_proba": lambda w: lambda t: w.forest.predict_proba(t),
    "a lambda of one column": lambda w: lambda t: w.forest.predict_proba(t)[:, 1],
    "a lambda of lists": lambda w: lambda t: w.forest.predict_proba(t)[:, 1].tolist(),
    "a lambda of a Series": lambda w: lambda t: pd.Series(w.forest.predict_proba(t)[:, 1]),
    "a lambda of a frame": lambda w: lambda t: pd.DataFrame(w.forest.predict_proba(t)[:, 1:]),
    "a lambda of one row each": lambda w: (
        lambda t: [w.forest.predict_proba(t[i : i + 1])[0, 1] for i in range(len(t))]
    ),
    "a lambda of (rows, 1)": lambda w: lambda t: w.forest.predict_proba(t)[:, 1:],
    "a lambda of an arrow array": lambda w: lambda t: w.pa.array(w.forest.predict_proba(t)[:, 1]),
    "a lambda of a tensor": lambda w: (
        lambda t: w.torch.tensor(w.forest.predict_proba(t)[:, 1], requires_grad=True)
    ),
}


def model_case(make, w):
    model = make(w)
    explainer = tx.TExplainer(model, w.X, scale="probability" if hasattr(model, "fit") else "auto")
    found = explainer(w.X[:4], attribution="shapley")
    ask = model.predict_proba if hasattr(model, "fit") else model
    answer = ask(w.X[:4])
    answer = answer.detach() if hasattr(answer, "detach") else answer
    expected = np.asarray([*map(float, np.asarray(plain(answer)).reshape(4, -1)[:, -1])])
    total = found.base_values + found.values.sum(axis=1)
    last = lambda a: a[..., -1] if a.ndim == 2 else a  # noqa: E731
    return np.stack([last(found.predictions), last(total)]), np.stack([expected, expected])


CASES |= {f"model {name}": partial(model_case, make) for name, make in MODELS.items()}


def boosters(w, booster, scores):
    return w.predicts(tx.TExplainer(booster, w.X), w.X[:4], scores)


CASES |= {
    "xgboost.Booster": lambda w: boosters(
        w, w.booster.get_booster(), w.booster.predict(w.X[:4], output_margin=True)
    ),
    "lightgbm.Booster": lambda w: boosters(w, w.light.booster_, w.light.predict(w.X[:4], raw_score=True)),
    "catboost.CatBoost": lambda w: boosters(
        w, w.cat, w.cat.predict(w.X[:4], prediction_type="RawFormulaVal")
    ),
    "xgboost.Booster.predict": lambda w: boosters(
        w, w.booster.get_booster().predict, w.booster.predict(w.X[:4], output_margin=True)
    ),
    "lightgbm.Booster.predict": lambda w: boosters(
        w, w.light.booster_.predict, w.light.booster_.predict(w.X[:4], raw_score=True)
    ),
    "a DMatrix as background": (
        lambda w: tx.TExplainer(w.booster, __import__("xgboost").DMatrix(w.X)),
        "DMatrix",
    ),
    "a DMatrix as rows": (
        lambda w: tx.TExplainer(w.booster, w.X)(__import__("xgboost").DMatrix(w.X)),
        "DMatrix",
    ),
    "a lightgbm.Dataset as background": (
        lambda w: tx.TExplainer(w.light, __import__("lightgbm").Dataset(w.X)),
        "Dataset",
    ),
    "a catboost.Pool as background": (
        lambda w: tx.TExplainer(w.cat, __import__("catboost").Pool(w.X)),
        "Pool",
    ),
    "a DataLoader as background": (
        lambda w: tx.TExplainer(w.linear, w.torch.utils.data.DataLoader(w.array)),
        "DataLoader",
    ),
    "the model's class": (lambda w: tx.TExplainer(RandomForestClassifier, w.X), "class"),
    "an unfitted model": (lambda w: tx.TExplainer(LogisticRegression(), w.X), "not fitted"),
    "an unfitted search": (
        lambda w: tx.TExplainer(GridSearchCV(LogisticRegression(), {}), w.X),
        "not fitted",
    ),
    "an unfitted pipeline": (
        lambda w: tx.TExplainer(make_pipeline(StandardScaler(), LogisticRegression()), w.X),
        "not fitted",
    ),
    "an unfitted vote": (
        lambda w: tx.TExplainer(VotingClassifier([("a", LogisticRegression())]), w.X),
        "not fitted",
    ),
    "an unfitted XGBClassifier": (lambda w: tx.TExplainer(type(w.booster)(), w.X), "not fitted"),
    "an unfitted LGBMClassifier": (lambda w: tx.TExplainer(type(w.light)(), w.X), "not fitted"),
    "an unfitted CatBoostClassifier": (lambda w: tx.TExplainer(type(w.cat)(), w.X), "not fitted"),
    "a transformer": (lambda w: tx.TExplainer(StandardScaler().fit(w.X), w.X), "predict"),
    "a pipeline without a model": (lambda w: tx.TExplainer(w.pipeline[:-1], w.mixed), "predict"),
    "None as the model": (lambda w: tx.TExplainer(None, w.X), "None"),
    "the model's path": (lambda w: tx.TExplainer("model.pkl", w.X), "is not a model"),
    "model and background exchanged": (lambda w: tx.TExplainer(w.X, w.linear), "background"),
    "no background": (lambda w: tx.TExplainer(w.linear), "background"),
    "None as the background": (lambda w: tx.TExplainer(w.linear, None), "None"),
    "shap.kmeans": (lambda w: tx.TExplainer(w.linear, w.shap.kmeans(w.X, 10)), "shap.sample"),
    "an empty background": (lambda w: tx.TExplainer(w.linear, w.X[:0]), "background"),
    "one row of background": lambda w: w.predicts(
        tx.TExplainer(w.forest, w.X[:1]), w.X[:2], w.forest.predict_proba(w.X[:2])[:, 1]
    ),
    "y as the background": (lambda w: tx.TExplainer(w.linear, w.y), ""),
    "X with y": (lambda w: tx.TExplainer(w.linear, (w.X, w.y)), ""),
    "the path of a table": (lambda w: tx.TExplainer(w.linear, "X.csv"), "X.csv"),
    "a label function": (lambda w: tx.TExplainer(w.names.predict, w.X)(w.X[:2]), ""),
    "labels of a lambda": (lambda w: tx.TExplainer(lambda t: w.names.predict(t), w.X), "probabilities"),
    "strings of a lambda": (lambda w: tx.TExplainer(lambda t: ["yes"] * len(t), w.X), "numbers"),
    "None of a lambda": (lambda w: tx.TExplainer(lambda t: None, w.X), "None"),
    "a number of a lambda": (lambda w: tx.TExplainer(lambda t: 1.0, w.X), "rows"),
    "NaN of a lambda": (lambda w: tx.TExplainer(lambda t: np.full(len(t), np.nan), w.X), ""),
    "too few of a lambda": (lambda w: tx.TExplainer(lambda t: np.zeros(3), w.X), "rows"),
    "three axes of a lambda": (lambda w: tx.TExplainer(lambda t: np.zeros((len(t), 2, 2)), w.X), "(8, 2, 2)"),
    "a dict of a lambda": (lambda w: tx.TExplainer(lambda t: {"p": 1}, w.X), "dict"),
    "a tuple of a lambda": (
        lambda w: tx.TExplainer(lambda t: (w.linear.predict(t), w.linear.predict(t)), w.X),
        "tuple",
    ),
    "a generator of a lambda": (lambda w: tx.TExplainer(lambda t: (x for x in t["a"]), w.X), "generator"),
    "complex numbers of a lambda": (
        lambda w: tx.TExplainer(lambda t: np.zeros(len(t), complex), w.X),
        "complex",
    ),
    "a lambda that raises": (lambda w: tx.TExplainer(lambda t: 1 / 0, w.X), "division by zero"),
    "a lambda of no arguments": (lambda w: tx.TExplainer(lambda: 1, w.X), "arguments"),
}

CASES |= {  # tables that do not fit
    "extra columns": (lambda w: w.ex(w.X.assign(target=1.0)), "'target'"),
    "numbers as texts": (lambda w: w.ex(w.array[3:4].astype(str)), "not a number"),
    "a missing column": (lambda w: w.ex(w.X[["a", "b"]]), "'c'"),
    "renamed columns": (lambda w: w.ex(w.X.rename(columns=str.upper)), "'a'"),
    "too few columns of an array": (lambda w: w.ex(w.array[:, :2]), "3"),
    "too many columns of an array": (lambda w: w.ex(np.hstack([w.array, w.array])), "3"),
    "y instead of X": (lambda w: w.ex(w.y), "3"),
    "y of an array instead of X": (lambda w: w.ex(w.y.to_numpy()), "3"),
    "a column instead of X": (lambda w: w.ex(w.X["a"]), "3"),
    "a number": (lambda w: w.ex(1.0), ""),
    "a string": (lambda w: w.ex("row"), ""),
    "None": (lambda w: w.ex(None), "None"),
    "no rows": (lambda w: w.ex(w.X[:0]), "0 rows"),
    "an empty list": (lambda w: w.ex([]), ""),
    "a dict with a missing column": (lambda w: w.ex({"a": 1.0, "b": 2.0}), "'c'"),
    "a ragged list": (lambda w: w.ex([[1.0, 2.0], [1.0, 2.0, 3.0]]), "row"),
    "an array of three axes": (lambda w: w.ex(np.zeros((2, 3, 4))), "(2, 3, 4)"),
    "texts in a column of numbers": (lambda w: w.ex(w.X[:2].assign(a="high")), "'high'"),
    "dates in a column of numbers": (lambda w: w.ex(w.X[:2].assign(a=pd.Timestamp("2026-01-01"))), "'a'"),
    "lists in cells": (lambda w: w.ex(pd.DataFrame({"a": [[1], [2]], "b": 0.0, "c": 0.0})), "'a'"),
    "complex numbers": (lambda w: w.ex(w.array[:2].astype(complex) + 1j), "complex"),
    "duplicate column names": (lambda w: tx.TExplainer(w.linear, pd.concat([w.X, w.X], axis=1)), "'a'"),
    "a MultiIndex of columns": (
        lambda w: w.ex(w.X.set_axis(pd.MultiIndex.from_product([["p"], [*"abc"]]), axis=1)),
        "",
    ),
    "a groupby": (lambda w: w.ex(w.X.groupby("a")), ""),
    "an iterator": (lambda w: w.ex(iter(w.array)), ""),
    "the transposed table": (lambda w: w.ex(w.array[:6].T), "3"),
    "a category the background does not have": lambda w: w.predicts(
        tx.TExplainer(w.pipeline, w.mixed),
        w.mixed[:1].assign(town="q"),
        w.logit(w.pipeline, w.mixed[:1].assign(town="q")),
    ),
    "booleans as texts": lambda w: w.predicts(
        tx.TExplainer(w.pipeline, w.mixed),
        w.mixed[:2].assign(owner=w.mixed.owner[:2].astype(int)),
        w.logit(w.pipeline, w.mixed[:2]),
    ),
    "a missing value for a model that takes none": lambda w: (
        "does not accept missing values" in w.ex(w.X[:1].assign(a=np.nan)).diagnostics.reason[0],
        True,
    ),
}


def dtype_case(change, w):
    """A model of one changed column, fitted by a pipeline that encodes what is no number."""
    frame = change(w.X.copy(), w)
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame, w.y)
    return w.predicts(tx.TExplainer(model, frame), frame[:4], w.logit(model, frame[:4]))


DTYPES = {
    "booleans": lambda f, w: f.assign(c=f.c > 0),
    "nullable booleans": lambda f, w: f.assign(c=(f.c > 0).astype("boolean")),
    "Int64": lambda f, w: f.assign(c=(f.c * 3).round().astype("Int64")),
    "uint8": lambda f, w: f.assign(c=(f.c * 3 + 20).astype("uint8")),
    "category": lambda f, w: f.assign(c=pd.Categorical(np.where(f.c > 0, "hi", "lo"))),
    "ordered category": lambda f, w: f.assign(
        c=pd.Categorical(np.where(f.c > 0, "hi", "lo"), ["lo", "hi"], ordered=True)
    ),
    "category of numbers": lambda f, w: f.assign(c=pd.Categorical((f.c > 0).astype(int))),
    "string": lambda f, w: f.assign(c=pd.Series(np.where(f.c > 0, "hi", "lo")).astype("string")),
    "object": lambda f, w: f.assign(c=pd.Series(np.where(f.c > 0, "hi", "lo")).astype(object)),
    "arrow strings": lambda f, w: (
        w.pa and f.assign(c=pd.Series(np.where(f.c > 0, "hi", "lo")).astype("string[pyarrow]"))
    ),
    "float16": lambda f, w: f.astype({"c": np.float16}),
    "a period": lambda f, w: f.assign(c=pd.PeriodIndex(np.where(f.c > 0, "2026-01", "2026-02"), freq="M")),
    "an interval": lambda f, w: f.assign(c=pd.cut(f.c, [-9.0, 0.0, 9.0])),
}
CASES |= {f"a column of {name}": partial(dtype_case, change) for name, change in DTYPES.items()}
CASES |= {
    "a column of dates, as the model sees them": lambda w: w.predicts(
        tx.TExplainer(
            lambda t: t["d"].dt.year.to_numpy() * 1.0,
            (f := w.X.assign(d=pd.date_range("2020-01-01", periods=w.rows, freq="30D"))),
        ),
        f[:4],
        np.array([2020.0] * 4),
    ),
    "a column of dates to a linear model": (
        lambda w: tx.TExplainer(w.linear, w.X.assign(a=pd.date_range("2020", periods=w.rows)))(w.X[:2]),
        "table",
    ),
    "a numpy array of strings": lambda w: w.predicts(
        tx.TExplainer(
            m := make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(
                t := w.mixed[["town", "owner"]].astype(str).to_numpy(), w.y
            ),
            t,
        ),
        t[:4],
        w.logit(m, t[:4]),
    ),
    "a TfidfVectorizer over a text column": (
        lambda w: tx.TExplainer(
            make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(w.mixed.town + " word", w.y),
            w.mixed.town + " word",
        ),
        "",
    ),
}

CASES |= (
    {  # names
        f"feature_names as {name}": partial(
            lambda make, w: (
                list(
                    tx.TExplainer(lambda t: t[:, 0], w.array, feature_names=make(["p", "q", "r"]))(
                        w.array[:2]
                    ).feature_names
                ),
                ["p", "q", "r"],
            ),
            make,
        )
        for name, make in {
            "a list": list,
            "an Index": pd.Index,
            "an array": np.array,
            "a Series": pd.Series,
            "a tuple": tuple,
        }.items()
    }
    | {
        "feature_names of a frame": lambda w: (
            list(tx.TExplainer(w.linear, w.X, feature_names=w.X.columns)(w.X[:2]).feature_names),
            ["a", "b", "c"],
        ),
        "other feature_names for a frame": (
            lambda w: tx.TExplainer(w.linear, w.X, feature_names=["p", "q", "r"]),
            "",
        ),
        "too few feature_names": (
            lambda w: tx.TExplainer(lambda t: t[:, 0], w.array, feature_names=["p"]),
            "3",
        ),
        "feature_names as a string": (
            lambda w: tx.TExplainer(lambda t: t[:, 0], w.array, feature_names="pqr"),
            "feature_names",
        ),
        "duplicate feature_names": (
            lambda w: tx.TExplainer(lambda t: t[:, 0], w.array, feature_names=["p", "p", "q"]),
            "'p'",
        ),
    }
)

WORDS = {
    "masker": "background",
    "data": "background",
    "algorithm": "engine",
    "link": "scale",
    "model_output": "scale",
    "nsamples": "max_evals",
    "npermutations": "max_evals",
    "feature_perturbation": "interventional",
    "random_state": "seed",
    "output_names": "output",
    "check_additivity": "leave it out",
    "n_jobs": "batch_rows",
    "class_names": "",
    "training_labels": "",
    "kernel_width": "",
    "num_features": "",
    "discretize_continuous": "",
    "explainer": "",
    "session": "",
    "local_smoothing": "",
    "target_names": "",
}
CASES |= {
    f"TExplainer(..., {word}=)": (
        partial(lambda word, w: tx.TExplainer(w.linear, w.X, **{word: 1}), word),
        hint or word,
    )
    for word, hint in WORDS.items()
}
CASES |= {
    f"explainer(X, {word}=)": (partial(lambda word, w: w.ex(w.X[:2], **{word: 1}), word), word)
    for word in (
        "max_evals",
        "main_effects",
        "error_bounds",
        "batch_size",
        "outputs",
        "silent",
        "interactions",
        "check_additivity",
        "tree_limit",
    )
}
CASES |= {
    "engine=shap's name": (lambda w: tx.TExplainer(w.linear, w.X, engine="permutation"), "'permutation'"),
    "scale='logit'": (lambda w: tx.TExplainer(w.logistic, w.X, scale="logit"), "log-odds"),
    "attribution='shap'": (lambda w: tx.TExplainer(w.linear, w.X, attribution="shap"), "shapley"),
    "attribution='shap_values'": (lambda w: w.ex(w.X[:2], attribution="shap_values"), "shapley"),
    "output= a class that is not there": (lambda w: tx.TExplainer(w.three, w.X, output="z"), "u, v, w"),
    "output=7": (lambda w: tx.TExplainer(w.three, w.X, output=7), "7"),
    "output=1 of labels": lambda w: (
        tx.TExplainer(w.three, w.X, output=1)(w.X[:4]).predictions,
        w.three.predict_proba(w.X[:4])[:, 1],
    ),
    "output='v'": lambda w: (
        tx.TExplainer(w.three, w.X, output="v")(w.X[:4]).predictions,
        w.three.predict_proba(w.X[:4])[:, 1],
    ),
    "output=True": (lambda w: tx.TExplainer(w.linear, w.X, output=True), "output"),
    "categorical= an unknown column": (lambda w: tx.TExplainer(w.linear, w.X, categorical=["z"]), "'z'"),
    "categorical= a string": lambda w: w.predicts(
        tx.TExplainer(w.pipeline, w.mixed, categorical="town"), w.mixed[:2], w.logit(w.pipeline, w.mixed[:2])
    ),
    "categorical= positions": lambda w: w.predicts(
        tx.TExplainer(w.pipeline, w.mixed, categorical=[3, 4]), w.mixed[:2], w.logit(w.pipeline, w.mixed[:2])
    ),
    "categorical= a mask": (
        lambda w: tx.TExplainer(w.pipeline, w.mixed, categorical=[False, False, False, True, True])(
            w.mixed[:2]
        ),
        "",
    ),
    "smoothing=-1": (lambda w: tx.TExplainer(w.linear, w.X, smoothing=-1), "smoothing"),
    "step='h'": (lambda w: tx.TExplainer(w.linear, w.X, step="h"), "step"),
    "max_evals=0": (lambda w: tx.TExplainer(lambda t: t["a"], w.X, max_evals=0), "max_evals"),
    "max_evals='auto'": (lambda w: tx.TExplainer(lambda t: t["a"], w.X, max_evals="auto"), "max_evals"),
    "max_evals=2**11": lambda w: w.predicts(
        tx.TExplainer(lambda t: t["a"] * t["b"], w.X, max_evals=2**11), w.X[:2], (w.X.a * w.X.b)[:2]
    ),
    "background by position and keyword": (
        lambda w: tx.TExplainer(w.linear, w.X, background=w.X),
        "background",
    ),
    "a third positional argument": (lambda w: tx.TExplainer(w.linear, w.X, ["a", "b", "c"]), "positional"),
}

CASES |= {  # what shap users read from the explainer and the result
    "explainer.shap_values(X)": lambda w: (w.ex.shap_values(w.X[:6]), w.contributions),
    "explainer.shap_values of one row": lambda w: (w.ex.shap_values(w.X.iloc[0]), w.contributions[:1]),
    "explainer.shap_values of three classes": lambda w: (
        tx.TExplainer(w.three, w.X).shap_values(w.X[:6]).shape,
        (6, 3, 3),
    ),
    "explainer.expected_value": lambda w: (w.ex.expected_value, w.linear.predict(w.X).mean()),
    "explainer.expected_value[1]": lambda w: (
        tx.TExplainer(w.three, w.X).expected_value[1],
        w.three.predict_proba(w.X)[:, 1].mean(),
    ),
    "explainer(X).values[0]": lambda w: (w.e.values[0], w.slopes[0]),
    "explainer(X)[0].values": lambda w: (w.e[0].values, w.slopes[0]),
    "sum of values and base_values": lambda w: (
        w.sh.values.sum(1) + w.sh.base_values,
        w.linear.predict(w.X[:6]),
    ),
    "explanation.data": lambda w: (w.sh.data, w.array[:6]),
    "explanation.shape": lambda w: (w.sh.shape, (6, 3)),
    "len(explanation)": lambda w: (len(w.sh), 6),
    "iterating": lambda w: (np.stack([row.values for row in w.sh]), w.contributions),
    "explanation[:, 'a']": lambda w: (w.sh[:, "a"].values.ravel(), w.contributions[:, 0]),
    "explanation[:, ['a', 'c']]": lambda w: (w.sh[:, ["a", "c"]].values, w.contributions[:, [0, 2]]),
    "explanation[:, 0]": lambda w: (w.sh[:, 0].values.ravel(), w.contributions[:, 0]),
    "explanation[2:4]": lambda w: (w.sh[2:4].values, w.contributions[2:4]),
    "explanation[-1]": lambda w: (w.sh[-1].values, w.contributions[-1]),
    "explanation[[0, 2]]": lambda w: (w.sh[[0, 2]].values, w.contributions[[0, 2]]),
    "explanation[mask]": lambda w: (w.sh[np.arange(6) > 3].values, w.contributions[4:]),
    "explanation[a Series of booleans]": lambda w: (
        w.sh[w.X.a[:6] > 0].values,
        w.contributions[(w.X.a[:6] > 0).to_numpy()],
    ),
    "explanation[np.int64(1)]": lambda w: (w.sh[np.int64(1)].values, w.contributions[1]),
    "explanation[::2]": lambda w: (w.sh[::2].values, w.contributions[::2]),
    "explanation[..., 'v']": lambda w: (w.e3[..., "v"].predictions, w.three.predict_proba(w.X[:6])[:, 1]),
    "explanation[:, :, 1]": lambda w: (w.e3[:, :, 1].predictions, w.three.predict_proba(w.X[:6])[:, 1]),
    "explanation[0, :, 1]": lambda w: (w.e3[0, :, 1].values.shape, (3,)),
    "explanation[0, 'a']": lambda w: (float(np.squeeze(w.sh[0, "a"].values)), w.contributions[0, 0]),
    "explanation[99]": (lambda w: w.sh[99], "99"),
    "explanation['a']": (lambda w: w.sh["a"], "'a'"),
    "explanation[:, 'z']": (lambda w: w.sh[:, "z"], "'z'"),
    "explanation[..., 'z']": (lambda w: w.e3[..., "z"], "'z'"),
    "explanation[..., 7]": (lambda w: w.e3[..., 7], "7"),
    "explanation[:, 9]": (lambda w: w.sh[:, 9], "9"),
    "explanation[1.5]": (lambda w: w.sh[1.5], "1.5"),
    "explanation[a mask of another length]": (lambda w: w.sh[np.ones(4, bool)], "4"),
    "explanation.abs.mean(0)": lambda w: (w.sh.abs.mean(0), np.abs(w.contributions).mean(axis=0)),
    "explanation.abs.max(0)": (lambda w: w.sh.abs.max(0), "numpy"),
    "explanation.abs.mean()": lambda w: (plain(w.sh.abs.mean()), np.abs(w.contributions).mean(axis=0)),
    "explanation.mean(0)": lambda w: (w.sh.mean(0), w.contributions.mean(axis=0)),
    "explanation.mean(1)": (lambda w: w.sh.mean(1), "axis=1"),
    "np.abs(explanation.values)": lambda w: (np.abs(w.sh.values), np.abs(w.contributions)),
    "explanation.shap_values": (lambda w: w.sh.shap_values, "values"),
    "explanation.expected_value": (lambda w: w.sh.expected_value, "base_values"),
    "pd.DataFrame(explanation.values)": lambda w: (
        pd.DataFrame(w.sh.values, columns=w.sh.feature_names).to_numpy(),
        w.contributions,
    ),
    "explanation.to_frame()": lambda w: (len(w.sh.to_frame()) > 0, True),
    "explanation.to_shap()": lambda w: (w.shap and w.sh.to_shap().values, w.contributions),
    "explanation.cohorts(2)": (lambda w: w.sh.cohorts(2), ""),
    "explanation.sample(3)": lambda w: (len(w.sh.sample(3)), 3),
    "explanation.feature_importances_": (lambda w: w.sh.feature_importances_, "importance"),
    "explanation.importance()": lambda w: (w.sh.importance() is not None, True),
    "explainer.explain_row": (lambda w: w.ex.explain_row, "explainer(X)"),
    "explainer.explain_instance": (lambda w: w.ex.explain_instance(w.array[0]), "explainer(X)"),
    "explainer.explain(X)": (lambda w: w.ex.explain(w.X), "explainer(X)"),
    "explainer.fit(X)": (lambda w: w.ex.fit(w.X), "explainer(X)"),
    "explainer.shap_interaction_values(X)": (lambda w: w.ex.shap_interaction_values(w.X), "interactions"),
    "explainer.predict(X)": (lambda w: w.ex.predict(w.X), "predictions"),
    "explainer()": (lambda w: w.ex(), "X"),
    "explainer(X=X)": lambda w: (w.ex(X=w.X[:2]).values, w.slopes[:2]),
    "tx.Explainer": (lambda w: tx.Explainer(w.linear, w.X), "TExplainer"),
    "tx.TreeExplainer": (lambda w: tx.TreeExplainer(w.forest), "TExplainer"),
    "tx.KernelExplainer": (lambda w: tx.KernelExplainer(w.forest.predict, w.X), "TExplainer"),
    "tx.summary_plot": (lambda w: tx.summary_plot(w.sh), "plots.beeswarm"),
    "tx.force_plot": (lambda w: tx.force_plot(w.sh), "plots.force"),
    "tx.initjs()": (lambda w: tx.initjs(), ""),
    "tx.plots.summary": (lambda w: tx.plots.summary(w.sh), "beeswarm"),
    "tx.plots.violin": (lambda w: tx.plots.violin(w.sh), "violin"),
    "tx.sample": (lambda w: tx.sample(w.X, 10), ""),
    "joblib": lambda w: (through_joblib(w.ex)(w.X[:6]).values, w.slopes),
    "pickle": lambda w: (pickle.loads(pickle.dumps(w.ex))(w.X[:6]).values, w.slopes),
    "pickle an explanation": lambda w: (pickle.loads(pickle.dumps(w.sh)).values, w.contributions),
    "deepcopy": lambda w: (copy.deepcopy(w.ex)(w.X[:6]).values, w.slopes),
    "copy an explanation": lambda w: (copy.copy(w.sh).values, w.contributions),
    "clone": lambda w: (clone(w.ex)(w.X[:6]).values, w.slopes),
    "bool(explanation)": lambda w: (bool(w.sh), True),
    "explanation == explanation": lambda w: (isinstance(w.sh == w.sh, (bool, np.ndarray)), True),
    "save and load": lambda w: (saved(w.sh).values, w.contributions),
    "load what is not there": (lambda w: tx.Explanation.load("nowhere.npz"), "nowhere.npz"),
    "save with another suffix": (lambda w: w.sh.save("result.pkl"), "pkl"),
}


def through_joblib(thing):
    buffer = io.BytesIO()
    joblib.dump(thing, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


def saved(explanation):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        explanation.save(Path(folder) / "e.npz")
        return tx.Explanation.load(Path(folder) / "e.npz")


def drawn(axes):
    import matplotlib.pyplot as plt

    plt.close("all")
    return axes is not None, True


PLOTS = {
    "bar(sv, max_display=2)": lambda w: tx.plots.bar(w.sh, max_display=2),
    "bar(sv, show=False)": lambda w: tx.plots.bar(w.sh, show=False),
    "beeswarm(sv, max_display=2)": lambda w: tx.plots.beeswarm(w.sh, max_display=2),
    "waterfall(sv[0], max_display=2)": lambda w: tx.plots.waterfall(w.sh[0], max_display=2),
    "force(sv[0])": lambda w: tx.plots.force(w.sh[0]),
    "scatter(sv[:, 'a'])": lambda w: tx.plots.scatter(w.sh[:, "a"]),
    "scatter(sv[:, 0])": lambda w: tx.plots.scatter(w.sh[:, 0]),
    "scatter(sv, 'a')": lambda w: tx.plots.scatter(w.sh, "a"),
    "heatmap(sv)": lambda w: tx.plots.heatmap(w.sh),
    "decision(sv)": lambda w: tx.plots.decision(w.sh),
    "bar(sv[0])": lambda w: tx.plots.bar(w.sh[0]),
    "shap.plots.bar(to_shap())": lambda w: w.shap.plots.bar(w.sh.to_shap(), show=False),
    "shap.plots.beeswarm(to_shap())": lambda w: w.shap.plots.beeswarm(w.sh.to_shap(), show=False),
    "shap.plots.waterfall(to_shap()[0])": lambda w: (
        w.shap.plots.waterfall(w.sh.to_shap()[0], show=False) or True
    ),
}
CASES |= {f"plots.{name}": partial(lambda draw, w: drawn(draw(w)), draw) for name, draw in PLOTS.items()}
CASES |= {
    "plots.scatter(sv)": (lambda w: tx.plots.scatter(w.sh), "draws one"),
    "plots.waterfall(sv)": (lambda w: tx.plots.waterfall(w.sh), "row"),
    "plots.force(base, values)": (lambda w: tx.plots.force(w.ex.expected_value, w.sh.values), "Explanation"),
    "plots.beeswarm(sv.values)": (lambda w: tx.plots.beeswarm(w.sh.values), "Explanation"),
    "plots.bar(explainer)": (lambda w: tx.plots.bar(w.ex), "Explanation"),
    "plots.beeswarm(sv, color_bar=)": (lambda w: tx.plots.beeswarm(w.sh, color_bar=False), "color_bar"),
    "plots.beeswarm(sv, plot_type=)": (lambda w: tx.plots.beeswarm(w.sh, plot_type="dot"), "plot_type"),
    "plots.bar(sv, order=)": (lambda w: tx.plots.bar(w.sh, order=1), "order"),
    "plots.force(sv[0], matplotlib=)": (lambda w: tx.plots.force(w.sh[0], matplotlib=True), "matplotlib"),
    "plots.scatter(sv, color=)": (lambda w: tx.plots.scatter(w.sh[:, "a"], color=w.sh), "color"),
    "plots.dependence('z')": (lambda w: tx.plots.dependence(w.sh, "z"), "'z'"),
}


@pytest.fixture(scope="module")
def w():
    return World()


def origin(error):
    """The file that raised an error."""
    return traceback.extract_tb(error.__traceback__)[-1].filename


#: what Python itself says of a call that lacks an argument, or has one too many
OF_PYTHON = ("positional argument", "multiple values for argument")


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_right_or_a_sentence_says_why_not(name, w, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = CASES[name]
    call, words = case if isinstance(case, tuple) else (case, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if words is None:
            found, expected = call(w)
            np.testing.assert_array_equal(np.shape(found), np.shape(expected))
            if np.asarray(expected).dtype.kind in "fc":
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(found, expected)
            return
        with pytest.raises(Exception) as raised:
            call(w)
    error, message = raised.value, str(raised.value)
    assert words in message, message
    if isinstance(error, TypeError) and any(part in message for part in OF_PYTHON):
        return
    assert f"{Path(tx.__file__).parent}" in origin(error), (
        f"{type(error).__name__} from {origin(error)}: {message}"
    )
    message = message.strip("\"'")  # a KeyError quotes it
    assert 15 < len(message) < 500 and " " in message and message.endswith((".", "?")), message

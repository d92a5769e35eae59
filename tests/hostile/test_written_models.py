"""Models as people write them: the explained prediction is the model's own answer, or one sentence refuses it."""

from __future__ import annotations

import collections
import decimal
import fractions
import functools
import io
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression

import texplainer as tx
from texplainer.errors import InputError, ModelError

pd = pytest.importorskip("pandas")

ROWS = np.random.default_rng(0).normal(size=(60, 3))
TABLES = {"array": ROWS, "frame": pd.DataFrame(ROWS, columns=list("abc"))}

pytestmark = pytest.mark.filterwarnings("ignore")


def f(X: Any) -> np.ndarray:
    rows = np.asarray(X, dtype=float)
    return np.sin(rows[:, 0]) - 2 * rows[:, 1] + rows[:, 0] * rows[:, 2]


def probability(X: Any) -> np.ndarray:
    return 1 / (1 + np.exp(-f(X)))


class Scorer:
    def __call__(self, X: Any) -> np.ndarray:
        return f(X)

    def score(self, X: Any) -> np.ndarray:
        return f(X)

    @staticmethod
    def static(X: Any) -> np.ndarray:
        return f(X)

    @classmethod
    def of_class(cls, X: Any) -> np.ndarray:
        return f(X)


class Remembers:
    """Keeps the answers to rows it has seen."""

    def __init__(self) -> None:
        self.known: dict[bytes, float] = {}

    def __call__(self, X: Any) -> np.ndarray:
        rows = np.asarray(X, dtype=float)
        return np.array(
            [self.known.setdefault(row.tobytes(), v) for row, v in zip(rows, f(rows), strict=True)]
        )


class OneBuffer:
    """Returns a part of the same array every time."""

    def __init__(self) -> None:
        self.buffer = np.zeros(100_000)

    def __call__(self, X: Any) -> np.ndarray:
        self.buffer[: len(X)] = f(X)
        return self.buffer[: len(X)]


def doubles_in_place(X: Any) -> np.ndarray:
    X *= 2
    return f(X)


def pops_a_column(X: Any) -> np.ndarray:
    if not hasattr(X, "pop"):
        return f(X)
    last = X.pop("c")
    return f(np.column_stack([np.asarray(X), last]))


class OwnModel:
    """Not of scikit-learn, with a number of features that is not its own."""

    n_features_in_ = 99

    def predict(self, X: Any) -> list[float]:
        return f(X).tolist()


class OwnClassifier:
    classes_ = ("no", "yes")

    def predict_proba(self, X: Any) -> list[list[float]]:
        return [[1 - p, p] for p in probability(X)]


def reloaded() -> LinearRegression:
    file = io.BytesIO()
    joblib.dump(LinearRegression().fit(ROWS, f(ROWS)), file)
    file.seek(0)
    return joblib.load(file)


#: the model, and its answers to rows as floats (None: those of f)
RIGHT: dict[str, tuple[Any, Callable[[Any], Any] | None]] = {
    "a list": (lambda X: f(X).tolist(), None),
    "a tuple": (lambda X: tuple(f(X).tolist()), None),
    "a list of lists": (lambda X: [[v] for v in f(X)], None),
    "a list of arrays": (lambda X: [np.array([v]) for v in f(X)], None),
    "a frame": (lambda X: pd.DataFrame({"p": f(X)}), None),
    "a series": (lambda X: pd.Series(f(X)), None),
    "a series with another index": (lambda X: pd.Series(f(X), index=np.arange(len(X))[::-1]), None),
    "a series of texts as index": (lambda X: pd.Series(f(X), index=[f"r{i}" for i in range(len(X))]), None),
    "a nullable series": (lambda X: pd.Series(f(X), dtype="Float64"), None),
    "a deque": (lambda X: collections.deque(f(X)), None),
    "a matrix": (lambda X: np.matrix(f(X)).T, None),
    "a memoryview": (lambda X: memoryview(f(X)), None),
    "an unmasked array": (lambda X: np.ma.masked_array(f(X), mask=False), None),
    "a float for one row": (lambda X: float(f(X)[0]) if len(X) == 1 else f(X), None),
    "objects": (lambda X: f(X).astype(object), None),
    "fractions": (lambda X: [fractions.Fraction(v) for v in f(X)], None),
    "decimals": (lambda X: [decimal.Decimal(v) for v in f(X)], None),
    "booleans": (lambda X: f(X) > 0, lambda X: f(X) > 0),
    "whole numbers": (lambda X: np.rint(10 * f(X)).astype(int), lambda X: np.rint(10 * f(X))),
    "long doubles": (lambda X: f(X).astype(np.longdouble), None),
    "a partial": (functools.partial(lambda X, k: f(X) * k, k=3.0), lambda X: 3 * f(X)),
    "an object that is called": (Scorer(), None),
    "a bound method": (Scorer().score, None),
    "a static method": (Scorer.static, None),
    "a class method": (Scorer.of_class, None),
    "answers that are kept": (Remembers(), None),
    "one buffer for all answers": (OneBuffer(), None),
    "rows changed in place": (doubles_in_place, lambda X: f(2 * X)),
    "a column taken away": (pops_a_column, None),
    "an own class": (OwnModel(), None),
    "an own classifier": (OwnClassifier(), probability),
    "a model from joblib": (reloaded(), lambda X: reloaded().predict(X)),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", RIGHT)
def test_the_answer_of_a_model_is_what_is_explained(name: str, kind: str) -> None:
    model, answer = RIGHT[name]
    background, rows = TABLES[kind].copy(), TABLES[kind][:5].copy()
    found = tx.TExplainer(model, background)(rows)
    expected = np.asarray((answer or f)(ROWS[:5]), dtype=float)
    np.testing.assert_allclose(found.predictions, expected, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(rows), ROWS[:5])
    np.testing.assert_array_equal(np.asarray(background), ROWS)


def lying() -> LinearRegression:
    model = LinearRegression().fit(ROWS, f(ROWS))
    model.n_features_in_ = 7
    return model


async def later(X: Any) -> np.ndarray:
    return f(X)


#: the model -> what the error says
REFUSED: dict[str, tuple[Any, str]] = {
    "bytes": (lambda X: [str(v).encode() for v in f(X)], "expected numbers"),
    "a buffer of bytes": (lambda X: f(X).tobytes(), "expected"),
    "complex numbers": (lambda X: f(X) + 0j, "complex128 values"),
    "masked numbers": (lambda X: np.ma.masked_where(f(X) > 0, f(X)), "nan.*expected finite numbers"),
    "one number for all rows": (lambda X: float(f(X).mean()), r"shape \(\) for 8 rows"),
    "minus infinity": (lambda X: np.where(f(X) > 0, -np.inf, f(X)), r"-inf.*expected finite numbers"),
    "NaN": (lambda X: np.full(len(X), np.nan), "nan.*expected finite numbers"),
    "labels": (
        lambda X: ["yes" if v > 0 else "no" for v in f(X)],
        "probabilities or scores instead of labels",
    ),
    "numbers as text": (lambda X: f(X).astype(str), "expected numbers"),
    "None": (lambda X: None, "returned None"),
    "None among numbers": (lambda X: [None if i == 2 else v for i, v in enumerate(f(X))], "such as None"),
    "a generator": (lambda X: (v for v in f(X)), "returned a generator"),
    "a map": (lambda X: map(float, f(X)), "returned a map"),
    "a dict": (lambda X: {"p": f(X)}, "returned a dict"),
    "a set": (lambda X: set(f(X)), "returned a set"),
    "a sparse matrix": (lambda X: sparse.csr_matrix(f(X)[:, None]), "returned a csr_matrix"),
    "three dimensions": (lambda X: f(X)[:, None, None], r"shape \(8, 1, 1\)"),
    "outputs before rows": (lambda X: np.stack([f(X), -f(X)]), r"shape \(2, 8\)"),
    "times": (lambda X: (1e6 * f(X)).astype("M8[us]"), "datetime64"),
    "one answer too many": (lambda X: np.append(f(X), 0.0), r"shape \(9,\) for 8 rows"),
    "ragged lists": (lambda X: [[v] * (1 + i % 2) for i, v in enumerate(f(X))], "not an array"),
    "two arrays": (lambda X: (f(X), f(X)), "tuple of 2"),
    "a coroutine": (later, "returned a coroutine"),
    "an exit": (lambda X: exit(3), "SystemExit"),
    "two arguments": (lambda X, y: f(X), "missing 1 required positional argument"),
    "a lying number of features": (lying(), "expecting 7 features"),
    "a class": (Scorer, "expected a fitted model"),
    "a path": ("model.pkl", "is not a model"),
    "not fitted": (LogisticRegression(), "not fitted"),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_explained_is_refused_in_a_sentence(name: str, kind: str) -> None:
    model, words = REFUSED[name]
    with pytest.raises((InputError, ModelError), match=words):
        tx.TExplainer(model, TABLES[kind].copy())


def test_a_model_that_drifts_is_marked() -> None:
    calls: list[int] = []

    def drifting(X: Any) -> np.ndarray:
        calls.append(len(X))
        return f(X) + 1e-3 * len(calls)

    assert tx.TExplainer(drifting, ROWS)(ROWS[:3]).settings["repeatable"] is False

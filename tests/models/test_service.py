"""A model behind a service: calls fail, cost time and are counted."""

import warnings

import numpy as np
import pytest

import texplainer as tx
from texplainer.errors import ModelError, UndefinedRowsWarning

SECONDS = 0.005  # of a batch, simulated


class Unavailable(Exception):
    """What an API's client raises."""


class Service:
    """A smooth model that fails at every `every`-th call, and counts."""

    def __init__(self, every=50):
        self.every, self.calls, self.rows, self.seconds = every, 0, 0, 0.0

    def __call__(self, table):
        self.calls += 1
        self.rows += len(table)
        self.seconds += SECONDS
        if self.every and self.calls % self.every == 0:
            raise Unavailable("503 service unavailable")
        return np.tanh(table[:, 0]) + table[:, 1] * table[:, 2]


def data():
    return np.random.default_rng(0).normal(size=(300, 4))


@pytest.mark.parametrize("attribution", ["slope", "shapley"])
def test_200_rows_within_the_budget_and_nothing_is_lost(attribution):
    X, service = data(), Service()
    explainer = tx.TExplainer(service, X[:100], attribution=attribution, retries=2, max_evals=200)
    built = service.rows
    assert built <= 12_000
    found = explainer(X[100:])
    assert set(found.diagnostics.stability) <= {"stable", "unstable"}
    asked = service.rows - built
    assert asked <= 1.1 * found.diagnostics.evaluations.sum()  # counted, but for the calls that failed
    assert asked >= 0.5 * found.diagnostics.evaluations.sum()
    calm = tx.TExplainer(Service(every=0), X[:100], attribution=attribution, max_evals=200)(X[100:])
    np.testing.assert_array_equal(found.values, calm.values)


def test_a_second_run_of_the_same_rows_costs_nothing():
    X, service, kept = data(), Service(every=0), {}
    explainer = tx.TExplainer(service, X[:100], attribution=("slope", "shapley"), cache=kept)
    first = explainer(X[100:110])
    before = service.rows
    second = explainer(X[100:110])
    assert service.rows == before and kept
    np.testing.assert_array_equal(first.values, second.values)
    again = tx.TExplainer(service, X[:100], attribution=("slope", "shapley"), cache=kept)
    assert service.rows - before <= 100  # the model is asked whether it answers, and the same
    np.testing.assert_array_equal(again(X[100:110]).values, first.values)


def test_a_failing_call_costs_its_rows_and_names_the_models_own_error():
    X = data()

    def model(table):
        if (table[:, 3] > 50).any():
            raise Unavailable("503 service unavailable")
        return table[:, 0] * 2

    rows = X[100:110].copy()
    rows[4, 3] = 99.0
    explainer = tx.TExplainer(model, X[:100], bounds=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)
        found = explainer(rows)
    assert list(np.flatnonzero(found.diagnostics.stability == "undefined")) == [4]
    reason = found.diagnostics.reason[4]
    assert "Unavailable: 503 service unavailable" in reason and "retries=" in reason
    assert "fitted" not in reason


def test_a_service_that_never_answers_is_reported_in_its_own_words():
    def model(table):
        raise Unavailable("503 service unavailable")

    with pytest.raises(ModelError, match=r"Unavailable: 503 service unavailable\. If it may succeed"):
        tx.TExplainer(model, data(), retries=1)

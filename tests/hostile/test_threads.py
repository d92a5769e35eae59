"""One explainer, several threads: nothing of one call reaches another."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import texplainer as tx

pd = pytest.importorskip("pandas")
THREADS = 8
N = np.random.default_rng(0).normal(size=60)
FRAME = pd.DataFrame({"n": N, "city": ["Oslo", "Rome", "Bonn"] * 20})
TYPED = FRAME.astype({"city": "category"})


def by_city(table: Any) -> np.ndarray:
    """A slow model, so that calls overlap; a category counts by its letters."""
    time.sleep(0.001)
    return table["n"].to_numpy() + [sum(map(ord, str(v))) for v in table["city"]]


def at_once(work: Any) -> list[Any]:
    """The answers of all threads, which start together."""
    barrier = Barrier(THREADS)

    def one(i: int) -> Any:
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


@pytest.mark.parametrize("background", [FRAME, TYPED], ids=["text", "category"])
def test_new_categories_of_one_thread_are_not_those_of_another(background: Any) -> None:
    explainer = tx.TExplainer(by_city, background)

    def rows(i: int) -> Any:
        cities = [f"town {i} {k}" for k in range(300)]
        return pd.DataFrame({"n": np.resize(N, 300), "city": cities})

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        answers = at_once(lambda i: (explainer.schema.read(rows(i)), explainer.predictor))
    finally:
        sys.setswitchinterval(often)
    for i, (codes, predictor) in enumerate(answers):
        np.testing.assert_allclose(predictor(codes)[:, 0], by_city(rows(i)))
        assert list(explainer.schema.shown(codes)[:, 1]) == list(rows(i)["city"])


def test_a_result_does_not_depend_on_the_categories_met_before() -> None:
    def by_code(table: Any) -> np.ndarray:  # as libraries read a categorical dtype
        return table["n"].to_numpy() + table["city"].cat.codes.to_numpy()

    row = pd.DataFrame({"n": N[:1], "city": pd.Categorical(["Kiel"])})
    fresh, used = tx.TExplainer(by_code, TYPED), tx.TExplainer(by_code, TYPED)
    used._explained(used.schema.read(pd.DataFrame({"n": N[:1], "city": ["Lund"]})), "slope")
    read = [e.predictor(e.schema.read(row)) for e in (fresh, used)]
    np.testing.assert_array_equal(*read)


def network() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(16, 1)
    ).train()


def test_a_module_in_train_mode_is_explained_in_eval_mode_and_given_back() -> None:
    module, rows = network(), np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    module[3].eval()  # its parts need not agree
    explainer = tx.TExplainer(module, rows)
    expected = explainer(rows[:16])
    for _ in range(6):
        for found in at_once(lambda i: explainer(rows[:16])):
            np.testing.assert_array_equal(found.predictions, expected.predictions)
            np.testing.assert_array_equal(found.values, expected.values)
    assert [part.training for part in module.modules()] == [True, True, True, True, False]


@pytest.mark.parametrize("name", ["integrated_gradients", "deeplift", "shap_gradient"])
def test_other_explainers_leave_the_module_as_it_was(name: str) -> None:
    pytest.importorskip("captum")
    module, rows = network(), np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    from texplainer.explainers import EXPLAINERS

    EXPLAINERS[name](module, rows, scale="raw")(rows[:2])
    assert all(part.training for part in module.modules())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())

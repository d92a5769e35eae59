"""The ladder against gradients known on paper, autodiff and its own error bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from functions import SMOOTH, Known
from sklearn.ensemble import RandomForestRegressor

import texplainer as tx
from texplainer.gradients.engine import JUMP, KINK, STEP


def explain(known: Known, f, seed: int = 1, **options) -> tx.Explanation:
    background, rows = known.rows(200, seed), known.rows(60, seed + 1)
    options = {"engine": "finite-difference", "smoothing": 0, "attribution": "gradient", **options}
    return tx.TExplainer(f, background, **options)(rows)


def compare(f_of, dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors and whether the bound covers them, over all functions."""
    relative, covered = [], []
    for known in SMOOTH:
        explanation = explain(known, f_of(known))
        seen = explanation.data.astype(dtype).astype(float)
        truth = known.gradient(seen)
        error = np.abs(explanation.gradient - truth)
        scale = np.abs(truth) + 1e-3 * np.abs(truth).max(
            axis=0
        )  # a derivative passing through 0 is no relative target
        relative.append((error / scale).ravel())
        covered.append((error <= explanation.diagnostics.error + 1e-300).ravel())
    return np.concatenate(relative), np.concatenate(covered)


def test_float64_functions_meet_accuracy_and_coverage():
    relative, covered = compare(lambda known: known.f)
    assert np.median(relative) <= 1e-6
    assert relative.max() <= 1e-3
    assert covered.mean() >= 0.99


def test_float32_functions_meet_accuracy_and_coverage():
    def narrow(known: Known):
        return lambda x: known.f(x.astype(np.float32).astype(np.float64)).astype(np.float32)

    relative, covered = compare(narrow)
    assert np.median(relative) <= 1e-3
    assert covered.mean() >= 0.95


def network(dtype) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = []
    for a, b in ((8, 64), (64, 64), (64, 64)):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 1)).to(dtype)


def test_relu_network_against_autodiff():
    model = network(torch.float64)
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(50, 8))
    explanation = tx.TExplainer(
        model, rng.uniform(size=(200, 8)), engine="finite-difference", smoothing=0, attribution="gradient"
    )(rows)
    x = torch.tensor(rows, requires_grad=True)
    truth = torch.autograd.grad(model(x).sum(), x)[0].numpy()
    assert np.median(np.abs(explanation.gradient - truth) / np.abs(truth)) <= 1e-5
    wrong = np.abs(explanation.gradient - truth) > np.maximum(
        explanation.diagnostics.error, 1e-3 * np.abs(truth)
    )
    assert not np.any(wrong & (explanation.diagnostics.flags == 0))


def test_kink_and_jump_are_flagged_and_said():
    background = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.array([[0.0, 0.3], [0.7, 0.3]])
    kink = tx.TExplainer(
        lambda x: np.abs(x[:, 0]) * 2 + x[:, 1], background, engine="finite-difference", smoothing=0
    )(rows)
    assert kink.diagnostics.flags[0, 0] & KINK and not kink.diagnostics.flags[1].any()
    jump = tx.TExplainer(
        lambda x: (x[:, 0] > 1e-7) * 3.0 + x[:, 1], background, engine="finite-difference", smoothing=0
    )(rows)
    assert jump.diagnostics.flags[0, 0] & JUMP
    assert jump.diagnostics.stability.tolist() == ["unstable", "stable"]
    assert "jump" in jump.diagnostics.reason[0]
    np.testing.assert_allclose(jump.gradient[0], [0, 1], atol=1e-6)  # the side without the jump


@pytest.mark.parametrize("index", [0, 1, 2])
def test_unused_feature_gets_exactly_zero(index):
    keep = [j for j in range(3) if j != index]
    known = SMOOTH[5]
    explanation = explain(known, lambda x: np.sin(x[:, keep[0]] * x[:, keep[1]]))
    assert np.all(explanation.values[:, index] == 0)


def test_near_the_range_the_stencil_is_one_sided_and_stays_inside():
    seen = []

    def f(x):
        seen.append(x.copy())
        return np.exp(x[:, 0]) + x[:, 1] ** 2

    background = np.random.default_rng(3).uniform(size=(300, 2))
    low, high = background.min(axis=0), background.max(axis=0)
    rows = np.array([low, high, [low[0], high[1]], (low + high) / 2, low + 1e-9])
    explanation = tx.TExplainer(
        f, background, engine="finite-difference", smoothing=0, attribution="gradient"
    )(rows)
    truth = np.stack([np.exp(rows[:, 0]), 2 * rows[:, 1]], axis=1)
    np.testing.assert_allclose(explanation.gradient, truth, rtol=1e-5, atol=1e-7)
    everything = np.concatenate(seen[2:])  # after the probe and the background
    assert np.all(everything >= low) and np.all(everything <= high)


def test_a_row_outside_the_range_keeps_its_own_value_as_the_edge():
    background = np.random.default_rng(3).uniform(size=(300, 1))
    explanation = tx.TExplainer(
        lambda x: x[:, 0] ** 2, background, engine="finite-difference", smoothing=0, attribution="gradient"
    )([[3.0], [-2.0]])
    np.testing.assert_allclose(explanation.gradient[:, 0], [6.0, -4.0], rtol=1e-6)


FOREST_ROWS = np.random.default_rng(0).normal(size=(300, 3))


@pytest.mark.parametrize("kind", ["forest", "rounded", "labels"])
def test_zeros_of_a_step_function_are_flagged_and_never_called_stable(kind):
    forest = RandomForestRegressor(20, random_state=0).fit(FOREST_ROWS, FOREST_ROWS @ [1.0, -2.0, 0.5])
    f = {
        "forest": lambda x: forest.predict(x),
        "rounded": lambda x: np.round(np.tanh(x @ [1.0, -2.0, 0.5]), 2),
        "labels": lambda x: (x @ [1.0, -2.0, 0.5] > 0).astype(float),
    }[kind]
    explainer = tx.TExplainer(f, FOREST_ROWS, attribution="gradient", engine="finite-difference")
    assert "step function" in explainer.engine.at_point.how
    found = explainer(FOREST_ROWS[:40])
    zero = np.all(found.values == 0, axis=1)
    assert zero.mean() > 0.5
    assert np.all(found.diagnostics.flags[zero] & STEP)
    assert set(found.diagnostics.stability[zero]) == {"unstable"}
    assert all("step function" in reason for reason in found.diagnostics.reason[zero])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.tanh(40 * x[:, 0]),
        lambda x: np.sin(x[:, 0]).astype(np.float32),
        lambda x: x[:, 0] * 1e-3 + 1e3,
        lambda x: np.zeros(len(x)),
    ],
)
def test_smooth_saturated_and_constant_models_are_no_step_functions(f):
    engine = tx.TExplainer(f, FOREST_ROWS, attribution="gradient", engine="finite-difference").engine
    assert not np.any(engine.at_point.gradient(FOREST_ROWS[:30]).flags & STEP)

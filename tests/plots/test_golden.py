"""Golden images: each plot drawn at the width of a phone must look as it did when somebody looked at it.

`TEXPLAINER_GOLDEN=write pytest tests/plots/test_golden.py` draws them anew; look at them before committing.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from plot_subjects import categorical, curved, gated, interacting, made, pictured, searched, shopping

from texplainer import plots

FOLDER = Path(__file__).parent / "golden"
PIXELS, WORST = 400, 6.0  # width; root mean square difference of 8-bit channels that text hinting may make
RANDOM = np.random.default_rng(0).lognormal(size=(4, 60))
SCORES = {
    name: {"ris": RANDOM[i] * 4.0**i, "pgi": RANDOM[-i] / 20} for i, name in enumerate(("T", "SHAP", "LIME"))
}

PICTURES = {
    "waterfall": lambda ax: plots.waterfall(made(features=30)[3], ax=ax),
    "waterfall_log_odds": lambda ax: plots.waterfall(
        made(attribution="slope", scale="log-odds", outputs=("1",))[0], ax=ax
    ),
    "force": lambda ax: plots.force(made()[0], ax=ax),
    "bar": lambda ax: plots.bar(made(features=500), ax=ax),
    "bar_row": lambda ax: plots.bar(made()[3], ax=ax),
    "bar_categories": lambda ax: plots.bar(categorical()[0], ax=ax),
    "bar_variation": lambda ax: plots.bar(made(attribution="variation")[0], ax=ax),
    "bar_classes": lambda ax: plots.bar(made(outputs=tuple("abcdef")), ax=ax),
    "bar_cohorts": lambda ax: plots.bar(made().cohorts("age"), ax=ax),
    "dependence": lambda ax: plots.dependence(gated(), "a", ax=ax),
    "dependence_slope": lambda ax: plots.dependence(made(attribution="slope"), "income", colour="age", ax=ax),
    "dependence_category": lambda ax: plots.dependence(categorical(200), "colour", ax=ax),
    "beeswarm": lambda ax: plots.beeswarm(made(rows=300), ax=ax),
    "beeswarm_many": lambda ax: plots.beeswarm(made(rows=5000), ax=ax),
    "ice": lambda ax: plots.ice(curved(), [0.4, 1.0, 2.0], "dose", ax=ax),
    "ice_category": lambda ax: plots.ice(shopping(), {"age": 40.0, "colour": "green"}, "colour", ax=ax),
    "image": lambda ax: plots.image(pictured()[0], ax=ax),
    "heatmap": lambda ax: plots.heatmap(made(rows=80), ax=ax),
    "interactions": lambda ax: plots.interactions(interacting(), ax=ax),
    "interactions_row": lambda ax: plots.interactions(interacting()[3], ax=ax),
    "scatter": lambda ax: plots.scatter(made(attribution="gradient"), "income", ax=ax),
    "decision": lambda ax: plots.decision(made(), ax=ax),
    "category_effects": lambda ax: plots.category_effects(categorical(), ax=ax),
    "category_effects_row": lambda ax: plots.category_effects(categorical()[0], ax=ax),
    "step_trace": lambda ax: plots.step_trace(searched(), ax=ax),
    "stability_boxplot": lambda ax: plots.stability_boxplot(
        {name: scores["ris"] for name, scores in SCORES.items()}, "ris", ax=ax
    ),
    "stability_faithfulness": lambda ax: plots.stability_faithfulness(SCORES, ax=ax),
    "timing": lambda ax: plots.timing(
        {"T": {10: [0.1, 0.12], 50: 0.3, 100: 0.5}, "SHAP": {10: 0.05, 50: 0.4, 100: 0.9}}, ax=ax
    ),
    "agreement": lambda ax: plots.agreement({"T": made(), "SHAP": made(seed=1), "LIME": made(seed=2)}, ax=ax),
}


@pytest.fixture(autouse=True)
def _plain_style():
    with matplotlib.rc_context(matplotlib.rcParamsDefault | {"backend": "Agg"}):
        yield
    plt.close("all")


def drawn(name: str) -> np.ndarray:
    figure, ax = plt.subplots(figsize=(PIXELS / 100, 3.4), dpi=100, layout="constrained")
    PICTURES[name](ax)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[:, :, :3]


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_the_golden_one(name, tmp_path):
    picture = drawn(name)
    golden = FOLDER / f"{name}.png"
    if os.environ.get("TEXPLAINER_GOLDEN") == "write":
        plt.imsave(golden, picture)
    assert golden.exists(), f"{golden} is missing; write it with TEXPLAINER_GOLDEN=write"
    expected = (plt.imread(golden)[:, :, :3] * 255).round()
    assert picture.shape == expected.shape
    difference = np.sqrt(np.mean((picture.astype(float) - expected) ** 2))
    if difference > WORST:
        plt.imsave(tmp_path / f"{name}.png", picture)
    assert difference <= WORST, f"differs by {difference:.1f}; drawn now: {tmp_path / name}.png"


def test_a_changed_bar_is_seen():
    """The comparison itself: half of one bar gone is more than it lets pass."""
    figure, ax = plt.subplots(figsize=(PIXELS / 100, 3.4), dpi=100, layout="constrained")
    explanation = made()[3]
    explanation.arrays["values"][0, 1] *= 0.5
    plots.bar(explanation, ax=ax)
    figure.canvas.draw()
    changed = np.asarray(figure.canvas.buffer_rgba())[:, :, :3].astype(float)
    assert np.sqrt(np.mean((changed - drawn("bar_row")) ** 2)) > WORST


def test_every_plot_has_a_golden_image():
    assert set(plots.__all__) <= set(PICTURES)

"""The guide's example runs as printed, and the informative categories of known tables come first."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from texplainer import Refitted, TExplainer

GUIDE = Path(__file__).parents[2] / "docs" / "categorical.md"
EFFECTS = {"shape": [-2.0, -0.8, 0.8, 2.0], "colour": [-1.5, 1.0, 2.5]}


def test_the_guide_runs():
    pytest.importorskip("matplotlib")
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code is not None
    names: dict = {}
    exec(code.group(1), names)
    assert names["explanation"].feature_names == ("age", "purpose")


@pytest.mark.parametrize("informative", (("shape",), ("shape", "colour")), ids="+".join)
def test_informative_categories_rank_first(informative):
    random = np.random.default_rng(5)
    codes = {name: random.integers(0, len(EFFECTS[name]), 1200) for name in informative}
    odds = sum(np.array(EFFECTS[name])[own] for name, own in codes.items())
    frame = pd.DataFrame({name: np.array(list("abcd"))[own] for name, own in codes.items()})
    frame["noise number"] = random.uniform(size=1200)
    frame["noise category"] = random.choice(["p", "q", "r"], 1200)
    y = random.uniform(size=1200) < 1 / (1 + np.exp(-odds))
    words = [*informative, "noise category"]
    encode = make_column_transformer((OneHotEncoder(), words), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression()).fit(frame[:1000], y[:1000])
    for method in ("swaps", "induction", "target"):
        explained = model if method == "swaps" else Refitted(model, frame[:1000], y[:1000], method)
        explainer = TExplainer(explained, frame[:300])
        size = np.abs(explainer(frame[1000:]).values)
        first = size[:, : len(informative)].min(axis=1) > size[:, len(informative) :].max(axis=1)
        assert first.mean() >= 0.95, method

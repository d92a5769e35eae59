"""Six explainers, 100 rows x 10 neighbours of 20-FT: the table, and what the harness itself costs.

    python benchmarks/evaluation.py [--rows 100] [--runs 2] [--metrics default]

The harness's share is everything but the explainers' and the model's own time; it should stay below 5%.
Where a control comes out best in a column, that is said too.
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier

import texplainer as tx


def network(data):
    """The paper's 3H-NN."""
    settings = {
        "solver": "sgd",
        "learning_rate_init": 0.01,
        "alpha": 1e-4,
        "max_iter": 500,
        "random_state": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MLPClassifier((64, 64, 64), **settings).fit(data.X_train, data.y_train)


def explainers(model, data):
    """Six, with the sampling ones at a fifth of their usual cost: a harsher test of the harness's share."""
    cheap = {
        "SHAP": tx.explainers.shap(model, data.X_train, references=20),
        "LIME": tx.explainers.lime(model, data.X_train, samples=1000),
    }
    networks = tx.explainers.suite(
        model, data.X_train, ("integrated_gradients", "input_x_gradient", "deeplift")
    )
    return {"T-Explainer": tx.TExplainer(model, data.X_train), **cheap, **networks}


def control_wins(found):
    """Faithfulness metrics in which a control beats every explainer, by metric and by column."""
    wins = {"metrics": [], "columns": []}
    ranked = [name for name in found.explainers if name not in found.controls]
    for level, names in (
        ("metrics", dict.fromkeys(c.metric for c in found.columns if c.family == "faithfulness")),
        ("columns", [c.name for c in found.columns if c.family == "faithfulness"]),
    ):
        for name in names:
            sign = 1.0 if found.columns[found.columns_of(name)[0]].better == "low" else -1.0
            means = {
                who: sign * np.nanmean(s) for who, s in found.per_row(name).items() if np.isfinite(s).any()
            }
            best = min(means[who] for who in ranked if who in means)
            wins[level] += [
                f"{who} in {name}" for who in ("constant", "zero") if means.get(who, np.inf) <= best
            ]
    return wins


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--metrics", nargs="*", default=["default"])
    options = parser.parse_args()
    data = tx.datasets.load("20ft")
    model = network(data)
    rows = data.X_test[: options.rows]
    found = tx.evaluate(
        explainers(model, data), rows, metrics=options.metrics, runs=options.runs, neighbours=10
    )
    print(found.table())
    timing = {name: round(seconds, 3) for name, seconds in found.timing.items()}
    share = timing["harness"] / timing["total"]
    print(
        json.dumps(
            {"seconds": timing, "harness share": round(share, 4), "controls best": control_wins(found)}
        )
    )


if __name__ == "__main__":
    main()

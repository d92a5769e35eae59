"""Shares of trees beside TreeSHAP: faithfulness (PGI) and stability (RIS*) on the same boosters.

    TEXPLAINER_DATA=<folder> python benchmarks/shares_quality.py [--write docs/results/shares_quality.md]

Three data sets, three seeds (training rows and explained rows are drawn by them). Both explain the margin.
A line gives the mean of each over the rows and the difference shares - TreeSHAP, paired by row, with its 95%
bootstrap interval; PGI is the mean over the numbers of masked features, RIS* a row's median over neighbours,
its logarithm compared, for it is a ratio. PGI: more is better; RIS*: less. The aim, not to be worse beyond
the interval, is met where the last column says no.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from texplainer import TExplainer, datasets, evaluate, rivals
from texplainer.metrics.comparison import paired_bootstrap

DATA, SEEDS, ROWS, TRAIN, BACKGROUND = ("20ft", "heloc", "higgs"), (0, 1, 2), 100, 5000, 300
METRICS = {"pgi_mean": "PGI, mean", "pgi_marginal": "PGI, marginal", "ris_norm": "log RIS*"}
RIVALS = {"TreeSHAP, path-dependent": "shap_tree_path", "TreeSHAP, interventional": "shap_tree_margin"}


def scores(name: str, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Metric -> explainer -> its scores by row."""
    import xgboost

    data = datasets.load(name, download=False)
    random = np.random.default_rng(seed)
    train = random.permutation(len(data.X_train))[:TRAIN]
    rows = data.X_test[random.permutation(len(data.X_test))[:ROWS]]
    model = xgboost.XGBClassifier(n_estimators=300, max_depth=6, learning_rate=0.1, n_jobs=1)
    model.fit(data.X_train[train], data.y_train[train])
    background = data.X_train[train[:BACKGROUND]]
    found = evaluate(
        {
            "shares": TExplainer(model, background, attribution="shares"),
            **{label: rivals.RIVALS[rival](model, background) for label, rival in RIVALS.items()},
        },
        rows,
        metrics=tuple(METRICS),
        model=model,
        background=background,
        output=1,
        seed=seed,
        progress=False,
    )
    return {metric: per_row(found, metric) for metric in METRICS}


def per_row(found: Any, metric: str) -> dict[str, np.ndarray]:
    """One score a row: the mean over masks, or the logarithm of the median over neighbours."""
    frame = found.to_frame()
    own = frame[frame.metric == metric]
    if metric == "ris_norm":
        own = own[own.part == "median"]
    table = own.pivot_table(index="row", columns="explainer", values="score", aggfunc="mean")
    with np.errstate(divide="ignore"):
        return {
            name: np.log(table[name].to_numpy()) if metric == "ris_norm" else table[name].to_numpy()
            for name in ("shares", *RIVALS)
        }


def lines() -> Iterator[str]:
    """The table, line by line."""
    yield "| data | seed | metric | shares | rival | its score | difference [95%] | worse beyond it |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in DATA:
        for seed in SEEDS:
            for metric, by_explainer in scores(name, seed).items():
                yield from compared(name, seed, metric, by_explainer)


def compared(name: str, seed: int, metric: str, by_explainer: dict[str, np.ndarray]) -> Iterator[str]:
    ours = by_explainer["shares"]
    for rival in RIVALS:
        mean, low, high = paired_bootstrap(ours, by_explainer[rival])
        worse = low > 0 if metric == "ris_norm" else high < 0
        yield (
            f"| {name} | {seed} | {METRICS[metric]} | {np.nanmean(ours):.4f} | {rival} "
            f"| {np.nanmean(by_explainer[rival]):.4f} | {mean:+.4f} [{low:+.4f}, {high:+.4f}] "
            f"| {'**yes**' if worse else 'no'} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", type=Path, help="write the page there as Markdown")
    options = parser.parse_args()
    began, table = time.time(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in lines():
            print(line, flush=True)
            table.append(line)
    worse = sum("**yes**" in line for line in table)
    text = ["# Shares of trees beside TreeSHAP", "", *(__doc__ or "").split("\n")[4:-1], ""]
    text += [f"Worse beyond the interval in {worse} of {len(table) - 2} comparisons.", "", *table, ""]
    text += [
        "Made by `python benchmarks/shares_quality.py --write docs/results/shares_quality.md` "
        f"in {time.time() - began:.0f} s."
    ]
    if options.write:
        options.write.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The demo: train the paper's 3H-NN twice, explain it, draw it, write one page.

Run it with `make demo` or `python -m texplainer.demo`; the page is demo/index.html.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from texplainer import TExplainer, datasets
from texplainer.explanation.explanation import Explanation


def network() -> Any:
    """The paper's 3H-NN: three hidden layers of 64, behind a scaler, so that raw columns go in."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    layers = MLPClassifier(
        (64, 64, 64), solver="sgd", learning_rate_init=0.01, alpha=1e-4, max_iter=500, random_state=0
    )
    return make_pipeline(StandardScaler(), layers)


def explain(name: str, attribution: str, rows: int = 100) -> tuple[Explanation, float]:
    """Train on one data set and explain rows of its test part; the test accuracy beside it."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    data = datasets.load(name)
    table = np.column_stack(list(data.columns.values())).astype(float)
    labels = np.array(data.class_names, dtype=object)[data.target]
    train, test = data.train_rows, data.test_rows
    # 500 epochs are the paper's choice; matrices this small only lose time by being shared among threads
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = network().fit(table[train], labels[train])
    explainer = TExplainer(model, table[train], attribution=attribution, feature_names=tuple(data.columns))
    return explainer(table[test[:rows]]), float(model.score(table[test], labels[test]))


def main(folder: str = "demo") -> Path:
    """Run the demo; give the page it wrote."""
    import matplotlib

    matplotlib.use("Agg")  # draws into files, needs no screen
    from texplainer import plots, report

    began = time.perf_counter()
    parts, pictures = {}, {}
    for name, attribution in (("breast_cancer", "slope"), ("4ft", "gradient")):
        explanation, accuracy = explain(name, attribution)
        print(f"3H-NN on {name}: test accuracy {accuracy:.3f}")
        print(explanation, end="\n\n")
        parts[f"The paper's 3H-NN on {name}, test accuracy {accuracy:.3f}"] = explanation
        open_row = int(np.argmin(np.abs(explanation.predictions)))
        pictures[f"{name}: row {open_row}, the least certain one"] = plots.waterfall(
            explanation[open_row]
        ).figure
        pictures[f"{name}: the features that matter"] = plots.bar(explanation).figure
    page = report.write(parts, Path(folder) / "index.html", title="texplainer demo", pictures=pictures)
    print(f"{time.perf_counter() - began:.0f} s; open {page} in a browser")
    return page


if __name__ == "__main__":
    main()

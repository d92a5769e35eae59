"""The gallery: one function a picture, each complete in itself.

`python examples/gallery.py` draws them all into docs/gallery and writes docs/gallery.md from the code
below, so that the pictures and the page are what the code makes; names of functions pick some of them.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import texplainer as tx
from texplainer import plots

DOCS = Path(__file__).parent.parent / "docs"


@cache
def tumours():
    """The paper's 3H-NN on breast cancer, explained by integrated slopes."""
    from texplainer.demo import explain

    return explain("breast_cancer", "integrated")[0]


@cache
def four_features():
    """The paper's 3H-NN on its 4-FT data, explained by the slopes themselves."""
    from texplainer.demo import explain

    return explain("4ft", "sensitivity")[0]


@cache
def mixed():
    """A logistic regression on four numbers and three categories, explained from the raw table."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = tx.datasets.load("mixed")
    table = data.frame("train")
    encode = make_column_transformer(
        (OneHotEncoder(), ["side", "shape", "colour"]), remainder=StandardScaler()
    )
    model = make_pipeline(encode, LogisticRegression()).fit(table, data.target[data.train_rows])
    return tx.TExplainer(model, table, attribution="contribution")(data.frame("test"))


@cache
def network():
    """A small network on the paper's 20-FT data: (model, data)."""
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    data = tx.datasets.load("20ft")
    with threadpool_limits(1):
        return MLPClassifier((32, 32), max_iter=1000, random_state=0).fit(data.X_train, data.y_train), data


@cache
def evaluation():
    """T-Explainer and rivals on the same rows, neighbours and masks."""
    model, data = network()
    explainers = {
        "T-Explainer": tx.TExplainer(model, data.X_train),
        "SHAP": tx.rivals.shap(model, data.X_train),
        "LIME": tx.rivals.lime(model, data.X_train),
    }
    return tx.evaluate(explainers, data.X_test[:12], metrics=["ris", "ros", "pgi"], neighbours=5)


def waterfall():
    """One row: from the mean prediction to its own. What the shares leave over is grey."""
    explanation = tumours()
    open_row = int(np.argmin(np.abs(explanation.predictions - 0.5)))
    return plots.waterfall(explanation[open_row])


def force():
    """The same row along one line."""
    explanation = tumours()
    open_row = int(np.argmin(np.abs(explanation.predictions - 0.5)))
    return plots.force(explanation[open_row])


def bar():
    """The features that matter most over many rows; the thin line is the middle half of the rows."""
    return plots.bar(tumours())


def beeswarm():
    """Every row's attribution of every feature; dots with a dark rim are fragile."""
    return plots.beeswarm(tumours())


def heatmap():
    """Rows by prediction, features by importance."""
    return plots.heatmap(tumours())


def scatter():
    """The prediction against one feature, with the model's own slope drawn through each point."""
    return plots.scatter(four_features(), "core_2")


def decision():
    """The path of every row from the mean prediction to its end."""
    return plots.decision(tumours())


def category_effects():
    """What each level of a category would do to the prediction, over all rows."""
    return plots.category_effects(mixed(), "colour")


def step_trace():
    """How Algorithm 1 of the paper finds its step: the cost above, h below."""
    model, data = network()
    return plots.step_trace(tx.TExplainer(model, data.X_train, step="paper")(data.X_test[:12]))


def stability_boxplot():
    """How far explanations move when the input hardly does (RIS), explainer by explainer."""
    return plots.stability_boxplot(evaluation(), "ris")


def stability_faithfulness():
    """Stability beside faithfulness: the controls show why one alone says nothing."""
    return plots.stability_faithfulness(evaluation(), "ris", "pgi")


def agreement():
    """Which explainers name the same features."""
    return plots.agreement(evaluation())


def timing():
    """Seconds against rows, measured here and now."""
    import time

    model, data = network()
    explainers = {
        "T-Explainer": tx.TExplainer(model, data.X_train),
        "LIME": tx.rivals.lime(model, data.X_train),
    }
    seconds: dict[str, dict[int, float]] = {name: {} for name in explainers}
    for name, explain in explainers.items():
        for rows in (5, 10, 20):
            began = time.perf_counter()
            explain(data.X_test[:rows])
            seconds[name][rows] = time.perf_counter() - began
    return plots.timing(seconds)


PICTURES = (
    waterfall,
    force,
    bar,
    beeswarm,
    heatmap,
    scatter,
    decision,
    category_effects,
    step_trace,
    stability_boxplot,
    stability_faithfulness,
    agreement,
    timing,
)
PAGES = {
    "Report": '`explanation.report("out.html")`: one file that loads nothing; hover, sort, filter, pick.',
    "Explorer": "`texplainer serve MODEL DATA`: move a feature and watch prediction, surrogate and bars.",
}
SUBJECTS = (tumours, four_features, mixed, network, evaluation)


def page() -> str:
    """The text of docs/gallery.md."""
    lines = [
        "# Gallery",
        "",
        "Every picture is drawn by the code above it; `python examples/gallery.py` draws them all.",
    ]
    for draw in PICTURES:
        lines += ["", f"## {draw.__name__.replace('_', ' ').capitalize()}", "", str(draw.__doc__), ""]
        lines += ["```python", _body(draw), "```", "", f"![{draw.__doc__}](gallery/{draw.__name__}.png)"]
    for name, words in PAGES.items():
        lines += ["", f"## {name}", "", words, "", f"![{words}](gallery/{name.lower()}.png)"]
    lines += ["", "## What is drawn", "", "```python"]
    lines += [
        "\n\n".join(textwrap.dedent(inspect.getsource(make)).removeprefix("@cache\n") for make in SUBJECTS)
    ]
    return "\n".join([*lines, "```", ""])


def _body(draw) -> str:
    """The code of a function without its head and docstring."""
    return textwrap.dedent(inspect.getsource(draw).split('"""', 2)[2]).strip()


def main(names: list[str]) -> None:
    """Draw the pictures named, or all, and write the page."""
    (DOCS / "gallery").mkdir(parents=True, exist_ok=True)
    for draw in PICTURES:
        if not names or draw.__name__ in names:
            axes = draw()
            axes.figure.savefig(DOCS / "gallery" / f"{draw.__name__}.png", dpi=110)
            plt.close(axes.figure)
            print(draw.__name__)
    (DOCS / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

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
    """The paper's 3H-NN on breast cancer: what it reacts to near each row (the default attribution)."""
    from texplainer.demo import explain

    return explain("breast_cancer", "slope")[0]


@cache
def four_features():
    """The paper's 3H-NN on its 4-FT data, explained by the slopes at the points."""
    from texplainer.demo import explain

    return explain("4ft", "gradient")[0]


@cache
def digits():
    """A perceptron on scikit-learn's digits, as a function of images; one of them in 16 segments."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    model = MLPClassifier(alpha=1.0, max_iter=300, random_state=0).fit(images, labels)
    explainer = tx.ImageExplainer(
        lambda pictures: model.predict_log_proba(pictures.reshape(len(pictures), 64)),
        baseline="mean",
        output=[3, 8, 9],
    )
    return explainer(images[labels == 3][:1].reshape(1, 8, 8))


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
    return tx.TExplainer(model, table)(data.frame("test"))


@cache
def irises():
    """A network on the three classes of iris."""
    from sklearn.datasets import load_iris
    from sklearn.neural_network import MLPClassifier

    table, species = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[species]
    model = MLPClassifier((16,), max_iter=2000, random_state=0).fit(table, names)
    return tx.TExplainer(model, table)(table)


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
    """T-Explainer and other explainers on the same rows, neighbours and masks."""
    model, data = network()
    explainers = {
        "T-Explainer": tx.TExplainer(model, data.X_train),
        "SHAP": tx.explainers.shap(model, data.X_train),
        "LIME": tx.explainers.lime(model, data.X_train),
    }
    return tx.evaluate(explainers, data.X_test[:12], metrics=["ris_norm", "pgi"], neighbours=5)


def waterfall():
    """One row: its Shapley values lead from the mean prediction to its own."""
    explanation = tumours()
    open_row = int(np.argmin(np.abs(explanation.predictions)))
    return plots.waterfall(explanation[open_row])


def force():
    """The same row along one line."""
    explanation = tumours()
    open_row = int(np.argmin(np.abs(explanation.predictions)))
    return plots.force(explanation[open_row])


def bar():
    """The features that matter most over many rows; the thin line is the middle half of the rows."""
    return plots.bar(tumours())


def bar_of_a_row():
    """One row with its error bars; ◆ marks categories, whose values compare them with the average category."""
    return plots.bar(mixed()[0])


def bar_classes():
    """Several classes, stacked."""
    return plots.bar(irises())


def bar_cohorts():
    """Cohorts of rows side by side: here below and above the median of a feature."""
    return plots.bar(tumours().cohorts("worst radius"), max_display=8)


def beeswarm():
    """Every row's value of every feature."""
    return plots.beeswarm(tumours())


def heatmap():
    """Rows by prediction, features by importance."""
    return plots.heatmap(tumours())


def scatter():
    """The prediction against one feature, with the model's own slope drawn through each point."""
    return plots.scatter(four_features(), "core_2")


def ice():
    """The prediction of one row as one feature takes other values, and the slope that the row reports."""
    model, data = network()
    explainer = tx.TExplainer(model, data.X_train, feature_names=data.feature_names)
    return plots.ice(explainer, data.X_test[0], data.feature_names[0])


def image():
    """One image: what speaks for and against three classes, segment by segment, with error bounds."""
    return plots.image(digits()[0])


def dependence():
    """An attribution against the feature's value; the second feature, in colours, is chosen automatically."""
    return plots.dependence(four_features().with_attribution("shapley"), "core_2")


def interactions():
    """How strongly pairs of features interact: mean absolute values over rows, and the strongest pairs."""
    model, data = network()
    explainer = tx.TExplainer(model, data.X_train, feature_names=data.feature_names)
    return plots.interactions(explainer.interactions(data.X_test[:50]))


def decision():
    """The path of every row from the mean prediction to its own."""
    return plots.decision(tumours())


def category_effects():
    """What each category would do to the prediction, over all rows."""
    return plots.category_effects(mixed(), "colour")


def step_trace():
    """How Algorithm 1 of the paper finds its step: the cost above, h below."""
    model, data = network()
    return plots.step_trace(tx.TExplainer(model, data.X_train, step="paper")(data.X_test[:12]))


def stability_boxplot():
    """How much explanations change when the input changes a little, explainer by explainer."""
    return plots.stability_boxplot(evaluation(), "ris_norm")


def stability_faithfulness():
    """Stability beside faithfulness: the controls show why neither is enough alone."""
    return plots.stability_faithfulness(evaluation(), "ris", "pgi")


def agreement():
    """Which explainers name the same features."""
    return plots.agreement(evaluation())


def timing():
    """Seconds against rows, measured on this machine."""
    import time

    model, data = network()
    explainers = {
        "T-Explainer": tx.TExplainer(model, data.X_train),
        "LIME": tx.explainers.lime(model, data.X_train),
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
    bar_of_a_row,
    bar_classes,
    bar_cohorts,
    beeswarm,
    heatmap,
    scatter,
    ice,
    image,
    dependence,
    interactions,
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
    "Explorer": "`texplainer serve MODEL DATA`: a row with its contributions, slopes and curves; "
    "move a feature and watch them follow.",
}
SUBJECTS = (tumours, four_features, mixed, irises, digits, network, evaluation)


def page() -> str:
    """The text of docs/gallery.md."""
    lines = [
        "# Gallery",
        "",
        "After this page you can choose a plot and draw it. Run the first block once; then paste any other one.",
        "",
        "## Set-up",
        "",
        "Models and explanations that the plots use.",
        "",
        "```python",
        "from functools import cache\n\nimport numpy as np\nimport texplainer as tx\n\n",
        "\n\n".join(inspect.getsource(make) for make in SUBJECTS).rstrip(),
        "```",
    ]
    for draw in PICTURES:
        lines += ["", f"## {draw.__name__.replace('_', ' ').capitalize()}", "", str(draw.__doc__), ""]
        lines += ["```python", _body(draw), "```", "", f"![{draw.__doc__}](gallery/{draw.__name__}.png)"]
    for name, words in PAGES.items():
        lines += ["", f"## {name}", "", words, "", f"![{words}](gallery/{name.lower()}.png)"]
    return "\n".join([*lines, ""])


def _body(draw) -> str:
    """What you would type: the code of a function without its head, docstring and return."""
    code = textwrap.dedent(inspect.getsource(draw).split('"""', 2)[2]).strip()
    return code.replace("return plots.", "tx.plots.").replace("return ", "")


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

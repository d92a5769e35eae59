"""Scenes of two digits whose label is the left one: truth, cost against deletion, all metrics.

    python benchmarks/images.py             writes docs/results/images.md
    python benchmarks/images.py --scenes 3  prints it, of few scenes

All see the same 32 segments (then 128) and the same baseline (black).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from conditions import measured_on
from scipy.special import expit, logit, softmax

import texplainer as tx

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "tests" / "helpers"))
import image_subjects as subjects  # noqa: E402

SCENES, SCORED = 20, 3
PAGE = HERE / "docs" / "results" / "images.md"
CUT = {"segments": subjects.GRID, "baseline": 0.0}
FINE = {"segments": (8, 16), "baseline": 0.0}  # every pixel of the digits is a segment


class Counting(torch.nn.Module):
    """The network, and how many images it was shown."""

    def __init__(self):
        super().__init__()
        self.part, self.seen = subjects.network(), 0

    def forward(self, images):
        """Predict, and count."""
        self.seen += len(images)
        return self.part(images)


NETWORK = Counting()


def black_box(images):
    """The log-odds of every class, as a plain function of images."""
    p = softmax(subjects.predictions(NETWORK, images).astype(float), axis=1)
    return logit(np.clip(p, 1e-12, 1 - 1e-12))


def deletion(images, values, cut):
    """Mean probability of the predicted class while segments go, the greatest value first."""
    labels = tx.ImageExplainer(NETWORK, **cut).scenes(images[:1])[0].segments.labels
    best = black_box(images).argmax(axis=1)
    present, rows, curve = np.ones((len(images), labels.max() + 1)), np.arange(len(images)), []
    for column in np.argsort(-values, axis=1, kind="stable").T:
        present[rows, column] = 0
        curve.append(expit(black_box((images * present[:, None, labels]).astype(np.float32))[rows, best]))
    return float(np.mean(curve))


def methods_of(cut):
    """Every method with its settings; ours first."""
    host, made = tx.ImageExplainer(NETWORK, **cut), tx.explainers.IMAGE_EXPLAINERS
    ours = {
        "`slope`, autodiff at the point": (NETWORK, {"smoothing": 0, "batch_rows": 1}),
        "`slope`, autodiff": (NETWORK, {"batch_rows": 8}),
        "`shapley`, autodiff": (NETWORK, {"attribution": "shapley", "batch_rows": 8}),
        "`variation`, autodiff": (NETWORK, {"attribution": "variation", "batch_rows": 8}),
        "`slope`, black box": (black_box, {}),
        "`shapley`, black box": (black_box, {"attribution": "shapley"}),
    }
    methods = {name: tx.ImageExplainer(model, **cut, **more) for name, (model, more) in ours.items()}
    for count in (100, 500, 1000):
        methods[f"SHAP partition, {count}"] = made["shap_partition"](host, evaluations=count)
        words = f"SHAP partition on the segments, {count}"
        methods[words] = made["shap_partition_segments"](host, evaluations=count)
    for count in (100, 500, 1000):
        methods[f"LIME, {count}"] = made["lime"](host, samples=count)
    for name, label in (
        ("integrated_gradients", "Integrated Gradients"),
        ("saliency", "Saliency"),
        ("gradcam", "GradCAM"),
    ):
        methods[label] = made[name](host)
    return methods


def costs(images, labels):
    """Lines of method, mass on the left digit, and evaluations and deletion with few and with many segments."""
    read = black_box(images).argmax(axis=1) == labels
    yield (
        "| method | at least 90% of the mass on the left digit | median mass there | evaluations, 32 segments "
        "| with set-up | deletion | evaluations, 128 segments | with set-up | deletion |"
    )
    yield "|---|" + "---:|" * 8
    few, many = methods_of(CUT), methods_of(FINE)
    for name in few:
        cells, held = [], np.empty(0)
        for cut, explain in ((CUT, few[name]), (FINE, many[name])):
            NETWORK.seen = 0
            found = explain(images)
            seen = f"{NETWORK.seen / len(images):.0f}" if name.startswith("`") else ""
            spent = float(found.diagnostics.evaluations.mean())
            cells += [f"{spent:,.0f}", seen, f"{deletion(images, found.values, cut):.4f}"]
            if cut is CUT:
                size = np.abs(found.values[read])
                held = size[:, subjects.LEFT].sum(axis=1) / np.maximum(size.sum(axis=1), 1e-300)
        yield f"| {name} | {np.mean(held >= 0.9):.1%} | {np.median(held):.1%} | {' | '.join(cells)} |"


def explainers():
    """Ours and all other explainers, at their customary settings."""
    host = tx.ImageExplainer(NETWORK, **CUT)
    own = {
        name: tx.ImageExplainer(NETWORK, attribution=name, **CUT)
        for name in ("slope", "shapley", "variation")
    }
    return {**own, **tx.explainers.image_suite(host)}


def scores(images):
    """Lines of all metrics of images."""
    found = tx.evaluate(explainers(), images, progress=False)
    shown = [
        j
        for j, c in enumerate(found.columns)
        if c.name not in ("ris/mean", "ros/mean", "misplaced/0.25", "local_rank/0.25")
    ]
    yield (
        "| method | "
        + " | ".join(f"{found.columns[j].label} {_arrow(found.columns[j])}" for j in shown)
        + " |"
    )
    yield "|---|" + "---:|" * len(shown)
    for name, row in zip(found.explainers, found.summary(), strict=True):
        yield f"| {name} | " + " | ".join(f"{row[j]:.4g}" for j in shown) + " |"


def _arrow(column):
    return "↓" if column.better == "low" else "↑"


def page(images, labels):
    """Lines of the page: the tables, then how, then limits."""
    yield "# Images: truth, cost and metrics\n"
    yield (
        "Which method finds the pixels that matter, and at what cost? The truth is known: the network reads the "
        "left digit only.\n"
    )
    yield from costs(images, labels)
    right = int((black_box(images).argmax(axis=1) == labels).sum())
    yield (
        "\n*Evaluations* is what a method counts while it explains; a gradient is two of ours, and one of "
        "Captum's. *With set-up* are all images the network saw for one of ours: every image is a model of its own, "
        "and what is checked once for a model is checked for each of them. *Deletion* is the mean probability of the "
        "predicted class as segments go, the greatest value first: lower is better."
    )
    yield f"\n## All metrics\n\n`tx.evaluate` of {SCORED} of the scenes. The last three know nothing of the model.\n"
    yield from scores(images[:SCORED])
    yield (
        f"\n## How\n\n`python benchmarks/images.py`: {len(images)} scenes of two digits "
        "whose label is the left one, read by a small convolutional network that was trained to ignore the right one "
        f"({right} are read rightly; the mass is measured on these). The segments are squares of pixels, none on "
        "both digits; with 128 segments each is one pixel. What is absent is black; segments and masks are the same "
        "for all. `black box` is the same network as a function that gives log-odds.\n\n"
        + measured_on("torch", "captum", "shap", "lime")
    )
    yield (
        "\n## Limits\n\n"
        f"- {len(images)} scenes of one small network: differences below 0.003 in deletion mean nothing.\n"
        "- A black box gains nothing in evaluations over SHAP and LIME. A LIME of 1,000 samples orders the segments as "
        "well as a gradient does.\n"
        "- SHAP and LIME explain the probability, which hardly moves near these images. Their values are those of "
        "whole segments, and infidelity, which tries small changes, counts that.\n"
        "- Explanations that react to the image change with it under noise: RIS and ROS are least for those that say "
        "least about it."
    )


def main(words):
    """Print the page, and write it if it is of all scenes."""
    count = int(words[words.index("--scenes") + 1]) if "--scenes" in words else SCENES
    lines = []
    for line in page(*subjects.scenes(count, 3)):
        print(line, flush=True)
        lines.append(line)
    if count == SCENES:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Scenes of two digits whose label is the left one: truth, metrics, and cost against deletion.

`python benchmarks/images.py truth|scores|curve|fine [scenes]` puts one section into docs/results/images.md.
All see the same 32 segments (`fine`: 128) and the same baseline (black).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit, logit, softmax

import texplainer as tx

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "tests" / "helpers"))
import image_subjects as subjects  # noqa: E402

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


def curve(images, labels):
    """Cost against deletion of 32 segments."""
    yield from cost_lines(images, CUT)


def fine(images, labels):
    """Cost against deletion of 128 segments."""
    yield from cost_lines(images, FINE)


def cost_lines(images, cut):
    """Lines of method, evaluations while explaining, images seen with set-up and padding, deletion."""
    host, made = tx.ImageExplainer(NETWORK, **cut), tx.explainers.IMAGE_EXPLAINERS
    ours = {
        "`slope`, autodiff at the point": (NETWORK, {"smoothing": 0, "batch_rows": 1}),
        "`slope`, autodiff": (NETWORK, {"batch_rows": 8}),
        "`shapley`, autodiff": (NETWORK, {"attribution": "shapley", "batch_rows": 8}),
        "`slope`, black box": (black_box, {}),
        "`shapley`, black box": (black_box, {"attribution": "shapley"}),
    }
    methods = {name: tx.ImageExplainer(model, **cut, **more) for name, (model, more) in ours.items()}
    for count in (33, 65, 100, 250, 500, 1000):
        methods[f"SHAP partition, {count}"] = made["shap_partition"](host, evaluations=count)
        words = f"SHAP partition on the segments, {count}"
        methods[words] = made["shap_partition_segments"](host, evaluations=count)
    for count in (50, 100, 200, 500, 1000):
        methods[f"LIME, {count}"] = made["lime"](host, samples=count)
    methods["Integrated Gradients"] = made["integrated_gradients"](host)
    methods["Saliency"], methods["GradCAM"] = made["saliency"](host), made["gradcam"](host)
    yield "| method | evaluations | with set-up | deletion |"
    yield "|---|---:|---:|---:|"
    for name, explain in methods.items():
        NETWORK.seen = 0
        found = explain(images)
        seen = f"{NETWORK.seen / len(images):.0f}" if name in ours else ""
        spent = float(found.diagnostics.evaluations.mean())
        yield f"| {name} | {spent:.0f} | {seen} | {deletion(images, found.values, cut):.4f} |"


def explainers():
    """Ours and all other explainers."""
    host = tx.ImageExplainer(NETWORK, **CUT)
    own = {
        name: tx.ImageExplainer(NETWORK, attribution=name, **CUT)
        for name in ("slope", "shapley", "variation")
    }
    return {**own, **tx.explainers.image_suite(host)}


def truth(images, labels):
    """Lines of method, share of images whose left digit holds 90% of the mass, the median mass."""
    right = images[black_box(images).argmax(axis=1) == labels]
    yield f"{len(right)} of {len(images)} scenes are read rightly.\n"
    yield "| method | images with at least 90% of the mass on the left digit | median mass there |"
    yield "|---|---:|---:|"
    for name, explain in explainers().items():
        size = np.abs(explain(right).values)
        held = size[:, subjects.LEFT].sum(axis=1) / np.maximum(size.sum(axis=1), 1e-300)
        yield f"| {name} | {np.mean(held >= 0.9):.1%} | {np.median(held):.1%} |"


def scores(images, labels):
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


SECTIONS = {"truth": truth, "scores": scores, "curve": curve, "fine": fine}


def main(section, count):
    """Measure one section and put it between its marks."""
    lines = [f"`python benchmarks/images.py {section} {count}`", ""]
    for line in SECTIONS[section](*subjects.scenes(count, 3)):
        print(line, flush=True)
        lines.append(line)
    begin, end = f"<!-- {section} -->\n", f"<!-- end of {section} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(before + begin + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40)

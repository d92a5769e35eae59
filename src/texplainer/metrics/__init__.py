"""Metrics of explanations, and `evaluate`, which measures several explainers side by side.

A metric is one function of arrays (scores/) and one line in `METRICS` (table.py): what it is fed with, which
way is better, its convention, its reference.
"""

from texplainer.metrics.evaluate import evaluate
from texplainer.metrics.evaluation import Evaluation, ScoreColumn
from texplainer.metrics.table import DEFAULT, METRICS, Metric

__all__ = ["DEFAULT", "METRICS", "Evaluation", "Metric", "ScoreColumn", "evaluate"]

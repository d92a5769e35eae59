"""Metrics of explanations, and `evaluate`, which measures several explainers side by side.

A metric is one function of arrays and one line in `METRICS`: what it needs, which way is better, its
convention, its reference.
"""

from .evaluate import evaluate
from .evaluation import Column, Evaluation
from .table import DEFAULT, METRICS, Metric

__all__ = ["DEFAULT", "METRICS", "Column", "Evaluation", "Metric", "evaluate"]

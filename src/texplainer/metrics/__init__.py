"""Metrics of explanations: one function of arrays each, one line each in `METRICS`."""

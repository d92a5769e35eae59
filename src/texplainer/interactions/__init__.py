"""Interactions of pairs of features: slopes of slopes, from predictions."""

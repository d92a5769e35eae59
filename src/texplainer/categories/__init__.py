"""Categorical features: how they are found, swapped and refitted."""

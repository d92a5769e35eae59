"""Categorical features: detection, effects of replacing a category, and refitting."""

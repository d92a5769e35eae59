"""Exact derivatives of scikit-learn's models from their formulas."""

"""Compiled loops over trees, in plain numba."""

"""Derivatives of black boxes from differences of their predictions."""

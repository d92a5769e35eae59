"""Wrap fitted models of any library as a function from floats to floats."""

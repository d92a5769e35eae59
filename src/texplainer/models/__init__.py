"""Fitted models of any library as one function from floats to floats."""

"""Pictures that compare explainers."""

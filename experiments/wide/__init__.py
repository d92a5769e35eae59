"""The wide evaluation: many data sets, four kinds of models, three seeds, every explainer by its question."""

"""The wide evaluation: many data sets, five kinds of models, three seeds, every explainer by its question."""

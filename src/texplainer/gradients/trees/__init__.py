"""Tree ensembles read into plain arrays; their exact slopes and Shapley values."""

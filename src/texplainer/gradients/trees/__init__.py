"""Tree ensembles read into plain arrays, smoothed, and differentiated exactly."""

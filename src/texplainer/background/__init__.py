"""The summary of the background rows: standard deviations, ranges, means and the mean prediction."""

"""What is learnt from the background rows once: spreads, ranges, centres, the mean prediction."""

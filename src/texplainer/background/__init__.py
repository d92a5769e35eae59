"""What is learnt from the background rows once: SDs, ranges, centres, the mean prediction."""

"""Images by masking: segments are the features, their presence in [0, 1] the numbers that are explained."""

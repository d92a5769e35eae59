"""From slopes and predictions to the numbers people read, one question an attribution."""

"""From slopes and predictions to the numbers people read, one question a reading."""

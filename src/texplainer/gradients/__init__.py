"""The gradient of the explained function, by the cheapest engine that fits the model."""

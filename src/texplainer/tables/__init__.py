"""Tables in memory: converts any table to a float array and a schema, and back to the model's input type."""

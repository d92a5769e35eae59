"""Tables in memory: any table in, float arrays and a schema inside, the model's own kind of table out."""

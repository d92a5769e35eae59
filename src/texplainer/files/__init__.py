"""Models, tables and results on disk."""

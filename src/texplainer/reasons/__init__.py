"""What people do with an explanation: the reasons of a decision, what would change it, the curve of a feature."""

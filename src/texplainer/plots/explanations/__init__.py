"""Pictures of one explanation: a row's, or many rows'."""

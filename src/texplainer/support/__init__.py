"""Utilities for all packages: hashes, random states, progress bars, the watch on a parent process."""

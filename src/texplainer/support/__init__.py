"""What every part may use: digests, random states, progress, the watch on a parent process."""

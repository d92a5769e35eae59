"""One reader a library: a fitted tree model into plain arrays."""

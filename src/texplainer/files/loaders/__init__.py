"""Formats that need more care than one call: skops, torch, UBJSON, npz; and zip archives in general."""

"""Sizes that several parts share. None of them changes what is computed, only how much of it at a time."""

from __future__ import annotations

BATCH_ROWS = 16384  # rows given to the model at once, unless the user says otherwise
CELLS = 2**21  # numbers at hand at a time, besides what the user passed and what is returned

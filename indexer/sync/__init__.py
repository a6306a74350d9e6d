"""Bringing an index up to date with files: planned, then done."""

"""Synchronisation of an index with the files: planned, then done."""

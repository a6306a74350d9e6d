"""Stores: where an index is kept."""

"""Embedding engines."""

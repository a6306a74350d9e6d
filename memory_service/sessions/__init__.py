"""Conversations: what was said, kept for good, and what of it a model is shown."""

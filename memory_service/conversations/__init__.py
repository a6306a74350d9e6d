"""Conversations that clients keep themselves, as sessions: what of a call is new, and references that stand for it."""

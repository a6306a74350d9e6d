"""Prompts of sessions: what is recalled for one, how its parts are put together, and what helps when it is refused."""

"""Checks of a home by using it, and measurements of how well and how fast it finds."""

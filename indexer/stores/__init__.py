"""Storage engines."""

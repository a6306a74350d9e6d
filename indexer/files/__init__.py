"""What there is on disk: memory files, extra folders, session logs, and the events that tell of their changes."""

"""The flush: what a stretch of messages leaves behind in the memory files."""

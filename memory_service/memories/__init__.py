"""Long-term memory: the Markdown files, what is found in them, and the block that is put into a prompt."""

"""From the text of a file to passages: Markdown, plain text, reStructuredText, source code and session logs."""

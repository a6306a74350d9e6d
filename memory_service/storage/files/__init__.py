"""The storage engine whose tables are files: Markdown, JSONL and small files below one folder."""

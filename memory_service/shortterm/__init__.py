"""The short-term memory of one workspace: sessions, their compaction, flush and the prompts made of them."""

"""Compaction: functions on lists of messages. Knows nothing of logs, folders or servers."""

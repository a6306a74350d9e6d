"""Ranking of an index: its data in memory (vectors, postings, columns of passages), and the answer to a question."""

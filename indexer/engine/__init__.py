"""What of an index is in memory, and what it says to a question: vector codes, postings, columns of passages."""

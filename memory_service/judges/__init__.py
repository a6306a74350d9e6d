"""Judges: small functions, learned from labelled text, of what a sentence is and of what a prompt wants."""

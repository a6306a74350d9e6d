"""Language that both libraries need: terms, days, questions, names, ends of sentences. Pure."""

"""Language that both libraries need: terms, scripts, days, questions, names, outcomes, ends of sentences. Pure."""

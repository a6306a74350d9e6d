"""Hook calls of coding agents: what each is answered, and what is kept of what it brings."""

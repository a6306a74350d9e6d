"""Language of memories and messages: each judgement about what words mean stands in one module here. Pure."""

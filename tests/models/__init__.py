"""The making of the bundled models from published weights."""

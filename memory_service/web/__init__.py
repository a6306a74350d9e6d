"""The page: what is remembered, why it was injected, and how to put it right; written by the server as HTML."""

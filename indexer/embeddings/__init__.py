"""Embedding models and rerankers, one provider a file."""

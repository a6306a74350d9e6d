"""Vendors of models: how they are called, and what their errors mean."""

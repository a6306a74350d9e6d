"""Adapters for agent frameworks: each puts a workspace in the place that its framework has for memories.

Importing this imports no framework. `import memory_service.integrations.langgraph` needs the extra of that name, and
says so where it is missing.
"""

"""Adapters for agent frameworks: each puts a workspace in the place that its framework has for memories.

Importing this imports no framework. `import memory_service.integrations.langgraph` needs the extra of that name, and
says so where it is missing.
"""

from memory_service._version import require_indexer

# Adapters judge words with the library `indexer`; a program's own module of that name would be imported instead.
require_indexer()

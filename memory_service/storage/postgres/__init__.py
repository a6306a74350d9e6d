"""Everything that the service keeps, in a PostgreSQL database: the tables, and each protocol of `storage` on them."""

from __future__ import annotations

from indexer.stores import INDEX_TABLES, Tables

STORAGE = Tables("storage", "memory_service.storage.postgres", 5)
# In the order in which their tables are made: those of the index first, as the workspaces are among them.
PARTS = (INDEX_TABLES, STORAGE)

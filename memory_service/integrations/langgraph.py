"""LangGraph's store on the memory files of a workspace: each item is a small Markdown file that people can edit.

```python
store = MemoryServiceStore("http://127.0.0.1:8765", workspace="default")
store.put(("users", "lena"), "shipping", {"text": "Lena wants parcels left with the neighbour."})
store.search(("users", "lena"), query="where do her parcels go?")
```

The item above is `memory/store/users/lena/shipping.md`, one line of Markdown for each field. What is put is on the disk
and can be found when `put` returns; filters and listings are LangGraph's own, of `InMemoryStore`.

Invariants: a value comes back as it was put; an item that nobody wrote with this store is no item; two writers of one
item never mix their fields.
"""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import threading
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, cast

from indexer.common import LRU
from memory_service import schemas
from memory_service.errors import Conflict, NotFound, PreconditionFailed
from memory_service.integrations.base import MemorySource, log_degraded, memory_of, missing, whole_file
from memory_service.integrations.items import (
    ItemFile,
    item_folder,
    item_path,
    namespace_part,
    parsed_item,
    rendered_item,
)

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        validate_op_namespace,
    )
    from langgraph.store.memory import InMemoryStore
except ImportError as error:
    raise missing("langgraph", error) from error

_CACHED_ITEMS = 2_000
_ATTEMPTS = 10
# An item has a passage for each of its fields.
_PASSAGES_PER_ITEM = 4


class MemoryServiceStore(BaseStore):
    """A `BaseStore` of LangGraph on memory files.

    Items have no time to live. `put(…, index=False)` keeps an item from being found by a query of this store, and a
    list of fields narrows what it is found by; the memory itself is indexed as every file is.

    Args:
        memory: A `MemoryService` in this process, a client, or the URL of a server.
        workspace: Name of the workspace, unless a client is given, which has its own.
        api_key: A key of the server, if a URL is given.
    """

    supports_ttl = False

    def __init__(self, memory: MemorySource, workspace: str | None = None, *, api_key: str | None = None) -> None:
        self._memory = memory_of(memory, workspace, api_key)
        self._writing = threading.Lock()
        self._cache: LRU[str, tuple[str, ItemFile]] = LRU(_CACHED_ITEMS)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answers to all operations, of how things stood before those that write."""
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            validate_op_namespace(op)
            match op:
                case GetOp():
                    results.append(self._get(op))
                case SearchOp():
                    results.append(self._search(op))
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    puts[op.namespace, op.key] = op
                    results.append(None)
                case _:
                    raise ValueError(f"Unknown operation type: {type(op)}")
        for op in puts.values():
            with self._writing:
                self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Answers to all operations; see `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        file = self._read(item_path(op.namespace, op.key))
        return Item(**_fields(file)) if file else None

    def _put(self, op: PutOp) -> None:
        path = item_path(op.namespace, op.key)
        for _ in range(_ATTEMPTS):
            try:
                if op.value is None:
                    self._memory.delete(path)
                else:
                    self._write(path, op)
            except NotFound:
                return
            except PreconditionFailed:
                continue
            return
        raise Conflict(f"The file {path} is written to all the time. Try again.")

    def _write(self, path: str, op: PutOp) -> None:
        now, etag, file = dt.datetime.now(dt.UTC).isoformat(), None, None
        try:
            text, etag = whole_file(self._memory, path)
            file = parsed_item(text)
        except NotFound:
            pass
        created_at = file.created_at if file else now
        text = rendered_item(
            op.namespace, op.key, op.value or {}, created_at=created_at, updated_at=now, index=op.index
        )
        self._memory.put(path, text, etag=etag)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.limit <= 0:
            return []
        query = (op.query or "")[: schemas.MAX_QUERY_CHARS].strip()
        scores = self._scores(op, query) if query else {}
        rest = [file for file in self._files(op.namespace_prefix) if file.path not in scores]
        rest.sort(key=lambda file: file.modified_at, reverse=True)
        wanted_value = op.offset + op.limit
        value: list[SearchItem] = []
        for path, etag in [*((path, "") for path in scores), *((file.path, file.etag) for file in rest)]:
            if len(value) >= wanted_value:
                break
            stored_file = self._read(path, etag)
            if stored_file is not None and _passes(stored_file, op.filter):
                value.append(SearchItem(**_fields(stored_file), score=scores.get(path)))
        return value[op.offset : wanted_value]

    def _scores(self, op: SearchOp, query: str) -> dict[str, float]:
        """Score of each item that a query finds, best first."""
        limit = (
            min(schemas.MAX_LIMIT, _PASSAGES_PER_ITEM * (op.offset + op.limit)) if not op.filter else schemas.MAX_LIMIT
        )
        try:
            results = self._memory.search(
                query, limit=limit, sources=["memory"], path_prefix=item_folder(op.namespace_prefix)
            )
        except NotFound:
            return {}
        log_degraded(results.degraded)
        scores: dict[str, float] = {}
        for hit in results.results:
            if (
                hit.path not in scores
                and (file := self._read(hit.path))
                and file.is_found_by(hit.start_line, hit.end_line)
            ):
                scores[hit.path] = hit.score
        return scores

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        folders = {PurePosixPath(file.path).parent.parts[2:] for file in self._files(())}
        # What matches is LangGraph's to say.
        listing = InMemoryStore()
        listing.batch([PutOp(tuple(map(namespace_part, parts)), "any", {}) for parts in folders])
        return cast("list[tuple[str, ...]]", listing.batch([op])[0])

    def _files(self, namespace: tuple[str, ...]) -> list[schemas.MemoryFile]:
        try:
            return [file for file in self._memory.files() if file.path.startswith(item_folder(namespace))]
        except NotFound:
            return []

    def _read(self, path: str, etag: str = "") -> ItemFile | None:
        """The item in a file; None if there is none. With an etag, what was read before is good enough."""
        known_pair = self._cache.get(path)
        if etag and known_pair and known_pair[0] == etag:
            return known_pair[1]
        try:
            text, etag = whole_file(self._memory, path)
        except NotFound:
            return None
        file = parsed_item(text)
        if file is not None:
            self._cache[path] = etag, file
        return file


def _fields(file: ItemFile) -> dict[str, Any]:
    return {
        "namespace": file.namespace,
        "key": file.key,
        "value": copy.deepcopy(file.value),
        "created_at": dt.datetime.fromisoformat(file.created_at),
        "updated_at": dt.datetime.fromisoformat(file.updated_at),
    }


def _passes(file: ItemFile, wanted_fields: dict[str, Any] | None) -> bool:
    """True if LangGraph's own filter lets an item through."""
    if not wanted_fields:
        return True
    value = InMemoryStore()
    value.batch([PutOp(("any",), "any", dict(file.value))])
    try:
        return bool(value.batch([SearchOp(("any",), filter=wanted_fields)])[0])
    except TypeError:
        return False  # It compares what is not there.

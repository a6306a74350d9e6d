"""The doctor: every part checked by using it, each with what is wrong and what mends it.

Invariants: what it writes stands in a folder of its own that is gone afterwards; the user's files and
index are read, never changed; one failing part does not keep the others from being checked.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from indexer import (
    Embedder,
    Index,
    IndexerError,
    IndexStatus,
    LanguageChoice,
    Reranker,
    SearchResults,
    empty_rows,
    needed_bytes,
    neighbours,
    unit_rows,
)
from memory_service.config import Settings
from memory_service.engines import DEFAULT, AssembleCall, EnginePlace, GuardedEngine, load_engine
from memory_service.errors import MemoryServiceError
from memory_service.health.measures import Measure, measure_recall, measure_searches
from memory_service.home import is_shared, open_to_others, own_places
from memory_service.memories.drafts import entry_draft
from memory_service.memories.store import MemoryStore
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from memory_service.runtime.index_answers import reader_failures
from memory_service.schemas.status import Check
from memory_service.storage.base import Storage, WorkspaceStorage
from memory_service.storage.documents import DocumentStore
from memory_service.storage.record_store import RecordKind

_SAMPLE = "The spare key hangs behind the blue door. 备用钥匙挂在蓝色的门后面。"
# Of a long line, enough to find it by; the index refuses a whole page as a question.
_QUERY_CHARS = 500
_LONG_CHARS = 40
_ENGINE_TOKENS = 2_000
_READ_BYTES = 64 * 1024
# So many are named of many.
_NAMED = 5
_SWEPT_BY = "Run `memory-service reindex`, which removes it."
_MODEL_REMEDY = "Ask its maker, or choose another embedding_model."
_ENGINE_REMEDY = "Mend or reinstall its package, restart, or set context_engine to default."


def examine(
    settings: Settings,
    storage: Storage,
    workspace: str,
    embedder: Embedder | LanguageChoice | None,
    *,
    reranker: Reranker | None = None,
    engine_problems: tuple[str, ...] = (),
    missed_text: str = "",
    measures: bool = False,
) -> Iterator[Check]:
    """Check the parts, cheapest first.

    Args:
        settings: What is configured.
        storage: The storage of the home.
        workspace: The workspace to look at.
        embedder: The model in use, or the two that are chosen from; None for none.
        reranker: The model that has a second look at results, or None.
        engine_problems: What a context engine failed to do in this process.
        missed_text: What the gateway could not do for conversations lately; empty for nothing.
        measures: Whether the index is measured too, if it is sound.
    """
    yield _check("home", lambda: _home(settings.home, storage))
    for name, detail, remedy in storage.checks():
        yield Check(name=name, ok=not remedy, detail=detail, remedy=remedy)
    parts = storage.workspace(workspace)
    embedders = _used_models(settings, storage, workspace, embedder)
    model = _check("model", lambda: _models(embedders))
    yield model
    if reranker is not None:
        yield _check("rerank", lambda: _rerank(reranker))
    # One that is no good was named; the rest has to work without it.
    used_embedder = embedders[0] if embedders and model.ok else None
    yield _check("round trip", lambda: _round_trip(settings, storage, used_embedder))
    if settings.context_engine != DEFAULT:
        yield _check("engine", lambda: _engine(settings, engine_problems))
    there = _check("workspace", lambda: _workspace(storage, workspace))
    if there.ok and storage.contains(workspace):
        if not (left := _check("left over", lambda: _left_over(parts))).ok:
            yield left
        index = _open_index(settings, parts, embedder)
        try:
            yield (sound := _check("index", lambda: _index(index, parts.scratch)))
            yield _check("files", lambda: _files(index))
            yield _check("retrieval", lambda: _retrieval(parts.documents, index))
            if measures and sound.ok:
                yield _check("speed", lambda: measure_searches(index))
                yield _check("recall", lambda: measure_recall(index))
        finally:
            index.close()
    else:
        yield there
    yield _check("readers", _readers)
    if missed_text:
        yield _check("gateway", lambda: _gateway(missed_text))


def _open_index(settings: Settings, parts: WorkspaceStorage, embedder: Embedder | LanguageChoice | None) -> Index:
    store, max_file_bytes = parts.open_index(), settings.max_file_bytes
    return Index(parts.open_source(), embedder, store=store, max_file_bytes=max_file_bytes)


def _used_models(
    settings: Settings, storage: Storage, workspace: str, embedder: Embedder | LanguageChoice | None
) -> list[Embedder]:
    """The models that a workspace uses: where it is chosen, that of its index, and the one that it moves to."""
    if not isinstance(embedder, LanguageChoice):
        return [embedder] if embedder else []
    try:
        if not storage.contains(workspace):
            return [embedder.english]
        with closing(_open_index(settings, storage.workspace(workspace), embedder)) as index:
            moves, used_embedder = index.moves(), index.embedder
    except (IndexerError, MemoryServiceError, OSError):
        # Its own check says why.
        return list(embedder.models)
    return sorted(embedder.models, key=lambda each_embedder: each_embedder is not used_embedder)[: 2 if moves else 1]


class _Failed(Exception):
    """A check that did not pass: what is wrong, and the remedy."""


def _check(name: str, check: Callable[[], str | Measure]) -> Check:
    try:
        value = check()
        detail, figures = (value, {}) if isinstance(value, str) else value
        return Check(name=name, ok=True, detail=detail, figures=figures)
    except _Failed as failure:
        detail, remedy = failure.args
        return Check(name=name, ok=False, detail=detail, remedy=remedy)
    except (IndexerError, MemoryServiceError) as error:
        # Their messages are made of what failed and what to do, in this order.
        detail, _, remedy = str(error).partition(". ")
        return Check(name=name, ok=False, detail=detail, remedy=remedy)
    except OSError as error:
        detail = f"{error.filename or 'the disk'} cannot be used ({error.strerror})"
        return Check(name=name, ok=False, detail=detail, remedy="Check its permissions, or choose another --home.")
    except Exception as error:
        # A model that somebody else wrote may fail in any way; the other parts are looked at all the same.
        detail = f"it met a defect ({type(error).__name__})"
        return Check(name=name, ok=False, detail=detail, remedy="Reinstall memory-service.")


def _home(home: Path, storage: Storage) -> str:
    if fault := storage.fault():
        is_named = storage.place in fault.detail
        raise _Failed(fault.detail if is_named else f"{storage.place} cannot be used: {fault.detail}", fault.remedy)
    place = home if home.exists() else home.absolute().parent
    free = shutil.disk_usage(place).free
    if free < 100 * 1024 * 1024:
        raise _Failed(f"{home} has only {free >> 20} MB left", "Free some disk space.")
    return f"{home} is writable, {free >> 30} GB free{_open_files(home) if home.exists() else ''}"


def _open_files(home: Path) -> str:
    """The service's own files that others could read if they could enter the home, as they may not.

    Those that a person wrote with an editor have that one's modes.
    """
    status = home.stat()
    if open_to_others(status):
        shared_kind = ", and is for more than a home" if is_shared(home, status) else ""
        raise _Failed(
            f"others of this machine can enter {home} (mode {status.st_mode & 0o777:o}{shared_kind})",
            "Choose another --home." if shared_kind else f"Run `chmod -R go-rwx {home}`.",
        )
    by_hand = (f"{os.sep}memory{os.sep}", "MEMORY.md", "USER.md")
    places = (
        path for path in own_places(home) if not path.is_symlink() and not any(part in str(path) for part in by_hand)
    )
    wide = [place for place in places if open_to_others(place.stat())]
    if not wide:
        return ""
    names = ", ".join(str(place.relative_to(home)) for place in wide[:_NAMED])
    return f"; {len(wide)} files in it have wider modes, behind its door: {names}"


def _workspace(storage: Storage, name: str) -> str:
    return "there" if storage.contains(name) else f"there is none of the name {name} yet; a first memory makes it"


def _readers() -> str:
    """Report readers of meaning that failed in this process, so in the checks before this one."""
    if failed_reader_failures := reader_failures():
        named_text = ", ".join(f"{reader} ({count} times)" for reader, count in failed_reader_failures.items())
        raise _Failed(
            f"what reads meaning into texts failed: {named_text}; these texts are stored and found without",
            "Report the lines that the log has of it, and update memory-service.",
        )
    return "all that were asked answered"


def _gateway(missed_text: str) -> str:
    """Report conversations that the gateway could not give their memory."""
    remedy = "Look into gateway.log in the home, which has a line for each; update memory-service if a host is newer."
    raise _Failed(missed_text, remedy)


def _left_over(parts: WorkspaceStorage) -> str:
    """Report temporary files of killed processes, which may hold erased text."""
    if left := [*parts.documents.leftovers(), *parts.logs.leftovers(), *parts.records.leftovers()]:
        names = ", ".join(left[:_NAMED])
        raise _Failed(f"a process was killed and left {len(left)} half-written files: {names}", _SWEPT_BY)
    if any(parts.records.keys(RecordKind.ERASURE)):
        raise _Failed("something is being erased, or was and is not gone from the index", _SWEPT_BY)
    return "nothing"


def _models(embedders: list[Embedder]) -> str:
    if not embedders:
        return "none is configured: search goes by words alone"
    return "; ".join(map(_model, embedders))


def _model(embedder: Embedder) -> str:
    texts = ["The cat sleeps.", "A cat is sleeping.", "Invoices are due in March."]
    vectors = embedder.embed_documents(texts)
    rows = unit_rows(embedder.name, vectors, texts=len(texts), dimensions=embedder.dimensions)
    if empty_rows(rows):
        raise _Failed(f"{embedder.name} gives vectors that are not finite or have no length", _MODEL_REMEDY)
    near, same, far = rows
    if not np.dot(near, same) > np.dot(near, far):
        raise _Failed(f"{embedder.name} does not tell likeness from unlikeness", _MODEL_REMEDY)
    return f"{embedder.name} gives {embedder.dimensions} dimensions"


def _rerank(reranker: Reranker) -> str:
    answer, other_value = reranker.score("Where is the spare key?", [_SAMPLE, "Invoices are due in March."])
    if not answer > other_value:
        raise _Failed(f"{reranker.name} does not tell an answer from another text", "Choose another rerank_model.")
    return f"{reranker.name} tells an answer from another text"


def _round_trip(settings: Settings, storage: Storage, embedder: Embedder | None) -> str:
    """Write, find by words and by meaning, erase, and find no more."""
    with storage.temporary_workspace() as parts:
        files = MemoryStore(parts.documents, now=settings.now)
        entry = files.notes.append(entry_draft(_SAMPLE))
        index = _open_index(settings, parts, embedder)
        try:
            index.sync()
            for query, mode in (
                ("spare key", "text"),
                ("备用钥匙", "text"),
                ("where do I find the second key?", "hybrid"),
            ):
                _expect(index.search(query, mode=mode), query)  # type: ignore[arg-type]  # a literal of the table
            files.entries.forget(entry.memory_id)
            index.sync()
            if index.search("spare key").hits:
                raise _Failed("a memory that was erased is still found", "Run `memory-service reindex --full`.")
        finally:
            index.close()
    how = "by words and by meaning" if embedder else "by words"
    return f"a memory was written, found {how}, and erased"


def _engine(settings: Settings, problems: tuple[str, ...]) -> str:
    """Have it assemble a prompt of a short talk, in a folder that is gone afterwards."""
    name = settings.context_engine
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        place = EnginePlace(workspace="doctor", folder=Path(folder))
        loaded_engine = load_engine(name, place)
        engine = GuardedEngine(name, lambda: loaded_engine)
        talk: list[Message] = [
            {"role": "user", "content": _SAMPLE},
            {"role": "assistant", "content": "Noted. 记住了。"},
            {"role": "user", "content": "Where is the key? 钥匙在哪里？"},
        ]
        history = [number_message(message, seq) for seq, message in enumerate(talk, 1)]
        engine.assemble(
            "doctor", history, token_budget=_ENGINE_TOKENS, call=AssembleCall(messages=tuple(talk), query=_SAMPLE)
        )
        texts, info = (*problems, *engine.problems()), engine.info
        engine.dispose()
    if texts or info is None:
        raise _Failed(f"{name} fails: {texts[0].partition('; ')[0] if texts else 'it has no info'}", _ENGINE_REMEDY)
    return f"{info.name} {info.version} assembles a prompt".replace("  ", " ")


def _expect(results: SearchResults, query: str) -> None:
    if not results.hits:
        raise _Failed(f"a memory just written is not found by {query!r}", "Reinstall memory-service.")
    if results.degraded:
        raise _Failed(f"search is degraded: {results.degraded[0].removesuffix('.')}", "Mend that first.")


def _index(index: Index, scratch: Path) -> str:
    is_unread = index.is_unread()
    if not is_unread:
        index.check()
    status = index.status()
    if status.stored is None:
        raise _Failed("there is no index yet", "Run `memory-service reindex`.")
    if not is_unread:
        _rebuild(scratch, status)
    if status.rebuild and status.rebuild.running:
        return f"it is being made anew: {status.rebuild.share:.0%} of the files are done"
    if is_unread or index.lags():
        raise _Failed(
            "an older version made the index, and the next search or a server makes it anew",
            "Run `memory-service reindex` to have that now.",
        )
    if status.moving:
        return _moving(scratch, status)
    if status.outdated or status.counts is None:
        raise _Failed("another model or version made the index", _full_reindex(scratch, status))
    counts = status.counts
    if status.slow:
        detail, _, remedy = status.slow.removeprefix("index: ").partition(". ")
        raise _Failed(detail, remedy)
    if status.unembedded:
        raise _Failed(
            f"{status.unembedded} of {counts.passages} passages have no vector",
            "They get one when the model answers: mend that, then search, or run `memory-service reindex`.",
        )
    with index.reader() as view:
        number, right = neighbours(view)
    if right < number:
        raise _Failed(
            f"sqlite-vec finds {right} of {number} passages by their own vectors",
            "Run `memory-service reindex --full`.",
        )
    if status.unread:
        detail, _, remedy = status.unread.removeprefix("facts: ").partition(". ")
        raise _Failed(detail, remedy)
    text = f", {status.packed} packed" if status.packed else ""
    unjudged_text = f"; {status.unjudged}" if status.unjudged else ""
    chosen_text = f"; the model is {status.choice}" if status.choice else ""
    return f"{counts.passages} passages of {counts.files} files{text}, undamaged{chosen_text}{unjudged_text}"


def _moving(folder: Path, status: IndexStatus) -> str:
    """Report an index that another model was chosen for; without room to make it anew that is no good."""
    remedy = _full_reindex(folder, status)
    if remedy.startswith("Free"):
        raise _Failed(f"the index should be made anew with {status.choice}, and the disk has no room for it", remedy)
    how = "a server does that in the background, `memory-service reindex` at once"
    return f"it answers, and is made anew with {status.choice}: {how}"


def _rebuild(folder: Path, status: IndexStatus) -> None:
    """Report an interrupted rebuild; a running one is fine."""
    rebuild = status.rebuild
    if rebuild is None or rebuild.running:
        return
    if rebuild.current:
        raise _Failed(
            f"a rebuild was interrupted at {rebuild.share:.0%} ({rebuild.name})",
            f"{_full_reindex(folder, status)} It goes on from there.",
        )
    raise _Failed(
        f"{rebuild.name} is left of a rebuild for another model or version",
        f"{_full_reindex(folder, status)} It is deleted then.",
    )


def _full_reindex(folder: Path, status: IndexStatus) -> str:
    """Remedy by a full reindex, with the room and time it takes."""
    live = status.counts.size_bytes if status.counts else 0
    needed_count = needed_bytes(live, status.rebuild.size_bytes if status.rebuild else 0)
    free = shutil.disk_usage(folder).free
    room = f"Free {(needed_count - free) / 1e6:,.1f} MB of disk space first. " if needed_count > free else ""
    return f"{room}Run `memory-service reindex --full`."


def _files(index: Index) -> str:
    status = index.status()
    if status.failed:
        first = status.failed[0]
        more = f" (and {len(status.failed) - 1} more)" if len(status.failed) > 1 else ""
        text, _, remedy = first.reason.partition("; ")
        raise _Failed(
            f"{first.path} is not indexed: {text}{more}",
            f"{remedy[:1].upper() or 'Mend it'}{remedy[1:]}. Then run `memory-service reindex`.",
        )
    if status.pending:
        raise _Failed(f"{status.pending} files changed since the last reindex", "Run `memory-service reindex`.")
    return "every memory file is indexed as it stands on disk"


def _retrieval(documents: DocumentStore, index: Index) -> str:
    """Ask for what stands in the files, in their own words: each has to come back among the first."""
    number = found_number = 0
    keys = {failure.path for failure in index.status().failed}
    for path in sorted(documents.scan().documents)[-10:]:
        line = _telling_line(next(documents.pieces(path), b"")) if path not in keys else ""
        if line:
            number += 1
            hits = index.search(line, limit=5).hits
            # The same line may stand in many files, and each of them is as good.
            found_number += any(hit.path == path or line in hit.passage.text for hit in hits)
    if not number:
        return "no memory file has a line to ask for, so finding was tried on the sample of the round trip alone"
    if found_number < number * 0.8:
        raise _Failed(
            f"only {found_number} of {number} files are found by a line of theirs",
            "Run `memory-service reindex --full`.",
        )
    return f"{found_number} of {number} files are found by a line of theirs"


def _telling_line(beginning: bytes) -> str:
    """A line of a file to ask for: the first long one, else the longest; empty where none says anything."""
    lines = [line.strip("-* ") for line in beginning[:_READ_BYTES].decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "<!--", "|", "```", ">", "---"))]
    long = next((line for line in lines if len(line) > _LONG_CHARS), "")
    return (long or max(lines, key=len, default=""))[:_QUERY_CHARS]

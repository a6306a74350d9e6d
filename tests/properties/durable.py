"""Every operation of the service that promises something lasting, and the properties of how it reaches the disk."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from indexer.testing import HashEmbedder
from memory_service.compaction.record import PinRecord
from memory_service.errors import Conflict, MemoryServiceError, StorageFailed
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest
from memory_service.service import MemoryService
from memory_service.sessions.records import MessageRecord
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.disk import WriteLock
from memory_service.storage.files.jsonl_log import JsonlLog
from tests.disk import Call, NotDurable, check_durable, recorded
from tests.memory_service.storage.log_steps import trim
from tests.serving import settings
from tests.waiting import eventually

W, S = "w", "talk"
DAY = dt.date(2026, 11, 20)
PAGE = f"memory/{DAY}.md"
PNG = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 200
Act = Callable[[MemoryService], object]


def opened(home: Path) -> MemoryService:
    """A service on a home; no model judges what lasts."""
    return MemoryService(settings(home, embedding_model="none"), embedder=HashEmbedder())


def said(service: MemoryService, *contents: object, session_id: str = S) -> None:
    """Append messages of a user."""
    messages: list[Any] = [{"role": "user", "content": content} for content in contents]
    service.sessions(W, make=True).append(session_id, messages)


def remembered(service: MemoryService, text: str = "The spare key hangs behind the blue door. 备用钥匙。") -> str:
    """Remember something; gives its id."""
    return service.remember(W, text, date=DAY).memory_id


def _image(service: MemoryService) -> None:
    said(service, [{"type": "text", "text": "看"}, {"type": "image_url", "image_url": {"url": PNG}}])


def _talked(service: MemoryService) -> None:
    service.sessions(W, make=True).store.create(S, context_window=4_000)
    said(service, *(f"Deploys {n} go out on Tuesday. 我们决定周二部署。 " + f"word{n} " * 60 for n in range(40)))


def _put(service: MemoryService, text: str = "# What holds\n\n- Never on Fridays.\n") -> None:
    service.put(W, "MEMORY.md", text, if_none_match=True)


def _rewritten(service: MemoryService) -> None:
    etag = service.get(W, "MEMORY.md").etag
    service.put(W, "MEMORY.md", "- 新\n", if_match=etag)


def _none(service: MemoryService) -> None:
    pass


def _compacted(service: MemoryService) -> None:
    made = service.sessions(W).compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))
    assert made.applied, made.reason


def _torn(service: MemoryService) -> None:
    said(service, "one")
    with (service.settings.home / W / "sessions" / f"{S}.jsonl").open("ab") as log:
        log.write(b'{"seq":3,"kind":"mess')


def _flushed(service: MemoryService) -> None:
    assert service.sessions(W).flushes.flush(S).written


def _trimmed(service: MemoryService) -> None:
    _talked(service)
    service.sessions(W).store.trim(S, 2)


def _two(service: MemoryService) -> None:
    remembered(service)
    remembered(service, "The bandicoot sleeps at noon.")


def _forgotten(service: MemoryService) -> None:
    service.forget(W, remembered(service))


# What there has to be, and what is done then.
OPERATIONS: Mapping[str, tuple[Act, Act]] = MappingProxyType(
    {
        "the first memory": (_none, remembered),
        "a memory more": (remembered, lambda service: remembered(service, "another one")),
        "the same memory again": (remembered, remembered),
        "a new file": (_none, _put),
        "a new text of a file": (_put, _rewritten),
        "forget one of two": (_two, _forgotten),
        "forget the last": (remembered, _forgotten),
        "delete a file": (_put, lambda service: service.delete(W, "MEMORY.md")),
        "the first message": (_none, lambda service: said(service, "你好")),
        "a message more": (lambda service: said(service, "one"), lambda service: said(service, "two")),
        "an image": (_none, _image),
        "the same image again": (_image, _image),
        "a message behind a torn end": (_torn, lambda service: said(service, "two")),
        "a pin": (_talked, lambda service: service.sessions(W).store.pin(S, text="Never on Fridays.")),
        "a compaction": (_talked, _compacted),
        "a flush": (_talked, _flushed),
        "a trim": (_talked, lambda service: service.sessions(W).store.trim(S, 2)),
        "a restore": (_trimmed, lambda service: service.sessions(W).store.restore(S)),
        "delete a session": (_trimmed, lambda service: service.sessions(W).store.delete(S)),
        "delete a session with images": (_image, lambda service: service.sessions(W).store.delete(S)),
    }
)


def check_operation(name: str, home: Path) -> None:
    """What an operation did has reached the disk when it answers."""
    before, act = OPERATIONS[name]
    with opened(home) as service:
        before(service)
    with opened(home) as service, recorded(home) as tape:
        act(service)
        check_durable(tape, volatile=("receipts",))
    assert tape.names("fsync"), f"{name} wrote nothing"


def check_all(home: Path) -> None:
    """The same for all of them."""
    for number, name in enumerate(OPERATIONS):
        check_operation(name, home / str(number))


class Disturbed:
    """Does something once, just before the first call that is meant."""

    def __init__(self, meant: Callable[[Call], bool], act: Callable[[], object]) -> None:
        self._meant, self._act = meant, act
        self.done = False

    def __call__(self, call: Call) -> None:
        if not self.done and self._meant(call):
            self.done = True
            self._act()


def _draft_synced(call: Call) -> bool:
    """The draft of a new text is written, and not yet in its place."""
    return call.name == "fsync" and call.path.endswith(".tmp")


def check_a_change_during_the_write_stays(home: Path) -> None:
    """A change between the first byte of a draft and its rename is not overwritten, and the call says so."""
    with opened(home) as service:
        _put(service)
        page = home / W / "MEMORY.md"
        change = Disturbed(_draft_synced, lambda: page.write_text("by hand\n"))
        with recorded(home, change):
            with suppress(MemoryServiceError):
                _rewritten(service)
                raise NotDurable("a change during the write was overwritten in silence")
        assert change.done
        if page.read_text() != "by hand\n":
            raise NotDurable("a change during the write was lost")


def check_an_append_waits_for_a_forget(home: Path) -> None:
    """What is appended between the look of a forget and its rename is not lost."""
    with opened(home) as service:
        first, _ = remembered(service), remembered(service, "The wombat digs.")
        other = threading.Thread(target=lambda: _apart(home))

        def begin() -> None:
            other.start()
            other.join(0.3)

        change = Disturbed(lambda call: call.name == "replace", begin)
        with recorded(home, change):
            try:
                service.forget(W, first)
            except MemoryServiceError as error:
                raise NotDurable("somebody else took away what a forget was about to put in place") from error
            finally:
                other.join()
        assert change.done
        if "said meanwhile" not in (home / W / PAGE).read_text():
            raise NotDurable("what was appended beside a forget is lost")


def _apart(home: Path) -> None:
    with opened(home) as service:
        remembered(service, "said meanwhile")


def _saves(page: Path, text: str) -> Callable[[], None]:
    """An editor that saves by renaming."""

    def save() -> None:
        draft = page.with_suffix(".new")
        draft.write_text(text)
        draft.rename(page)

    return save


def check_a_saved_page_is_not_removed(home: Path) -> None:
    """A page that somebody saves while its last entry is being forgotten stays, whenever that is."""
    for looks in range(1, 8):
        folder = home / str(looks)
        page = folder / W / PAGE
        with opened(folder) as service:
            memory_id = remembered(service)
            count = itertools.count(1)
            change = Disturbed(
                lambda call, count=count, looks=looks: (  # type: ignore[misc]
                    call.name == "close" and call.path.endswith(".md") and next(count) == looks
                ),
                _saves(page, page.read_text() + "\n- by hand\n"),
            )
            with recorded(folder, change):
                service.forget(W, memory_id)
        if change.done and not (page.exists() and "by hand" in page.read_text()):
            raise NotDurable("a page was removed that somebody had just saved")


def check_an_editor_that_renames_swallows_nothing(home: Path) -> None:
    """A memory that is appended while an editor puts another file in the place is in the file that stands there."""
    page = home / W / PAGE
    with opened(home) as service:
        remembered(service)
        change = Disturbed(lambda call: call.name == "write" and call.path.endswith(".md"), _saves(page, "# By hand\n"))
        with recorded(home, change):
            remembered(service, "The quokka smiles.")
        assert change.done
        if "quokka" not in page.read_text() or "By hand" not in page.read_text():
            raise NotDurable("an editor that saved by renaming swallowed a memory")


def check_a_failed_first_append_takes_no_file(home: Path) -> None:
    """Where the disk refuses the first entry of a day, the file that an editor has put there stays."""
    page = home / W / PAGE
    with opened(home) as service:
        _put(service)
        page.parent.mkdir(exist_ok=True)

        def save() -> None:
            _saves(page, "# By hand\n")()
            raise OSError(28, "No space left on device")

        with recorded(home, Disturbed(lambda call: call.name == "write" and call.path.endswith(".md"), save)):
            with suppress(StorageFailed):
                remembered(service)
        if not page.exists() or page.read_text() != "# By hand\n":
            raise NotDurable("a failed append removed a person's file")


def check_a_refused_first_append_leaves_no_file(home: Path) -> None:
    """Where the disk refuses the first entry of a day, no file is left."""
    page = home / W / PAGE
    for name in ("write", "fsync"):
        with opened(home) as service, suppress(StorageFailed):
            with recorded(home, Disturbed(lambda call: call.name == name and call.path.endswith(".md"), _full)):  # noqa: B023
                remembered(service)
            raise NotDurable("an append that the disk refused was answered")
        assert not page.exists()


def check_a_failed_append_is_no_duplicate(home: Path) -> None:
    """Whatever the disk refuses of an append, and of taking it back: to ask again writes it, and once."""
    refusals = ({"write"}, {"fsync"}, {"write", "ftruncate"}, {"fsync", "ftruncate"})
    for number, (names, is_first) in enumerate(itertools.product(refusals, (True, False))):
        place = home / str(number)
        with opened(place) as service:
            if not is_first:
                remembered(service, "The wombat digs.")

            def refuses(call: Call, names: set[str] = names) -> None:
                if call.name in names and call.path.endswith(".md"):
                    _full()

            with recorded(place, refuses), suppress(StorageFailed):
                remembered(service)
                raise NotDurable("an append that the disk refused was answered")
            remembered(service)
            page = place / W / PAGE
            if not page.exists() or page.read_text("utf-8").count("blue door") != 1:
                raise NotDurable(f"what the disk refused ({sorted(names)}) is taken for written")


def _full() -> None:
    raise OSError(28, "No space left on device")


def check_a_torn_end_is_kept_before_it_is_cut(home: Path) -> None:
    """If the torn end of a log cannot be kept beside it, the log is not cut."""
    log = home / W / "sessions" / f"{S}.jsonl"
    with opened(home) as service:
        _torn(service)
    before = log.read_bytes()
    with opened(home) as service, recorded(home, Disturbed(lambda call: call.path.endswith(".tmp"), _full)) as tape:
        with suppress(MemoryServiceError):
            said(service, "two")
    cuts = [at for at, call in enumerate(tape.calls) if call.name == "ftruncate" and call.path.endswith(".jsonl")]
    # The disk refuses once: whoever looks at the log next may keep it after all.
    kept = [at for at, call in enumerate(tape.calls) if call.name == "replace" and ".torn" in call.to]
    if not kept and not log.read_bytes().startswith(before):
        raise NotDurable("a torn end was cut off that could not be kept")
    if cuts and (not kept or min(cuts) < min(kept)):
        raise NotDurable("a torn end was cut off before it was kept")


def check_a_damaged_content_is_mended(home: Path) -> None:
    """To store a content again puts a damaged file of the same hash right."""
    blobs = Blobs(home / "blobs")
    sha256, is_new = blobs.put(b"what was sent")
    assert is_new
    for damage in (b"", b"what was", b"what was sent, and more"):
        (home / "blobs" / sha256[:2] / sha256).write_bytes(damage)
        blobs.put(b"what was sent")
        with suppress(StorageFailed):
            if blobs.get(sha256) == b"what was sent":
                continue
        raise NotDurable("a damaged content stays damaged when it is stored again")


def check_a_cut_is_synced(home: Path) -> None:
    """A torn end that is cut off is cut off on the disk before anything is written behind it."""
    with opened(home) as service:
        _torn(service)
    with opened(home) as service, recorded(home) as tape:
        said(service, "two")
    own = [call.name for call in tape.calls if call.path.endswith(".jsonl")]
    if own[own.index("ftruncate") + 1] != "fsync":
        raise NotDurable("a cut was written behind before it was synced")


def check_a_content_that_is_there_is_synced(home: Path) -> None:
    """Who stored a content before may have died before the disk had its name."""
    blobs = Blobs(home / "blobs")
    sha256, _ = blobs.put(b"once")
    with recorded(home) as tape:
        assert blobs.put(b"once") == (sha256, False)
    if Call("fsync", f"blobs/{sha256[:2]}") not in tape.calls:
        raise NotDurable("a content was named that may not be there after a power cut")


def check_an_unconfirmed_trim_keeps_the_log(home: Path) -> None:
    """A trim of which the disk does not confirm the new name loses nothing: what is gone from the log is beside it."""
    log = JsonlLog(home / "sessions" / "t.jsonl")
    log.append([MessageRecord(text=f'{{"role":"user","content":"m{n}"}}') for n in range(9)])
    log.append([PinRecord(pin_id="p1", text="pinned")])
    renamed = False

    def fails(call: Call) -> None:
        nonlocal renamed
        if renamed and call.name == "fsync" and call.path == "sessions":
            raise OSError(5, "Input/output error")
        renamed = renamed or (call.name == "replace" and call.to.endswith(".jsonl"))

    with recorded(home, fails), suppress(StorageFailed):
        trim(log, 1)
    kept = b"".join(file.read_bytes() for file in (home / "sessions").iterdir() if file.is_file())
    if not all(f"m{n}".encode() in kept for n in range(9)):
        raise NotDurable("a trim that was not confirmed lost what it took out of the log")


def check_an_unconfirmed_write_is_told_as_it_is(home: Path) -> None:
    """Where the new text stands and the disk did not confirm its name, the error says that it stands."""
    with opened(home) as service:
        _put(service)
        renamed = False

        def fails(call: Call) -> None:
            nonlocal renamed
            if renamed and call.name == "fsync" and not os.path.splitext(call.path)[1]:
                raise OSError(5, "Input/output error")
            renamed = renamed or call.name == "replace"

        with recorded(home, fails):
            try:
                _rewritten(service)
                raise NotDurable("a name that the disk did not confirm was answered as durable")
            except StorageFailed as error:
                stands = (home / W / "MEMORY.md").read_text() == "- 新\n"
                assert stands and "has its new content" in str(error), str(error)


def check_those_who_wait_together_share_a_sync(home: Path) -> None:
    """Twenty appends that wait for the lock are written with one wait for the disk; none is answered before it."""
    answered, outcomes = list[str](), dict[int, str]()
    with opened(home) as service:
        remembered(service)
        others = WriteLock(home / W / ".locks" / "memory.lock")
        notes = service._workspaces.memory(W).files.notes

        def ask(n: int) -> None:
            # Two of each text, of which the second is a duplicate; and one key for two texts.
            text, key = (f"fact {n}", "k") if n >= 18 else (f"fact {n // 2}", None)
            try:
                made = service.remember(W, text, date=DAY, idempotency_key=key)
                outcomes[n] = "duplicate" if made.duplicate else "new"
                answered.append("answer")
            except Conflict:
                outcomes[n] = "conflict"

        def synced(call: Call) -> None:
            if call.name == "fsync" and call.path.endswith(".md") and answered and not syncs:
                raise NotDurable("somebody was answered before the disk had it")
            if call.name == "fsync" and call.path.endswith(".md"):
                syncs.append(call)

        syncs = list[Call]()
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
        with recorded(home, synced):
            with others.hold():
                for thread in threads:
                    thread.start()
                # The two with one key may follow each other.
                eventually(lambda: len(notes._asked) >= 19, seconds=10)
            for thread in threads:
                thread.join()
        page = (home / W / PAGE).read_text()
    assert sorted(outcomes.values()) == ["conflict"] + ["duplicate"] * 9 + ["new"] * 10, outcomes
    assert all(page.count(f"- fact {n}\n") == 1 for n in range(9)), page
    # One round for the first of each, one for the duplicates, one for whom came late.
    if len(syncs) > 5:
        raise NotDurable(f"{len(syncs)} waits for the disk where a few are enough")


CHECKS: tuple[Callable[[Path], None], ...] = (
    check_a_change_during_the_write_stays,
    check_an_append_waits_for_a_forget,
    check_a_saved_page_is_not_removed,
    check_an_editor_that_renames_swallows_nothing,
    check_a_failed_first_append_takes_no_file,
    check_a_refused_first_append_leaves_no_file,
    check_a_failed_append_is_no_duplicate,
    check_a_torn_end_is_kept_before_it_is_cut,
    check_a_damaged_content_is_mended,
    check_a_cut_is_synced,
    check_a_content_that_is_there_is_synced,
    check_an_unconfirmed_trim_keeps_the_log,
    check_an_unconfirmed_write_is_told_as_it_is,
    check_those_who_wait_together_share_a_sync,
)

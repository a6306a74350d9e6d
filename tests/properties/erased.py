"""What nobody may find again: sessions that were deleted while somebody else worked on them.

Each property stands in a function of its own, so that a mutant can ask for it alone. Two services on one home stand for
two processes.
"""

from __future__ import annotations

import errno
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from indexer import Index, SyncProgress
from indexer.errors import SyncCancelled
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from memory_service.errors import Conflict, MemoryServiceError, NotFound, StorageFailed
from memory_service.llm.base import ChatMessage
from memory_service.runtime.base import CompactionCall
from memory_service.runtime.models import Models
from memory_service.runtime.session import OpenSession
from memory_service.runtime.session_services import SessionSnapshot
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.sessions.records import MessageRecord, SessionHeader
from memory_service.storage.files.jsonl_log import JsonlLog
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import SessionLog
from memory_service.testing import ScriptedModel
from tests.disk import Call, recorded
from tests.memory_service.storage.log_steps import begin, header
from tests.properties.durable import Disturbed
from tests.serving import settings
from tests.storages import FILES, StorageCase

S, W = "talk", "default"
OLD, NEW = "zqold 旧的秘密", "zqnew 新的话题"
_FACTS = json.dumps({"facts": [{"text": f"The user wants {OLD} kept.", "messages": [1]}]}, ensure_ascii=False)

Act = Callable[[MemoryService], object]


@contextmanager
def opened(
    home: Path, model: ScriptedModel | None = None, *, storage: StorageCase = FILES, **given: Any
) -> Iterator[MemoryService]:
    """A service on a home; no model judges what lasts."""
    values = {"embedding_model": "none", "context_window": 3_000, "max_file_bytes": 1 << 20, **given}
    values |= storage.settings(home)
    made = MemoryService(
        settings(home, **values), embedder=HashEmbedder(), models=Models(summaries=model, memories=model)
    )
    with made as service:
        yield service


def say(service: MemoryService, text: str, *, count: int = 12) -> None:
    """A talk about a text, in one batch."""
    told = [
        {"role": ("user", "assistant")[at % 2], "content": f"{text} {at}. We decided: {text} stays. " + "word " * 120}
        for at in range(count)
    ]
    service.sessions(W, make=True).append(S, told)


def found(home: Path, text: str) -> list[str]:
    """The files below a home that hold a text, as it is or in JSON."""
    return FILES.found(home, text)


def _log(home: Path) -> Path:
    return home / W / "sessions" / f"{S}.jsonl"


def _is_logged(home: Path, storage: StorageCase, text: str) -> bool:
    """True if a session says something."""
    with closing(storage.open(home)) as opened_storage:
        return any(opened_storage.workspace(W).logs.containing(text.encode()))


def _erased(home: Path, storage: StorageCase = FILES) -> None:
    with opened(home, storage=storage) as other:
        other.sessions(W).store.delete(S)


def _anew(home: Path, storage: StorageCase = FILES) -> None:
    _erased(home, storage)
    with opened(home, storage=storage) as other:
        say(other, NEW)


def _forced(service: MemoryService) -> object:
    return service.sessions(W).compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))


def _asked(service: MemoryService) -> object:
    return service.sessions(W).context(S, SessionContextRequest(recall="always"))


def _flush(service: MemoryService) -> object:
    return service.sessions(W).flushes.flush(S)


def _outcome(act: Act, service: MemoryService) -> MemoryServiceError | None:
    try:
        act(service)
    except MemoryServiceError as error:
        return error
    return None


def check_a_delete_stops_what_is_under_way(home: Path, storage: StorageCase = FILES) -> None:
    """A compaction, a flush, a context: the session is deleted while its model writes, or deleted and begun anew."""
    works: dict[str, Act] = {"compact": _forced, "flush": _flush, "context": _asked}
    for name, act in works.items():
        for number, meanwhile in enumerate((_erased, _anew)):
            place = home / f"{name}-{number}"

            def answer(messages: Sequence[ChatMessage], place: Path = place, gone: Any = meanwhile) -> str:
                if OLD.split()[0] in str(messages) and _is_logged(place, storage, OLD.split()[0]):
                    gone(place, storage)
                return _FACTS

            with opened(place, ScriptedModel(*[answer] * 40), storage=storage) as service:
                say(service, OLD)
                error = _outcome(act, service)
                assert isinstance(error, Conflict | NotFound) or name == "context", f"{name}: {error!r}"
            assert meanwhile is _anew or not _is_logged(place, storage, "session"), f"{name} made a log again"
            assert not storage.found(place, OLD), f"{name}: what was erased is back in {storage.found(place, OLD)}"


def check_a_session_begun_anew_is_read_alone(home: Path, storage: StorageCase = FILES) -> None:
    """Deleted and begun anew elsewhere, with as many records or more: nothing of the old one is shown or found."""
    for count in (2, 12, 20):
        place = home / str(count)
        with opened(place, storage=storage) as service, opened(place, storage=storage) as other:
            say(service, OLD)
            sessions = service.sessions(W)
            assert OLD in str(sessions.recalls.search(sessions.snapshot(S), OLD))
            other.sessions(W).store.delete(S)
            say(other, NEW, count=count)
            snapshot = sessions.snapshot(S)
            assert len(snapshot.state.messages) == count, "two sessions are read as one"
            assert OLD not in str(snapshot.view().messages), "an erased session is shown"
            assert OLD not in str(sessions.recalls.search(snapshot, f"{OLD} {NEW}")), "an erased session is found"


def check_a_session_is_gone_with_its_receipts(home: Path, storage: StorageCase = FILES) -> None:
    """The last request of a session is the query of its receipts; those of others stay."""
    with opened(home, storage=storage) as service:
        sessions, kept = service.sessions(W, make=True), ""
        for session_id, text in ((S, OLD), (f"{S}-2", NEW)):
            sessions.append(session_id, [{"role": "user", "content": f'{text} "session_id": "{S}"}}'}])
            receipt = service.session_context(W, session_id, SessionContextRequest(recall="always")).receipt
            assert receipt is not None and service.receipt(W, receipt.receipt_id) == receipt
            kept = receipt.receipt_id
        sessions.store.delete(S)
        assert service.receipt(W, kept).query, "a receipt of another session is gone"
    assert not storage.found(home, OLD), f"what was said stays in {storage.found(home, OLD)}"


def check_no_receipt_follows_a_delete(home: Path, storage: StorageCase = FILES) -> None:
    """A context that began before the session was deleted leaves no receipt behind it."""
    with opened(home, storage=storage) as service:
        say(service, OLD)
        sessions = service.sessions(W)
        search = service._workspaces.memory(W).search

        def late(*given: Any, **named: Any) -> Any:
            answer = search(*given, **named)
            _erased(home, storage)
            return answer

        service._workspaces.memory(W).search = late  # type: ignore[method-assign]
        degraded = sessions.context(S, SessionContextRequest(recall="always", auto=False)).degraded
        assert any("deleted meanwhile" in each for each in degraded), degraded
    assert not storage.found(home, OLD), f"what was said stays in {storage.found(home, OLD)}"


def check_a_trim_keeps_what_the_view_is_built_on(home: Path, storage: StorageCase = FILES) -> None:
    """System messages, pins, the ledger, idempotency keys and flush marks outlive a trim, here and after a restart."""
    with opened(home, context_window=8_000, storage=storage) as service:
        sessions = service.sessions(W, make=True)
        sessions.append(S, [{"role": "system", "content": "Answer in rhymes."}])
        say(service, "Deploy with `make ship-42` from /srv/app/main.py.", count=10)
        said = [{"role": "user", "content": "The key is 钥匙 7."}]
        first = sessions.append(S, said, key="once")
        pins = [sessions.store.pin(S, seq=4), sessions.store.pin(S, text="Never on Fridays.")]
        sessions.flushes.flush(S)
        _forced(service)
        before = sessions.snapshot(S)
        assert before.state.head.ledger
        say(service, "word", count=4)
        sessions.store.trim(S, 3)
        for snapshot in (sessions.snapshot(S), _fresh(home, storage)):
            state = snapshot.state
            assert len(state.messages) < 12, "nothing was trimmed"
            shown = str(snapshot.view().messages)
            assert "Answer in rhymes." in shown, "the system message is gone"
            assert "make ship-42" in shown and "Never on Fridays." in shown, "a pin or the ledger is gone from the view"
            assert state.head.ledger == before.state.head.ledger, "the ledger was gathered anew"
            flushed = (state.flushed_to, state.flushed_round)
            assert flushed == (before.state.flushed_to, before.state.flushed_round), "a flush mark is gone"
        assert sessions.store.pins(S) == pins, "a pin is gone"
        again = sessions.append(S, said, key="once")
        assert (again.replayed, again.first_seq) == (True, first.first_seq), "an idempotency key is gone"
        sessions.store.restore(S)
        assert sessions.store.pins(S) == pins and len(sessions.snapshot(S).state.messages) == 16


def _fresh(home: Path, storage: StorageCase) -> SessionSnapshot:
    with opened(home, context_window=8_000, storage=storage) as other:
        return other.sessions(W).snapshot(S)


def check_forget_takes_true_bearers_alone(home: Path, storage: StorageCase = FILES) -> None:
    """An entry and its copies go, and all places are named; above another text, its id takes nothing along."""
    with opened(home, storage=storage) as service:
        made = service.remember(W, OLD)
        comment = f"<!-- memory id={made.memory_id} -->\n"
        service.put(W, "memory/notes.md", f"{comment}- {NEW}\n", if_none_match=True)
        error = _outcome(lambda it: it.forget(W, made.memory_id), service)
        assert isinstance(error, Conflict), error
        assert made.path in str(error) and "memory/notes.md" in str(error), "the places are not named"
        texts = [service.get(W, path).text for path in (made.path, "memory/notes.md")]
        assert OLD in texts[0] and NEW in texts[1], "something was erased all the same"
        service.put(W, "memory/notes.md", f"{comment}- {OLD}\n", if_match="*")
        gone = service.forget(W, made.memory_id)
        assert set(gone.paths) == {made.path, "memory/notes.md"}, gone.paths
    assert not storage.found(home, OLD), f"what was erased stays in {storage.found(home, OLD)}"


def check_a_broken_delete_can_be_repeated(home: Path) -> None:
    """Deleting a session fails at any of its removals: it can be repeated, and then nothing of it is left."""
    for number in itertools.count():
        place = home / str(number)
        with opened(place) as service:
            say(service, OLD)
            service.sessions(W).store.trim(S, 2)
            service.sessions(W).store.trim(S, 1)
        counted = itertools.count()

        def meant(call: Call, number: int = number, counted: Iterator[int] = counted) -> bool:
            return call.name == "unlink" and next(counted) == number

        failing = Disturbed(meant, _fails)
        with opened(place) as service, recorded(place, failing):
            error = _outcome(lambda it: it.sessions(W).store.delete(S), service)
        if error is None:
            break
        with opened(place) as service:
            again = _outcome(lambda it: it.sessions(W).store.delete(S), service)
        assert again is None, f"it cannot be repeated: {again}"
        assert not found(place, OLD), f"what was erased stays in {found(place, OLD)}"
    assert number >= 3, "a session with two backups has three files"


def _fails() -> None:
    raise OSError(errno.EIO, "I/O error")


def check_drafts_are_swept(home: Path) -> None:
    """What a killed process was about to write goes at the next opening and the next erasure; `doctor` names it."""
    with opened(home) as service:
        say(service, NEW)
        service.remember(W, NEW)
        for erase in (False, True):
            kept = service.remember(W, f"{NEW} {erase}")
            for target in (home / W / "MEMORY.md", home / W / kept.path, _log(home)):
                (target.parent / f".{target.name}.{'a' * 16}.tmp").write_text(OLD)
            (home / W / "memory" / f".{'b' * 16}.tmp").write_text(OLD)
            assert any(OLD.split()[0] not in f.detail and "half-written" in f.detail for f in service.examine(W))
            if erase:
                service.forget(W, kept.memory_id)
                service.sessions(W).store.delete(S)
            else:
                with opened(home) as other:
                    other.sessions(W)
            assert not found(home, OLD), f"drafts stay: {found(home, OLD)}"
        assert all("half-written" not in finding.detail for finding in service.examine(W))


class Killed(BaseException):
    """The process ended here."""


def _dies(*_: object) -> NoReturn:
    raise Killed


def check_a_broken_erasure_is_ended(home: Path, storage: StorageCase = FILES) -> None:
    """Killed between the files and the index: whoever opens the home next, or serves it, leaves no trace."""
    for number, is_served in enumerate((False, True)):
        place = home / str(number)
        with opened(place, storage=storage) as service:
            made = service.remember(W, OLD)
            service.remember(W, NEW)
            say(service, OLD)
            service.reindex(W)
        with opened(place, storage=storage) as serving, opened(place, storage=storage) as service:
            serving.search(W, NEW)
            memory = service._workspaces.memory(W)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(memory, "_refresh", _dies)
                with pytest.raises(Killed):
                    service.forget(W, made.memory_id)
                with pytest.raises(Killed):
                    service.sessions(W).store.delete(S)
            if is_served:
                serving._workspaces.memory(W)._look_again = 0.0
                serving.search(W, NEW)
                assert not storage.found(place, OLD), f"what was erased stays in {storage.found(place, OLD)}"
        with opened(place, storage=storage) as service:
            service.search(W, NEW)
        assert not storage.found(place, OLD), f"what was erased stays in {storage.found(place, OLD)}"


def check_a_mark_stays_until_all_is_gone(home: Path, storage: StorageCase = FILES) -> None:
    """An erasure of which a part failed is tried again; one that was refused leaves no mark."""
    with opened(home, storage=storage) as service:
        made = service.remember(W, OLD)
        service.remember(W, NEW)
        _outcome(lambda it: it.forget(W, "m0123456789ab"), service)
        erasures = service._workspaces.memory(W).erasures
        assert not erasures.is_marked, "a refusal leaves a mark"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service._workspaces.memory(W), "_scrub", lambda: ["index: it failed. Try again."])
            assert service.forget(W, made.memory_id).degraded
        assert erasures.is_marked, "a part failed, and nothing says so"
        service._workspaces.memory(W)._look_again = 0.0
        service.search(W, NEW)
        assert not erasures.is_marked, "what failed is not tried again"
    assert not storage.found(home, OLD), f"what was erased stays in {storage.found(home, OLD)}"


def check_what_is_read_is_taken_back(home: Path) -> None:
    """A session is deleted while another process embeds it: its passages do not come into the index behind that."""
    with opened(home) as service:
        service.remember(W, NEW)
        service.reindex(W)
        say(service, OLD, count=4)
    with opened(home) as service:
        write = SqliteStore.write
        gone = list[bool]()

        def late(self: SqliteStore, writes: Any, **given: Any) -> Any:
            if not gone and any(each.path.startswith("sessions/") and each.inserted for each in writes):
                gone.append(True)
                _erased(home)
            return write(self, writes, **given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqliteStore, "write", late)
            service.reindex(W)
        assert gone
        assert not found(home, OLD), f"what was erased stays in {found(home, OLD)}"


def check_a_flush_marks_what_it_wrote(home: Path, storage: StorageCase = FILES) -> None:
    """Where the disk does not take the memories, the stretch is left for the next flush, which finds the same facts."""
    with opened(home, storage=storage) as service:
        say(service, OLD)
        sessions = service.sessions(W)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service._workspaces.memory(W).files.notes, "append_all", _full)
            assert _outcome(_flush, service) is not None
        assert sessions.snapshot(S).state.flushed_to == 0, "what was not written counts as flushed"
        assert sessions.flushes.flush(S).written


def _full(*_: object) -> NoReturn:
    raise StorageFailed("The disk is full. Free some space.")


def check_a_lost_race_is_no_strike(home: Path) -> None:
    """A compaction that another one forestalled says nothing about the next try; in a database they take turns."""

    def answer(messages: Sequence[ChatMessage]) -> str:
        with opened(home) as other:
            _forced(other)
        return _FACTS

    with opened(home, ScriptedModel(*[answer] * 40)) as service:
        for number in range(4):
            say(service, f"{NEW} {number}")
            error = _outcome(_forced, service)
            assert isinstance(error, Conflict), repr(error)
        assert not service.sessions(W).compactions._strikes, "a lost race counts as a failure"


def check_contents_that_others_name_stay(home: Path) -> None:
    """A batch that fails takes its own contents back, and none that another message names."""
    log, path = begin(LogFolder(home / "sessions"), "t"), home / "sessions" / "t.jsonl"
    picture = "iVBORw0KGgo" * 2_000
    log.append([_image(picture)])

    def fails(call: Call) -> bool:
        return call.name == "write" and call.path.endswith(".jsonl")

    with recorded(home, Disturbed(fails, _fails)), pytest.raises(MemoryServiceError):
        log.append([_image(picture), _image("R0lGODlhAQAB" * 2_000)])
    assert _holds(log, picture), "a content went that another message names"
    assert len([file for file in (home / "sessions" / "blobs").rglob("*") if file.is_file()]) == 1
    assert path.exists()


def check_a_sweep_waits_for_who_names(home: Path) -> None:
    """A delete elsewhere, between the storing of a content and the line that names it, does not sweep it."""
    logs = LogFolder(home / "sessions")
    picture = "iVBORw0KGgo" * 2_000
    for name in ("t", "u"):
        begin(logs, name)
    logs.open("u").append([_image(picture)])
    other = threading.Thread(target=lambda: LogFolder(home / "sessions").delete("u"))

    def begins() -> None:
        other.start()
        other.join(0.3)

    def meant(call: Call) -> bool:
        return call.name == "write" and call.path.endswith("t.jsonl")

    with recorded(home, Disturbed(meant, begins)):
        logs.open("t").append([_image(picture)])
    other.join()
    assert _holds(logs.open("t"), picture), "a content was swept before it was named"


def _holds(log: SessionLog, picture: str) -> bool:
    try:
        return picture in log.message(2)
    except MemoryServiceError:
        return False


def _image(payload: str) -> MessageRecord:
    url = {"url": f"data:image/png;base64,{payload}"}
    return MessageRecord(text=json.dumps({"role": "user", "content": [{"type": "image_url", "image_url": url}]}))


def check_a_torn_end_is_one_finding(home: Path) -> None:
    """A batch that was cut off, with a header in it: it is torn, and nothing else is wrong."""
    log = begin(LogFolder(home / "sessions"), "t")
    path = home / "sessions" / "t.jsonl"
    sound = path.read_bytes()
    log.append([SessionHeader(session_id="t", model="gpt-4o"), MessageRecord(text='{"role":"user","content":"x"}')])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(sound + lines[1] + lines[2][:20])
    again = JsonlLog(path)
    assert [repair.kind for repair in again.status().repairs] == ["torn"], again.status().repairs
    assert header(again) == SessionHeader(session_id="t")


def check_a_log_that_was_replaced_is_read_afresh(home: Path) -> None:
    """Another file with the same beginning, the same end and the same size is not the one that was read."""
    log, path = begin(LogFolder(home / "sessions"), "t"), home / "sessions" / "t.jsonl"
    log.append([MessageRecord(text=json.dumps({"role": "user", "content": text})) for text in ("one", "two", "three")])
    session = OpenSession(log)
    assert len(session.state().messages) == 3
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b'"two"', b'"TWO"'))
    other.replace(path)
    assert [each.message["content"] for each in session.state().messages] == ["one", "TWO", "three"]


def check_a_log_in_the_same_file_is_read_afresh(home: Path) -> None:
    """The number of a file that was deleted may be given again at once: what it begins with tells."""
    logs, path = LogFolder(home / "sessions"), home / "sessions" / "t.jsonl"
    begin(logs, "u").append(_texts("one", "two", "three", "four"))
    log = begin(logs, "t")
    log.append(_texts("alt"))
    session = OpenSession(log)
    assert len(session.state().messages) == 1
    with path.open("r+b") as stream:
        stream.write((home / "sessions" / "u.jsonl").read_bytes())
    told = [each.message["content"] for each in session.state().messages]
    assert told == ["one", "two", "three", "four"], told


def _texts(*texts: str) -> list[MessageRecord]:
    return [MessageRecord(text=json.dumps({"role": "user", "content": text})) for text in texts]


def _pages(home: Path) -> None:
    (home / "memory").mkdir(parents=True)
    for number in range(6):
        lines = [f"- page {number} item {item}" for item in range(10)]
        (home / "memory" / f"page-{number}.md").write_text("\n".join(lines) + "\n")


def check_what_is_deleted_leaves_the_packed_file(home: Path) -> None:
    """The name of a deleted file, and of a deleted session, is not left in the packed part of an index."""
    _pages(home)
    page = home / "memory" / "zqpage.md"
    page.write_text("- quokka\n")
    logs = LogFolder(home / "sessions")
    begin(logs, "zqtalk").append(_texts("quokka"))
    index = Index(home, HashEmbedder(), pack_passages=10)
    index.sync()
    index.pack()
    pack = home / "index.sqlite.pack"
    assert b"zqpage" in pack.read_bytes() and b"zqtalk" in pack.read_bytes()
    page.unlink()
    logs.delete("zqtalk")
    index.sync()
    index.scrub()
    left = pack.read_bytes() if pack.exists() else b""
    assert b"zqpage" not in left and b"zqtalk" not in left, "what was deleted stays in the packed part"
    index.close()


def check_a_stopped_rebuild_has_no_edited_word(home: Path) -> None:
    """What is edited out of a file while the index is made anew is not in what a stopped rebuild leaves."""
    _pages(home)
    page = home / "memory" / "a.md"
    page.write_text(f"- {OLD}\n")
    index = Index(home, HashEmbedder())
    index.sync()
    seen = list[str]()

    def edit(progress: SyncProgress) -> None:
        if not seen:
            page.write_text(f"- {NEW} and more\n")
        seen.append(progress.path)

    with pytest.raises(SyncCancelled):
        index.sync(full=True, on_progress=edit, cancelled=lambda: bool(seen))
    index.sync()
    index.scrub()
    index.close()
    assert not found(home, OLD), f"what was edited out stays in {found(home, OLD)}"


# Of the service, whatever its storage is; and of files.
ON_EVERY_STORAGE: tuple[Callable[[Path, StorageCase], None], ...] = (
    check_a_delete_stops_what_is_under_way,
    check_a_session_begun_anew_is_read_alone,
    check_a_session_is_gone_with_its_receipts,
    check_no_receipt_follows_a_delete,
    check_a_trim_keeps_what_the_view_is_built_on,
    check_forget_takes_true_bearers_alone,
    check_a_broken_erasure_is_ended,
    check_a_mark_stays_until_all_is_gone,
    check_a_flush_marks_what_it_wrote,
)
ON_FILES: tuple[Callable[[Path], None], ...] = (
    check_a_broken_delete_can_be_repeated,
    check_a_lost_race_is_no_strike,
    check_drafts_are_swept,
    check_what_is_read_is_taken_back,
    check_contents_that_others_name_stay,
    check_a_sweep_waits_for_who_names,
    check_a_torn_end_is_one_finding,
    check_a_log_that_was_replaced_is_read_afresh,
    check_a_log_in_the_same_file_is_read_afresh,
    check_what_is_deleted_leaves_the_packed_file,
    check_a_stopped_rebuild_has_no_edited_word,
)

"""From finding to correcting: ids of what is found, changes, and what is forgotten by id, place or words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service import schemas
from memory_service.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed
from memory_service.service import MemoryService
from memory_service.storage.engines import open_storage
from tests.serving import settings
from tests.storages import write_documents

W, S = "default", "talk"
OLD = "memory/2026-11-03.md"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as made:
        made.put(W, "MEMORY.md", "# Always\n\n- Never deploy on Fridays. #ops\n", if_none_match=True)
        made.put(W, OLD, "# 2026-11-03\n\n- Anna drinks tea. #people\n\nA paragraph about trams.\n", if_none_match=True)
        yield made


def _traces(tmp_path: Path, word: str) -> list[str]:
    files = (path for path in (tmp_path / "home").rglob("*") if path.is_file())
    with closing(open_storage(settings(tmp_path / "home"))) as storage:
        documents = storage.workspace(W).documents
        found = documents.containing(word.encode(), list(documents.scan().documents))
    return [*found, *(path.name for path in files if word.encode() in path.read_bytes())]


def test_hits_and_receipts_tell_the_entry(service: MemoryService) -> None:
    noted = service.remember(W, "Deploys go out on Tuesdays.", tags=["ops"])
    listed = {entry.citation: entry.memory_id for entry in service.entries(W).entries}
    found = service.search(W, "deploys tea trams Fridays", limit=10).results
    assert {result.citation: result.memory_id for result in found} == {
        "MEMORY.md#L3": None, f"{OLD}#L5": None, f"{OLD}#L3": listed[f"{OLD}#L3"],
        f"{noted.path}#L{noted.start_line}": noted.memory_id,
    }  # fmt: skip
    receipt = service.context(W, "when do deploys go out?", budget_tokens=60).receipt
    items = [*receipt.included, *receipt.omitted]
    assert noted.memory_id in {item.memory_id for item in items} and receipt.included
    assert service.receipt(W, receipt.receipt_id) == receipt
    # A file that was edited since it was indexed tells no wrong one.
    assert service.search(W, "tea", tags=["people"]).results[0].memory_id == listed[f"{OLD}#L3"]


def test_tags_restrict_search_and_context(service: MemoryService) -> None:
    service.remember(W, "The lift works again.", tags=["house/lift"])
    assert [hit.text for hit in service.search(W, "lift", tags=["House"]).results] == [
        "The lift works again. #house/lift"
    ]
    block = service.context(W, "deploys and tea", tags=["ops"]).block
    assert "Fridays" in block and "tea" not in block
    assert service.search(W, "lift", tags=["absent"]).results == []
    with pytest.raises(InvalidRequest, match="is no tag"):
        service.search(W, "lift", tags=["two words"])


def test_an_entry_is_changed_everywhere(service: MemoryService, tmp_path: Path) -> None:
    noted = service.remember(W, "The zebrafish tank is on floor two.", tags=["house"], origin="agent")
    entry = service.entry(W, noted.memory_id)
    assert (entry.role, entry.tags, entry.date) == ("agent", ["house"], dt.date.fromisoformat(noted.path[7:17]))
    changed = service.edit(W, noted.memory_id, text="The tank is on floor three.", etag=entry.etag)
    assert (changed.text, changed.role, changed.citation) == (
        "The tank is on floor three. #house", "user", entry.citation,
    )  # fmt: skip
    assert changed.degraded == [] and _traces(tmp_path, "zebrafish") == []
    [hit] = service.search(W, "tank", tags=["house"]).results
    assert (hit.text, hit.role, hit.origin, hit.memory_id) == (changed.text, "user", "user", noted.memory_id)
    with pytest.raises(PreconditionFailed):
        service.edit(W, noted.memory_id, text="Gone.", etag=entry.etag)
    with pytest.raises(Conflict, match="no agent changes"):
        service.edit(W, noted.memory_id, text="The tank is gone.", origin="agent")
    assert service.edit(W, f"{OLD}#L3", tags=[]).text == "Anna drinks tea."
    with pytest.raises(NotFound, match="0 memories"):
        service.edit(W, "MEMORY.md#L3", tags=[])


def test_a_hand_s_edit_counts_as_the_user_s(service: MemoryService, tmp_path: Path) -> None:
    noted = service.remember(W, "Ana lives in Lisbon.", origin="agent")
    assert service.search(W, "Ana").results[0].role == "agent"
    text = service.get(W, noted.path).text
    write_documents(tmp_path / "home", {noted.path: text.replace("Lisbon", "Porto")})
    service.reindex(W)
    [hit, *_] = service.search(W, "where does Ana live").results
    assert (hit.text, hit.role, hit.memory_id) == ("Ana lives in Porto.", "user", noted.memory_id)
    assert [each.role for each in service.entries(W, origin="agent").entries] == []


@pytest.mark.parametrize(("memory", "gone", "stays"), [
    (f"{OLD}#L3", "tea", "trams"), (f"{OLD}#L5", "trams", "tea"), ("MEMORY.md#L3", "Fridays", "Always"),
    (f"{OLD}#L3-L5", "trams", "2026"), (OLD, "tea", "Fridays"),
])  # fmt: skip
def test_what_a_citation_names_is_forgotten(
    service: MemoryService, tmp_path: Path, memory: str, gone: str, stays: str
) -> None:
    before = _traces(tmp_path, gone)
    would = service.forget(W, memory, dry_run=True)
    assert would.dry_run and would.erased is None and gone in "".join(each.text or "" for each in would.removed)
    assert _traces(tmp_path, gone) == before
    done = service.forget(W, memory)
    assert [each.citation for each in done.removed] == [each.citation for each in would.removed]
    assert {each.text for each in done.removed} == {None} and done.erased is not None and done.erased.passages
    assert "files" in done.erased.checked and done.degraded == []
    assert _traces(tmp_path, gone) == [] and _traces(tmp_path, stays)


def test_words_forget_only_what_they_name_alone(service: MemoryService) -> None:
    for text in ("The spare key hangs behind the door.", "The other spare key is at Kim's."):
        service.remember(W, text)
    would = service.forget(W, query="SPARE  key", dry_run=True)
    assert would.named == 2 and len(would.removed) == 2
    with pytest.raises(Conflict, match="stand in 2 memories"):
        service.forget(W, query="spare key")
    near = service.forget(W, query="keys on hooks", dry_run=True)
    assert near.named == 0 and near.removed
    with pytest.raises(Conflict, match="no memories"):
        service.forget(W, query="keys on hooks")
    assert service.forget(W, query="spare key hangs", dry_run=True).named == 1
    done = service.forget(W, query="spare key hangs")
    assert done.memory_id and not service.forget(W, query="hangs behind", dry_run=True).named
    # By words, lines that are of no entry go, too.
    assert service.forget(W, query="deploy on fridays").path == "MEMORY.md"
    for memory, query in ((None, None), ("m0", "x")):
        with pytest.raises(InvalidRequest):
            service.forget(W, memory, query=query)


def _talked(service: MemoryService) -> int:
    """A talk that was compacted, pinned, recalled and quoted; the number of its message with a secret."""
    for number in range(30):
        words = "The vault opens with okapi." if number == 2 else f"Where is ORD-{number:04}?"
        said = [{"role": "user", "content": f"{words} {'And more. ' * 40}"}, {"role": "assistant", "content": "Fine."}]
        appended = service.append(W, S, said)
        if number == 2:
            secret = appended.first_seq
    service.pin(W, S, seq=secret)
    assert service.compact(W, S, schemas.CompactRequest(force=True)).compaction_id
    service.append(W, "other", [{"role": "user", "content": "What opens the vault, okapi?"}])
    service.session_context(W, "other", schemas.SessionContextRequest(recall="always"))
    service.session_context(W, S, schemas.SessionContextRequest(recall="always", query="okapi vault"))
    return secret


def test_a_message_is_erased_with_all_that_was_made_of_it(service: MemoryService, tmp_path: Path) -> None:
    seq = _talked(service)
    service.delete_session(W, "other")  # its own words are its own
    last = service.session_status(W, S).last_seq
    place = f"sessions/{S}.jsonl#L{seq}"
    assert place in [hit.citation for hit in service.search(W, "okapi").results]
    assert "okapi" in (service.forget(W, place, dry_run=True).removed[0].text or "")
    done = service.erase_messages(W, S, [seq])
    assert (done.seqs, done.degraded) == ([seq], []) and done.compactions and done.erased is not None
    assert _traces(tmp_path, "okapi") == []
    assert all(hit.citation != place for hit in service.search(W, "okapi").results)
    assert "okapi" not in str(service.messages(W, S).messages) and service.pins(W, S).pins == []
    # The others are there, under their numbers; and it is compacted anew.
    said = list(service.sessions(W).store.iter_messages(S)[0])
    assert len(said) == 59 and seq not in dict(said) and service.session_status(W, S).last_seq == last
    assert service.append(W, S, [{"role": "user", "content": "Next."}]).first_seq == last + 1
    assert service.compact(W, S, schemas.CompactRequest(force=True)).compaction_id not in done.compactions
    with pytest.raises(NotFound, match=f"no message {seq}"):
        service.erase_messages(W, S, [seq])
    with pytest.raises(NotFound):
        service.message(W, S, seq)


def test_a_message_that_was_trimmed_away_is_erased_too(service: MemoryService, tmp_path: Path) -> None:
    seq = _talked(service)
    service.delete_session(W, "other")
    service.trim(W, S, 4)
    assert any(name.endswith(".bak") for name in _traces(tmp_path, "okapi"))
    with pytest.raises(NotFound):
        service.erase_messages(W, S, [99_999])
    assert list((tmp_path / "home").rglob("*.bak*"))
    assert service.forget(W, f"sessions/{S}.jsonl#L{seq}").degraded == []
    assert _traces(tmp_path, "okapi") == []
    assert len(list(service.sessions(W).store.iter_messages(S)[0])) == 59


def test_a_repeated_key_writes_nothing_whatever_became_of_the_memory(service: MemoryService, tmp_path: Path) -> None:
    first = service.remember(W, "Ferns need shade.", idempotency_key="k1")
    assert not first.replayed
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as other:
        again = other.remember(W, "Ferns need shade.", idempotency_key="k1")
        assert again.replayed and again.model_copy(update={"replayed": False}) == first
        with pytest.raises(Conflict, match="new key"):
            other.remember(W, "Ferns need sun.", idempotency_key="k1")
        with pytest.raises(Conflict, match="new key"):
            other.remember(W, "Ferns need shade.", tags=["plants"], idempotency_key="k1")
    assert service.remember(W, "Ferns need shade.", idempotency_key="k2").duplicate
    service.forget(W, first.memory_id)
    assert service.remember(W, "Ferns need shade.", idempotency_key="k1").replayed
    assert not service.search(W, "Ferns need shade.", mode="text").results
    with pytest.raises(InvalidRequest):
        service.remember(W, " ", idempotency_key="k3")
    assert not service.remember(W, "Cacti need sun.", idempotency_key="k3").replayed


def test_what_is_forgotten_stands_in_no_answer_that_is_kept(service: MemoryService, tmp_path: Path) -> None:
    noted = service.remember(W, "The word is heliotrope.", idempotency_key="k1")
    answers = service.keyed_answers
    answers.once(W, "POST …/context", "k2", b"", lambda: b"The word is heliotrope." * 1000, session_id=S)
    assert "records.sqlite-wal" in _traces(tmp_path, "heliotrope")
    service.forget(W, noted.memory_id)
    assert _traces(tmp_path, "heliotrope") == []
    assert answers.once(W, "POST …/context", "k2", b"", lambda: b"again", session_id=S) == (b"again", False)

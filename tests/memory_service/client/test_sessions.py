"""Sessions of both colours against a real server."""

from __future__ import annotations

import datetime as dt
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from memory_service import (
    Conflict,
    ConnectionFailed,
    InvalidName,
    InvalidRequest,
    MemoryClient,
    NotFound,
    ServerFailed,
    SessionEvent,
)
from memory_service.client._event_stream import Listening
from tests.memory_service.api.talking import anthropic_talk, talk
from tests.memory_service.client.test_failures import http, scripted
from tests.serving import RunningServer

DEPLOY = {"role": "user", "content": "We deploy on Tuesdays. 我们周二部署。"}


def test_a_session_is_made_without_a_request(colour: Callable[..., Any]) -> None:
    with colour("http://127.0.0.1:9") as memory:
        session = memory.session("support-42", model="gpt-4o")
        assert session.session_id == "support-42"
        with pytest.raises(ConnectionFailed):
            session.status()


def test_the_first_message_begins_it(memory: Any) -> None:
    session = memory.session("support-42")
    appended = session.append(DEPLOY)
    assert (appended.first_seq, appended.pressure) == (appended.last_seq, "ok")
    assert session.status().model is None
    assert session.messages().messages == [DEPLOY]
    log = session.messages("log")
    assert (log.messages, log.seqs) == ([DEPLOY], [appended.first_seq])
    assert session.message(appended.first_seq) == DEPLOY
    assert [each.session_id for each in memory.sessions()] == ["support-42"]


def test_the_first_context_begins_it(memory: Any) -> None:
    made = memory.session("new").context(system_prompt="你是助手。")
    assert made.messages == [{"role": "system", "content": "你是助手。"}]
    pinned = memory.session("pinned", context_window=64_000)
    pinned.pin("周五绝不部署。")
    assert pinned.status().context_window.tokens == 64_000


def test_a_title_makes_the_id_and_is_kept(memory: Any) -> None:
    session = memory.session(title="客服 42", context_window=64_000)
    assert session.session_id.startswith("42-")
    session.append(DEPLOY)
    assert session.status().title == "客服 42"
    # The same title is the same session, and what else is wanted of it holds too.
    again = memory.session(title="客服 42", context_window=65_000)
    again.append(DEPLOY)
    assert (again.status().messages, again.status().context_window.tokens) == (2, 65_000)
    named = memory.session("plain-id", title="投诉")
    named.append(DEPLOY)
    named.append(DEPLOY)
    memory.session("untitled").append(DEPLOY)
    titles = {each.session_id: each.title for each in memory.sessions()}
    assert titles == {session.session_id: "客服 42", "plain-id": "投诉", "untitled": ""}
    named.update(model="gpt-4o")
    assert named.status().title == "投诉"


@pytest.mark.parametrize("title", ["", "  "])
def test_a_session_needs_an_id_or_a_title(memory: Any, title: str) -> None:
    with pytest.raises(InvalidRequest, match="an id or a title"):
        memory.session(title=title)


def test_what_is_wanted_of_it_is_set_when_it_begins_and_when_it_is_there(memory: Any) -> None:
    first = memory.session("s", model="gpt-4o", settings={"compaction": {"preset": "turns"}})
    first.append(DEPLOY)
    assert (first.status().model, first.status().preset) == ("gpt-4o", "turns")
    same = memory.session("s", model="gpt-4o")
    seq = first.status().last_seq
    assert same.append(DEPLOY).first_seq == seq + 1, "what is as it is wanted is not written again"
    other = memory.session("s", model="gpt-4o-mini", context_window=50_000)
    other.context()
    status = other.status()
    assert (status.model, status.preset, status.context_window.tokens) == ("gpt-4o-mini", "turns", 50_000)
    changed = other.update(context_window=60_000)
    assert (changed.model, changed.context_window.tokens) == ("gpt-4o-mini", 60_000)
    changed = other.update(context_window=None)
    assert (changed.model, changed.preset, changed.context_window.source) == ("gpt-4o-mini", "turns", "model")
    other.append(DEPLOY)
    assert other.status().context_window.source == "model", "it is not set again"
    assert other.update(model=None, settings=None).preset == "default"


def test_a_setting_that_is_none_is_refused_before_anything_is_said(memory: Any) -> None:
    session = memory.session("s", settings={"compaction": {"preset": "nothing"}})
    with pytest.raises(InvalidRequest, match=r"default.*turns"):
        session.append(DEPLOY)
    with pytest.raises(NotFound):
        session.status()


def test_objects_of_packages_are_messages_too(memory: Any) -> None:
    function = SimpleNamespace(name="check", arguments="{}")
    call = SimpleNamespace(id="call_1", type="function", function=function)
    said = SimpleNamespace(role="assistant", content=None, tool_calls=[call], refusal=None)
    session = memory.session("s")
    session.append([DEPLOY, said])
    session.append({"role": "tool", "tool_call_id": "call_1", "content": "\ud800绿"})
    stored = {"id": "call_1", "type": "function", "function": {"name": "check", "arguments": "{}"}}
    assert session.messages("log").messages == [
        DEPLOY,
        {"role": "assistant", "content": None, "tool_calls": [stored]},
        {"role": "tool", "tool_call_id": "call_1", "content": "\ud800绿"},
    ]


@pytest.mark.parametrize("said", ["hello", b"hello", 7, None, [], ["hello"], [{"role": "user", "content": {1, 2}.add}]])
def test_what_is_no_message_is_not_sent(memory: Any, said: object) -> None:
    with pytest.raises(InvalidRequest):
        memory.session("s").append(said)
    assert memory.session("s").append(DEPLOY).first_seq <= 2


def test_usage_is_sent_as_it_came(memory: Any) -> None:
    session = memory.session("s")
    session.append(DEPLOY)
    usage = SimpleNamespace(prompt_tokens=700, completion_tokens=20, prompt_tokens_details=None, type="usage")
    answer = session.append({"role": "assistant", "content": "Noted."}, usage=usage)
    assert (answer.tokens, answer.source) == (720, "usage")
    with pytest.raises(InvalidRequest, match="usage"):
        session.append(DEPLOY, usage={"prompt_tokens": "many"})


def test_a_key_of_the_callers_own_appends_once(memory: Any) -> None:
    session = memory.session("s")
    assert session.append(DEPLOY, idempotency_key="k-1") == session.append(DEPLOY, idempotency_key="k-1")
    assert len(session.messages("log").messages) == 1


def test_compact_and_undo(memory: Any) -> None:
    session = memory.session("s", context_window=8_000)
    session.append(talk(30))
    before = session.messages().messages
    plan = session.plan(force=True)
    assert (plan.mode, plan.applied) == ("plan", False)
    preview = session.preview(force=True, instructions="Keep decisions.")
    assert preview.messages
    assert not preview.applied
    assert session.messages().messages == before
    first = session.compact(force=True, target_tokens=1_500)
    assert first.applied
    assert first.tokens_after < first.tokens_before
    assert [each.compaction_id for each in session.compactions()] == [first.compaction_id]
    assert session.undo().compaction_id == first.compaction_id
    assert session.messages().messages == before
    with pytest.raises(NotFound, match="nothing to undo"):
        session.undo()
    with pytest.raises(NotFound):
        session.undo("c0/../../x")


def test_prompts_are_measured_part_by_part(memory: Any) -> None:
    session = memory.session("s", context_window=32_000)
    session.append(talk(30))
    assert session.prompts() == []
    first = session.context(system_prompt="You help.").tokens
    session.pin("Never deploy on Fridays.")
    session.compact(force=True, target_tokens=1_500)
    second = session.context(system_prompt="You help.").tokens
    session.context(system_prompt="You help.")
    before, after = session.prompts()
    for measure, tokens in ((before, first), (after, second)):
        assert (measure.system, measure.tail, measure.window) == (tokens.system, tokens.tail, tokens.window)
        assert measure.pins + measure.summary == tokens.summary
        assert measure.free == tokens.window - tokens.total
    assert (before.pins, before.summary, before.compactions) == (0, 0, 0)
    assert 0 < after.pins < 40 < after.summary
    assert after.compactions == 1
    assert after.last_seq > before.last_seq
    assert 0 < after.cached_prefix_tokens < before.tail
    with pytest.raises(NotFound):
        memory.session("nobody").prompts()


def test_pins_searches_and_calls_that_run(memory: Any) -> None:
    session = memory.session("s")
    seq = session.append(DEPLOY).first_seq
    text, message = session.pin("Never deploy on Fridays. 周五不部署。"), session.pin(seq=seq)
    assert session.pins() == [text, message]
    assert session.unpin(text.pin_id).pin_id == text.pin_id
    assert [each.seq for each in session.pins()] == [seq]
    assert [each.seq for each in session.search("部署", limit=3).results] == [seq]
    call = {"id": "call_1", "type": "function", "function": {"name": "build", "arguments": "{}"}}
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    assert session.pending(["call_1"]).call_ids == ["call_1"]
    with pytest.raises(InvalidRequest):
        session.pending("call_1")


def test_a_branch_begins_with_what_was_said(memory: Any) -> None:
    session = memory.session("s")
    session.append(talk(6))
    seq = session.messages("log").seqs[3]
    made = session.branch(seq, title="With a queue")
    assert (made.messages, made.title) == (4, "With a queue") and made.session_id.startswith("s.branch-with-a-queue-")
    assert session.branch(seq, title="With a queue") == made
    branch = memory.session(made.session_id)
    assert branch.messages("log").messages == session.messages("log").messages[:4]
    assert session.branch(seq, session_id="other").session_id == "other"
    with pytest.raises(Conflict):
        session.branch(seq - 1, session_id="other")
    with pytest.raises(NotFound):
        session.branch(999)


def test_trim_restore_and_erase(memory: Any) -> None:
    session = memory.session("s")
    session.append(talk(60))
    whole = session.messages("log").messages
    assert session.trim().backup
    assert 98 <= len(session.messages("log").messages) <= 100
    assert session.restore().session_id == "s"
    assert session.trim(4).backup
    assert len(session.messages("log").messages) < len(whole)
    assert session.restore().session_id == "s"
    assert session.messages("log").messages == whole
    session.delete()
    with pytest.raises(NotFound):
        session.status()
    session.append(DEPLOY)
    assert memory.delete_session("s").session_id == "s"
    assert memory.sessions() == []


def test_an_erased_session_begins_again_as_it_was_wanted(memory: Any) -> None:
    session = memory.session("s", model="gpt-4o")
    session.append(DEPLOY)
    session.delete()
    session.append(DEPLOY)
    assert session.status().model == "gpt-4o"


def test_flush_and_flush_prompt(memory: Any) -> None:
    session = memory.session("s")
    session.append([DEPLOY, {"role": "assistant", "content": "Noted."}])
    assert "NO_REPLY" in session.flush_prompt().prompt
    flushed = session.flush(reply="- Deploys go out on Tuesdays.\n- 服务器在法兰克福。")
    assert [each.text for each in flushed.written] == ["Deploys go out on Tuesdays.", "服务器在法兰克福。"]
    assert memory.search("法兰克福").results[0].path == flushed.path
    assert session.flush().written == []


def test_overflow_takes_an_exception_or_its_text(memory: Any) -> None:
    session = memory.session("s", context_window=16_000)
    session.append(talk(40))
    session.context()
    error = RuntimeError("This model's maximum context length is 8192 tokens. However, you requested 9100 tokens.")
    recovery = session.overflow(error)
    assert (recovery.action, recovery.remedy, recovery.learned_window) == ("retry", "compact", 8192)
    assert recovery.messages
    assert session.overflow("prompt is too long", system_prompt="简短。").messages[0]["content"] == "简短。"
    assert session.overflow("No such key", status=401).kind == "auth"


def test_anthropics_shape(memory: Any) -> None:
    session = memory.session("s")
    session.append(anthropic_talk(2))
    made = session.context(system_prompt="Be brief.", format="anthropic")
    assert made.system == "Be brief." or made.system[0]["text"] == "Be brief."
    assert all(message["role"] in ("user", "assistant") for message in made.messages)


def test_messages_are_compacted_without_a_session(memory: Any) -> None:
    made = memory.compact_messages(talk(30), 8_000, force=True, pins=["周五不部署。"], target_tokens=1_500)
    assert made.receipt.applied
    assert "周五不部署。" in str(made.messages)
    assert memory.compact_messages([DEPLOY], 8_000).messages == [DEPLOY]
    with pytest.raises(InvalidRequest):
        memory.compact_messages([DEPLOY], 8_000, pins="x")


def test_ids_cannot_change_the_route(memory: Any) -> None:
    memory.session("s").append(DEPLOY)
    for name in ("../memories", "..", "a/b", "", "a?b", "会话"):
        with pytest.raises((InvalidName, NotFound)):
            memory.session(name).append(DEPLOY)
    with pytest.raises(NotFound):
        memory.session("s").unpin("../../status")


# --- events ---


def test_events_are_heard_as_they_happen(memory: Any) -> None:
    session = memory.session("s", context_window=8_000)
    session.append(talk(30))
    session.compact(force=True)
    heard = session.events(after=0)
    assert next(heard).kind == "flush"
    kinds = [next(heard), next(heard)]
    assert [event.kind for event in kinds] == ["compaction_start", "compaction_end"]
    assert all(isinstance(event, SessionEvent) for event in kinds)
    assert kinds[1].fields["tokens_after"] < kinds[0].fields["tokens_before"]
    session.undo()
    assert next(heard).kind == "undo"
    heard.close()
    late = session.events(after=kinds[1].id)
    assert next(late).kind == "undo"
    late.close()
    assert session.wait_idle(timeout_seconds=5) is True


def test_changes_of_the_workspace_are_heard_whoever_makes_them(memory: Any) -> None:
    memory.remember("The pump stands in the cellar.")
    heard = memory.events(after=0)
    ended = threading.Event()

    def change() -> None:
        while not ended.wait(0.2):
            memory_of_others.remember(f"It was {dt.datetime.now()}.")

    with MemoryClient(memory.base_url, workspace=memory.workspace) as memory_of_others:
        other = threading.Thread(target=change)
        other.start()
        try:
            assert next(event for event in heard if event.kind == "memories").fields["count"] >= 1
        finally:
            ended.set()
            other.join()
    heard.close()
    begun = memory.start_reindex()
    assert [each.operation_id for each in memory.operations()] == [begun.operation_id]


def event_bytes(number: int) -> bytes:
    content = f'{{"id": {number}, "at": "2026-11-20T14:32:00Z", "kind": "flush", "session_id": "s", "fields": {{}}}}'
    return f"id: {number}\nevent: flush\ndata: {content}\n\n".encode()


def streamed(content: bytes) -> bytes:
    """A stream that breaks off behind its content."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n" + content


def test_a_broken_stream_goes_on_where_it_was(colour: Callable[..., Any]) -> None:
    busy = http(503, b'{"error":{"code":"storage_failed","message":"Wait. Then go on."}}')
    first = streamed(b"retry: 10\n\n" + event_bytes(7) + b"id: 8\ndata: {\n")
    with scripted(first, b"", busy, streamed(event_bytes(8))) as server, colour(server.url) as memory:
        heard = memory.session("s").events()
        assert [next(heard).id, next(heard).id] == [7, 8]
        heard.close()
    asked = [b"last-event-id: 7" in request.lower() for request in server.requests]
    assert asked == [False, True, True, True]


def test_a_stream_that_never_comes_is_an_error(colour: Callable[..., Any]) -> None:
    with scripted(streamed(b"retry: 1\n\n"), *[b""] * 5) as server, colour(server.url) as memory:
        with pytest.raises(ConnectionFailed):
            next(memory.session("s").events())
    assert len(server.requests) == 6
    with scripted(streamed(b'data: {"id": "x"}\n\n')) as server, colour(server.url) as memory:
        with pytest.raises(ServerFailed, match="event"):
            next(memory.session("s").events())


def test_events_of_no_session_are_an_error_at_once(memory: Any) -> None:
    with pytest.raises((NotFound, InvalidName)):
        next(memory.session("../x").events())


def test_a_pause_is_bounded() -> None:
    listening = Listening(None)
    assert listening.feed_line(b"retry: 99999999\n\n") == []
    assert listening.pause_seconds() == 30.0


# --- a connection that breaks once the server has written ---


@contextmanager
def cutting(server: RunningServer, *cut: int) -> Iterator[str]:
    """A proxy that sends on each request, and breaks off instead of answering those of these numbers."""
    listener = socket.create_server(("127.0.0.1", 0))
    done, numbers = threading.Event(), itertools.count()

    def run() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                request = _whole_request(connection)
                if request:
                    answer = server.raw(request)
                    if next(numbers) not in cut:
                        connection.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        with socket.create_connection(listener.getsockname()[:2]):
            pass
        thread.join(60)
        listener.close()


def _whole_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return b""
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head.replace(b"keep-alive", b"close") + b"\r\n\r\n" + body


def test_nothing_is_written_twice_when_answers_are_lost(
    colour: Callable[..., Any], session_server: RunningServer
) -> None:
    workspace = f"cut-{'a' if colour.__name__ == 'Blocking' else 's'}"
    # Cut are the first answers: of the beginning, of both appends, of the context, and of the pin.
    with cutting(session_server, 0, 2, 4, 6, 8) as url, colour(url, workspace=workspace) as memory:
        session = memory.session("s", model="gpt-4o")
        reply = session.complete(lambda messages: "On Tuesdays.", user="When do we deploy?")
        session.pin("周五不部署。")
        assert reply.degraded == ()
        assert [each["content"] for each in session.messages("log").messages] == ["When do we deploy?", "On Tuesdays."]
        assert len(session.pins()) == 1
    counted = httpx.get(f"{session_server.url}/v1/workspaces/{workspace}/sessions/s").json()
    assert (counted["messages"], counted["pins"]) == (2, 1)


def test_a_conversation_that_its_client_keeps(memory: Any) -> None:
    session = memory.session("kept", context_window=64_000)
    said: list[dict[str, Any]] = [DEPLOY]
    made = session.conversation(said, system_prompt="You are the shop's assistant.", model="gpt-4o")
    assert (made.session_id, made.branch_of) == ("kept", "")
    assert made.messages == [{"role": "system", "content": "You are the shop's assistant."}, DEPLOY]
    assert (session.status().model, session.status().context_window.tokens) == (None, 64_000)
    said += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": "周五呢？"}]
    again = session.conversation(said, recall="never")
    assert again.messages == said
    assert session.conversation(said, recall="never").messages == said
    assert session.messages("log").messages == said, "what was said is there once"


def test_a_conversation_that_was_edited_goes_on_in_a_branch(memory: Any) -> None:
    session = memory.session("edited")
    session.conversation([DEPLOY, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "Fridays?"}])
    edited = [DEPLOY, {"role": "assistant", "content": "Noted."}, {"role": "user", "content": "Mondays?"}]
    made = session.conversation(edited, recall="never")
    assert made.branch_of == "edited" != made.session_id
    assert made.messages == edited
    assert session.messages("log").messages[-1]["content"] == "Fridays?"


def test_a_long_conversation_that_its_client_keeps_is_compacted(memory: Any) -> None:
    said = talk(60)
    made = memory.session("long", context_window=8_000).conversation(said, recall="never")
    assert made.compaction is not None and made.compaction.applied
    assert made.tokens.total < 8_000
    assert memory.session("long").messages("log").messages == said


@pytest.mark.parametrize("said", [[], [{"role": "", "content": "?"}], ["hello"]])
def test_a_conversation_in_no_known_shape_is_refused(memory: Any, said: list[Any]) -> None:
    with pytest.raises(InvalidRequest):
        memory.session("odd").conversation(said)
    with pytest.raises(NotFound):
        memory.session("odd").status()

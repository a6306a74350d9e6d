"""Turns whose answers are streamed, of both colours, with the packages of providers before a scripted server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any

import anthropic
import openai
import pytest

from indexer.testing import HashEmbedder
from memory_service import AsyncMemoryClient, InvalidRequest, MemoryClient, UpstreamFailed
from memory_service.service import MemoryService
from memory_service.testing import Failure, Reply, ScriptedServer
from tests.memory_service.api.talking import talk
from tests.serving import RunningServer, serving, settings
from tests.waiting import until

Messages = list[dict[str, Any]]
Call = Callable[..., Any]
LEFT, FAILED = "the client went away", "the upstream broke off"


_PROVIDERS: list[Any] = []


@pytest.fixture(autouse=True)
def _providers_are_closed() -> Iterator[None]:
    yield
    while _PROVIDERS:
        _PROVIDERS.pop().close()


def chat(upstream: ScriptedServer, **options: Any) -> Call:
    """A model as programs call it with the package of OpenAI."""
    provider = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="any", max_retries=0)
    _PROVIDERS.append(provider)

    def call(messages: Messages) -> Any:
        told = {"stream_options": {"include_usage": True}, **options}
        return provider.chat.completions.create(model="m", messages=messages, stream=True, **told)

    return call


def claude(upstream: ScriptedServer) -> Call:
    """The same with that of Anthropic."""
    provider = anthropic.Anthropic(base_url=upstream.url, api_key="any", max_retries=0)
    _PROVIDERS.append(provider)

    def call(messages: Messages, system: Any) -> Any:
        told = {"system": system} if system else {}
        return provider.messages.create(model="m", max_tokens=99, messages=messages, stream=True, **told)

    return call


def words(chunks: Any) -> Generator[str]:
    for chunk in chunks:
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


def log(session: Any) -> Messages:
    messages: Messages = session.messages("log").messages
    return messages


def test_chunks_come_one_by_one_and_the_answer_is_kept_whole(memory: Any) -> None:
    session = memory.session("s", context_window=32_000)
    with ScriptedServer(Reply(text="On Tuesdays. 周二 部署。", input_tokens=700, output_tokens=9)) as upstream:
        stream = session.complete(chat(upstream), user="When?", system_prompt="Be brief.", stream=True)
        with pytest.raises(InvalidRequest, match="not over"):
            _ = stream.reply
        assert list(words(stream)) == ["On ", "Tuesdays. ", "周二 ", "部署。"]
    reply = stream.reply
    assert (reply.text, reply.finish_reason, reply.attempts, reply.cut) == ("On Tuesdays. 周二 部署。", "stop", 1, "")
    assert reply.message == {"role": "assistant", "content": "On Tuesdays. 周二 部署。"}
    assert (reply.usage.prompt_tokens, reply.appended.tokens, reply.appended.source) == (700, 709, "usage")
    assert log(session) == [{"role": "user", "content": "When?"}, reply.message]
    assert list(stream) == [] and len(log(session)) == 2
    assert upstream.requests[0].body["messages"] == reply.context.messages


def test_the_chunks_are_the_providers_own_and_none_is_missing(memory: Any) -> None:
    with ScriptedServer("One two.", "One two.") as upstream:
        call = chat(upstream)
        straight = [each.model_dump() for each in call([{"role": "user", "content": "Count."}])]
        got = [each.model_dump() for each in memory.session("s").complete(call, user="Count.", stream=True)]
    assert [each["choices"] for each in got] == [each["choices"] for each in straight]


def test_calls_of_tools_are_put_together(memory: Any) -> None:
    session = memory.session("s", context_window=32_000)
    step = Reply(
        text="Let me look.", tool_call="look", arguments='{"city": "柏林 Mitte"}', more_calls=(("time", '{"at": 2}'),)
    )
    with ScriptedServer(step, "It rains.") as upstream:
        call = chat(upstream)
        stream = session.complete(call, user="Weather?", stream=True)
        assert "".join(words(stream)) == "Let me look."
        made = stream.reply.tool_calls
        assert [(each["type"], each["function"]) for each in made] == [
            ("function", {"name": "look", "arguments": '{"city": "柏林 Mitte"}'}),
            ("function", {"name": "time", "arguments": '{"at": 2}'}),
        ]
        session.append([{"role": "tool", "tool_call_id": each["id"], "content": "雨"} for each in made])
        again = session.complete(call, stream=True)
        assert "".join(words(again)) == "It rains."
        sent = upstream.requests[1].body["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[1]["tool_calls"] == made and sent[1] == log(session)[1]


def test_anthropics_events_are_put_together(memory: Any) -> None:
    session = memory.session("s", context_window=32_000)
    step = Reply(text="Let me look.", thinking="Hm hm.", tool_call="look", arguments='{"city": "柏林 Mitte"}')
    with ScriptedServer(step, "It rains.") as upstream:
        call = claude(upstream)
        stream = session.complete(call, user="Weather?", stream=True, format="anthropic", system_prompt="Be brief.")
        kinds = [event.type for event in stream]
        assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
        [made] = stream.reply.tool_calls
        assert stream.reply.message["content"] == [
            {"type": "thinking", "thinking": "Hm hm.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": made["id"], "name": "look", "input": {"city": "柏林 Mitte"}},
        ]
        assert (stream.reply.finish_reason, stream.reply.appended.source) == ("tool_use", "usage")
        result = {"type": "tool_result", "tool_use_id": made["id"], "content": "雨"}
        session.append({"role": "user", "content": [result]})
        again = session.complete(call, stream=True, format="anthropic")
        list(again)
        assert again.reply.text == "It rains."
        assert upstream.requests[1].body["messages"][1] == stream.reply.message


@pytest.mark.parametrize("way", ["break", "with", "close", "raise"])
def test_what_was_said_to_a_reader_who_leaves_is_kept_and_marked(memory: Any, way: str) -> None:
    session = memory.session("s", context_window=32_000)
    step = Reply(text="One two " + "and so on " * 200, tool_call="look", pause_seconds=0.05)
    with ScriptedServer(step, "Five.") as upstream:
        call = chat(upstream)
        stream = session.complete(call, user="Count.", stream=True)
        if way in ("with", "raise"):
            try:
                with stream:
                    pieces = words(stream)
                    heard = [next(pieces), next(pieces)]
                    if way == "raise":
                        raise KeyError("the reader's own")
            except KeyError:
                assert way == "raise"
        else:
            heard = []
            for piece in (iterator := words(stream)):
                heard.append(piece)
                if len(heard) == 2:
                    break
            iterator.close()
            if way == "close":
                stream.close()
        assert heard == ["One ", "two "]
        assert (stream.reply.cut, stream.reply.text) == (LEFT, "One two ")
        assert log(session)[1:] == [{"role": "assistant", "content": "One two ", "_cut": LEFT}]
        stream.close()
        assert list(stream) == [] and len(log(session)) == 2
        assert "".join(words(session.complete(call, user="Go on.", stream=True))) == "Five."
        sent = upstream.requests[1].body["messages"]
        assert [each["content"] for each in sent] == ["Count.", "One two ", "Go on."]
        assert "_cut" not in json.dumps(sent)
        # The provider writes no further for nobody.
        until(lambda: upstream.left == 1)


def test_a_reader_who_leaves_at_the_end_has_heard_it_all(memory: Any) -> None:
    session = memory.session("s")
    with ScriptedServer("One two.") as upstream:
        for chunk in session.complete(chat(upstream), user="Count.", stream=True):
            if chunk.choices and chunk.choices[0].finish_reason:
                break
    assert log(session)[1] == {"role": "assistant", "content": "One two."}


@pytest.mark.parametrize("make", [chat, claude])
def test_a_provider_that_breaks_off_is_an_error_and_what_it_said_is_marked(memory: Any, make: Any) -> None:
    session, wire = memory.session("s"), {"format": "anthropic"} if make is claude else {}
    with ScriptedServer(Reply(text="One two three four.", breaks_after=5), "Five.") as upstream:
        stream = session.complete(make(upstream), user="Count.", stream=True, **wire)
        with pytest.raises(UpstreamFailed, match=r"broke off: .* marked as broken off") as caught:
            list(stream)
        assert caught.value.__cause__ is not None and "three" not in str(caught.value)
        kept = log(session)[1]
        assert (kept["_cut"], stream.reply.cut) == (FAILED, FAILED)
        assert stream.reply.text and "One two three four.".startswith(stream.reply.text)
        assert kept["content"] == stream.reply.message["content"]
        again = session.complete(make(upstream), user="Go on.", stream=True, **wire)
        list(again)
        assert again.reply.text == "Five." and "_cut" not in json.dumps(upstream.requests[1].body)


def test_a_provider_that_breaks_off_among_calls_leaves_none(memory: Any) -> None:
    session = memory.session("s")
    with ScriptedServer(Reply(tool_call="look", arguments='{"a": 1, "b": 2}', breaks_after=3), "Five.") as upstream:
        call = chat(upstream)
        stream = session.complete(call, user="Count.", stream=True)
        with pytest.raises(UpstreamFailed, match="Nothing of it is in the session: complete again without `user`"):
            list(stream)
        assert "before the model said anything" in stream.reply.degraded[0]
        assert [each["content"] for each in log(session)] == ["Count."]
        assert "".join(words(session.complete(call, stream=True))) == "Five."


def test_an_error_inside_a_stream_is_none_of_its_words(memory: Any) -> None:
    session = memory.session("s")

    def call(messages: Messages) -> Iterator[dict[str, Any]]:
        yield {"choices": [{"index": 0, "delta": {"content": "One "}}]}
        yield {"error": {"message": "The server had an error.", "code": 500}}

    stream = session.complete(call, user="Count.", stream=True)
    with pytest.raises(UpstreamFailed, match="The server had an error"):
        list(stream)
    assert log(session)[1] == {"role": "assistant", "content": "One ", "_cut": FAILED}


@pytest.mark.parametrize("ending", [[], [{"choices": [], "usage": {"prompt_tokens": 5}}]])
def test_a_stream_without_its_end_is_no_whole_answer(memory: Any, ending: list[Any]) -> None:
    session = memory.session("s")
    chunks = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "One "}}]}, *ending]
    with pytest.raises(UpstreamFailed, match="without the reason why it ended"):
        list(session.complete(lambda messages: iter(chunks), user="Count.", stream=True))
    assert log(session)[1]["_cut"] == FAILED


@pytest.mark.parametrize("make", [chat, claude])
def test_an_overflow_is_recovered_from_before_the_first_chunk(memory: Any, make: Any) -> None:
    session, wire = memory.session("s", context_window=200_000), {"format": "anthropic"} if make is claude else {}
    session.append(talk(60))
    before = len(log(session))
    with ScriptedServer(Failure.named("openai"), Failure.named("anthropic"), "Still here.") as upstream:
        stream = session.complete(make(upstream), user="And now?", stream=True, **wire)
        list(stream)
        sizes = [len(json.dumps(each.body["messages"])) for each in upstream.requests]
    reply = stream.reply
    assert (reply.text, reply.attempts, len(reply.compactions)) == ("Still here.", 3, 2)
    assert sizes[0] > sizes[1] > sizes[2]
    assert [each["role"] for each in log(session)][-2:] == ["user", "assistant"] and len(log(session)) == before + 2


def test_an_overflow_that_the_stream_itself_tells_is_recovered_from(memory: Any) -> None:
    session = memory.session("s", context_window=200_000)
    session.append(talk(60))
    told = "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens."
    opening = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    steps: Iterator[list[Any]] = iter([[opening, {"error": {"message": told}}], ["Still ", "here."]])
    stream = session.complete(lambda messages: iter(next(steps)), user="And now?", stream=True)
    assert list(stream) == ["Still ", "here."]
    assert (stream.reply.attempts, len(stream.reply.compactions), log(session)[-1]["content"]) == (2, 1, "Still here.")


def test_what_cannot_be_helped_is_the_providers_own_exception(memory: Any) -> None:
    session = memory.session("s")
    refused = Failure(status=401, body={"error": {"message": "Incorrect API key provided"}})
    with ScriptedServer(refused, "Later.") as upstream:
        with pytest.raises(openai.AuthenticationError) as caught:
            session.complete(chat(upstream), user="Hello", stream=True)
        assert "memory-service: This is no overflow" in caught.value.__notes__[0]
        assert "".join(words(session.complete(chat(upstream), stream=True))) == "Later."
    assert [each["content"] for each in log(session)] == ["Hello", "Later."]


def test_what_is_no_stream_is_refused(memory: Any) -> None:
    session = memory.session("s")

    def given(value: object, messages: Messages) -> object:
        return value

    nothing: object
    for nothing in ("text", {"choices": []}, None, 7):
        with pytest.raises(InvalidRequest, match="no stream"):
            session.complete(partial(given, nothing), user="Hello", stream=True)
    with pytest.raises(InvalidRequest, match="The stream began with an object of the type int"):
        session.complete(lambda messages: iter([7]), user="Hello", stream=True)
    with pytest.raises(InvalidRequest, match="stream=True"):
        session.complete(lambda messages: iter(["Hello"]), user="Hello")
    with pytest.raises(UpstreamFailed, match="ended without"):
        session.complete(lambda messages: iter(()), user="Hello", stream=True)


def test_an_answer_of_nothing_is_not_kept(memory: Any) -> None:
    session = memory.session("s")
    with ScriptedServer("") as upstream:
        stream = session.complete(chat(upstream), user="Hello", stream=True)
        assert list(words(stream)) == []
    assert stream.reply.appended is None and "nothing was appended" in stream.reply.degraded[0]
    assert len(log(session)) == 1


def test_a_command_gives_no_chunks(memory: Any) -> None:
    session = memory.session("s", context_window=32_000)
    session.append(talk(60))
    with ScriptedServer() as upstream:
        stream = session.complete(chat(upstream), user="/compact", stream=True)
        assert list(stream) == []
        assert upstream.requests == []
    assert stream.reply.finish_reason == "command" and stream.reply.text.startswith("Compacted: ")


def test_an_agent_that_streams_is_asked_for_memories_too(colour: Callable[..., Any], tmp_path: Any) -> None:
    service = MemoryService(
        settings(tmp_path / "home", embedding_model="none", flush={"mode": "agent"}), embedder=HashEmbedder()
    )
    with serving(service) as server, colour(server.url, workspace="asking") as memory:
        session = memory.session("s", context_window=60_000)
        pressure, turns = "ok", iter(talk(400, words=60))
        while pressure == "ok":
            pressure = session.append([next(turns) for _ in range(20)]).pressure
        with ScriptedServer("- 周二部署。", "Hello to you.") as upstream:
            stream = session.complete(chat(upstream), user="Hello", stream=True)
            assert "".join(words(stream)) == "Hello to you."
        assert [each.text for each in stream.reply.flush.written] == ["周二部署。"]
        assert stream.reply.degraded == ()


def test_async_streams_of_all_kinds(session_server: RunningServer) -> None:
    async def texts(messages: Messages) -> AsyncIterator[str]:
        for text in ("Eins ", "zwei."):
            yield text

    async def talked(upstream: ScriptedServer) -> list[Messages]:
        own = openai.AsyncOpenAI(base_url=f"{upstream.url}/v1", api_key="any", max_retries=0)

        async def call(messages: Messages) -> Any:
            return await own.chat.completions.create(model="m", messages=messages, stream=True)

        kept = []
        async with own, AsyncMemoryClient(session_server.url, workspace="streamed") as memory:
            for number, model in enumerate((call, lambda messages: call(messages), texts)):
                session = memory.session(f"s-{number}")
                async with await session.complete(model, user="Zähle.", stream=True) as stream:
                    assert [chunk async for chunk in stream]
                assert stream.reply.text == "Eins zwei."
                kept.append((await session.messages("log")).messages[1:])
            # Who leaves the loop alone, and waits for what the event loop does with it.
            session = memory.session("left")
            stream = await session.complete(texts, user="Zähle.", stream=True)
            async for _ in stream:
                break
            await stream.close()
            kept.append((await session.messages("log")).messages[1:])
            # A task that is cancelled while the model thinks.
            session = memory.session("cancelled")
            begun = asyncio.Event()

            async def slow(messages: Messages) -> AsyncIterator[str]:
                yield "Eins "
                await asyncio.sleep(3600)

            async def read() -> None:
                async for _ in await session.complete(slow, user="Zähle.", stream=True):
                    begun.set()

            task = asyncio.create_task(read())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            kept.append((await session.messages("log")).messages[1:])
        return kept

    with ScriptedServer("Eins zwei.", "Eins zwei.") as upstream:
        kept = asyncio.run(talked(upstream))
    whole = [{"role": "assistant", "content": "Eins zwei."}]
    cut = [{"role": "assistant", "content": "Eins ", "_cut": LEFT}]
    assert kept == [whole, whole, whole, cut, cut]

    with MemoryClient(session_server.url, workspace="streamed") as memory:
        with pytest.raises(InvalidRequest, match="AsyncMemoryClient"):
            memory.session("blocking").complete(texts, user="Hello", stream=True)

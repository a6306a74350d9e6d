"""Turns of a session of both colours, with models that overflow, fail, call tools and are cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service import AsyncMemoryClient, InvalidRequest, MemoryClient, Reply
from memory_service.errors import Incompressible
from memory_service.service import MemoryService
from memory_service.testing import Failure
from tests.memory_service.api.talking import talk
from tests.serving import RunningServer, serving, settings

Messages = list[dict[str, Any]]
SYSTEM = "You are brief. 请简短。"


class ProviderError(Exception):
    """As the packages of providers raise them: the text, the status, and the response behind it."""

    def __init__(self, failure: Failure) -> None:
        body = failure.body if isinstance(failure.body, str) else json.dumps(failure.body)
        super().__init__(f"Error code: {failure.status}")
        self.status_code = failure.status
        self.response = SimpleNamespace(text=body, status_code=failure.status, headers=failure.headers)


def answered(text: str | None, finish_reason: str = "stop", prompt_tokens: int = 90, **more: Any) -> dict[str, Any]:
    """An answer of OpenAI's shape."""
    message = {"role": "assistant", "content": text, "refusal": None, **more}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}
    return {"choices": [{"message": message, "finish_reason": finish_reason}], "usage": usage}


class Model:
    """A user's callable: raises or returns one step after the other, and keeps what it was sent."""

    def __init__(self, *steps: object) -> None:
        self.sent: list[Messages] = []
        self._steps = iter(steps)

    def __call__(self, messages: Messages) -> object:
        self.sent.append(messages)
        step = next(self._steps)
        if isinstance(step, BaseException):
            raise step
        return step


def contents(session: Any) -> list[Any]:
    return [message["content"] for message in session.messages("log").messages]


TOO_LONG = Failure(
    status=400, body="This model's maximum context length is 8000 tokens. Your messages have 9000 tokens."
)


@pytest.mark.parametrize("window", [900, 4_000])
def test_a_window_that_is_too_small_makes_a_larger_model_go_on(memory: Any, window: int) -> None:
    small, larger = Model(), Model(answered("Large."), answered("Still large."))
    # 900 are refused by the guard of the window; 4,000 do not take a system prompt of this size.
    system = SYSTEM if window == 900 else SYSTEM * 1_200
    session = memory.session(f"grows-{window}", context_window=window)
    session.append(talk(2))
    with pytest.raises((InvalidRequest, Incompressible)):
        session.complete(small, user="哪天部署？", system_prompt=system)
    reply = session.complete(small, system_prompt=system, larger_model=("gpt-4o", larger))
    assert reply.text == "Large." and small.sent == [] and larger.sent[0][-1]["content"] == "哪天部署？"
    assert reply.degraded[0].startswith("model: the session goes on with gpt-4o. ")
    assert session.status().model == "gpt-4o" and session.status().context_window.tokens == 128_000
    again = session.complete(larger, user="And?", system_prompt=system, larger_model=("gpt-4o", small))
    assert again.text == "Still large." and again.degraded == ()


def test_an_overflow_that_nothing_helps_makes_a_larger_model_go_on(memory: Any) -> None:
    small, larger = Model(*[ProviderError(TOO_LONG)] * 9), Model(answered("Large."))
    session = memory.session("overflows", context_window=8_000)
    reply = session.complete(small, user="哪天部署？", larger_model=("gpt-4o", larger))
    assert reply.text == "Large." and "model: the session goes on with gpt-4o." in reply.degraded[0]
    assert [each["content"] for each in larger.sent[0]] == ["哪天部署？"]
    with pytest.raises(ProviderError):
        memory.session("no-larger", context_window=8_000).complete(Model(*[ProviderError(TOO_LONG)] * 9), user="q")


@pytest.mark.parametrize("preset", ["openclaw", "ponybunny"])
def test_a_larger_model_goes_on_after_an_overflow_that_told_a_small_window(memory: Any, preset: str) -> None:
    told = Failure(status=400, body="This model's maximum context length is 8192 tokens. You sent 9000 tokens.")
    small, larger = Model(*[ProviderError(told)] * 9), Model(answered("Large."), answered("Still large."))
    session = memory.session(f"told-{preset}", settings={"compaction": {"preset": preset}})
    reply = session.complete(small, user="哪天部署？", larger_model=("gpt-4o", larger))
    assert reply.text == "Large." and "model: the session goes on with gpt-4o." in reply.degraded[0]
    assert session.status().context_window.source == "model"
    assert session.complete(larger, user="And?").text == "Still large."


def test_a_turn_is_appended_and_sent_with_its_memories(memory: Any) -> None:
    memory.remember("Deploys go out on Tuesdays at the Frankfurt cluster.")
    session = memory.session("s", context_window=32_000)
    model = Model(answered("On Tuesdays. 周二。", prompt_tokens=700))
    reply = session.complete(model, user="When do deploys go out?", system_prompt=SYSTEM)
    assert (reply.text, reply.attempts, reply.finish_reason) == ("On Tuesdays. 周二。", 1, "stop")
    assert (reply.message, reply.degraded) == ({"role": "assistant", "content": "On Tuesdays. 周二。"}, ())
    [sent] = model.sent
    assert sent[0] == {"role": "system", "content": SYSTEM}
    assert sent[-1] == {"role": "user", "content": "When do deploys go out?"}
    assert "Frankfurt" in sent[-2]["content"]
    assert sent == reply.context.messages
    assert contents(session) == ["When do deploys go out?", "On Tuesdays. 周二。"]
    assert (reply.appended.tokens, reply.appended.source) == (709, "usage")


def test_the_second_overflow_is_recovered_from_too(memory: Any) -> None:
    session = memory.session("s", context_window=200_000)
    session.append(talk(60))
    tight = RuntimeError("This model's maximum context length is 8192 tokens. However, you requested 9100 tokens.")
    model = Model(ProviderError(Failure.named("openai")), tight, "Still here.")
    reply = session.complete(model, user="And now? 然后呢？", system_prompt=SYSTEM)
    assert (reply.text, reply.attempts) == ("Still here.", 3)
    assert [each.trigger for each in reply.compactions] == ["overflow", "overflow"]
    sizes = [len(json.dumps(sent)) for sent in model.sent]
    assert sizes[0] > sizes[1] > sizes[2]
    assert all(sent[0]["content"] == SYSTEM for sent in model.sent)
    assert all(any(message["content"] == "And now? 然后呢？" for message in sent) for sent in model.sent)
    assert contents(session)[-2:] == ["And now? 然后呢？", "Still here."]
    assert session.status().context_window.tokens == 8192


@pytest.mark.parametrize("name", ["anthropic", "gemini", "dashscope", "zhipu", "vllm", "llamacpp"])
def test_overflows_of_every_provider(memory: Any, name: str) -> None:
    session = memory.session("s", context_window=200_000)
    session.append(talk(24))
    reply = session.complete(Model(ProviderError(Failure.named(name)), "Fine."), user="继续")
    assert (reply.text, reply.attempts, len(reply.compactions)) == ("Fine.", 2, 1)


def test_what_cannot_be_helped_is_the_providers_own_exception(memory: Any) -> None:
    session = memory.session("s")
    error = ProviderError(Failure(status=401, body='{"error": {"message": "Incorrect API key provided"}}'))
    model = Model(error, "Later.")
    with pytest.raises(ProviderError) as caught:
        session.complete(model, user="Hello")
    assert caught.value is error
    assert caught.value.__notes__[0].startswith("memory-service: This is no overflow (auth)")
    assert contents(session) == ["Hello"]
    assert session.complete(model).text == "Later."
    assert contents(session) == ["Hello", "Later."]


def test_an_overflow_without_end_ends(memory: Any) -> None:
    session = memory.session("s", context_window=100_000)
    session.append(talk(40))
    model = Model(*[ProviderError(Failure.named("zhipu"))] * 30)
    with pytest.raises(ProviderError) as caught:
        session.complete(model, user="Hello")
    assert "Context overflow" in caught.value.__notes__[0]
    assert 2 <= len(model.sent) <= 9
    few = Model(*[ProviderError(Failure.named("zhipu"))] * 30)
    with pytest.raises(ProviderError) as caught:
        session.complete(few, max_retries=0)
    assert (len(few.sent), "max_retries" in caught.value.__notes__[-1]) == (1, True)


def test_a_rate_limit_is_waited_for(memory: Any) -> None:
    session = memory.session("s")
    limit = Failure.named("rate_limit")
    soon = Failure(status=limit.status, body=limit.body, headers={"Retry-After": "0.05"})
    reply = session.complete(Model(ProviderError(soon), "Now."), user="Hello")
    assert (reply.text, reply.attempts, reply.compactions) == ("Now.", 2, ())
    late = ProviderError(Failure(status=limit.status, body=limit.body, headers={"Retry-After": "3600"}))
    with pytest.raises(ProviderError) as caught:
        session.complete(Model(late, "Never."), user="Again", max_wait_seconds=5)
    assert "wait 3600 seconds, and max_wait_seconds is 5" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "error", [TimeoutError(), ConnectionResetError(), ConnectionError("Connection refused")], ids=lambda e: repr(e)
)
def test_a_broken_connection_is_tried_again(memory: Any, error: Exception) -> None:
    reply = memory.session("s").complete(Model(error, "Now."), user="你好", max_wait_seconds=0.01)
    assert (reply.text, reply.attempts) == ("Now.", 2)


def test_an_error_in_place_of_an_answer(memory: Any) -> None:
    session = memory.session("s")
    broken = {"error": {"message": "Incorrect API key provided", "code": 401}}
    with pytest.raises(Exception, match="Incorrect API key") as caught:
        session.complete(Model(broken), user="Hello")
    assert caught.value.__notes__
    for nothing in (None, 7, object(), iter("abc")):
        with pytest.raises(InvalidRequest, match="The call returned"):
            session.complete(Model(nothing))


def test_a_prompt_that_was_cut_in_silence(memory: Any) -> None:
    session = memory.session("s", context_window=20_000)
    session.append(talk(40))
    model = Model(answered("Half.", prompt_tokens=25_000), answered("Whole.", prompt_tokens=6_000))
    reply = session.complete(model, user="Hello")
    assert (reply.text, reply.attempts, len(reply.compactions)) == ("Whole.", 2, 1)
    assert contents(session)[-2:] == ["Hello", "Whole."]
    full = Model(answered("", "length", prompt_tokens=19_990), "Whole again.")
    assert session.complete(full, user="再来").text == "Whole again."


def test_a_prompt_that_cannot_be_smaller_keeps_its_answer(memory: Any) -> None:
    session = memory.session("s", context_window=20_000)
    reply = session.complete(Model(*[answered("Here.", prompt_tokens=25_000)] * 9), user="Hello")
    assert reply.text == "Here."
    assert any(missing.startswith("prompt: the provider cut it in silence") for missing in reply.degraded)
    assert contents(session) == ["Hello", "Here."]


def test_turns_compacts_once_when_an_answer_is_cut(memory: Any) -> None:
    session = memory.session("s", context_window=64_000, settings={"compaction": {"preset": "turns"}})
    session.append(talk(30))
    reply = session.complete(Model(*[answered("Cut sho", "length")] * 3), user="Hello")
    assert (reply.text, reply.attempts, reply.finish_reason, len(reply.compactions)) == ("Cut sho", 2, "length", 1)
    other = memory.session("t", context_window=64_000)
    other.append(talk(30))
    assert other.complete(Model(answered("Cut sho", "length")), user="Hello").attempts == 1


def test_an_answer_of_nothing_is_not_appended(memory: Any) -> None:
    session = memory.session("s")
    for nothing in ("", answered(None), {"type": "message", "content": [], "stop_reason": "end_turn"}):
        reply = session.complete(Model(nothing), user="Hello")
        assert (reply.text, reply.appended) == ("", None)
        assert reply.degraded == ("answer: the model said nothing; nothing was appended.",)
    assert contents(session) == ["Hello"] * 3


def test_a_loop_of_tools(memory: Any) -> None:
    session = memory.session("s")
    function = {"name": "deploys", "arguments": '{"day": "周二"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    model = Model(answered(None, "tool_calls", tool_calls=[call]), answered("Two."))
    reply = session.complete(model, user="How many deploys on Tuesday?", tools=[{"type": "function"}])
    assert (reply.text, reply.tool_calls) == ("", [call])
    session.append([{"role": "tool", "tool_call_id": each["id"], "content": "2"} for each in reply.tool_calls])
    assert session.complete(model).text == "Two."
    assert model.sent[1][-2:] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "2"},
    ]


def test_anthropics_format(memory: Any) -> None:
    session = memory.session("s")
    asked: list[tuple[Messages, Any]] = []

    def call(messages: Messages, system: Any) -> object:
        asked.append((messages, system))
        use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"城市": "柏林"}}
        usage = {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 400}
        content = [{"type": "text", "text": "Let me see."}, use]
        return SimpleNamespace(type="message", content=content, stop_reason="tool_use", usage=SimpleNamespace(**usage))

    reply = session.complete(call, user="天气怎么样？", system_prompt=SYSTEM, format="anthropic")
    assert (reply.text, [each["id"] for each in reply.tool_calls]) == ("Let me see.", ["toolu_1"])
    assert (reply.finish_reason, reply.appended.tokens) == ("tool_use", 505)
    [(messages, system)] = asked
    assert SYSTEM in str(system)
    assert [message["role"] for message in messages] == ["user"]


@pytest.fixture(scope="module")
def asking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that asks agents for memories."""
    service = MemoryService(
        settings(tmp_path_factory.mktemp("asking"), flush={"mode": "agent"}), embedder=HashEmbedder()
    )
    with serving(service) as server:
        yield server


def soft(session: Any) -> None:
    """Fill a session until a flush is due and a compaction is not."""
    pressure, turns = "ok", iter(talk(400, words=60))
    while pressure == "ok":
        pressure = session.append([next(turns) for _ in range(20)]).pressure
    assert pressure == "soft"


def test_an_agent_is_asked_for_memories_first(
    colour: Callable[..., Any], asking_server: RunningServer, request: pytest.FixtureRequest
) -> None:
    workspace = f"asking-{request.node.callspec.id}"
    with colour(asking_server.url, workspace=workspace) as memory:
        session = memory.session("s", context_window=60_000)
        soft(session)
        model = Model("- Die Server stehen in Frankfurt.\n- 周二部署。", "Hello to you.")
        reply = session.complete(model, user="Hello", system_prompt=SYSTEM)
        assert (reply.text, reply.attempts, reply.degraded) == ("Hello to you.", 1, ())
        assert [each.text for each in reply.flush.written] == ["Die Server stehen in Frankfurt.", "周二部署。"]
        asked = model.sent[0]
        assert asked[0]["content"].startswith(SYSTEM)
        assert "NO_REPLY" in asked[-1]["content"]
        assert memory.search("周二部署").results
        assert contents(session)[-2:] == ["Hello", "Hello to you."]


@pytest.mark.parametrize("failure", [RuntimeError("rate limit"), "", None, ProviderError(Failure.named("openai"))])
def test_a_flush_that_fails_breaks_no_turn(
    colour: Callable[..., Any], asking_server: RunningServer, request: pytest.FixtureRequest, failure: object
) -> None:
    workspace = f"failing-{request.node.callspec.id}".lower().replace("_", "-")
    with colour(asking_server.url, workspace=workspace) as memory:
        session = memory.session("s", context_window=60_000)
        soft(session)
        reply = session.complete(Model(failure, "Hello to you."), user="Hello")
        assert (reply.text, reply.flush) == ("Hello to you.", None)
        assert [missing.partition(":")[0] for missing in reply.degraded] == ["flush"]


def test_an_answer_outlives_the_server(colour: Callable[..., Any], tmp_path: Any) -> None:
    service = MemoryService(settings(tmp_path / "home", embedding_model="none"), embedder=HashEmbedder())
    running = serving(service)
    server = running.__enter__()

    def call(messages: Messages) -> str:
        running.__exit__(None, None, None)
        return "Said all the same."

    with colour(server.url) as memory:
        reply = memory.session("s").complete(call, user="Hello")
        assert (reply.text, reply.appended) == ("Said all the same.", None)
        assert "was not reached" in reply.degraded[0]


def test_a_reply_and_a_message_are_answers(memory: Any) -> None:
    session = memory.session("s")
    first = session.complete(Model(Reply(message={"role": "assistant", "content": "甲"})), user="Hello")
    second = session.complete(Model(first), user="Hello")
    third = session.complete(Model({"role": "assistant", "content": [{"type": "text", "text": "乙"}]}), user="Hello")
    assert [each.text for each in (first, second, third)] == ["甲", "甲", "乙"]


def test_an_async_call_is_awaited(session_server: RunningServer) -> None:
    async def answer(messages: Messages) -> str:
        await asyncio.sleep(0)
        return "Now."

    class Agent:
        async def __call__(self, messages: Messages) -> str:
            return await answer(messages)

    async def talked() -> list[str]:
        async with AsyncMemoryClient(session_server.url, workspace="awaited") as memory:
            session = memory.session("s")
            calls: list[Callable[..., object]] = [answer, lambda messages: answer(messages), Agent(), lambda _: "Now."]
            return [(await session.complete(call, user="Hello")).text for call in calls]

    assert asyncio.run(talked()) == ["Now."] * 4
    with MemoryClient(session_server.url, workspace="awaited") as memory:
        with pytest.raises(InvalidRequest, match="AsyncMemoryClient"):
            memory.session("s").complete(answer, user="Hello")


def test_what_stops_a_program_stops_a_turn(session_server: RunningServer) -> None:
    with MemoryClient(session_server.url, workspace="stopped") as memory, pytest.raises(KeyboardInterrupt):
        memory.session("s").complete(Model(KeyboardInterrupt()), user="Hello")

    async def stopped() -> None:
        async with AsyncMemoryClient(session_server.url, workspace="stopped") as memory:

            async def hanging(messages: Messages) -> str:
                await asyncio.sleep(3600)
                return ""

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await memory.session("s").complete(hanging, user="Hello")

    asyncio.run(stopped())

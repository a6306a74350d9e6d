"""Turns of a session whose model is called by litellm itself, against scripted servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service import AsyncMemoryClient, MemoryClient, Session
from memory_service.service import MemoryService
from memory_service.testing import Cut, Failure, Hang, Reply, ScriptedServer, ScriptedStep
from tests.memory_service.api.talking import talk
from tests.serving import RunningServer, serving, settings

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)"),
]
LIMIT = Failure.named("rate_limit")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server without a model of its own."""
    service = MemoryService(settings(tmp_path_factory.mktemp("litellm")), embedder=HashEmbedder())
    with serving(service) as running:
        yield running


@pytest.fixture(scope="module")
def litellm() -> Any:
    """The package, without a look at the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm as imported
    return imported


@pytest.fixture
def session(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[Session]:
    with MemoryClient(server.url, workspace="litellm") as memory:
        made = memory.session(f"s{abs(hash(request.node.name))}", context_window=200_000)
        made.append(talk(20))
        yield made


def called(litellm: Any, url: str, **options: Any) -> Callable[[list[dict[str, Any]]], object]:
    named = {"model": "openai/any", "api_base": url, "api_key": "x", "max_retries": 0, "timeout": 20, **options}
    return lambda messages: litellm.completion(messages=messages, **named)


@pytest.mark.parametrize(
    ("step", "remedy"),
    [
        (Failure(status=LIMIT.status, body=LIMIT.body, headers={"Retry-After": "0.05"}), "wait"),
        (Failure(), "wait"),
        (Cut(), "wait"),
        (Hang(seconds=0.2), "wait"),
        *[
            (Failure.named(name), "compact")
            for name in ("openai", "anthropic", "gemini", "mistral", "moonshot", "zhipu", "vllm", "llamacpp")
        ],
    ],
)
def test_a_failed_call_is_recovered_from(litellm: Any, session: Session, step: ScriptedStep, remedy: str) -> None:
    with ScriptedServer(step, "周二。") as model:
        reply = session.complete(called(litellm, model.url), user="When do we deploy?", max_wait_seconds=0.1)
        assert (reply.text, reply.attempts, reply.degraded) == ("周二。", 2, ())
        assert len(reply.compactions) == (1 if remedy == "compact" else 0)
        first, second = (request.body["messages"] for request in model.requests)
        assert second[-1]["role"] == "user"
        assert (len(second) < len(first)) is (remedy == "compact")
    assert [message["content"] for message in session.messages("log").messages[-2:]] == ["When do we deploy?", "周二。"]


def test_an_answer_keeps_its_usage_and_its_tools(litellm: Any, session: Session) -> None:
    answer = Reply(text="看", tool_call="look", input_tokens=900, output_tokens=30, cached_tokens=500)
    with ScriptedServer(answer, "Two.") as model:
        call = called(litellm, model.url)
        reply = session.complete(call, user="How many?")
        assert (reply.text, reply.finish_reason) == ("看", "tool_calls")
        assert reply.appended is not None
        assert (reply.appended.tokens, reply.appended.source) == (930, "usage")
        session.append([{"role": "tool", "tool_call_id": each["id"], "content": "2"} for each in reply.tool_calls])
        assert session.complete(call).text == "Two."
        sent = model.requests[1].body["messages"]
        assert sent[-2]["tool_calls"][0]["function"]["name"] == "look"
        assert sent[-1]["content"] == "2"


def test_empty_and_cut_answers(litellm: Any, session: Session) -> None:
    with ScriptedServer("", Reply(text="Cut sho", finish_reason="length")) as model:
        call = called(litellm, model.url)
        assert session.complete(call, user="你好").degraded[0].startswith("answer: the model said nothing")
        cut = session.complete(call)
        assert (cut.text, cut.finish_reason, cut.attempts) == ("Cut sho", "length", 1)


def test_what_is_given_up_on_is_litellms_own_exception(litellm: Any, session: Session) -> None:
    refused = Failure(status=401, body={"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
    with ScriptedServer(refused) as model, pytest.raises(litellm.AuthenticationError) as caught:
        session.complete(called(litellm, model.url), user="Hello")
    assert "no overflow (auth)" in caught.value.__notes__[0]


def test_the_async_colour_awaits_litellm(litellm: Any, server: RunningServer) -> None:
    async def talked(url: str) -> tuple[str, int]:
        async with AsyncMemoryClient(server.url, workspace="litellm") as memory:
            session = memory.session("awaited", context_window=200_000)
            await session.append(talk(20))
            options = {"model": "openai/any", "api_base": url, "api_key": "x", "max_retries": 0}
            reply = await session.complete(
                lambda messages: litellm.acompletion(messages=messages, **options), user="部署？"
            )
            return reply.text, reply.attempts

    # In a thread of its own: litellm's blocking calls leave an event loop behind in this one.
    with ScriptedServer(Failure.named("openai"), "周二。") as model, ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, talked(model.url)).result(60) == ("周二。", 2)

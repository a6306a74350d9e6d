"""The calls of one summary: tries, waits, other models, and the count of what was sent, through litellm itself."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from memory_service.errors import CallCancelled, ModelUnavailable, UpstreamFailed
from memory_service.llm.base import ChatMessage
from memory_service.llm.calls import ModelCalls
from memory_service.llm.litellm import LiteLLMModel
from memory_service.testing import Cut, Failure, Hang, ScriptedModel, ScriptedServer, ScriptedStep

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)")
MESSAGES: list[ChatMessage] = [{"role": "user", "content": "Summarise."}]
BUSY = Failure(status=503, body="down")


class Played:
    """A running server and the calls to it."""

    def __init__(self, server: ScriptedServer, *others: str, **options: object) -> None:
        self.server = server
        model, *fallbacks = [
            LiteLLMModel(f"openai/{name}", api_base=server.url, api_key="x") for name in ("any", *others)
        ]
        given = {"window_tokens": 32_000, "backoff_seconds": 0.01, **options}
        self.calls = ModelCalls(model, fallbacks=fallbacks, **given)  # type: ignore[arg-type]

    def failure(self) -> UpstreamFailed:
        with pytest.raises(UpstreamFailed) as caught:
            self.calls.ask(MESSAGES)
        return caught.value

    @property
    def counts(self) -> tuple[int, int]:
        """Requests and failures; the requests are those that the server received."""
        assert self.calls.spending.requests == len(self.server.requests)
        return self.calls.spending.requests, self.calls.spending.failed

    @property
    def pauses(self) -> list[float]:
        at = [request.at_seconds for request in self.server.requests]
        return [later - earlier for earlier, later in itertools.pairwise(at)]


Play = Callable[..., Played]


@pytest.fixture
def play() -> Iterator[Play]:
    running: list[ScriptedServer] = []

    def start(*script: ScriptedStep, others: tuple[str, ...] = (), **options: object) -> Played:
        running.append(ScriptedServer(*script).__enter__())
        return Played(running[-1], *others, **options)

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.mark.litellm
@pytest.mark.parametrize(
    "step",
    [Failure(), BUSY, Failure(status=502, body="<html>Bad Gateway</html>"), Failure.named("rate_limit"), Cut(),
     Failure(status=408), Failure(status=409)],
)  # fmt: skip
def test_what_may_pass_is_tried_again(play: Play, step: ScriptedStep) -> None:
    played = play(step, step, "At last.")
    assert played.calls.ask(MESSAGES).text == "At last."
    assert played.counts == (3, 2)


@pytest.mark.litellm
def test_tries_end(play: Play) -> None:
    played = play(*[BUSY] * 9)
    assert played.failure().kind == "unavailable"
    assert played.counts == (4, 4)


@pytest.mark.litellm
@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_what_no_waiting_mends_is_not_tried_again(play: Play, status: int) -> None:
    played = play(Failure(status=status, body="no"))
    assert not played.failure().transient and played.counts == (1, 1)


@pytest.mark.litellm
def test_waits_double(play: Play) -> None:
    played = play(BUSY, BUSY, BUSY, "Yes.", backoff_seconds=0.1)
    played.calls.ask(MESSAGES)
    for pause, wanted in zip(played.pauses, (0.1, 0.2, 0.4), strict=True):
        assert wanted <= pause


@pytest.mark.litellm
def test_retry_after_is_waited_for(play: Play) -> None:
    played = play(Failure(status=429, headers={"Retry-After": "0.4"}), "Yes.")
    assert played.calls.ask(MESSAGES).text == "Yes."
    assert played.pauses[0] >= 0.4


@pytest.mark.litellm
def test_nothing_is_waited_for_that_comes_too_late(play: Play) -> None:
    played = play(Failure(status=429, headers={"Retry-After": "2000"}), "Too late.", timeout_seconds=5)
    assert played.failure().kind == "rate_limit"


@pytest.mark.litellm
def test_the_time_is_for_all_tries(play: Play) -> None:
    played = play(BUSY, Hang(), "Too late.", timeout_seconds=3.0)
    assert played.failure().kind == "timeout"
    assert played.counts == (2, 2)


@pytest.mark.litellm
def test_cancelling_ends_a_wait(play: Play) -> None:
    stop = threading.Event()
    played = play(Failure(status=429, headers={"Retry-After": "2000"}), cancelled=stop.is_set)
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(CallCancelled):
        played.calls.ask(MESSAGES)
    assert played.counts == (1, 1)


@pytest.mark.litellm
@pytest.mark.parametrize("status", [401, 402, 404])
def test_other_models_answer_one_after_the_other_where_those_before_cannot_be_used(play: Play, status: int) -> None:
    gone = Failure(status=status, body="no")
    played = play(gone, gone, "Yes.", others=("second", "third"))
    assert played.calls.ask(MESSAGES).text == "Yes." and played.calls.model_name == "openai/third"
    assert [request.body["model"] for request in played.server.requests] == ["any", "second", "third"]
    assert played.counts == (3, 2)
    assert [note.split(" cannot")[0] for note in played.calls.notes] == [
        "The model openai/any",
        "The model openai/second",
    ]


@pytest.mark.litellm
def test_another_model_does_not_answer_where_the_first_may_come_back(play: Play) -> None:
    played = play(BUSY, others=("other",), attempts=1)
    assert played.failure().kind == "unavailable" and played.counts == (1, 1)


@pytest.mark.litellm
def test_the_error_is_that_of_the_last_model(play: Play) -> None:
    played = play(Failure(status=401, body="no"), Failure(status=402, body="no"), others=("other",))
    assert played.failure().kind == "quota" and played.counts == (2, 2)


def test_what_was_never_sent_is_not_counted() -> None:
    calls = ModelCalls(ScriptedModel(ModelUnavailable("No package.", is_sent=False)), window_tokens=9_000)
    with pytest.raises(ModelUnavailable):
        calls.ask(MESSAGES)
    assert (calls.spending.requests, calls.spending.failed) == (0, 0)

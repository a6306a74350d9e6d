"""litellm for real, against a scripted server on a loopback port."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, UpstreamFailed
from memory_service.llm.base import CallUsage, ChatMessage, ChatModel
from memory_service.llm.litellm import LiteLLMModel
from memory_service.testing import Cut, Failure, Hang, Reply, ScriptedServer, ScriptedStep

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)")

SECRET = "the vault opens with 4711"
KEY = "sk-not-for-anybody"
MESSAGES: list[ChatMessage] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SECRET}]
BUSY = Failure(status=503, body="down")


class Played:
    """A running server and a model that talks to it."""

    def __init__(self, server: ScriptedServer, **options: object) -> None:
        self.server = server
        settings = {"api_base": server.url, "api_key": KEY, **options}
        self.model = LiteLLMModel("openai/any", **settings)  # type: ignore[arg-type]

    @property
    def tries(self) -> int:
        return len(self.server.requests)


Play = Callable[..., Played]


@pytest.fixture
def play() -> Iterator[Play]:
    running: list[ScriptedServer] = []

    def start(*script: ScriptedStep, **options: object) -> Played:
        running.append(ScriptedServer(*script).__enter__())
        return Played(running[-1], **options)

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuse every connection that would leave this machine, and fail the test that tried."""
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def watched(host: object, *args: object, **kwargs: object) -> object:
        if host not in ("127.0.0.1", "localhost", None):
            asked.append(str(host))
            raise socket.gaierror(f"no network in tests: {host!r}")
        return resolve(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    yield asked
    assert not asked


def failure_of(model: ChatModel, **options: object) -> UpstreamFailed:
    with pytest.raises(UpstreamFailed) as caught:
        model.complete(MESSAGES, **options)  # type: ignore[arg-type]
    for secret in (SECRET, KEY):
        assert secret not in str(caught.value)
    told, _, reason = str(caught.value).partition(" The provider said: ")
    assert told.count(". ") == 1, "a sentence on what failed, a sentence on what to do"
    assert reason.rstrip(".").startswith(caught.value.reason.rstrip(".")) and len(caught.value.reason) <= 300
    return caught.value


def run(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=True, capture_output=True, text=True, timeout=240, env={**os.environ, **environment},
    ).stdout  # fmt: skip


# --- answers ---


@pytest.mark.litellm
def test_an_answer(play: Play, capfd: pytest.CaptureFixture[str]) -> None:
    played = play(Reply(text="A summary.", input_tokens=50, output_tokens=3, cached_tokens=40))
    answer = played.model.complete(MESSAGES, max_output_tokens=99)
    assert (answer.text, answer.finish_reason, answer.model) == ("A summary.", "stop", "openai/any")
    assert answer.usage == CallUsage(input_tokens=50, output_tokens=3, cached_tokens=40)
    assert not answer.tool_calls_present
    (request,) = played.server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "any", "messages": MESSAGES, "max_tokens": 99}
    assert capfd.readouterr() == ("", "")


@pytest.mark.litellm
def test_without_a_limit_none_is_sent(play: Play) -> None:
    played = play("Yes.")
    played.model.complete(MESSAGES)
    assert set(played.server.requests[0].body) == {"model", "messages"}


@pytest.mark.litellm
def test_what_the_caller_has_to_judge_is_reported(play: Play) -> None:
    played = play("", Reply(text="Cut sho", finish_reason="length"), Reply(tool_call="search"))
    empty, cut, call = (played.model.complete(MESSAGES) for _ in range(3))
    assert (empty.text, empty.finish_reason) == ("", "stop")
    assert (cut.text, cut.finish_reason) == ("Cut sho", "length")
    assert (call.text, call.finish_reason, call.tool_calls_present) == ("", "tool_calls", True)
    assert played.tries == 3


@pytest.mark.litellm
@pytest.mark.parametrize("step", ["Yes.", BUSY])
def test_calls_leave_no_connection(play: Play, step: ScriptedStep) -> None:
    played = play(*[step] * 5)
    before = connections_at_servers()
    for number in range(5):
        with contextlib.suppress(UpstreamFailed):
            played.model.complete(MESSAGES, timeout_seconds=30 - number / 100)
    assert played.tries == 5
    patience = time.monotonic() + 60
    while (left := connections_at_servers()) > before and time.monotonic() < patience:
        time.sleep(0.01)
    assert left <= before


def connections_at_servers() -> int:
    """Those on loopback ports have a thread for each; tests before this one may have left some."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


# --- failures ---


@pytest.mark.litellm
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "mistral", "moonshot", "vllm", "llamacpp"])
def test_an_overflow_is_told_with_its_numbers_and_not_tried_again(play: Play, provider: str) -> None:
    played = play(Failure.named(provider))
    error = failure_of(played.model)
    assert isinstance(error, ContextOverflow)
    assert (error.window_tokens, error.requested_tokens) == (131_072, 140_000)
    assert "140,000 for a window of 131,072 tokens" in str(error)
    assert played.tries == 1


@pytest.mark.litellm
@pytest.mark.parametrize("provider", ["dashscope", "zhipu"])
def test_an_overflow_without_all_numbers(play: Play, provider: str) -> None:
    assert isinstance(failure_of(play(Failure.named(provider)).model), ContextOverflow)


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}), "auth"),
        (Failure(status=429, body={"error": {"code": "insufficient_quota", "message": "No credit."}}), "quota"),
        (Failure(status=404, body={"error": {"message": "The model `any` does not exist"}}), "unsupported"),
    ],
)
def test_what_no_waiting_mends_is_not_tried_again(play: Play, failure: Failure, kind: str) -> None:
    played = play(failure)
    error = failure_of(played.model)
    assert (type(error), error.kind, error.transient, played.tries) == (ModelUnavailable, kind, False, 1)


@pytest.mark.litellm
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure.named("bytes"), "byte_overflow"),
        (Failure(status=400, body={"error": {"message": f"Bad request: {SECRET}"}}), "other"),
        (
            Failure(status=400, body={"error": {"message": "Range of max_tokens should be [1, 8192]"}}),
            "output_overflow",
        ),
        (
            Failure(status=413, body={"error": {"message": "on tokens per minute (TPM): Limit 8000, Requested 11881"}}),
            "rate_limit",
        ),
    ],
)
def test_other_refusals_are_not_tried_again(play: Play, failure: Failure, kind: str) -> None:
    played = play(failure)
    assert (failure_of(played.model).kind, played.tries) == (kind, 1)


@pytest.mark.litellm
@pytest.mark.parametrize(
    "step",
    [Failure(), BUSY, Failure(status=502, body="<html>Bad Gateway</html>"), Failure.named("rate_limit"), Cut(),
     Failure(status=408), Failure(status=409)],
)  # fmt: skip
def test_what_may_pass_is_said_to_and_left_to_the_caller(play: Play, step: ScriptedStep) -> None:
    played = play(step, "Never.")
    assert failure_of(played.model).transient and played.tries == 1


@pytest.mark.litellm
def test_how_long_the_provider_asks_to_wait(play: Play) -> None:
    played = play(Failure(status=429, headers={"Retry-After": "20"}), BUSY)
    assert failure_of(played.model).retry_after_seconds == 20
    assert failure_of(played.model).retry_after_seconds is None


@pytest.mark.litellm
def test_an_answer_has_its_time(play: Play) -> None:
    played = play(Hang(), "Too late.")
    assert failure_of(played.model, timeout_seconds=2.0).kind == "timeout"
    assert played.tries == 1


@pytest.mark.litellm
def test_cancelling_from_another_thread_ends_a_call(play: Play) -> None:
    played, stop, raised = play(Hang()), threading.Event(), list[BaseException]()

    def ask() -> None:
        try:
            played.model.complete(MESSAGES, cancelled=stop.is_set)
        except CallCancelled as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not played.tries:
        time.sleep(0.01)
    stop.set()
    asking.join(60)
    assert raised
    assert played.tries == 1


@pytest.mark.litellm
def test_a_cancelled_call_closes_its_connection() -> None:
    closed = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(65536):
                    pass
            closed.set()

        threading.Thread(target=serve, daemon=True).start()
        model = LiteLLMModel("openai/any", api_base=f"http://127.0.0.1:{listener.getsockname()[1]}/v1", api_key=KEY)
        end = time.monotonic() + 0.3
        with pytest.raises(CallCancelled):
            model.complete(MESSAGES, cancelled=lambda: time.monotonic() > end)
        assert closed.wait(60)


@pytest.mark.litellm
def test_a_cancelled_call_asks_nobody(play: Play) -> None:
    played = play("Never.")
    with pytest.raises(CallCancelled):
        played.model.complete(MESSAGES, cancelled=lambda: True)
    assert played.tries == 0


@pytest.mark.litellm
def test_calls_from_many_threads(play: Play) -> None:
    played, answers = play(*[f"{number}" for number in range(16)]), list[str]()
    threads = [threading.Thread(target=lambda: answers.append(played.model.complete(MESSAGES).text)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers, key=int) == [f"{number}" for number in range(16)]


# --- what is known of models ---


@pytest.mark.litellm
def test_context_windows() -> None:
    assert LiteLLMModel("openai/gpt-4o").context_window() == 128_000
    assert LiteLLMModel("gpt-4o").context_window() == 128_000
    assert LiteLLMModel("anthropic/claude-sonnet-4-5").context_window() == 200_000
    assert LiteLLMModel("openai/of-my-own").context_window() is None
    assert LiteLLMModel("ollama/gpt-4o").context_window() is None


@pytest.mark.litellm
def test_tokens_are_counted_where_the_tokenizer_is_at_hand() -> None:
    assert 10 <= (LiteLLMModel("openai/gpt-4o").count_tokens(MESSAGES) or 0) <= 30
    assert LiteLLMModel("openai/of-my-own").count_tokens(MESSAGES) is None
    assert LiteLLMModel("ollama/llama3.1").count_tokens(MESSAGES) is None
    assert LiteLLMModel("anthropic/claude-sonnet-4-5").count_tokens(MESSAGES) is None


@pytest.mark.litellm
def test_a_provider_that_is_not_there(only_loopback: list[str]) -> None:
    error = failure_of(LiteLLMModel("nobody/any", api_key=KEY))
    assert (type(error), error.kind) == (ModelUnavailable, "unsupported")


@pytest.mark.litellm
def test_no_key_at_all(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = failure_of(LiteLLMModel("openai/any", api_base=play().server.url))
    assert (type(error), error.kind) == (ModelUnavailable, "auth")


@pytest.mark.litellm
def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    model = LiteLLMModel("openai/any", api_base=f"http://127.0.0.1:{port}/v1", api_key=KEY)
    assert failure_of(model).kind == "unavailable"


# --- the package ---


def test_importing_the_module_loads_nothing() -> None:
    code = "import sys, memory_service.llm.litellm as l; l.LiteLLMModel('openai/any'); print('litellm' in sys.modules)"
    assert run(code) == "False\n"


@pytest.mark.litellm
def test_the_first_use_sets_what_keeps_it_offline_and_quiet() -> None:
    code = (
        "import os, socket\n"
        "def refuse(*args, **kwargs): raise SystemExit('it wants the network')\n"
        "socket.getaddrinfo = socket.socket.connect = refuse\n"
        "from memory_service.llm.litellm import LiteLLMModel\n"
        "LiteLLMModel('openai/gpt-4o').context_window()\n"
        "import litellm\n"
        "left = [name for name in os.environ if name.startswith('LITELLM')]\n"
        "print(left, litellm.telemetry, litellm.suppress_debug_info)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=240, env=environment
    )
    assert (done.stdout, done.stderr) == ("[] False True\n", "")


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    error = failure_of(LiteLLMModel("openai/any"))
    assert isinstance(error, ModelUnavailable) and not error.sent
    assert 'pip install "memory-service[llm]"' in str(error)
    with pytest.raises(ModelUnavailable):
        LiteLLMModel("openai/any").context_window()

"""What is known of models: by the bundled table, and by litellm's own where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.llm import windows
from memory_service.llm.windows import ModelLimits, _of_family, model_limits
from tests.growth import at_most_readings


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    windows._litellm_table.cache_clear()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the name litellm that has a table, and that nobody may import."""
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    windows._litellm_table.cache_clear()
    return package / "model_prices_and_context_window_backup.json"


def row(provider: str, window: object, output: object, mode: str = "chat") -> dict[str, object]:
    return {"litellm_provider": provider, "mode": mode, "max_input_tokens": window, "max_output_tokens": output}


# --- the bundled table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("openai/gpt-4o-mini-2024-07-18", 128_000, 16_384),
        ("openai/chatgpt-4o-latest", 128_000, 16_384),
        ("azure/gpt-4", 8_192, 4_096),
        ("gpt-4-0613", 8_192, 4_096),
        ("gpt-4-32k", 32_768, 4_096),
        ("gpt-4-turbo-2024-04-09", 128_000, 4_096),
        ("gpt-4.1-nano", 1_047_576, 32_768),
        ("gpt-5-mini", 272_000, 128_000),
        ("gpt-3.5-turbo-0125", 16_385, 4_096),
        ("openai/o3-mini", 200_000, 100_000),
        ("groq/openai/gpt-oss-120b", 131_072, 16_384),
        ("anthropic/claude-haiku-4-5", 200_000, 64_000),
        ("claude-opus-4-1-20250805", 200_000, 32_000),
        ("claude-opus-4-5", 200_000, 64_000),
        ("claude-3-5-sonnet-latest", 200_000, 8_192),
        ("bedrock/us.anthropic.claude-3-haiku-20240307-v1:0", 200_000, 4_096),
        ("gemini/gemini-2.0-flash", 1_048_576, 8_192),
        ("vertex_ai/gemini-2.5-pro", 1_048_576, 65_535),
        ("deepseek/deepseek-chat", 131_072, 8_192),
        ("together_ai/deepseek-ai/DeepSeek-V3", 65_536, 8_192),
        ("deepseek-r1-distill-llama-70b", 32_768, 4_096),
        ("dashscope/qwen3-max", 131_072, 32_768),
        ("dashscope/qwen-max", 30_720, 8_192),
        ("together_ai/Qwen/Qwen2.5-72B-Instruct-Turbo", 30_720, 8_192),
        ("zai/glm-4.6", 200_000, 128_000),
        ("zai/glm-4.5", 128_000, 4_096),
        ("moonshot/kimi-k2-0905-preview", 131_072, 16_000),
        ("moonshot/moonshot-v1-8k", 8_192, 4_096),
        ("groq/llama-3.3-70b-versatile", 128_000, 4_096),
        ("bedrock/meta.llama3-1-70b-instruct-v1:0", 128_000, 4_096),
        ("fireworks_ai/accounts/fireworks/models/llama-v3p1-405b-instruct", 128_000, 4_096),
        ("meta-llama/Meta-Llama-3-70B-Instruct", 8_192, 4_096),
        ("mistral/mistral-large-latest", 128_000, 8_192),
        ("mistral/open-mixtral-8x7b", 32_000, 4_096),
        ("文心一言", 30_000, 8_192),
        ("豆包-pro", 128_000, 8_192),
        # What Ollama serves is not what the model could take.
        ("ollama/llama3.1", 4_096, None),
        ("ollama_chat/qwen3", 4_096, None),
    ],
)
def test_families(model: str, window: int, output: int | None) -> None:
    assert _of_family(model) == ModelLimits(window_tokens=window, max_output_tokens=output, source="table")


@pytest.mark.parametrize(
    "model",
    ["", "any", "openai/any", "my-own-model", "bernie", "dolphin-3", "本地模型", "vllm/llama-3.3", "lm_studio/x"],
)
def test_what_nobody_knows_is_not_guessed(model: str) -> None:
    assert model_limits(model) is None


@given(st.text(max_size=50))
def test_any_text_may_be_a_name(name: str) -> None:
    limits = model_limits(name)
    assert limits is None or (limits.window_tokens or 0) > 0


@pytest.mark.parametrize("piece", ["gemini-", "gpt-5", "llama-3", "a/", "模型", "gpt-4o-"])
def test_a_hostile_name_takes_no_time(piece: str) -> None:
    with at_most_readings(200):
        model_limits(piece * (1_000_000 // len(piece)))


# --- litellm's table -----------------------------------------------------------------------------------------------


def test_litellm_s_table_comes_first_and_litellm_is_not_imported(table: Path) -> None:
    rows = {
        "gpt-4o": row("openai", 99_000, 9_000),
        "openai/special": row("openai", 7_000.0, None),
        "spoken": row("openai", 50_000, None, mode="audio_speech"),
        "empty": row("openai", 0, 0),
        "gpt-4.1": row("openai", 0, 0),
        "words": row("openai", "max input tokens", None),
        "claude-x": row("anthropic", 55_000, 5_000),
        "odd": None,
    }
    table.write_text(json.dumps(rows))
    assert model_limits("gpt-4o") == ModelLimits(window_tokens=99_000, max_output_tokens=9_000, source="litellm")
    assert model_limits("openai/gpt-4o") == model_limits("gpt-4o")
    assert model_limits("openai/special") == ModelLimits(window_tokens=7_000, max_output_tokens=None, source="litellm")
    # The same name at another provider is another model.
    assert model_limits("azure/gpt-4o") == ModelLimits(window_tokens=128_000, max_output_tokens=16_384, source="table")
    # A row that says nothing is as good as none.
    assert model_limits("gpt-4.1") == ModelLimits(window_tokens=1_047_576, max_output_tokens=32_768, source="table")
    assert [model_limits(name) for name in ("spoken", "empty", "words", "odd")] == [None] * 4


@pytest.mark.parametrize("text", [None, "", "[]", "{", "\ufffe"])
def test_a_table_that_cannot_be_read_is_as_good_as_none(table: Path, text: str | None) -> None:
    if text is not None:
        table.write_text(text)
    limits = model_limits("gpt-4o")
    assert limits is not None
    assert limits.source == "table"


@pytest.mark.litellm
def test_it_says_what_litellm_itself_says() -> None:
    script = (
        "import sys; from memory_service.llm.windows import model_limits;"
        "found = [model_limits(model) for model in sys.argv[1:]];"
        "assert 'litellm' not in sys.modules;"
        "from memory_service.llm.litellm import LiteLLMModel;"
        "known = [LiteLLMModel(model).context_window() for model in sys.argv[1:]];"
        "assert known == [limits and limits.window_tokens for limits in found], (known, found)"
    )
    models = ["gpt-4o", "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5", "deepseek-chat", "gemini/gemini-2.5-pro"]
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, *models, "x/y"], check=True, timeout=240)

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory_service.config import Settings
from memory_service.runtime.models import make_models


def test_a_window_that_is_set_counts_for_summaries_too(tmp_path: Path) -> None:
    windows = {"small": 8_000, "openai/big": 9_000}
    models = make_models(Settings(home=tmp_path, llm_model="openai/big", context_windows=windows))
    assert models.summaries is not None and models.named is not None
    assert models.summaries.context_window() == 9_000
    assert models.named("openai/small").context_window() == 8_000


def test_no_model_is_named_where_none_is_called(tmp_path: Path) -> None:
    models = make_models(Settings(home=tmp_path))
    assert models.named is None and not models.is_any


@pytest.mark.litellm
@pytest.mark.parametrize(("given", "loads"), [('llm_model="openai/any"', True), ("", False)])
def test_litellm_is_loaded_beforehand_where_a_model_is_configured(tmp_path: Path, given: str, loads: bool) -> None:
    code = (
        "import sys; from memory_service.service import MemoryService\n"
        f"with MemoryService.open({str(tmp_path)!r}, {given}) as service:\n"
        "    service.load_language_models(); print('litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{loads}\n"

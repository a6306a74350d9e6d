from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import memory_service
from memory_service import client, errors, service
from tests.indexer.workspace import run_python

SLOW = {"numpy", "httpx", "pydantic", "fastapi", "apsw", "onnxruntime", "indexer", "click", "rich", "tokenizers"}


def test_all_is_sorted_and_complete() -> None:
    tree = ast.parse(Path(memory_service.__file__).read_text(encoding="utf-8"))
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing")
        for name in node.names
    }
    assert memory_service.__all__ == sorted(memory_service.__all__)
    assert set(memory_service.__all__) == imported - {"client"}
    assert all(hasattr(memory_service, name) for name in memory_service.__all__)


def test_every_error_is_public() -> None:
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree <= set(memory_service.__all__)
    assert all(getattr(memory_service, name) is getattr(errors, name) for name in tree)


def test_the_clients_are_those_of_the_client_package() -> None:
    assert memory_service.MemoryClient is client.MemoryClient
    assert memory_service.AsyncMemoryClient is client.AsyncMemoryClient


def test_a_prompt_that_completes_names_finds_the_clients() -> None:
    assert set(memory_service.__all__) <= set(dir(memory_service))


@pytest.mark.parametrize("is_package", [False, True])
@pytest.mark.parametrize(
    "program",
    [
        "from memory_service.service import MemoryService",
        "from memory_service.service import open_at_once; open_at_once('home', embeds=False)",
        "from memory_service.compaction import compact",
        "import memory_service.integrations.langgraph",
        "from memory_service.__main__ import start; start()",
    ],
)
def test_a_programs_own_indexer_is_named(program: str, is_package: bool, tmp_path: Path) -> None:
    own = tmp_path / ("indexer/__init__.py" if is_package else "indexer.py")
    own.parent.mkdir(exist_ok=True)
    own.write_text("raise SystemExit('the module ran')\n")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"belongs to {own.resolve()}" in done.stderr.splitlines()[-1]
    assert "Rename the module" in done.stderr.splitlines()[-1]


def test_a_client_does_without_the_library_beside_it(tmp_path: Path) -> None:
    (tmp_path / "indexer.py").write_text("raise SystemExit('the module ran')\n")
    program = "from memory_service import MemoryClient; MemoryClient('http://127.0.0.1:1').close()"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_older_python_is_told_which_one_it_takes() -> None:
    program = "import sys; sys.version_info = (3, 10, 14, 'final', 0); import memory_service"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "needs Python 3.11 or later" in done.stderr.splitlines()[-1]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = memory_service.Nothing  # type: ignore[attr-defined]


def loaded_by(code: str) -> set[str]:
    return {name.partition(".")[0] for name in run_python(f"import sys\n{code}\nprint(*sys.modules)").split()}


def test_importing_it_loads_nothing_that_takes_time() -> None:
    assert not SLOW & loaded_by("import memory_service")
    assert not SLOW & loaded_by("from memory_service import NotFound, __version__")


def test_a_client_loads_what_a_client_needs() -> None:
    assert loaded_by("from memory_service import MemoryClient") & SLOW - {"rich", "click"} == {"httpx", "pydantic"}


def test_compaction_loads_neither_numbers_nor_engines() -> None:
    numbers = {"numpy", "apsw", "onnxruntime", "tokenizers", "httpx", "fastapi"}
    assert not numbers & loaded_by("from memory_service.compaction import compact")
    call = "compact([{'role': 'user', 'content': '你好 hello ' * 900}] * 9, context_window=8000).messages"
    assert not numbers & loaded_by(f"from memory_service.compaction import compact\nassert len({call}) < 9")


def test_the_service_gives_every_name_that_it_promises() -> None:
    for name in service.__all__:
        assert getattr(service, name).__class__, name
    assert {name for names in service._MODULES.values() for name in names} <= {*service.__all__}

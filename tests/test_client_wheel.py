"""The client's wheel: exactly what a client needs, in an environment that has httpx and pydantic alone; and beside the
server's wheel, whose files it shares."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from indexer.language import tables
from memory_service._version import __version__
from memory_service.config import Settings
from memory_service.service import MemoryService
from tests.serving import serving
from tests.test_layering import MODULES, NOT_FOR_CLIENTS, imports_of, top

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "packaging" / "client"
FRAMEWORKS = {
    "agent_framework": "agent-framework",
    "anthropic": "anthropic",
    "google_adk": "google-adk",
    "langchain": "langchain",
    "langgraph": "langgraph",
    "litellm": "litellm",
    "llama_index": "llama-index",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "strands": "strands",
}
INSTALL = "Install the server with: pip install memory-service"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling builds the wheels: pip install '.[test]'"
)


def built(folder: Path, source: Path, target: str = "wheel") -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source, check=True, capture_output=True, timeout=250,
    )  # fmt: skip
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("client"), CLIENT)


@pytest.fixture(scope="module")
def server_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server without its models: nothing here asks them, and to press and unpack them takes most of the time."""
    source = tmp_path_factory.mktemp("source")
    for name in ("indexer", "memory_service", "data"):
        left_out = shutil.ignore_patterns("*.onnx", "tokenizer.model", "__pycache__", "node_modules")
        shutil.copytree(ROOT / name, source / name, ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy2(ROOT / name, source)
    return built(tmp_path_factory.mktemp("server"), source)


def sources(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, its metadata aside."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def imported_with(roots: Iterable[str]) -> set[str]:
    """Modules, ours and others', that are loaded with some."""
    reached, waiting = set[str](), [*roots]
    while waiting:
        module = waiting.pop()
        if not module or module in reached:
            continue
        reached.add(module)
        waiting.append(module.rpartition(".")[0])
        if module in MODULES:
            waiting += [found.imported for found in imports_of(module) if not found.late and not found.typing]
    return reached


def test_it_holds_what_clients_and_adapters_import_and_nothing_else(wheel: Path) -> None:
    adapters = [module for module in MODULES if module.startswith("memory_service.integrations")]
    faces = ["memory_service.__main__", "memory_service.service", "memory_service.compaction", "indexer"]
    languages = [f"indexer.language.{file}" for file in (*tables._ROOMS, *tables._files(), "others")]
    reached = imported_with(["memory_service", "memory_service.client", *faces, *adapters, *languages])
    wanted = {MODULES[module].relative_to(ROOT).as_posix() for module in reached & MODULES.keys()}
    assert sources(wheel).keys() == wanted | {"indexer/py.typed", "memory_service/py.typed"}
    assert not {top(module) for module in reached} & NOT_FOR_CLIENTS - {"indexer"}


def test_its_files_are_the_servers(wheel: Path, server_wheel: Path) -> None:
    assert sources(wheel).items() <= sources(server_wheel).items()


def test_it_needs_httpx_and_pydantic_and_has_the_servers_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        lines = archive.read(path).decode().splitlines()
    needed = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
    assert [each for each in needed if "extra ==" not in each] == ["httpx>=0.28", "pydantic>=2.10"]
    assert f"Version: {__version__}" in lines

    own = tomllib.loads((CLIENT / "pyproject.toml").read_text("utf-8"))["project"]
    server = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = own["optional-dependencies"]
    assert set(extras) == set(FRAMEWORKS.values())
    assert extras == {name: server["optional-dependencies"][name] for name in extras}
    assert own["scripts"] == server["scripts"]
    assert own["requires-python"] == server["requires-python"]
    assert set(own["dependencies"]) <= set(server["dependencies"])
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_its_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(built(tmp_path / "archive", CLIENT, "sdist"), tmp_path / "unpacked")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = built(tmp_path / "again", source)
    assert again.name == wheel.name
    assert sources(again) == sources(wheel)


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of its own, and a folder with links to packages that it may import beside what pip puts there."""

    folder: Path
    packages: Path

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
        environment = {**ours, "PYTHONPATH": str(self.packages), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            env=environment, cwd=cwd or self.folder, capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip

    def python(self, program: str, cwd: Path | None = None) -> str:
        """What a program prints; fails where it fails."""
        done = self.run("python", "-W", "error", "-c", program, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def pip(self, *arguments: str) -> None:
        offline = ("--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile")
        options = offline if arguments[0] == "install" else offline[:1]
        done = self.run("python", "-I", "-m", "pip", arguments[0], *options, *arguments[1:])
        assert done.returncode == 0, done.stderr


def needed_by(names: Iterable[str]) -> set[str]:
    """The packages that some need, these included."""
    found, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # For another platform or another Python.
        found.add(name)
        waiting += [re.split(r"[^\w.-]", each)[0] for each in requirements if "extra ==" not in each]
    return found


def link_packages(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for path in distribution.files or ():
            first = path.parts[0]
            if first not in ("..", "__pycache__") and not first.endswith(".pth"):
                link = folder / first
                if not link.is_symlink():
                    link.symlink_to(Path(str(distribution.locate_file(first))).absolute())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with pip."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    (folder / "packages").mkdir()
    return Environment(folder / "venv", folder / "packages")


@pytest.fixture(scope="module")
def client(empty: Environment, wheel: Path) -> Environment:
    """An environment with the client and what it needs."""
    link_packages(empty.packages, needed_by(["httpx", "pydantic"]))
    empty.pip("install", str(wheel))
    return empty


def test_a_client_speaks_to_a_server(client: Environment, tmp_path: Path) -> None:
    with MemoryService(Settings(home=tmp_path, embedding_model="none")) as service, serving(service) as server:
        program = f"""
            import asyncio
            from memory_service import AsyncMemoryClient, MemoryClient, NotFound

            async def ask():
                async with AsyncMemoryClient({server.url!r}) as memory:
                    return (await memory.search("when do we deploy?")).results[0].text

            with MemoryClient({server.url!r}) as memory:
                memory.remember("Deploys go out on Tuesdays.")
                session = memory.session("support-42", context_window=16_000)
                print(session.complete(lambda messages: "On Tuesdays.", user="When do we deploy?").text)
                try:
                    memory.forget("m00000000")
                except NotFound as error:
                    print(error.code)
            print(asyncio.run(ask()))
        """
        lines = client.python("\n".join(line[12:] for line in program.splitlines())).splitlines()
    assert lines[:2] == ["On Tuesdays.", "not_found"]
    assert "Deploys go out on Tuesdays." in lines[2]


def test_all_of_it_can_be_imported(client: Environment, wheel: Path) -> None:
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in sources(wheel)}
    adapters = {f"memory_service.integrations.{name}" for name in FRAMEWORKS}
    plain = sorted(each for each in modules - adapters if not each.endswith(".typed"))
    program = f"""
import sys
from importlib import import_module
for name in {plain!r}: import_module(name)
from memory_service.integrations.base import decide_recall
print([decide_recall(each).search for each in ("我们什么时候部署？", "When do we deploy?", "Thanks!")])
others = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(others & set({sorted(NOT_FOR_CLIENTS - {"indexer"})!r})))
"""
    assert client.python(program).splitlines() == ["[True, True, False]", "[]"]


def test_an_adapter_without_its_framework_names_the_clients_extra(client: Environment) -> None:
    program = f"""
from importlib import import_module
for name in {sorted(FRAMEWORKS)!r}:
    try:
        import_module("memory_service.integrations." + name)
    except ImportError as error:
        print(str(error).partition("pip install ")[2])
"""
    lines = client.python(program).splitlines()
    assert lines == [f"'memory-service-client[{FRAMEWORKS[name]}]'." for name in sorted(FRAMEWORKS)]


@pytest.mark.parametrize(
    "statement",
    [
        "from memory_service.service import MemoryService",
        "from memory_service.compaction import compact",
        "from indexer import Index",
        "from indexer import MiniLM",
    ],
)
def test_a_part_of_the_server_says_what_to_install(client: Environment, statement: str) -> None:
    done = client.run("python", "-c", statement)
    assert done.returncode == 1
    assert INSTALL in done.stderr.splitlines()[-1]
    assert statement.rpartition(" ")[2] in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["serve"], ["search", "when?"], ["--help"], ["mcp"]])
def test_the_command_says_in_one_line_what_to_install(client: Environment, arguments: list[str]) -> None:
    for command in (["memory-service"], ["python", "-m", "memory_service"]):
        done = client.run(*command, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert INSTALL in done.stderr and len(done.stderr.splitlines()) == 1


def works_as_server(environment: Environment, home: Path) -> bool:
    """True if the command and the service in process do."""
    opened = (
        f"from memory_service.service import MemoryService; MemoryService.open({str(home)!r}).close(); print('yes')"
    )
    return environment.run("memory-service", "serve", "--help").returncode == 0 and environment.python(opened) == "yes"


def test_either_is_installed_over_the_other(
    client: Environment, wheel: Path, server_wheel: Path, tmp_path: Path
) -> None:
    everything = {each.name.lower().replace("_", "-") for each in importlib.metadata.distributions() if each.name}
    link_packages(client.packages, everything - {"memory-service", "memory-service-client", "pip", "setuptools"})

    client.pip("install", str(server_wheel))
    assert works_as_server(client, tmp_path)
    client.pip("install", "--force-reinstall", str(wheel))
    assert works_as_server(client, tmp_path)

    # pip takes the shared files away with either; the docs say how the other gets them back.
    client.pip("uninstall", "--yes", "memory-service-client")
    client.pip("install", "--force-reinstall", str(server_wheel))
    assert works_as_server(client, tmp_path)
    client.pip("install", str(wheel))
    client.pip("uninstall", "--yes", "memory-service")
    client.pip("install", "--force-reinstall", str(wheel))
    assert client.python("from memory_service import MemoryClient; print(MemoryClient.__name__)") == "MemoryClient"
    assert INSTALL in client.run("memory-service", "serve").stderr

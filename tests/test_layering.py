"""Holds the direction of imports: read from the source with `ast`, so that no import has to run."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("indexer", "memory_service")

# From the bottom up: a room imports only from layers below its own. "x.*" is a package, whose modules also import each
# other, though never in a circle; a new file of it needs no row.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "indexer.common.*",
        "indexer.errors",
        "indexer.types",
        "memory_service._version",
        "memory_service.errors",
    ),
    ("indexer", "indexer.language.*", "memory_service.home"),
    (
        "indexer.corpus",
        "indexer.providers.*",
        "memory_service.storage.files.disk",
        "memory_service.messages.*",
        "memory_service.schemas.*",
    ),
    (
        "indexer.documents.*",
        "indexer.embeddings.*",
        "indexer.stores.*",
        "memory_service.engines.*",
        "memory_service.hooks",
        "memory_service.text.*",
    ),
    (
        "indexer.engine.*",
        "indexer.sources.*",
        "indexer.testing",
        "memory_service.client.*",
        "memory_service.llm.*",
    ),
    (
        "indexer.sync.*",
        "memory_service.compaction.*",
        "memory_service.testing.*",
    ),
    (
        "memory_service.config.*",
        "memory_service.flush.*",
        "memory_service.sessions.*",
    ),
    ("indexer.compatibility", "memory_service.storage.*"),
    ("indexer.index_search",),
    ("indexer.index",),
    (
        "memory_service.hosts.*",
        "memory_service.memories.*",
        # What sessions keep of their prompts, they erase.
        "memory_service.prompts.*_records",
    ),
    ("memory_service.runtime.*", "memory_service.sync.*"),
    ("memory_service.health.*", "memory_service.prompts.*"),
    ("memory_service.service.short_term",),
    ("memory_service.conversations.*",),
    ("memory_service.service.*",),
    # Doors that `api` puts on the same server, the agents that call it, and what answers the hooks of agents.
    ("memory_service.gateway.*", "memory_service.hosts.hooks.*", "memory_service.mcp.*", "memory_service.web.*"),
    ("memory_service.api.*", "memory_service.integrations.*"),
    ("memory_service.cli.*",),
    (
        "memory_service",
        "memory_service.__main__",
    ),
)
MOST_ROOMS = 54
# Modules of the longest chain of imports that run when its first module is imported; behind a face, too.
LONGEST_CHAIN = {"indexer": 12, "memory_service": 18}
# The same with imports that run in functions.
MOST_LEVELS: int = tomllib.loads((ROOT / "tests" / "house.toml").read_text("utf-8"))["import_levels"]
# What a command starts, it imports when it runs.
EXCEPTIONS = {
    ("memory_service.cli.serving", "memory_service.api.server"),
    ("memory_service.cli.serving", "memory_service.mcp.protocol"),
    ("memory_service.cli.serving", "memory_service.mcp.stdio"),
}

# Back along an import, for an annotation alone.
TYPED_BACK = {("memory_service.gateway.transit", "memory_service.gateway.exchange")}

# Each foreign package is imported in one place, where its errors are translated too.
VENDORS: dict[str, tuple[str, ...]] = {
    "apsw": ("indexer.stores.sqlite_database",),
    "jinja2": ("memory_service.web.render",),
    "markdown_it": ("memory_service.web.markdown",),
    "markupsafe": ("memory_service.web.*",),
    "psycopg": ("indexer.stores.postgres.postgres_database", "memory_service.storage.postgres.*"),
    "psycopg_pool": ("indexer.stores.postgres.postgres_database",),
    "sqlite_vec": ("indexer.stores.sqlite_database",),
    "onnxruntime": ("indexer.embeddings.onnx_session",),
    "tokenizers": ("indexer.embeddings.tokenization",),
    "sentencepiece": ("indexer.embeddings.tokenization",),
    "Stemmer": ("indexer.language.terms",),
    "watchfiles": ("indexer.sources.watch",),
    "rank_bm25": ("memory_service.sessions.search",),
    "numpy": (
        "indexer",
        "indexer.*",
        "memory_service.memories.block",
        "memory_service.health.doctor",
        "memory_service.text.correction_judge",
        "memory_service.text.sentence_judge",
        "memory_service.text.prompt_judge",
        "memory_service.text.sentence_judge",
    ),
    "pydantic": (
        "memory_service.schemas.*",
        "memory_service.config",
        "memory_service.config.setting_origins",
        "memory_service.runtime.session_options",  # a session's own settings are those of the tables of `config`
        "memory_service.client.*",
        "memory_service.cli.output",
        "memory_service.api.*",
        "memory_service.mcp.tools",
    ),
    "filelock": (
        "memory_service.storage.files.disk",
        "indexer.stores.sqlite_generations",
        "indexer.engine.segments.builder",
    ),
    "anyio": ("memory_service.api.*", "memory_service.gateway.*", "memory_service.mcp.*"),
    "fastapi": ("memory_service.api.*", "memory_service.gateway.*"),
    "starlette": (
        "memory_service.api.*",
        "memory_service.gateway.*",
        "memory_service.mcp.endpoint",
        "memory_service.web.*",
    ),
    "mcp": ("memory_service.mcp.protocol", "memory_service.mcp.endpoint"),
    "mcp_types": ("memory_service.mcp.protocol",),
    "h11": ("memory_service.api.server",),
    "uvicorn": ("memory_service.api.*",),
    "prometheus_client": ("memory_service.api.*",),
    "httpx": ("memory_service.client.*", "memory_service.gateway.relay"),
    "litellm": ("indexer.providers.litellm_package", "memory_service.integrations.litellm"),
    "sentence_transformers": ("indexer.embeddings.sentence_transformers",),
    "transformers": ("indexer.embeddings.sentence_transformers",),
    "torch": ("indexer.embeddings.sentence_transformers",),
    "huggingface_hub": ("indexer.embeddings.onnx_files", "indexer.embeddings.sentence_transformers"),
    "tiktoken": ("memory_service.llm.token_counter",),
    "anthropic": ("memory_service.integrations.anthropic",),
    "agents": ("memory_service.integrations.openai_agents",),
    "langchain": ("memory_service.integrations.langchain",),
    "langchain_core": ("memory_service.integrations.langchain",),
    "pydantic_ai": ("memory_service.integrations.pydantic_ai",),
    "langgraph": ("memory_service.integrations.langgraph",),
    "agent_framework": ("memory_service.integrations.agent_framework",),
    "google": ("memory_service.integrations.google_adk",),
    "llama_index": ("memory_service.integrations.llama_index",),
    "strands": ("memory_service.integrations.strands",),
    "click": ("memory_service.cli.*",),
    "rich": ("memory_service.cli.*",),
}
# Packages whose names stand in other modules.
FACES = ("indexer", "indexer.common", "indexer.language", "memory_service.service")
# What the client must never load, through whatever module.
NOT_FOR_CLIENTS = {"indexer", "numpy", "fastapi", "starlette", "uvicorn", "apsw", "onnxruntime", "click", "rich"}


# Who writes and reads files: the storage of files, what edits settings of agents, and what syncs a person's own folder.
DISK = "memory_service.storage.files.disk"
DISK_ROOMS = ("memory_service.storage.files.*", "memory_service.hosts.*", "memory_service.sync.*")


@dataclass(frozen=True, slots=True)
class Import:
    """One import: `late` when it runs with a function, `typing` when it never runs."""

    importer: str
    imported: str
    late: bool
    typing: bool


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(file): file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))}


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return tuple(_imports(tree, module, late=False, typing=False))


def _imports(node: ast.AST, module: str, *, late: bool, typing: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for name in names:
                    yield Import(module, name.name, late, typing)
            case ast.ImportFrom(module=str(source), level=0, names=names):
                for name in names:
                    full = f"{source}.{name.name}"
                    yield Import(module, full if full in MODULES else home_of(source, name.name), late, typing)
            case ast.ImportFrom():
                raise AssertionError(f"{module} has a relative import. Write the full name.")
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if module in FACES:
                pass  # A face tells type checkers where its names stand; who imports one loads that module alone.
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(child, module, late=late, typing=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(child, module, late=True, typing=typing)
            case _:
                yield from _imports(child, module, late=late, typing=typing)


def home_of(source: str, name: str) -> str:
    """The module that a name of a face stands in; the module itself of all others."""
    return names_of(source).get(name, source) if source in FACES else source


@cache
def names_of(face: str) -> dict[str, str]:
    """Where each name of a face stands."""
    nodes = ast.walk(ast.parse(MODULES[face].read_text(encoding="utf-8")))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and top(str(node.module)) in PACKAGES]
    homes = {name.name: str(node.module) for node in found for name in node.names}
    return {name: full if (full := f"{home}.{name}") in MODULES else home for name, home in homes.items()}


def imports() -> Iterator[Import]:
    """All imports: read when a test asks, as every worker loads this file and one of them runs it."""
    return (found for module in MODULES for found in imports_of(module))


def in_place(module: str, place: str) -> bool:
    return fnmatchcase(module, place) or module == place.removesuffix(".*")


@cache
def place_of(module: str) -> tuple[int, str] | None:
    """The layer of a module, and its name or pattern in the table: the longest, as a room may stand inside another."""
    found = [(level, place) for level, layer in enumerate(LAYERS) for place in layer if in_place(module, place)]
    return max(found, key=lambda row: len(row[1]), default=None)


def known_place(module: str) -> tuple[int, str]:
    place = place_of(module)
    assert place, f"{module} is new: add it to LAYERS in tests/test_layering.py, as low as it can stand."
    return place


def test_every_module_has_a_layer() -> None:
    for module in MODULES:
        known_place(module)


def test_the_house_has_few_rooms() -> None:
    rooms = [place for layer in LAYERS for place in layer]
    assert len(rooms) <= MOST_ROOMS, "Find the room that a new file belongs to, or make two rooms one."


def test_the_table_names_no_module_that_is_gone() -> None:
    gone = [place for layer in LAYERS for place in layer if not any(in_place(module, place) for module in MODULES)]
    assert not gone, f"These are not there any more; take them out of LAYERS: {gone}"


def test_a_module_imports_only_from_below() -> None:
    wrong = [
        f"{found.importer} imports {found.imported}"
        for found in imports()
        if found.imported in MODULES
        and (found.importer, found.imported) not in EXCEPTIONS
        and not may_import(found.importer, found.imported)
    ]
    assert not wrong, (
        f"These import what does not stand below them: {wrong}. "
        "Move what is shared down, or change LAYERS in tests/test_layering.py with the reason."
    )


def may_import(module: str, imported: str) -> bool:
    """True if the imported module stands below, or beside in the same package."""
    own, other = known_place(module), known_place(imported)
    same_package = other == own and own[1].endswith(".*")
    return other[0] < own[0] or same_package or module == own[1] == "memory_service"


def test_exceptions_are_late() -> None:
    for importer, imported in EXCEPTIONS:
        used = [found for found in imports() if (found.importer, found.imported) == (importer, imported)]
        assert used, f"{importer} does not import {imported} any more; take it out of EXCEPTIONS."
        assert all(found.late for found in used)


def test_indexer_knows_nothing_of_the_service() -> None:
    assert not [
        found for found in imports() if top(found.importer) == "indexer" and top(found.imported) == "memory_service"
    ]


def test_the_service_sees_the_faces_of_the_index_library() -> None:
    allowed = {*FACES, "indexer.stores", "indexer.testing"}
    around = [
        f"{module} imports {node.module}"
        for module, file in MODULES.items()
        if top(module) == "memory_service"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and top(str(node.module)) == "indexer" and node.module not in allowed
    ]
    assert not around, f"What the service needs of the index library, a face gives: {around}"


def test_there_are_no_circles() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in imports():
        if found.imported in MODULES and (found.importer, found.imported) not in TYPED_BACK:
            graph[found.importer].add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"Imports run in a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize(("library", "most"), LONGEST_CHAIN.items())
def test_chains_of_imports_are_short(library: str, most: int) -> None:
    longest = _longest_chain([found for found in imports() if not found.late], library)
    assert len(longest) <= most, (
        f"At most {most} modules of a chain load each other, and these are {len(longest)}: {' -> '.join(longest)}. "
        "Import late, or under TYPE_CHECKING, what is needed for annotations alone."
    )


def test_chains_are_short_with_what_functions_import() -> None:
    longest = _longest_chain(imports())
    assert len(longest) <= MOST_LEVELS, (
        f"The house has {MOST_LEVELS} levels, and these are {len(longest)}: {' -> '.join(longest)}. Give a part what "
        "it works with, and import its type under TYPE_CHECKING; move values that two parts share below both."
    )


def _longest_chain(found: Iterable[Import], library: str = "") -> tuple[str, ...]:
    """The longest chain of modules that import each other, annotations aside; it begins in a library that is named."""
    graph = {module: list[str]() for module in MODULES}
    for each in found:
        if each.imported in MODULES and not each.typing:
            graph[each.importer].append(each.imported)

    @cache
    def chain(module: str) -> tuple[str, ...]:
        return (module, *max(map(chain, graph[module]), key=len, default=()))

    return max((chain(module) for module in MODULES if library in ("", top(module))), key=len)


def top(name: str) -> str:
    return name.partition(".")[0]


def test_foreign_packages_are_imported_in_their_place() -> None:
    foreign = [(found.importer, top(found.imported)) for found in imports()]
    foreign = [pair for pair in foreign if pair[1] not in PACKAGES and pair[1] not in sys.stdlib_module_names]
    new = [pair for pair in foreign if pair[1] not in VENDORS]
    assert not new, f"Packages that are new: add them to VENDORS in tests/test_layering.py. {new}"
    wrong = [pair for pair in foreign if not any(in_place(pair[0], place) for place in VENDORS[pair[1]])]
    assert not wrong, f"Modules that import a package which only others may, see VENDORS: {wrong}"


def test_the_disk_is_a_matter_of_two_rooms() -> None:
    found = {each.importer for each in imports() if each.imported == DISK}
    outside = {module for module in found if not any(in_place(module, room) for room in DISK_ROOMS)}
    assert not outside, "Ask the storage: another engine of it has no disk. See memory_service/storage."


def test_the_client_loads_no_server_packages() -> None:
    reached, waiting = set[str](), ["memory_service", "memory_service.client"]
    while waiting:
        module = waiting.pop()
        if module in reached:
            continue
        reached.add(module)
        if module in MODULES:
            waiting += [found.imported for found in imports_of(module) if not found.late and not found.typing]
    assert not {top(module) for module in reached} & NOT_FOR_CLIENTS

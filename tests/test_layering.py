"""Holds the direction of imports: read from the source with `ast`, so that no import has to run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("indexer", "memory_service")

# From the bottom up. A module imports only from layers below its own; "x.*" is a package whose modules
# also import each other, though never in a circle.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("indexer.analysis", "indexer.dates"),
    (
        "indexer.documents",
        "indexer.documents.comments",
        "indexer.documents.cues",
        "indexer.documents.definitions",
        "indexer.documents.openclaw",
        "indexer.documents.pieces",
        "indexer.documents.results",
        "indexer.documents.sections",
        "indexer.documents.stamps",
        "indexer.embeddings",
        "indexer.embeddings.families",
        "indexer.embeddings.litellm_package",
        "indexer.embeddings.processors",
        "indexer.embeddings.provider_errors",
        "indexer.embeddings.vocabulary",
        "indexer.engine",
        "indexer.engine.greetings",
        "indexer.errors",
        "indexer.files",
        "indexer.files.events",
        "indexer.files.gitignore",
        "indexer.loopback",
        "indexer.stopwatch",
        "indexer.stores",
        "indexer.traffic",
        "indexer.types",
    ),
    (
        "indexer.documents.blocks",
        "indexer.documents.greetings",
        "indexer.embeddings.base",
        "indexer.embeddings.model_folder",
        "indexer.engine.corpus",
        "indexer.files.ignores",
        "indexer.generations",
        "indexer.snippets",
        "indexer.testing",
    ),
    (
        "indexer.embeddings.batching",
        "indexer.embeddings.hub",
        "indexer.embeddings.identity",
        "indexer.embeddings.provider",
        "indexer.embeddings.vectors",
        "indexer.documents.names",
        "indexer.engine.bm25",
        "indexer.engine.codes",
        "indexer.engine.pack",
        "indexer.engine.postings",
        "indexer.reranking",
    ),
    (
        "indexer.documents.markdown",
        "indexer.embeddings.cache",
        "indexer.embeddings.litellm",
        "indexer.embeddings.minilm",
        "indexer.embeddings.minilm_model.convert",
        "indexer.embeddings.sentence_transformers",
        "indexer.ranking",
        "indexer.stores.base",
        "indexer.stores.database",
    ),
    (
        "indexer.documents.code",
        "indexer.documents.prose",
        "indexer.documents.rst",
        "indexer.documents.transcripts",
        "indexer.embeddings.cross_encoder",
        "indexer.embeddings.litellm_reranker",
        "indexer.engine.candidates",
        "indexer.engine.asked",
        "indexer.engine.matrix",
        "indexer.engine.shortlist",
        "indexer.files.sources",
        "indexer.stores.bulk",
        "indexer.stores.tables",
    ),
    ("indexer.documents.formats", "indexer.documents.logs", "indexer.engine.segment"),
    (
        "indexer.documents.splitter",
        "indexer.engine.evidence",
        "indexer.engine.segments",
        "indexer.files.folders",
        "indexer.files.watch",
        "indexer.filling",
        "indexer.plan",
        "indexer.stores.writes",
    ),
    ("indexer.engine.recent",),
    ("indexer.engine.view",),
    ("indexer.engine.words",),
    ("indexer.search", "indexer.stores.sqlite", "indexer.sync"),
    ("indexer.measures", "indexer.engine.views"),
    ("indexer.shelf", "indexer.upkeep"),
    ("indexer.rebuild", "indexer.survey"),
    ("indexer.status",),
    ("indexer.fitting",),
    ("indexer.index",),
    ("indexer",),
    (
        "memory_service._version",
        "memory_service.compaction.bounds",
        "memory_service.compaction",
        "memory_service.compaction.values",
        "memory_service.compaction.worth",
        "memory_service.text.frames",
        "memory_service.compaction.thoughts",
        "memory_service.entries",
        "memory_service.errors",
        "memory_service.events",
        "memory_service.extra_paths",
        "memory_service.flush",
        "memory_service.text.*",
        "memory_service.flush.phrases",
        "memory_service.flush.wording",
        "memory_service.llm",
        "memory_service.llm.tokenizer",
        "memory_service.llm.windows",
        "memory_service.llm.wordings",
        "memory_service.schemas",
        "memory_service.sentences",
        "memory_service.sessions",
        "memory_service.sessions.deltas",
        "memory_service.sessions.records",
        "memory_service.tokens",
    ),
    (
        "memory_service.budget",
        "memory_service.compaction.identifiers",
        "memory_service.compaction.statements",
        "memory_service.flush.statements",
        "memory_service.llm.overflow",
        "memory_service.messages.*",
        "memory_service.meter",
        "memory_service.pastes",
        "memory_service.session_schemas",
    ),
    (
        "memory_service.block",
        "memory_service.compaction.checkpoint",
        "memory_service.compaction.stubs",
        "memory_service.compaction.actions",
        "memory_service.compaction.ledger_text",
        "memory_service.compaction.sources",
        "memory_service.compaction.snapshot",
        "memory_service.compaction.summary",
        "memory_service.compaction.sentences",
        "memory_service.files",
        "memory_service.flush.outcomes",
        "memory_service.flush.speech",
        "memory_service.flush.worth",
        "memory_service.echoes",
        "memory_service.hooks",
        "memory_service.lanes",
        "memory_service.llm.base",
        "memory_service.operations",
        "memory_service.pages",
        "memory_service.sample",
        "memory_service.sessions.base",
        "memory_service.sessions.fields",
        "memory_service.sessions.lexical",
        "memory_service.sessions.media",
        "memory_service.sessions.pairing",
        "memory_service.sessions.units",
        "memory_service.compaction_schemas",
        "memory_service.llm.sayings",
    ),
    (
        "memory_service.compaction.calls",
        "memory_service.compaction.chunks",
        "memory_service.compaction.cut",
        "memory_service.compaction.guard",
        "memory_service.compaction.prompts",
        "memory_service.compaction.coverage",
        "memory_service.compaction.outline",
        "memory_service.compaction.wording",
        "memory_service.compaction.steps",
        "memory_service.compaction.transcript",
        "memory_service.compaction.verdict",
        "memory_service.compaction.consent",
        "memory_service.compaction.ledger",
        "memory_service.flush.notes",
        "memory_service.flush.prompts",
        "memory_service.llm.litellm",
        "memory_service.packing",
        "memory_service.recall",
        "memory_service.sessions.blobs",
        "memory_service.sessions.lines",
        "memory_service.sessions.repair",
        "memory_service.testing",
        "memory_service.workspaces",
    ),
    ("memory_service.compaction.anonymous",),
    (
        "memory_service.just_said",
        "memory_service.compaction.duplicates",
        "memory_service.compaction.media",
        "memory_service.compaction.pruning",
        "memory_service.compaction.asks",
        "memory_service.compaction.selection",
        "memory_service.compaction.summary_rules",
        "memory_service.compaction.audit",
        "memory_service.context",
        "memory_service.compaction.last_turns",
        "memory_service.daybook",
        "memory_service.engines.*",
        "memory_service.flush.candidates",
        "memory_service.sessions.offsets",
        "memory_service.sessions.state",
        "memory_service.sessions.trims",
    ),
    (
        "memory_service.compaction.cheap",
        "memory_service.compaction.writer",
        "memory_service.compaction.note",
        "memory_service.compaction.material",
        "memory_service.erasures",
        "memory_service.indexing",
        "memory_service.flush.replies",
        "memory_service.memories",
        "memory_service.receipts",
        "memory_service.sessions.mending",
        "memory_service.sessions.view",
    ),
    ("memory_service.compaction.presets",),
    ("memory_service.compaction.overrides",),
    ("memory_service.config",),
    (
        "memory_service.answers",
        "memory_service.compaction.rolls",
        "memory_service.compaction.extractive",
        "memory_service.benchmark",
        "memory_service.flush.extraction",
        "memory_service.longterm",
        "memory_service.sessions.log",
        "memory_service.sessions.foreign",
        "memory_service.sessions.session",
    ),
    (
        "memory_service.compaction.plan",
        "memory_service.compaction.summarize",
        "memory_service.sessions.folder",
        "memory_service.watching",
    ),
    ("memory_service.shortterm.*",),
    ("memory_service.doctor", "memory_service.open_workspaces", "memory_service.parts"),
    ("memory_service.service",),
    ("memory_service.session_answers",),
    ("memory_service.api.*", "memory_service.cli.*", "memory_service.client.*"),
    ("memory_service", "memory_service.__main__"),
)
# What a command starts, it imports when it runs.
EXCEPTIONS = {("memory_service.cli.serve", "memory_service.api.server")}

# Each foreign package is imported in one place, where its errors are translated too.
VENDORS: dict[str, tuple[str, ...]] = {
    "apsw": ("indexer.stores.database",),
    "sqlite_vec": ("indexer.stores.database",),
    "onnxruntime": ("indexer.embeddings.minilm",),
    "tokenizers": ("indexer.embeddings.vocabulary",),
    "onnx": ("indexer.embeddings.minilm_model.convert",),
    "ml_dtypes": ("indexer.embeddings.minilm_model.convert",),
    "safetensors": ("indexer.embeddings.minilm_model.convert",),
    "Stemmer": ("indexer.analysis",),
    "watchfiles": ("indexer.files.events",),
    "rank_bm25": ("memory_service.sessions.lexical",),
    "numpy": ("indexer", "indexer.*", "memory_service.packing", "memory_service.doctor"),
    "pydantic": (
        "memory_service.schemas",
        "memory_service.session_schemas",
        "memory_service.compaction_schemas",
        "memory_service.config",
        "memory_service.shortterm.options",  # a session's own settings are those of the tables of `config`
        "memory_service.client.*",
        "memory_service.cli.output",
        "memory_service.api.*",
    ),
    "filelock": ("memory_service.files", "indexer.generations", "indexer.engine.segments"),
    "anyio": ("memory_service.api.*",),
    "fastapi": ("memory_service.api.*",),
    "starlette": ("memory_service.api.*",),
    "h11": ("memory_service.api.connections",),
    "uvicorn": ("memory_service.api.*",),
    "prometheus_client": ("memory_service.api.*",),
    "httpx": ("memory_service.client.*",),
    "litellm": ("indexer.embeddings.litellm_package",),
    "sentence_transformers": ("indexer.embeddings.hub",),
    "transformers": ("indexer.embeddings.hub",),
    "torch": ("indexer.embeddings.hub",),
    "huggingface_hub": ("indexer.embeddings.hub",),
    "tiktoken": ("memory_service.llm.tokenizer",),
    "click": ("memory_service.cli.*",),
    "rich": ("memory_service.cli.*",),
}
# What the client must never load, through whatever module.
NOT_FOR_CLIENTS = {"indexer", "numpy", "fastapi", "starlette", "uvicorn", "apsw", "onnxruntime", "click", "rich"}


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


def imports_of(module: str) -> Iterator[Import]:
    yield from _imports(ast.parse(MODULES[module].read_text(encoding="utf-8")), module, late=False, typing=False)


def _imports(node: ast.AST, module: str, *, late: bool, typing: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for name in names:
                    yield Import(module, name.name, late, typing)
            case ast.ImportFrom(module=str(source), level=0, names=names):
                for name in names:
                    full = f"{source}.{name.name}"
                    yield Import(module, full if full in MODULES else source, late, typing)
            case ast.ImportFrom():
                raise AssertionError(f"{module} has a relative import. Write the full name.")
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(child, module, late=late, typing=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(child, module, late=True, typing=typing)
            case _:
                yield from _imports(child, module, late=late, typing=typing)


IMPORTS = [found for module in MODULES for found in imports_of(module)]


def in_place(module: str, place: str) -> bool:
    return fnmatchcase(module, place) or module == place.removesuffix(".*")


def place_of(module: str) -> tuple[int, str] | None:
    """The layer of a module, and its name or pattern in the table."""
    return next(
        ((level, place) for level, layer in enumerate(LAYERS) for place in layer if in_place(module, place)), None
    )


def known_place(module: str) -> tuple[int, str]:
    place = place_of(module)
    assert place, f"{module} is new: add it to LAYERS in tests/test_layering.py, as low as it can stand."
    return place


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_module_has_a_layer(module: str) -> None:
    known_place(module)


def test_the_table_names_no_module_that_is_gone() -> None:
    gone = [place for layer in LAYERS for place in layer if not any(in_place(module, place) for module in MODULES)]
    assert not gone, f"These are not there any more; take them out of LAYERS: {gone}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_from_below(module: str) -> None:
    own = known_place(module)
    for found in imports_of(module):
        if found.imported not in MODULES or (module, found.imported) in EXCEPTIONS:
            continue
        other = known_place(found.imported)
        same_package = other == own and own[1].endswith(".*")
        assert other[0] < own[0] or same_package or module == own[1] == "memory_service", (
            f"{module} imports {found.imported}, which does not stand below it. "
            "Move what is shared down, or change LAYERS in tests/test_layering.py with the reason."
        )


def test_exceptions_are_late() -> None:
    for importer, imported in EXCEPTIONS:
        used = [found for found in IMPORTS if (found.importer, found.imported) == (importer, imported)]
        assert used, f"{importer} does not import {imported} any more; take it out of EXCEPTIONS."
        assert all(found.late for found in used)


def test_indexer_knows_nothing_of_the_service() -> None:
    assert not [
        found for found in IMPORTS if top(found.importer) == "indexer" and top(found.imported) == "memory_service"
    ]


def test_there_are_no_circles() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in IMPORTS:
        if found.imported in MODULES and not found.typing:
            graph[found.importer].add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"Imports run in a circle: {' <- '.join(error.args[1])}")


def top(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_foreign_packages_are_imported_in_their_place(module: str) -> None:
    for found in imports_of(module):
        package = top(found.imported)
        if package in PACKAGES or package in sys.stdlib_module_names:
            continue
        places = VENDORS.get(package)
        assert places, f"{module} imports {package}, which is new: add it to VENDORS in tests/test_layering.py."
        assert any(in_place(module, place) for place in places), f"{module} imports {package}; only {places} may."


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

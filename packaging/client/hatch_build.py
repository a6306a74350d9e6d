"""The files of the client's wheel: what its roots import when they are loaded, read from the source.

Invariants: a file of the wheel is the server's file of that name, byte for byte, so that either wheel may be installed
over the other; an archive of the client's source has the same files, and builds the same wheel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("indexer", "memory_service")
# What programs import; `service`, `compaction` and `indexer` are here for what they say of the server that is missing.
ROOTS = (
    "indexer",
    "memory_service",
    "memory_service.__main__",
    "memory_service.client",
    "memory_service.compaction",
    "memory_service.errors",
    "memory_service.schemas",
    "memory_service.service",
)
ADAPTERS = "memory_service/integrations"
LANGUAGES = "indexer.language"
TYPED = ("indexer/py.typed", "memory_service/py.typed")


class ClientFiles(BuildHookInterface[Any]):
    """Hook that puts the client's files into wheel and source archive."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling."""
        root = source_root()
        build_data["force_include"].update({str(root / path): path for path in client_files(root)})


def source_root() -> Path:
    """The folder with both libraries: the checkout, or the source archive that is unpacked here."""
    here = Path(__file__).resolve().parent
    return next(each for each in (here, here.parent.parent) if (each / "memory_service" / "_version.py").is_file())


def client_version() -> str:
    """The version of the libraries."""
    text = (source_root() / "memory_service" / "_version.py").read_text("utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def client_files(root: Path) -> list[str]:
    """The paths of all files that the client needs, from the root.

    Args:
        root: The folder with both libraries.
    """
    adapters = [".".join(path.relative_to(root).with_suffix("").parts) for path in (root / ADAPTERS).glob("*.py")]
    found, waiting = dict[str, Path](), [*ROOTS, *adapters, *_languages(root)]
    while waiting:
        module = waiting.pop()
        if module in found or (file := _file_of(root, module)) is None:
            continue
        found[module] = file
        imported = list(_imported(ast.parse(file.read_text("utf-8"))))
        late = [_late_names(root, *name.rpartition(".")[::2]) for name in imported]
        waiting += [module.rpartition(".")[0], *imported, *filter(None, late)]
    return sorted({*TYPED, *(file.relative_to(root).as_posix() for file in found.values())})


def _languages(root: Path) -> list[str]:
    """The modules of languages: rooms, which a table names, and files by the ending of their names."""
    room = root.joinpath(*LANGUAGES.split("."))
    rooms = re.search(r"_ROOMS = (.*)", (room / "tables.py").read_text("utf-8"))[1]
    files = [path.stem for path in sorted(room.glob("*_language.py"))]
    return [f"{LANGUAGES}.{file}" for file in ("others", *ast.literal_eval(rooms), *files)]


def _file_of(root: Path, module: str) -> Path | None:
    if module.partition(".")[0] not in LIBRARIES:
        return None
    path = root.joinpath(*module.split("."))
    return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)


def _late_names(root: Path, package: str, name: str) -> str:
    """The module that a package loads when a name of it is first asked for; empty if it loads none."""
    file = _file_of(root, package) if package else None
    tables = [
        node.value
        for node in (ast.parse(file.read_text("utf-8")).body if file else ())
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULES"
    ]
    module = ast.literal_eval(tables[0]).get(name) if tables else None
    return f"{package}.{module}" if module else ""


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules that are imported with a module; those of a function are imported when it runs."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(source), names=names):
                yield source
                yield from (f"{source}.{name.name}" for name in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass
            case _:
                yield from _imported(child)

"""The rules that keep the house small: sizes, names, values, tables of words, and what may only become fewer.

`house.toml` has what stood against a rule when the rule was made. A list there may only become shorter and a figure
only smaller: take out what is mended. To raise one, say why in the message of the same commit.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from indexer.language import LANGUAGES
from tests.test_layering import EXCEPTIONS, module_name

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("indexer", "memory_service")
HOUSE: dict[str, Any] = tomllib.loads((ROOT / "tests" / "house.toml").read_text(encoding="utf-8"))

MOST_LINES = 600
NEARLY_LONG = 560
MOST_METHODS = 25
# Lines of a part of a file that nothing connects with the rest, from which it is a subject of its own.
LEAST_OF_A_SUBJECT = 50
MOST_PROTOCOLS = 15
TWIN_SHARE, TWIN_FIELDS = 0.75, 3
# So many words of the grammar of a language make a table one of it: fewer are names of tools and of columns.
WORDS_OF_A_LANGUAGE = 3
# File names that say what a file is to its package; elsewhere a name stands once in a library.
ROLES = {
    "__init__": "every package has one",
    "base": "the protocol or the shared values that a package is about",
    "errors": "the errors of a package",
}
# The doors and the values name their files after the noun of their routes, commands and fields.
NOUN_FOLDERS = (
    "memory_service/api/routes/",
    "memory_service/cli/",
    "memory_service/integrations/",  # after the frameworks
    "memory_service/schemas/",
)
DOORS = (
    "memory_service.api",
    "memory_service.cli",
    "memory_service.gateway",
    "memory_service.mcp",
    "memory_service.web",
)
BEHIND_DOORS = (
    "memory_service.service",
    "memory_service.schemas",
    "memory_service.errors",
    "memory_service._version",
    "memory_service.config",  # host, port, keys and the largest body are settings of the doors themselves
    "memory_service.home",  # where it is, and the server that runs on it: what a command asks before it loads anything
    "memory_service.hosts",  # settings and hooks of agents, which `cli` and `api` both serve
    "memory_service.sync",  # a client of the server that works on a folder of its own, whatever the home
    "memory_service.events",  # what the use case `session_events` gives: a stream that waits without a thread
)
# Doors of their own that one file puts on the server of another: it knows their routes and starts what they need.
MOUNTED = {"memory_service/api/app.py": ("memory_service.gateway", "memory_service.mcp", "memory_service.web")}
FOR_TESTS = ("indexer/testing.py", "memory_service/testing/__init__.py")
HAN = re.compile(r"[\u3400-\u9fff]")
# A word, and not the end of a range of characters, with a letter that English has not.
FOREIGN_WORD = re.compile(r"\b(?=\w{3})\w*[ß-öø-ž\u0370-\u05ff\u3040-\u30ff\uac00-\ud7af]\w*")
# Participles that do not end in -ed, and pronouns: as a name, such a word tells what was done, or points at something,
# and not what a function does or gives, nor what a variable holds.
IRREGULAR = frozenset(
    """been begun bent bitten blown born borne bought bound broken brought built burnt caught chosen cut dealt done
    drawn driven eaten fallen fed felt forgotten found given gone got grown heard held hidden kept known laid lain
    led lent lost made meant met overwritten paid rewritten said sat seen sent shown shut sold spent spoken stood
    struck swept sworn taken taught thought thrown told torn understood undone unknown unread unseen withdrawn
    withheld woken won worn written""".split()
)
PRONOUNS = frozenset(
    """all another any anything both each either everyone everything he her him it its itself neither none nothing
    one ones other others she some something that their them these they this those what which who whom
    whose""".split()
)
# Words in -ed that are none.
NOUNS_IN_ED = frozenset(
    "bed breed deed embed exceed feed hundred id indeed need proceed red seed shed speed succeed".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of the source: its path from the root, its text in lines, its syntax."""

    path: str
    lines: int
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def library(self) -> str:
        return self.path.partition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".py")


def _read(path: Path) -> SourceFile:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return SourceFile(
        path=path.relative_to(ROOT).as_posix(),
        lines=text.count("\n"),
        tree=tree,
        nodes=tuple(ast.walk(tree)),
    )


@cache
def source_files() -> tuple[SourceFile, ...]:
    """All files of the source: read when a test asks, as every worker loads this file and one of them runs it."""
    return tuple(_read(path) for library in LIBRARIES for path in sorted((ROOT / library).rglob("*.py")))


def fewer(rule: str, found: Iterable[str], advice: str) -> None:
    """Fail where more stands against a rule than `house.toml` has."""
    found, known = sorted(found), HOUSE[rule]
    most = len(known) + HOUSE["room"] if isinstance(known, list) else known
    if len(found) <= most:
        return
    new = [each for each in found if each not in known] if isinstance(known, list) else found
    pytest.fail(
        f"{len(found)} stand against the rule {rule!r}, and tests/house.toml has {most}. {advice}\n"
        + "\n".join(f"  {each}" for each in new),
        pytrace=False,
    )


def test_no_file_is_long() -> None:
    long = [f"{file.path}: {file.lines} lines" for file in source_files() if file.lines > MOST_LINES]
    assert not long, f"At most {MOST_LINES} lines: move a part with a name of its own to where it is looked for. {long}"


def test_few_files_are_nearly_as_long() -> None:
    nearly = [file.path for file in source_files() if file.lines >= NEARLY_LONG]
    fewer("nearly_long_files", nearly, "A file that grows towards the limit has a second subject, or is about to.")


def test_classes_have_few_methods() -> None:
    wide = [
        f"{file.path}: {node.name}"
        for file in source_files()
        for node in file.nodes
        if isinstance(node, ast.ClassDef)
        and sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body) > MOST_METHODS
    ]
    fewer("wide_classes", wide, f"At most {MOST_METHODS} methods: what stands on a few fields alone is a value.")


def _names_of(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a file binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            bound = [each for target in targets for each in ast.walk(target)]
            return [each.id for each in bound if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _mentions(node: ast.stmt) -> Iterator[str]:
    """The names that a statement uses, those within quoted annotations too."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name):
                yield name
            case ast.Constant(value=str(text)) if "\n" not in text:
                yield from re.findall(r"\w+", text)


def _subjects(file: SourceFile) -> list[str]:
    """First name of each part of a file that is long enough, and that nothing connects with the others."""
    place: dict[str, int] = {}
    parts: list[tuple[list[str], int, set[str]]] = []
    for node in file.tree.body:
        if not (names := _names_of(node)):
            continue
        parts.append((names, (node.end_lineno or 0) - node.lineno + 1, {*_mentions(node)}))
        place |= dict.fromkeys(names, len(parts) - 1)
    part = list(range(len(parts)))

    def root(at: int) -> int:
        while part[at] != at:
            at = part[at]
        return at

    for at, (_, _, mentioned) in enumerate(parts):
        for name in mentioned & place.keys():
            part[root(at)] = root(place[name])
    lines, first = Counter[int](), dict[int, str]()
    for at, (names, count, _) in enumerate(parts):
        lines[root(at)] += count
        first.setdefault(root(at), names[0])
    return [first[at] for at, count in lines.items() if count >= LEAST_OF_A_SUBJECT]


def test_a_file_has_one_subject() -> None:
    # A face is two tables of the same names.
    parts = {file.path: _subjects(file) for file in source_files() if file.name != "__init__"}
    glued = {path: subjects for path, subjects in parts.items() if len(subjects) > 1}
    assert not glued, f"Nothing connects these parts of a file: {glued}. Give each a file with a name of its own."


def test_no_file_name_stands_twice_in_a_library() -> None:
    named = defaultdict[tuple[str, str], list[str]](list)
    for file in source_files():
        if file.name not in ROLES and not file.path.startswith(NOUN_FOLDERS):
            named[file.library, file.name].append(file.path)
    again = [" and ".join(paths) for paths in named.values() if len(paths) > 1]
    fewer("same_file_names", again, "Name the new file after what only it has.")


def test_there_are_few_protocols() -> None:
    found = [
        f"{file.path}: {node.name}"
        for file in source_files()
        for node in file.nodes
        if isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base).partition("[")[0] for base in node.bases}
    ]
    assert len(HOUSE["protocols"]) <= MOST_PROTOCOLS, "A protocol is what another engine implements."
    fewer("protocols", found, "A protocol that one class implements is that class, of one method a Callable.")


def _top_level(file: SourceFile) -> Iterator[tuple[str, ast.stmt]]:
    """Public names that a file defines, routes and commands aside: these have the name of what they do."""
    for node in file.tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not node.decorator_list:
                names = [node.name]
            case ast.ClassDef():
                names = [node.name]
            case ast.Assign():
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((name, node) for name in names if not name.startswith("_"))


def test_no_public_name_stands_twice_in_a_library() -> None:
    named = defaultdict[tuple[str, str], set[str]](set)
    for file in source_files():
        for name, _ in _top_level(file):
            named[file.library, name].add(file.path)
    again = [
        f"{name}: {', '.join(sorted(paths))}"
        for (_, name), paths in named.items()
        if len(paths) > 1 and name not in HOUSE["contract_names_twice"]
    ]
    fewer("same_names", again, "One name has one meaning: import what is there, or say what the new one is of.")


def _fields(node: ast.ClassDef) -> frozenset[str]:
    names = (
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )
    return frozenset(name for name in names if not name.startswith("_"))


def test_no_two_values_are_twins() -> None:
    values = [
        (file, node.name, _fields(node))
        for file in source_files()
        for node in file.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and len(_fields(node)) >= TWIN_FIELDS
    ]
    twins = [
        f"{file.path}: {name} and {other.path}: {twin}"
        for (file, name, fields), (other, twin, theirs) in combinations(values, 2)
        # `indexer` is a library of its own: what leaves it is put into the values of the service.
        if file.library == other.library and len(fields & theirs) >= TWIN_SHARE * max(len(fields), len(theirs))
    ]
    fewer("twin_values", twins, "Use the value that is there, of `schemas` where it crosses a door.")


def _tables_with_han(file: SourceFile) -> bool:
    """Whether a file has patterns or lists of Chinese words; texts that are shown or sent are none."""
    for node in file.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
                parts: list[ast.expr] = list(node.args)
            case ast.Tuple(elts=elements) | ast.Set(elts=elements) | ast.List(elts=elements):
                parts = [each for each in elements if isinstance(each, ast.Constant)]
            case ast.Dict(keys=keys):
                parts = [key for key in keys if isinstance(key, ast.Constant)]
            case ast.Call(func=ast.Attribute(value=ast.Constant() as words, attr="split")):
                parts = [words]
            case _:
                continue
        if any(isinstance(each, str) and HAN.search(each) for part in parts for each in _constants(part)):
            return True
    return False


def _is_mixed(text: str) -> bool:
    """True for a table with letters that English has not beside others; the classes of a pattern are none."""
    plain = re.sub(r"\[[^\]]*\]", " ", text)
    return FOREIGN_WORD.search(plain) is not None and re.search("[a-z]{3}", plain) is not None


def _words_in_table(node: ast.expr) -> str:
    """The words of patterns, lists, sets, keys and alternatives in a value; texts that are shown or sent are none."""
    is_text = isinstance(node, ast.Constant | ast.JoinedStr)
    parts: list[ast.expr] = [node] if is_text and "|" in "".join(map(str, _constants(node))) else []
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id="lazy_regex") | ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
                parts.append(pattern)
            case ast.Tuple(elts=elements) | ast.Set(elts=elements) | ast.List(elts=elements):
                parts += [element for element in elements if isinstance(element, ast.Constant)]
            case ast.Dict(keys=keys):
                parts += [key for key in keys if isinstance(key, ast.Constant)]
            case ast.Call(func=ast.Attribute(value=ast.Constant() as words, attr="split")):
                parts.append(words)
    text = " ".join(value for part in parts for value in _constants(part) if isinstance(value, str))
    return re.sub(r"\\[a-zA-Z]|\(\?P[<=]\w+>?|\(\?[a-zA-Z-]*[):]|.-(?=[\u3040-\uffff]).", " ", text)


@cache
def _grammar() -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(language.grammar.grammar_words.split()) | language.grammar.stop_words for language in LANGUAGES
    )


def _is_of_a_language(table: ast.expr) -> bool:
    """True for a table with three words of the grammar of a language, or with words in a script of its own."""
    text = _words_in_table(table)
    words = set(re.findall(r"[^\W\d_]{2,}", text.lower()))
    if any(len(words & grammar) >= WORDS_OF_A_LANGUAGE for grammar in _grammar()):
        return True
    return re.search(r"[\u3041-\u30fa\u3400-\u9fff\uac00-\ud7a3]", text) is not None or _is_mixed(text)


def test_words_of_a_language_stand_with_it() -> None:
    rooms = r"indexer/(?:language|engine|documents)|memory_service/(?:text|flush|memories|compaction|conversations)"
    judges, own = re.compile(rf"(?:{rooms})/\w+\.py"), re.compile(r"indexer/language/\w+_language\.py")
    tables = {
        f"{file.path}: {ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)}"
        for file in source_files()
        if judges.fullmatch(file.path) and not own.fullmatch(file.path) and file.name != "__init__"
        for node in file.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_of_a_language(node.value)
    }
    reasons = HOUSE["tables_of_no_language"]
    excused = {table for each in reasons.values() for table in each}
    assert len(reasons) <= 10, "Ten reasons at most."
    assert excused <= tables, f"None any more: take these out of tests/house.toml. {sorted(excused - tables)}"
    new = sorted(tables - excused)
    assert not new, f"Give each language its words, in a field of `indexer.language.base`, and read `ANY`: {new}"


def _constants(node: ast.expr) -> Iterator[object]:
    return (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))


def test_words_of_a_language_stand_in_text() -> None:
    elsewhere = {
        file.path
        for file in source_files()
        if not {"text", "language"} & set(Path(file.path).parts) and _tables_with_han(file)
    }
    excused = HOUSE["words_outside_text"].keys()
    new, gone = sorted(elsewhere - excused), sorted(excused - elsewhere)
    assert not new, f"What is known of a language stands in a folder `text/` or `language/`, once for all: {new}"
    assert not gone, f"No words any more: take these out of words_outside_text in tests/house.toml. {gone}"


def _imported(file: SourceFile) -> Iterator[str]:
    known = {each.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for each in source_files()}
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_doors_know_the_service_alone() -> None:
    around = {
        f"{file.path} imports {name}"
        for door in DOORS
        for file in source_files()
        if file.path.startswith(door.replace(".", "/") + "/")
        for name in _imported(file)
        if name.partition(".")[0] in LIBRARIES and not _below(name, (door, *BEHIND_DOORS, *MOUNTED.get(file.path, ())))
        if (module_name(ROOT / file.path), name) not in EXCEPTIONS
    }
    fewer(
        "imports_around_the_service",
        around,
        "api and cli parse, call and render: they import the service, its schemas and errors, and their own package.",
    )


def _below(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_what_was_used_last_is_kept_by_one_class() -> None:
    found = {
        file.path
        for file in source_files()
        if any(isinstance(node, ast.Attribute) and node.attr == "move_to_end" for node in file.nodes)
    }
    new = sorted(found - HOUSE["own_order_of_use"].keys() - {"indexer/common/lru.py"})
    assert not new, f"Use `indexer.common.lru.LRU`, or name the file in tests/house.toml with the reason: {new}"


def _mentioned(file: SourceFile) -> Counter[str]:
    found = Counter[str]()
    for node in file.nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found[name] += 1
    return found


def test_public_functions_have_readers() -> None:
    mentioned = {file.path: _mentioned(file) for file in source_files()}
    files = Counter(name for names in mentioned.values() for name in names)
    alone = [
        f"{file.path}: {name} {'has its own file alone: make it private' if own else 'has tests alone: delete it'}"
        for file in source_files()
        if file.path not in FOR_TESTS
        for name, node in _top_level(file)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for own in [name in mentioned[file.path]]
        if files[name] == own
    ]
    fewer("functions_without_readers", alone, "A public function is one that another file of the source calls.")


def test_docstrings_are_noun_phrases() -> None:
    crooked = [
        f"{file.path}: {text.partition(chr(10))[0]}"
        for file in source_files()
        for node in file.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for text in [ast.get_docstring(node) or ""]
        if text.startswith(("Owns", "What ", "Whether "))
    ]
    fewer("crooked_docstrings", crooked, "Name the thing first: a noun phrase that can be read without the code.")


def _tells_nothing(name: str) -> bool:
    """True for a name that is one participle or one pronoun."""
    word = name.strip("_").lower()
    if "_" in word or name.endswith("__"):
        return False
    return word in IRREGULAR or word in PRONOUNS or (word.endswith("ed") and word not in NOUNS_IN_ED)


def test_functions_are_named_by_what_they_give_or_do() -> None:
    functions = [
        f"{file.path}: {node.name}"
        for file in source_files()
        for node in file.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _tells_nothing(node.name)
    ]
    fewer(
        "participles_as_functions",
        functions,
        "A participle or a pronoun tells neither what a function gives nor what it does: a noun or a verb does.",
    )


def _bound(node: ast.AST, owner: str) -> Iterator[tuple[str, str]]:
    """Names of variables, parameters and attributes below a node, each with the function or class that it is of."""
    for child in ast.iter_child_nodes(node):
        below = owner
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                below = f"{owner}.{name}"
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield owner, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield owner, name
        yield from _bound(child, below)


def test_variables_are_named_by_what_they_hold() -> None:
    names = {(file.path, *each) for file in source_files() for each in _bound(file.tree, "")}
    told = [name for *_, name in names if _tells_nothing(name)]
    assert len(told) <= HOUSE["participles_as_variables_share"] * len(names), (
        f"{len(told)} of {len(names)} variables, parameters and attributes are named by a participle or a pronoun: "
        f"name them by what they hold. {Counter(told).most_common(20)}"
    )

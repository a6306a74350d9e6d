"""Foreign text through every door: nothing breaks, and nothing is left unindexed in silence.

`python -m tests.campaigns.foreign [--data FOLDER …] [--megabytes 21] [--embedding-model none] [--seed 0]`

The text is that of the folders given (JSON, Markdown, plain text), of the descriptions and documents of installed
packages, of docstrings and help of the standard library and of packages, and of sentences made from templates in many
languages. It goes through PUT, remember, append, flush, compact, context, search and hooks of a server of its own.

One line of JSON: what was sent, tracebacks in the server's log, answers of 5xx and requests that hung, passages that
the index lacks without saying so, and how often a reader of meaning failed. It ends with 1 where one of them is not 0.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import random
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import httpx

from indexer import Index
from indexer.documents.markdown import split_markdown
from indexer.documents.transcripts import split_transcript
from tests.campaigns.sentences import sentences
from tests.serving import NO_TLS, W, own_process

_FILE_CHARS = 60_000
_NOTE_CHARS = 3_000
_MESSAGE_CHARS = 4_000
_MESSAGES = 24
# Of sixteen pieces of text, the doors that they go through: a talk costs as much as ten files.
_DOORS = ("put", "append", *("put",) * 6, "remember", *("put",) * 7)
# Of so many files, one is asked about.
_ASKED = 4
_NOTES_A_DAY = 40
_TIMEOUT_SECONDS = 120


def texts(folders: Sequence[Path], seed: int, most_chars: int) -> Iterator[str]:
    """All foreign text there is, each kind in turn, and then sentences without end."""
    given = [_given(folder) for folder in folders]
    kinds = [*given, _documents(), _docstrings(), iter(topics.values()), sentences(seed)]
    while kinds:
        for kind in list(kinds):
            text = "\n".join(itertools.islice(_until(kind, most_chars), 1_000))
            if text:
                yield text
            else:
                kinds.remove(kind)


def _until(kind: Iterator[str], most_chars: int) -> Iterator[str]:
    """Texts of a kind, until they are long enough together."""
    size = 0
    while size < most_chars and (text := next(kind, "")):
        size += len(text)
        yield text


def _given(folder: Path) -> Iterator[str]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_text("utf-8", errors="replace")
        if path.suffix == ".json":
            yield from _strings(json.loads(text))
        elif path.suffix == ".jsonl":
            yield from (string for line in text.splitlines() if line for string in _strings(json.loads(line)))
        elif path.suffix in (".md", ".txt", ".rst"):
            yield text


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _documents() -> Iterator[str]:
    """Descriptions, Markdown and plain text of installed packages."""
    for package in distributions():
        if described := package.read_text("METADATA"):
            yield described
        for file in package.files or ():
            if file.suffix.lower() in (".md", ".rst", ".txt", ".pyi"):
                place = Path(str(file.locate()))
                if place.is_file() and (text := place.read_text("utf-8", errors="replace")).strip():
                    yield text


def _docstrings() -> Iterator[str]:
    """Docstrings, and the help of options, of the standard library and of installed packages."""
    roots = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib")))
    for path in itertools.chain.from_iterable(sorted(root.rglob("*.py")) for root in roots):
        try:
            tree = ast.parse(path.read_text("utf-8", errors="replace"))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if text := ast.get_docstring(node):
                    yield text
            elif isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
                yield str(node.value.value)


class Sender:
    """Client that sends one piece of text after another, and counts what is wrong with the answers."""

    def __init__(self, http: httpx.Client, seed: int) -> None:
        self.counts, self.wrong = Counter[str](), list[str]()
        self._http, self._chance = http, random.Random(seed)
        self._number = 0

    def send(self, text: str) -> None:
        """Send a text through the next door."""
        # What no client can send as JSON in UTF-8, no client sends.
        text = text.encode("utf-8", "replace").decode()
        door = _DOORS[self._number % len(_DOORS)]
        self._number += 1
        self.counts["bytes"] += len(text.encode())
        {"put": self._put, "append": self._append, "remember": self._remember}[door](text)

    def ask(self, text: str) -> None:
        """Ask with a part of a text: a search, a context, and the hook of a host."""
        at = self._chance.randrange(max(1, len(text) - 200))
        words = text[at : at + self._chance.choice((40, 200, 800))].strip() or "nothing"
        self._post(f"{W}/search", {"query": words, "mode": self._chance.choice(("hybrid", "text"))})
        self._post(f"{W}/context", {"query": words, "budget_tokens": self._chance.choice((80, 400, 2_000))})
        hook = {"session_id": "foreign", "cwd": "/", "hook_event_name": "UserPromptSubmit", "prompt": words}
        self._post("/v1/hooks/claude-code", hook, {"X-Memory-Workspace": "default"})

    def reindex(self) -> None:
        """Have the index brought up to date, and wait for it."""
        operation = self._http.post(f"{W}/reindex", json={}).raise_for_status().json()["operation_id"]
        while self._http.get(f"{W}/operations/{operation}").json()["state"] in ("queued", "running"):
            time.sleep(0.1)

    def _put(self, text: str) -> None:
        path = f"{W}/memories/memory/foreign/{self._number:05}.md"
        self._sent("PUT", path, {"text": text}, {"If-None-Match": "*"})
        if self._number % _ASKED == 1:
            self.ask(text)

    def _remember(self, text: str) -> None:
        for part in _parts(text, _NOTE_CHARS):
            self.counts["notes"] += 1
            day = self.counts["notes"] // _NOTES_A_DAY
            self._post(
                f"{W}/memories",
                {"text": part, "date": f"{2000 + day // 336:04}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}"},
            )

    def _append(self, text: str) -> None:
        session = f"{W}/sessions/foreign-{self._number}"
        parts = list(_parts(text, _MESSAGE_CHARS))
        self._post(f"{W}/sessions", {"session_id": session.rpartition("/")[2], "context_window": 16_000})
        for at in range(0, len(parts), _MESSAGES):
            said = [message for n, part in enumerate(parts[at : at + _MESSAGES], at) for message in _messages(n, part)]
            self._post(f"{session}/messages", {"messages": said})
        self._post(f"{session}/flush", {})
        self._post(f"{session}/compact", {"mode": "apply", "force": True})
        self._post(f"{session}/context", {"query": text[:300].strip() or "nothing"})

    def _post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._sent("POST", path, body, headers)

    def _sent(self, method: str, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.counts["requests"] += 1
        try:
            answer = self._http.request(method, path, json=body, headers=headers)
        except httpx.TimeoutException:
            self.counts["hung"] += 1
            self.wrong.append(f"{method} {path}: no answer in {_TIMEOUT_SECONDS} s")
            return
        if answer.status_code >= 500:
            self.counts["5xx"] += 1
            self.wrong.append(f"{method} {path}: {answer.status_code}")
        elif not answer.is_success:
            self.counts[f"refused {answer.status_code}"] += 1


def _messages(number: int, text: str) -> Iterator[dict[str, Any]]:
    """A part of a text as somebody's message; every fourth as what a tool printed."""
    if number % 4 == 2:
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"n": number})},
        }
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"c{number}", "content": text}
    else:
        yield {"role": ("user", "assistant")[number % 2], "content": text}


def _parts(text: str, most_chars: int) -> Iterator[str]:
    for at in range(0, len(text), most_chars):
        if part := text[at : at + most_chars].strip():
            yield part


def unindexed(root: Path, named: Sequence[str]) -> list[str]:
    """Files of a workspace of which the index lacks a passage, and that it does not name.

    Args:
        root: The workspace.
        named: Files that it says it could not read.
    """
    index, lacking = Index(root, None), list[str]()
    try:
        files = [
            path.relative_to(root).as_posix() for path in (*root.glob("memory/**/*.md"), *root.glob("sessions/*.jsonl"))
        ]
        for path in sorted(set(files) - {*named}):
            raw = (root / path).read_bytes()
            made = (
                split_transcript(raw)
                if path.endswith(".jsonl")
                else split_markdown(raw.decode("utf-8", "replace"), path=path)
            )
            known = Counter(stored.passage.text for stored in index.passages_of([path]))
            lacking += [f"{path}: line {passage.start_line}" for passage in made if not known[passage.text]]
    finally:
        index.close()
    return lacking


def measure(
    folders: Sequence[Path],
    megabytes: float,
    *,
    seed: int = 0,
    embedding_model: str = "none",
    file_chars: int = _FILE_CHARS,
) -> dict[str, Any]:
    """Send so much, in files of about so many characters; gives what was counted."""
    with tempfile.TemporaryDirectory() as folder:
        home, log = Path(folder) / "home", Path(folder) / "log"
        environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": embedding_model}
        with (
            own_process(home, environment, log=log) as (url, _),
            httpx.Client(base_url=url, timeout=_TIMEOUT_SECONDS, trust_env=False, verify=NO_TLS) as http,
        ):
            sender = Sender(http, seed)
            for text in texts(folders, seed, file_chars):
                if sender.counts["bytes"] >= megabytes * 1e6:
                    break
                sender.send(text)
            sender.reindex()
            status = http.get(f"{W}/status").json()
        lacking = unindexed(home / "default", [failed["path"] for failed in status["failed"]])
        written = log.read_text("utf-8", errors="replace")
    return {
        **{"bytes": 0, "requests": 0, "5xx": 0, "hung": 0, **sender.counts},
        "files": status["files"],
        "passages": status["passages"],
        "tracebacks": written.count("Traceback (most recent call last)"),
        "unindexed": len(lacking),
        "failed_files": [failed["reason"] for failed in status["failed"]][:5],
        "reader_failures": status["reader_failures"],
        "degraded": status["degraded"],
        "examples": [*sender.wrong, *lacking][:10],
    }


def is_clean(found: dict[str, Any]) -> bool:
    """True if nothing broke, hung, or went missing without a word."""
    return not any(found[name] for name in ("tracebacks", "5xx", "hung", "unindexed", "reader_failures"))


def main() -> None:
    """Run it and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--megabytes", type=float, default=21)
    parser.add_argument("--embedding-model", default="none")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = measure(given.data, given.megabytes, seed=given.seed, embedding_model=given.embedding_model)
    print(json.dumps(found, ensure_ascii=False))
    sys.exit(0 if is_clean(found) else 1)


if __name__ == "__main__":
    main()

"""The synchronous client, written from the asynchronous one: `python -m tests.generate_client`.

Code, comments and docstrings are rewritten as text, by the rules below; ruff sorts the imports and formats the result.
A change of the client is made in the asynchronous files; tests/memory_service/client/test_generated.py compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "memory_service" / "client"
COMMAND = "python -m tests.generate_client"
# Each synchronous file and the one that it is made from.
FILES = {
    "_client.py": "_async_client.py",
    "_connection.py": "_async_connection.py",
    "_session.py": "_async_session.py",
    "_stream.py": "_async_stream.py",
}

# In this order. What is left of the word `async` at the end stands in a sentence.
_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bawait ", ""),
        (r"\basync (?=(?:def|for|with) )", ""),
        (r"\bimport asyncio\b", "import time"),
        (r"\basyncio\.sleep\b", "time.sleep"),
        (r"\basynccontextmanager\b", "contextmanager"),
        (r"\bAsync(?=[A-Z])", ""),
        (r"\b(_?)async_(?=[a-z])", r"\1"),
        (r"\b__a(?=(?:enter|exit|iter)__)", "__"),
        (r"\banext\b", "next"),
        (r"\bAwaitable\[(\w+)\]", r"\1"),
        (r"\bAwaitable, ", ""),
        (r"\.a(?=(?:close|read|iter_bytes|completion)\()", "."),
        (r"\bUse within one event loop\b", "Safe to use from several threads"),
        (r"\buse within one event loop\b", "safe to use from several threads"),
        (r"\basync\b", "blocking"),
    )
)


def synchronous(source: str, name: str) -> str:
    """The blocking form of the asynchronous file of that name."""
    text = _without_parentheses(source)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = f"# Generated from {name} by `{COMMAND}`: change that file, and run this again.\n{text}"
    return _ruff("format", _ruff("check", text, "--fix-only", "--unsafe-fixes", "--quiet", "--select=I,UP028"))


def _without_parentheses(text: str) -> str:
    """`(await x).y` as `await x.y`: the parentheses that only an `await` needs."""
    while found := re.search(r"(?<![\w\])])\((?=await )", text):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[found.end() : end - 1] + text[end:]
    return text


def _ruff(command: str, text: str, *options: str) -> str:
    """A text as a command of ruff leaves it."""
    line = [sys.executable, "-m", "ruff", command, *options, "--stdin-filename", str(CLIENT / "generated.py"), "-"]
    done = subprocess.run(line, input=text, cwd=ROOT, capture_output=True, check=True, encoding="utf-8", timeout=240)
    return done.stdout


def generated(name: str) -> str:
    """What a synchronous file has to be."""
    source = FILES[name]
    return synchronous((CLIENT / source).read_text(encoding="utf-8"), source)


if __name__ == "__main__":
    for file in FILES:
        (CLIENT / file).write_text(generated(file), encoding="utf-8", newline="\n")

"""Runs the real command line on a home of the test: here, which is quick, or as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from memory_service.cli.root import main
from tests.storages import read_documents, write_documents

PROGRAM = (sys.executable, "-m", "memory_service")
WORDS_ALONE = {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    def answer(self, shape: type[A]) -> A:
        """What `--json` printed, which is nothing but JSON of this shape, with all of its fields."""
        assert self.code == 0, self.err
        found = shape.model_validate_json(self.out)
        sent = {name for name, field in shape.model_fields.items() if not field.exclude}
        assert sent == found.model_fields_set
        return found

    def failed_with(self, *words: str) -> None:
        """It told the failure in one line with these words, and printed no result."""
        assert (self.code, self.out) == (1, ""), self
        assert self.err.startswith("error: ") and self.err.count("\n") == 1, self.err
        # What failed, and then what to do.
        assert (". " in self.err or ": " in self.err[7:]) and self.err.endswith((".\n", "?\n")), self.err
        assert [word for word in words if word not in self.err] == []


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """`memory-service` on one home."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=lambda: WORDS_ALONE)

    @property
    def workspace(self) -> Path:
        return self.home / "default"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a command: the test's, without settings of whoever runs it."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
        home = {"MEMORY_SERVICE_HOME": str(self.home), "MEMORY_SERVICE_TIMEZONE": "UTC"}
        return {**ours, **home, **self.environment}

    def run(self, *arguments: str, stdin: str | bytes = "") -> Run:
        """Run a command in this process, from its first line to its exit."""
        given, out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(3))
        given.buffer.write(_encoded(stdin))
        given.seek(0)
        with pytest.MonkeyPatch.context() as process:
            for name in set(os.environ) - set(self.variables):
                process.delenv(name)
            for name, value in self.variables.items():
                process.setenv(name, value)
            process.setattr(sys, "argv", ["memory-service", *arguments])
            for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
                process.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main()
        return Run(code=_code(ended.value), out=_written(out), err=_written(err))

    def spawn(self, *arguments: str, seconds: float = 240, **process: Any) -> Run:
        """Run a command as a process of its own, which may take so long on a busy machine."""
        done = subprocess.run(
            [*PROGRAM, *arguments], env=self.variables, capture_output=True, timeout=seconds, check=False, **process
        )
        encoding = self.environment.get("PYTHONIOENCODING", "utf-8")
        return Run(code=done.returncode, out=done.stdout.decode(encoding), err=done.stderr.decode(encoding))

    def ok(self, *arguments: str, stdin: str | bytes = "") -> str:
        """Run a command that has to work without a word on stderr; gives what it printed."""
        run = self.run(*arguments, stdin=stdin)
        assert (run.code, run.err) == (0, ""), run
        return run.out

    def write(self, path: str, lines: Sequence[str]) -> Path:
        """Write a file as a person would; gives where it is, if homes are folders."""
        write_documents(self.home, {path: "".join(f"{line}\n" for line in lines)})
        return self.workspace / path

    def read(self, path: str) -> str:
        """A memory file as it is stored."""
        return read_documents(self.home)[path]


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode("utf-8")


def _code(ended: SystemExit) -> int:
    return ended.code if isinstance(ended.code, int) else int(ended.code is not None)

"""A newcomer: everything that README.md says to type, in its order, by somebody who knows nothing else.

`python3 tests/campaigns/newcomer.py CLONE` needs a fresh clone of this repository, a package registry, and no package
of ours: it has an empty home, types each block in the folder of the clone, and ends with 1 at the first step that
fails, is degraded, or says on stderr what nobody asked for. The tests are installed and collected, not run; with
`--without-tests`, as in `.ci/run`, which types that block itself, they are left out. With `--bin FOLDER`, an
environment that has the package already, nothing is installed and there are no tests.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_BLOCK = re.compile(r"^```(sh|bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# `context` tells on stderr what went into the block that it prints; pip tells of its own new versions.
_ASKED_FOR = re.compile(r"\d+ in[ ,(].*; receipt r\S+|\[notice\] .*|")
_DEGRADED = re.compile(r'degraded: |"degraded":\s*\["')
_PORT = "8765"
_SERVER = "memory-service serve\n"
_TESTS = "/pytest -n auto\n"
_DEMO = "/memory-service demo\n"
_ACTIVATE = "`. .venv/bin/activate`"
_SECONDS = 900


class Stumble(Exception):
    """A step that did not go as the README promises."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A block of the README, and what it printed."""

    language: str
    text: str
    printed: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Newcomer:
    """Somebody with a clone, an empty home, and a port of their own, as 8765 may be somebody else's.

    Attributes:
        clone: The folder with README.md, in which everything is typed.
        home: Their home directory.
        bin_folder: Where the commands of the environment are.
        installs: Whether they make that environment first.
        tests: Whether they install and collect the tests.
        demo: Whether they type the README's first block, the demo.
        port: What stands where the README has 8765.
        page: What they read.
    """

    clone: Path
    home: Path
    bin_folder: Path
    installs: bool
    tests: bool
    demo: bool
    port: int
    page: str = "README.md"

    def steps(self) -> Iterator[Step]:
        """Type one block after the other.

        Raises:
            Stumble: A block failed, was degraded, or said on stderr what nobody asked for.
        """
        readme = (self.clone / self.page).read_text("utf-8")
        with tempfile.TemporaryFile("w+") as log:
            servers: list[subprocess.Popen[str]] = []
            try:
                for block in _BLOCK.finditer(readme):
                    language, text = block.groups()
                    if language != "sh" and _ACTIVATE not in readme[: block.start()]:
                        raise Stumble(f"nobody said how to activate the environment before:\n{text}")
                    if (text.endswith(_TESTS) and not self.tests) or (text.endswith(_DEMO) and not self.demo):
                        continue
                    begun = time.monotonic()
                    if text == _SERVER:
                        servers.append(self._serve(log))
                        printed = ""
                    else:
                        printed = self._type(language, text)
                    yield Step(language=language, text=text, printed=printed, seconds=time.monotonic() - begun)
            finally:
                for server in servers:
                    server.send_signal(signal.SIGINT)
                    server.wait(60)
            log.seek(0)
            if noise := re.findall(r"(?im)^.*(?:degraded|warning|error|traceback).*$", log.read()):
                raise Stumble(f"the server said: {noise}")

    def _type(self, language: str, text: str) -> str:
        if language == "sh":
            text = self._installing(text)
        program = (
            [str(self.bin_folder / "python"), "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
        )
        done = subprocess.run(
            [*program, text.replace(_PORT, str(self.port))],
            cwd=self.clone, env=self._environment(), capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        noise = [line for line in done.stderr.splitlines() if not _ASKED_FOR.fullmatch(line)]
        if done.returncode or noise or _DEGRADED.search(done.stdout + done.stderr):
            raise Stumble(f"{text}\nended with {done.returncode} and said:\n{done.stderr}\n{done.stdout[-2000:]}")
        return done.stdout

    def _installing(self, text: str) -> str:
        """What is typed of a block that installs first; its last command is the one that it is about."""
        if text.endswith(_TESTS):
            text = text.rstrip("\n") + " --collect-only -q\n"
        if self.installs:
            return text
        return text.rpartition("&& ")[2].replace(".venv/bin", str(self.bin_folder))

    def _serve(self, log: IO[str]) -> subprocess.Popen[str]:
        command = _SERVER.split()
        server = subprocess.Popen(
            [str(self.bin_folder / command[0]), *command[1:]],
            cwd=self.clone, env=self._environment(), stdout=log, stderr=log, text=True,
        )  # fmt: skip
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(600):
            if server.poll() is not None:
                raise Stumble(f"the server ended with {server.returncode}")
            try:
                opener.open(f"http://127.0.0.1:{self.port}/health/ready", timeout=5).close()
                return server
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        server.kill()
        raise Stumble("the server is not ready after a minute")

    def _environment(self) -> dict[str, str]:
        """An empty home and the usual paths, but for what pip needs to reach its registry from here."""
        reach = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP_", "HTTPS_", "NO_PROXY", "TMPDIR", "SYSTEMROOT")
        ours = {name: value for name, value in os.environ.items() if name.upper().startswith(reach)}
        return {
            **ours,
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(self.bin_folder), os.environ["PATH"])),
            "LANG": "C.UTF-8",
            "MEMORY_SERVICE_PORT": str(self.port),
            "no_proxy": "127.0.0.1",
        }


@contextmanager
def arriving(
    clone: Path, bin_folder: Path | None = None, page: str = "README.md", *, tests: bool = True, demo: bool = True
) -> Iterator[Newcomer]:
    """A newcomer in a clone.

    Args:
        clone: Its folder.
        bin_folder: The commands of an environment that has the package; without one it is made as the README says.
        page: What they read.
        tests: Whether they install and collect the tests, if they install anything.
        demo: Whether they type the README's first block, the demo.
    """
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        yield Newcomer(
            clone=clone,
            home=Path(home),
            bin_folder=bin_folder or clone / ".venv" / "bin",
            installs=bin_folder is None,
            tests=tests and bin_folder is None,
            demo=demo,
            port=port,
            page=page,
        )


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def main() -> int:
    """Walk, and print what was typed and how long each step took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--bin", type=Path, help="commands of an environment that has the package")
    parser.add_argument("--without-tests", action="store_true", help="leave out the block that runs the tests")
    parser.add_argument("--demo-seconds", type=float, help="the longest that the first block may take")
    parser.add_argument("--megabytes", type=float, help="the largest that the environment may be after it")
    asked = parser.parse_args()
    with arriving(asked.clone.resolve(), asked.bin, tests=not asked.without_tests) as newcomer:
        try:
            for number, step in enumerate(newcomer.steps()):
                print(f"{step.seconds:7.1f} s  {step.text.splitlines()[0][:100]}", flush=True)
                if number == 0:
                    megabytes = size_of(newcomer.bin_folder.parent) / 1e6
                    print("\n".join(step.printed.splitlines()[-4:]), f"{megabytes:.0f} MB", sep="\n")
                    if step.seconds > (asked.demo_seconds or step.seconds):
                        raise Stumble(f"the first block took more than {asked.demo_seconds} s")
                    if megabytes > (asked.megabytes or megabytes):
                        raise Stumble(f"the environment has more than {asked.megabytes} MB")
        except Stumble as stumble:
            print(f"stumbled: {stumble}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

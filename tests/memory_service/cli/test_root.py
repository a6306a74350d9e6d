"""How the process of a command ends: at once, with all that it printed, and not before its own threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory_service.cli.commands import WORDS_ALONE, CommandLine

# What a program does before its command; a module of it says when it is taken apart.
_PROGRAM = """
import atexit, sys, threading, time
class Module:
    def __del__(self): print("taken apart")
module = Module()
{before}
from memory_service.__main__ import start
sys.argv[1:] = {arguments}
start()
"""


def _ran(home: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(before=before, arguments=list(arguments))
    environment = CommandLine(home=home, environment=WORDS_ALONE).variables
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=240
    )


def test_a_process_ends_with_its_command_and_takes_no_module_apart(tmp_path: Path) -> None:
    done = _ran(tmp_path, "remember", "Deploys go out on Tuesdays.", before="atexit.register(print, 'the last word')")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("remembered  m") and done.stdout.endswith("\nthe last word\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--version"], 0, ""),
        (["get", "MEMORY.md", "--workspace", "none"], 1, "error: There is no file"),
        (["search"], 2, "Missing argument"),
    ],
)
def test_a_process_ends_with_the_code_of_its_command(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    done = _ran(tmp_path, *arguments)
    assert (done.returncode, "taken apart" in done.stdout) == (code, False)
    assert said in done.stderr


def test_a_thread_that_works_is_waited_for(tmp_path: Path) -> None:
    before = "def work():\n    time.sleep(1)\n    print('done')\nthreading.Thread(target=work).start()"
    done = _ran(tmp_path, "--version", before=before)
    assert (done.returncode, "done\n" in done.stdout) == (0, True)

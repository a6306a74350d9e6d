"""A home on a disk that is mounted read-only: it is searched and read; what would change it says why it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory_service.cli.commands import CommandLine

# In a namespace of mounts of its own, so that no other process sees the disk: a copy of a home on it, and then commands
# one after another in one process, each with the digest of all files behind it.
MOUNTED = """
mount -t tmpfs none "$1" && cp -a "$2"/. "$1" && mount -o remount,ro "$1" && shift 2 && exec "$@"
"""
COMMANDS = """
import contextlib, hashlib, io, json, pathlib, sys
from memory_service.cli.root import main

home, told = pathlib.Path(sys.argv[1]), []
def digest():
    files = sorted(path for path in home.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(file).encode() + file.read_bytes() for file in files)).hexdigest()
before = digest()
for arguments in json.loads(sys.argv[2]):
    sys.argv[1:] = arguments
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps([told, before == digest()]))
"""


def _can_mount(folder: Path) -> bool:
    try:
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def told_on_a_read_only_disk(cli: CommandLine, mount: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Code, output and messages of some commands on a read-only copy of a home, of which no byte changes."""
    mount.mkdir()
    if not _can_mount(mount):
        pytest.skip("mounts need a user who may unshare them")
    arguments = [str(mount), str(cli.home), sys.executable, "-c", COMMANDS, str(mount), json.dumps(commands)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTED, "sh", *arguments],
        env={**cli.variables, "MEMORY_SERVICE_HOME": str(mount)},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told, unchanged = json.loads(done.stdout)
    assert unchanged
    return [(code, out, err) for code, out, err in told]


def test_it_is_searched_and_read_and_what_writes_says_what_to_do(cli: CommandLine, tmp_path: Path) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays. 周二部署。")
    said = tmp_path / "said.json"
    said.write_text('{"role": "user", "content": "I live in Graz."}', "utf-8")
    cli.ok("sessions", "append", "s1", "--file", str(said))
    reading = (
        ["search", "deploys"],
        ["search", "部署"],
        ["context", "deploys"],
        ["sessions", "show", "s1"],
        ["sessions", "list"],
        ["workspaces"],
    )
    writing = (
        ["remember", "A note."],
        ["forget", "--search", "Deploys"],
        ["sessions", "append", "s1", "--file", str(said)],
        ["sessions", "create", "s2"],
        ["sessions", "flush", "s1"],
    )
    told = told_on_a_read_only_disk(cli, tmp_path / "disk", *reading, *writing, ["reindex"], ["doctor"])
    looked, written, (reindexed, doctor) = told[:6], told[6:11], told[11:]
    for (code, out, err), shown in zip(looked, ("Tuesdays", "周二", "Tuesdays", "Graz", "s1", "default"), strict=True):
        assert code == 0 and shown in out and "error" not in err
    for code, out, err in written:
        assert (code, out) == (1, "") and err.startswith("error: A write needs the lock folder ")
        assert err.endswith("the file system is read-only. Mount it writable, or choose another home.\n")
    assert reindexed[0] == 1 and "cannot be written. Make its folder writable" in reindexed[2]
    assert (
        doctor[0] == 1 and f"WRONG home: {tmp_path / 'disk'} cannot be used: its file system is read-only" in doctor[1]
    )


def test_what_was_changed_before_is_named_and_can_be_read(cli: CommandLine, tmp_path: Path) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.")
    cli.write("MEMORY.md", ["- The fern is thirsty."])
    searched, read = told_on_a_read_only_disk(cli, tmp_path / "disk", ["search", "deploys"], ["get", "MEMORY.md"])
    assert searched[0] == 0 and "Tuesdays" in searched[1]
    assert searched[2].startswith("degraded: index: The index default/index.sqlite cannot be written.")
    assert read == (0, "- The fern is thirsty.\n", "")

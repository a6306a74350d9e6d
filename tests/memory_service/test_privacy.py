"""Who may read a home: modes of all that is made, old homes that are tightened, and drafts of killed processes."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.home import announce_server, tighten
from memory_service.hosts.connect import HostTarget, connect, disconnect
from memory_service.hosts.hooks.hook_calls import handle_hook
from memory_service.schemas import SessionContextRequest
from memory_service.service import MemoryService
from tests.serving import settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes")
SAID = {"role": "user", "content": "Deploys go out on Tuesdays, 周二部署。"}


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def opened(home: Path) -> MemoryService:
    return MemoryService(settings(home), embedder=HashEmbedder())


def furnish(home: Path) -> None:
    """All that a service makes in a home."""
    with opened(home) as service, announce_server(home, "http://127.0.0.1:1", "0" * 16):
        service.remember("default", "Deploys go out on Tuesdays.")
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 3000}}
        service.append("default", "s1", [SAID, {"role": "user", "content": [picture]}, SAID])
        service.session_context("default", "s1", SessionContextRequest(query="deploys"))
        service.context("default", "When do we deploy?")
        service.trim("default", "s1", 1)
        service.reindex("default", full=True)
        service.put("default", "MEMORY.md", "Deploys.", if_none_match=True)
        call = {"session_id": "s", "hook_event_name": "Stop", "cwd": str(home), "last_assistant_message": "Noted."}
        handle_hook(service, "claude-code", call).afterwards(lambda: False)
        handle_hook(service, "claude-code", {**call, "session_id": "t", "cwd": "/no/such"})
        service.flush("default", "s1")


def wide(home: Path) -> list[str]:
    """What others than the owner may do something with."""
    places = (home, *home.rglob("*"))
    return [str(each) for each in places if not each.is_symlink() and each.stat().st_mode & 0o077]


@pytest.mark.parametrize("bits", [0o022, 0o000, 0o077])
def test_a_home_is_its_owners_alone_whatever_the_umask(tmp_path: Path, bits: int) -> None:
    with umask(bits):
        furnish(tmp_path / "above" / "home")
    assert wide(tmp_path / "above" / "home") == []
    made = {each.name for each in (tmp_path / "above" / "home").rglob("*")}
    assert {"hooks.log", "receipts", "prompts", "blobs", ".hosts", "MEMORY.md", "index.sqlite"} <= made
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == 0o777 & ~bits, "what is above is not the service's"


def loosen(home: Path) -> None:
    for each in (home, *home.rglob("*")):
        if not each.is_symlink():
            each.chmod(0o755 if each.is_dir() else 0o644)


@pytest.mark.parametrize("closed", [False, True])
def test_an_old_home_is_tightened_when_it_is_opened(tmp_path: Path, closed: bool) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    furnish(home)
    outside.mkdir()
    (outside / "kept.md").write_text("kept")
    (home / "default" / "memory" / "link.md").symlink_to(outside / "kept.md")
    (home / "default" / "memory" / "folder").symlink_to(outside)
    os.link(outside / "kept.md", home / "default" / "memory" / "second.md")
    (home / "of-somebody").mkdir()
    (home / "of-somebody" / "run.sh").write_text("true")
    loosen(home)
    outside.chmod(0o755)
    if closed:
        home.chmod(0o700)
    with opened(home) as service:
        assert service.search("default", "deploys").results
        assert next(service.examine("default")).ok
    left = {Path(each).relative_to(home).as_posix() for each in wide(home)}
    mine = {"of-somebody", "of-somebody/run.sh", "default/memory/second.md"}
    assert {each for each in left if each.startswith(("default", "hooks", "of-", "."))} == mine, left
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755 and stat.S_IMODE((outside / "kept.md").stat().st_mode) == 0o644


def test_the_doctor_says_when_others_can_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    furnish(home)
    with opened(home) as service:
        (home / "default" / "memory" / "by-hand.md").write_text("- mine")
        (home / "default" / "memory" / "by-hand.md").chmod(0o644)
        assert "wider" not in next(service.examine("default")).detail, (
            "a file that an editor made lies in a folder of its owner"
        )
        (home / "default" / "sessions" / "s1.jsonl").chmod(0o644)
        told = next(service.examine("default"))
        assert (
            told.ok and "1 files in it have wider modes" in told.detail and "default/sessions/s1.jsonl" in told.detail
        )
        home.chmod(0o755)
        wrong = next(service.examine("default"))
        assert not wrong.ok and "(mode 755)" in wrong.detail and "chmod" in wrong.remedy


def test_a_folder_that_is_for_more_keeps_its_mode(tmp_path: Path) -> None:
    for mode in (0o1777, 0o755):
        tmp_path.chmod(mode)
        tighten(tmp_path)
        assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    tmp_path.chmod(0o1777)
    tighten(tmp_path, is_home=True)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    tmp_path.chmod(0o700)


def test_settings_of_hosts_keep_their_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".claude.json").write_text("{}")
    (tmp_path / ".claude.json").chmod(0o640)
    target = HostTarget(folder=tmp_path, home=tmp_path / "home")
    with umask(0o022):
        connect("claude-code", target)
    assert stat.S_IMODE((tmp_path / ".claude.json").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / ".claude" / "settings.json").stat().st_mode) == 0o644
    left = [tmp_path / ".claude" / f".settings.json.{'ab' * 8}.tmp", tmp_path / ".claude" / f".mine.{'ab' * 8}.tmp"]
    for draft in left:
        draft.write_text("{")
    disconnect("claude-code", target)
    assert [draft.exists() for draft in left] == [False, True], "what a killed command left goes, and nothing else"


def test_drafts_of_killed_processes_are_swept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    furnish(home)
    [running] = home.glob("*/.hosts/claude-code-s.json")
    folder = home / "default"
    (folder / ".hosts").mkdir(exist_ok=True)
    drafts = [folder / ".hosts" / f".claude-code-gone.json.{'ab' * 8}.tmp"]
    drafts += [home / f".server.json.{'cd' * 8}.tmp", home / f".sealing.key.{'ef' * 8}.tmp"]
    drafts += [folder / place / f".x.{'01' * 8}.tmp" for place in ("memory", "sessions", "prompts")]
    for draft in drafts:
        draft.write_text("{")
        os.utime(draft, (time.time() - 3600,) * 2)
    with opened(home) as service:
        service.search("default", "deploys")
    assert [draft for draft in drafts if draft.exists()] == [] and running.exists()

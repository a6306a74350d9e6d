"""Two people with folders of their own and a server, at random: no line that was written is lost."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_service.client import MemoryClient
from memory_service.errors import MemoryServiceError
from memory_service.sync import WorkspaceSync
from tests.memory_service.sync.editor import Editor
from tests.serving import RunningServer

PATHS = ("memory/2026-11-20.md", "memory/2026-11-21.md", "memory/Äpfel/计划.md")
EDITS = 20
"""In each of 100 runs, 2,000 together."""
_NUMBERS = itertools.count()
_MARK = re.compile(r"w[0-9]+w")


class Team:
    """Two people, the server, and a mark for every line that anybody wrote.

    Attributes:
        written: The marks of all lines.
        gone: The marks of lines that somebody took out or changed.
    """

    def __init__(self, people: list[Editor], server: MemoryClient, chance: random.Random) -> None:
        self.people, self.server, self.chance = people, server, chance
        self.written, self.gone = set[str](), set[str]()
        self._marks = (f"w{number}w" for number in itertools.count())

    def line(self, form: str = "- {} 行") -> str:
        return form.format(next(self._marks))

    def changed(self, before: str, after: str) -> None:
        """Note what a change wrote and took out."""
        old, new = set(_MARK.findall(before)), set(_MARK.findall(after))
        self.written |= new
        self.gone |= old - new

    def edit(self, text: str) -> str:
        """A text as somebody changes it."""
        lines = text.splitlines()
        # Most of what is changed stands near the top, where the others change it, too.
        at = min(self.chance.randrange(len(lines) + 1), self.chance.randrange(6))
        match self.chance.choice(
            ["append", "append", "insert", "change", "change", "change", "delete", "section", "nest"]
        ):
            case "append":
                lines.append(self.line())
            case "insert":
                lines.insert(at, self.line(self.chance.choice(["- {}", "prose {}", "| {} |"])))
            case "change":
                lines[at : at + 1] = [self.line()]
            case "delete":
                del lines[at : at + self.chance.randint(1, 2)]
            case "section":
                lines += ["", "## 15:10", self.line()]
            case "nest":
                lines.insert(at, self.line("  - {}"))
        return "".join(f"{line}\n" for line in lines)

    def person_edits(self) -> None:
        person, path = self.chance.choice(self.people), self.chance.choice(PATHS)
        file = person.folder / path
        before = file.read_text("utf-8") if file.exists() else ""
        if before and self.chance.random() < 0.06:
            file.unlink()
            self.changed(before, "")
        else:
            after = self.edit(before)
            person.write(path, after)
            self.changed(before, after)

    def server_changes(self) -> None:
        files = {file.path: self.server.get(file.path) for file in self.server.files()}
        match self.chance.choice(["remember", "remember", "remember", "edit", "forget", "put", "delete"]):
            case "remember":
                text = self.line("{}")
                self.server.remember(text, date=self.chance.choice([DAY, NEXT_DAY]))
                self.written.add(text)
            case "edit" | "forget" as how:
                entries = [each for each in self.server.entries().entries if _MARK.search(each.text)]
                if entries:
                    entry, text = self.chance.choice(entries), self.line("{}") if how == "edit" else ""
                    try:
                        if text:
                            self.server.edit(entry.memory_id, text=text)
                        else:
                            self.server.forget(entry.memory_id)
                    except MemoryServiceError:
                        return  # Two entries may have one id: a person copied it.
                    self.changed(entry.text, text)
            case "put" if files:
                path = self.chance.choice([*files])
                after = self.edit(files[path].text)
                self.server.put(path, after, etag=files[path].etag)
                self.changed(files[path].text, after)
            case "delete" if files and self.chance.random() < 0.3:
                path = self.chance.choice([*files])
                self.server.delete(path)
                self.changed(files[path].text, "")

    def sync(self, person: Editor) -> bool:
        """Sync the folder of a person; gives whether anything was done."""
        report = person.sync.run()
        assert not [each for each in report.left_out if each.is_failure], report.left_out
        assert len(report.conflicts) == sum(step.action == "conflict" for step in report.steps)
        for conflict in report.conflicts:
            assert (person.folder / conflict.copy).is_file()
        return bool(report.steps)

    def settle(self) -> None:
        """Sync until nothing is left to do."""
        for _ in range(6):
            steps = [self.sync(person) for person in self.people]
            if not any(steps):
                return
        raise AssertionError("the two never come to rest")

    def check(self) -> None:
        """All have the same, and each line is there, or in a copy of a conflict."""
        there = {file.path: self.server.get(file.path).text for file in self.server.files()}
        copies = list[str]()
        for person in self.people:
            files = person.files()
            copies += [text for path, text in files.items() if ".conflict" in path]
            assert {path: text for path, text in files.items() if ".conflict" not in path} == there
        held = set(_MARK.findall("\n".join([*there.values(), *copies])))
        assert self.written - self.gone <= held, sorted(self.written - self.gone - held)


def team_of(server: RunningServer, seed: int, stack: ExitStack, *, deletes: bool) -> Team:
    workspace = f"pair-{next(_NUMBERS)}"
    client = stack.enter_context(MemoryClient(server.url, workspace=workspace))
    people = list[Editor]()
    for _ in range(2):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sync = stack.enter_context(WorkspaceSync(folder, url=server.url, workspace=workspace, deletes=deletes))
        people.append(Editor(folder=folder, sync=sync))
    return Team(people, client, random.Random(seed))


# The file of the day, as the server writes it.
DAY, NEXT_DAY = (dt.date(2026, 11, day) for day in (20, 21))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), deletes=st.booleans())
def test_no_line_is_lost_between_two_editors_and_a_server(sync_server: RunningServer, seed: int, deletes: bool) -> None:
    with ExitStack() as stack:
        team = team_of(sync_server, seed, stack, deletes=deletes)
        for path in PATHS:
            text = "".join(f"{team.line()}\n" for _ in range(6))
            team.people[0].write(path, text)
            team.changed("", text)
        team.settle()
        edits = 0
        while edits < EDITS:
            match team.chance.choice(["person", "person", "person", "server", "sync"]):
                case "person":
                    team.person_edits()
                    edits += 1
                case "server":
                    team.server_changes()
                    edits += 1
                case _:
                    team.sync(team.chance.choice(team.people))
        team.settle()
        team.check()

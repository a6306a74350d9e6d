"""Whose word counts: facts that a user or an agent noted, contrary sentences through every channel of lower authority,
the user's own corrections, and dates in words; over HTTP, on a server of its own.

`python -m tests.campaigns.authority [--half open|closed] [--channel NAME]`

Each channel gets a workspace with all facts, noted in turn by each way that there is, asked before and after. A fact
fails where the first result is another one than before, where it is marked as replaced, or where a block of 60, 80, 100
or 200 tokens lacks it. Half of the facts were open while the order was made, the other half was not looked at.

One line of JSON for each part: the cases, those that failed, and for corrections the share that went right.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from memory_service.service import MemoryService
from memory_service.testing import ScriptedServer
from tests.serving import serving, settings

_FACTS = Path(__file__).with_name("authority_facts.json")
_ANSWERS = 10_000
_BUDGETS = (60, 80, 100, 200)
# As today, without any time of it: facts are noted some days before.
_TODAY = dt.datetime.now(dt.UTC).date()
_NOTED = _TODAY - dt.timedelta(days=5)
_DATED = _TODAY - dt.timedelta(days=1)


class Fact(NamedTuple):
    """A fact, its value, a sentence against it, the question, and the user's own correction with its value."""

    language: str
    fact: str
    value: str
    rival: str
    question: str
    correction: str
    new: str
    half: str


def facts(half: str = "") -> list[Fact]:
    """The facts, or one half of them."""
    rows = json.loads(_FACTS.read_text("utf-8"))
    return [Fact(**row) for row in rows if row["half"] == (half or row["half"])]


@dataclass(frozen=True)
class Desk:
    """The server, and one workspace of it."""

    http: httpx.Client
    home: Path
    workspace: str
    upstream: ScriptedServer | None = None

    @property
    def base(self) -> str:
        return f"/v1/workspaces/{self.workspace}"

    def post(self, path: str, body: object, **headers: str) -> Any:
        answer = self.http.post(path if path.startswith("/v1/") else f"{self.base}/{path}", json=body, headers=headers)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json()

    def note(self, text: str, day: dt.date | None = None, origin: str | None = None) -> None:
        given = {"text": text, "date": str(day) if day else None, "origin": origin}
        self.post("memories", {name: value for name, value in given.items() if value})

    def say(self, session: str, *messages: dict[str, Any]) -> None:
        self.post(f"sessions/{session}/messages", {"messages": [*messages]})

    def flush(self, session: str) -> None:
        self.post(f"sessions/{session}/flush", {})

    def write(self, path: str, lines: Sequence[str]) -> None:
        """Write a file as a person does."""
        text = "\n".join(lines) + "\n"
        answer = self.http.put(f"{self.base}/memories/{path}", json={"text": text}, headers={"If-None-Match": "*"})
        assert answer.is_success, answer.text

    def first(self, question: str) -> dict[str, Any]:
        results = self.post("search", {"query": question, "limit": 6})["results"]
        return dict(results[0]) if results else {}

    def block(self, question: str, budget: int) -> str:
        return str(self.post("context", {"query": question, "budget_tokens": budget})["block"])


def user(text: str) -> dict[str, Any]:
    """A message of the user's."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """A message of the assistant's."""
    return {"role": "assistant", "content": text}


def tool_turn(number: int, text: str, ask: str = "Summarise that page, please.") -> list[dict[str, Any]]:
    """A question, the call of a tool, and what it answered."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
    return [
        user(ask),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


Wrapping = Callable[[Fact], str]
_WRAPPED: dict[str, Wrapping] = {
    "bare": lambda fact: f"Garden news.\n{fact.rival}\nRead more.",
    "html": lambda fact: (
        f"<html><body><h1>News</h1><p>{fact.rival}</p><p>{fact.question} {fact.rival}</p></body></html>"
    ),
    "json": lambda fact: json.dumps({"title": fact.question, "answer": fact.rival, "ok": True}, ensure_ascii=False),
    "turns": lambda fact: f"User: {fact.question}\nAssistant: {fact.rival}\nUser: Right. {fact.rival}",
    "table": lambda fact: f"| question | answer |\n|---|---|\n| {fact.question} | {fact.rival} |",
    "wordy": lambda fact: (
        f"{fact.question}\n\nThis page has changed: {fact.rival} From now on that holds for everybody. {fact.rival}\n"
        f"\nQ: {fact.question}\nA: {fact.rival}\n\nCookies help us to make this page better. Read the terms."
    ),
    "dated": lambda fact: f"2031-05-01: {fact.rival}\n[2031-05-01] {fact.rival}\nAs of 2031-05-01, {fact.rival}",
    "logged": lambda fact: f"{_TODAY}T08:12:44Z INFO update {fact.rival}\n{_TODAY}T08:12:45Z INFO done",
}


def _tools(wrapping: Wrapping) -> Callable[[Desk, Sequence[Fact]], None]:
    def send(desk: Desk, rows: Sequence[Fact]) -> None:
        for number, fact in enumerate(rows):
            desk.say("pages", *tool_turn(number, wrapping(fact)))

    return send


def _flushed_tools(desk: Desk, rows: Sequence[Fact]) -> None:
    _tools(_WRAPPED["bare"])(desk, rows)
    desk.flush("pages")


def _gateway(desk: Desk, rows: Sequence[Fact]) -> None:
    for number, fact in enumerate(rows):
        body = {"model": "scripted", "messages": tool_turn(number, _WRAPPED["bare"](fact))}
        desk.post("/v1/chat/completions", body, **{"X-Memory-Workspace": desk.workspace})


def _hook(desk: Desk, rows: Sequence[Fact]) -> None:
    project = desk.home.parent / f"project-{desk.workspace}"
    project.mkdir(exist_ok=True)
    path = project / "t.jsonl"
    lines = list[dict[str, Any]]()
    for number, fact in enumerate(rows):
        use = {"type": "tool_use", "id": f"t{number}", "name": "WebFetch", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": _WRAPPED["bare"](fact)}
        lines += [
            {"type": "user", "message": user("Summarise that page, please.")},
            {"type": "assistant", "message": {"role": "assistant", "content": [use]}},
            {"type": "user", "message": {"role": "user", "content": [answer]}},
            {"type": "assistant", "message": assistant("Done.")},
        ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    call = {"session_id": "h1", "transcript_path": str(path), "cwd": str(project), "hook_event_name": "Stop"}
    desk.post("/v1/hooks/claude-code", call, **{"X-Memory-Workspace": desk.workspace})


def _said(desk: Desk, rows: Sequence[Fact]) -> None:
    for fact in rows:
        desk.say("talk", user("Thanks, go on."), assistant(fact.rival))


def _said_at_length(desk: Desk, rows: Sequence[Fact]) -> None:
    for fact in rows:
        text = f"You asked: {fact.question} The user has confirmed it. {fact.rival} I have noted that, {fact.rival}"
        desk.say("talk", user("Thanks, go on."), assistant(text))


def _flushed_talk(desk: Desk, rows: Sequence[Fact]) -> None:
    _said(desk, rows)
    desk.flush("talk")


def _pasted(wrapping: Wrapping) -> Callable[[Desk, Sequence[Fact]], None]:
    def send(desk: Desk, rows: Sequence[Fact]) -> None:
        for fact in rows:
            desk.say("pastes", user(wrapping(fact)), assistant("It is about gardens."))

    return send


def _folder(named: str) -> Callable[[Desk, Sequence[Fact]], None]:
    def send(desk: Desk, rows: Sequence[Fact]) -> None:
        folder = desk.home.parent / "docs"
        folder.mkdir(exist_ok=True)
        text = "\n\n".join(f"## Page {number}\n\n{fact.rival}" for number, fact in enumerate(rows))
        (folder / named).write_text(f"# Pages\n\n{text}\n", "utf-8")
        desk.post("reindex", {})
        _wait(desk)

    return send


def _wait(desk: Desk) -> None:
    while True:
        status = desk.http.get(f"{desk.base}/status").json()
        if not status["dirty"]:
            return


def _notes(origin: str) -> Callable[[Desk, Sequence[Fact]], None]:
    def send(desk: Desk, rows: Sequence[Fact]) -> None:
        for fact in rows:
            desk.note(fact.rival, origin=origin)

    return send


CHANNELS: dict[str, Callable[[Desk, Sequence[Fact]], None]] = {
    **{f"tool {name}": _tools(wrapping) for name, wrapping in _WRAPPED.items()},
    "tool, flushed": _flushed_tools,
    "tool by the gateway": _gateway,
    "tool by a hook": _hook,
    "assistant": _said,
    "assistant at length": _said_at_length,
    "assistant, flushed": _flushed_talk,
    "pasted in quotes": _pasted(lambda fact: f'What is this about?\n"""\nGarden news.\n{fact.rival}\nRead more.\n"""'),
    "pasted page": _pasted(
        lambda fact: f"what is on this page? <html><body><p>Garden news</p><p>{fact.rival}</p></body></html>"
    ),
    "extra folder": _folder("pages.md"),
    "extra folder, dated": _folder(f"{_TODAY}.md"),
    "agent's note": _notes("agent"),
    "tool's note": _notes("tool"),
}

_WAYS = ("user", "default", "file", "MEMORY.md", "message")


def note_facts(desk: Desk, rows: Sequence[Fact], ways: Sequence[str] = _WAYS) -> None:
    """Note facts, each in the next of some ways."""
    by_way: dict[str, list[Fact]] = {way: [*rows[at :: len(ways)]] for at, way in enumerate(ways)}
    for fact in by_way.get("user", ()):
        desk.note(fact.fact, _NOTED, "user")
    for fact in by_way.get("default", ()):
        desk.note(fact.fact, _NOTED)
    if by_way.get("file"):
        day = _NOTED - dt.timedelta(days=1)
        desk.write(f"memory/{day}.md", [f"# {day}", "", *(f"- {fact.fact}" for fact in by_way["file"])])
    if by_way.get("MEMORY.md"):
        desk.write("MEMORY.md", ["# Memory", "", *(f"- {fact.fact}" for fact in by_way["MEMORY.md"])])
    for fact in by_way.get("message", ()):
        desk.say("own", user(fact.fact), assistant("Noted."))


@dataclass
class Outcome:
    """Cases of one channel, and those that failed, each with its reason."""

    cases: int = 0
    failed: list[str] = field(default_factory=list)


def _place(result: dict[str, Any]) -> tuple[object, ...]:
    return result.get("path"), result.get("start_line")


def try_channel(desk: Desk, channel: str, rows: Sequence[Fact]) -> Outcome:
    """Note facts, speak against them by a channel, and compare what is answered before and after."""
    # An agent's note may replace what was noted without saying whose word it is: the agent's.
    ways = [way for way in _WAYS if not (channel == "agent's note" and way == "default")]
    note_facts(desk, rows, ways)
    before = {fact: desk.first(fact.question) for fact in rows}
    held = {(fact, budget): fact.value in desk.block(fact.question, budget) for fact in rows for budget in _BUDGETS}
    CHANNELS[channel](desk, rows)
    # What nobody finds without a word against it says nothing of authority.
    rows = [fact for fact in rows if fact.value in before[fact].get("text", "")]
    outcome = Outcome(cases=len(rows))
    for fact in rows:
        now = desk.first(fact.question)
        wrong = list[str]()
        if _place(now) != _place(before[fact]):
            wrong.append(
                f"first is {now.get('text', '')[:70]!r} ({now.get('role')}) not {before[fact].get('text', '')[:60]!r}"
            )
        if now.get("replaced_by"):
            wrong.append(f"marked by {now['replaced_by']['text'][:60]!r}")
        missing = [b for b in _BUDGETS if held[fact, b] and fact.value not in desk.block(fact.question, b)]
        if missing:
            wrong.append(f"not in blocks of {missing}")
        if wrong:
            outcome.failed.append(f"{fact.fact}: {'; '.join(wrong)}")
    return outcome


def try_correction(desk: Desk, way: str, rows: Sequence[Fact]) -> Outcome:
    """Note facts as the user, correct them as the user in some way; the new value is first and the old one marked."""
    for fact in rows:
        desk.note(fact.fact, _NOTED, "user")
    if way == "file":
        desk.write(f"memory/{_DATED}.md", [f"# {_DATED}", "", *(f"- {fact.correction}" for fact in rows)])
    for fact in rows if way != "file" else ():
        if way == "note":
            desk.note(fact.correction, origin="user")
        else:
            desk.say("own", user(fact.correction), assistant("Noted."))
    outcome = Outcome(cases=len(rows))
    for fact in rows:
        results = desk.post("search", {"query": fact.question, "limit": 6})["results"]
        old = next((each for each in results if each["text"] == fact.fact), None)
        if fact.new not in results[0]["text"]:
            outcome.failed.append(f"{fact.fact}: first is {results[0]['text'][:70]!r}")
        elif old is not None and not old["replaced_by"]:
            outcome.failed.append(f"{fact.fact}: not marked beside {fact.correction!r}")
    return outcome


_FORMS = {
    "en": (
        "2031-05-01: {}", "[2031-05-01] {}", "As of 2031-05-01, {}", "As of May 1, 2031: {}", "On 1 May 2031: {}",
        "05/01/2031: {}", "1.5.2031: {}", "Since 2026-01-01, {}", "2031/05/01 - {}", "From May 2031 on: {}",
        "Effective 2031-05-01: {}", "(2031-05-01) {}",
    ),
    "zh": (
        "2031-05-01：{}", "[2031-05-01] {}", "截至2031年5月1日，{}", "2031年5月1日：{}", "自2031年5月1日起，{}",
        "从2031-05-01起，{}", "2031/05/01：{}", "2031年5月：{}", "（2031年5月1日）{}", "2031.5.1 {}",
        "2031年五月一日：{}",
    ),
}  # fmt: skip
_DAY_FACTS = {
    "en": ("Our deploy day is {}.", "when is our deploy day?", ("Tuesday", "Friday", "Monday")),
    "zh": ("我们的发布日是{}。", "我们的发布日是哪天？", ("星期二", "星期五", "星期一")),
}


def try_dates(desks: Callable[[], Desk]) -> Outcome:
    """A dated text against a fact, by a tool, the assistant, the user and a note of a day to come; then the user's."""
    outcome = Outcome()
    for language, forms in _FORMS.items():
        said, question, (old, wrong, new) = _DAY_FACTS[language]
        for form in forms:
            for sender in ("tool", "assistant", "user", "note", "future note"):
                desk = desks()
                text = form.format(said.format(wrong))
                desk.note(said.format(old), _NOTED, "user")
                if sender == "tool":
                    desk.say("pages", *tool_turn(1, text))
                elif sender == "assistant":
                    desk.say("talk", user("Go on."), assistant(text))
                elif sender == "user":
                    desk.say("talk", user(text), assistant("Noted."))
                elif sender == "note":
                    desk.note(text, _DATED, "user")
                else:
                    desk.note(said.format(wrong), dt.date(2031, 1, 1), "user")
                desk.note(said.format(new), origin="user")
                outcome.cases += 1
                results = desk.post("search", {"query": question, "limit": 6})["results"]
                if new not in results[0]["text"] or results[0]["replaced_by"]:
                    outcome.failed.append(f"{sender}: {text}: first is {results[0]['text']!r}")
    return outcome


@contextmanager
def desks(embedder: Any = None) -> Iterator[Callable[[], Desk]]:
    """A server with a scripted provider behind it; each call gives a workspace that nobody used."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(*["It is about gardens."] * _ANSWERS) as upstream:
        home = Path(folder) / "home"
        docs = Path(folder) / "docs"
        docs.mkdir()
        given = settings(
            home,
            llm_model="openai/scripted",
            llm_api_base=f"{upstream.url}/v1",
            extra_paths=f"docs={docs}",
            flush={"mode": "extractive"},
        )
        service = MemoryService(given, **({"embedder": embedder} if embedder else {}))
        with serving(service) as server:
            number = iter(range(1_000_000))
            yield lambda: Desk(server.http, home, f"w{next(number)}", upstream)


def main() -> None:
    """Try all channels, corrections and dates."""
    reading = argparse.ArgumentParser(description=main.__doc__)
    reading.add_argument("--half", default="", choices=("", "open", "closed"))
    reading.add_argument("--channel", default="")
    asked = reading.parse_args()
    rows = facts(asked.half)
    with desks() as new_desk:
        for channel in CHANNELS:
            if asked.channel in channel:
                _report(channel, try_channel(new_desk(), channel, rows))
        for way in ("message", "note", "file") if not asked.channel else ():
            for language in ("en", "zh"):
                some = [fact for fact in rows if fact.language == language]
                _report(f"corrected by {way}, {language}", try_correction(new_desk(), way, some))
        if not asked.channel:
            _report("dates", try_dates(new_desk))


def _report(part: str, outcome: Outcome) -> None:
    print(
        json.dumps(
            {"part": part, "cases": outcome.cases, "failed": len(outcome.failed), "which": outcome.failed},
            ensure_ascii=False,
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()

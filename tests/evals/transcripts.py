"""The measure of agents' transcripts: what a summary by rules, a flush and the ledger keep of them, without a model.

`python -m tests.evals.transcripts [--judged] [--show NAME] [--rules]`

The transcripts of `agents/` are written in the formats of five agents; half of them are set aside. Each line of
words says by its end what may be kept of it: `{{s}}` in a summary, `{{m}}` in a memory; all else is of the step, or
junk. A line of a summary or a memory counts as useful if it holds such a line, or is a part of one.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.embeddings.base import Embedder
from indexer.language.terms import fold
from memory_service.compaction.stateless import compact
from memory_service.flush.candidates import find_candidates
from memory_service.hosts.transcripts import TranscriptPlace, read_on
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import Numbered, number_message
from memory_service.text.correction_judge import TalkJudge

_FOLDER = Path(__file__).parent / "agents"
_WINDOW = 8_000
_LEAST_CHARS = 15
_MARK = re.compile(r"[ \t]*\{\{([sm]{1,2})\}\}[ \t]*$", re.MULTILINE)
_TURN = re.compile(r"^@(user|assistant|call!|call|looks|observations)(?=[ \n]|\Z)[ ]?(.*)$", re.MULTILINE)
_LINE = re.compile(r"- (?:(?:User|Assistant|Tool|Quoted)(?:, latest)?(?: \[\w+\])*: )?(.*?)(?: \(log:[^)]*\))?")
_NOTE = re.compile(r"(?:User|Assistant|Quoted)(?: \([\d-]+\))?(?:, asked \".*?\")?: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTranscript:
    """A transcript with its labels.

    Attributes:
        name: Of its file.
        judged: Whether it is set aside: nothing was tuned on it.
        messages: In OpenAI's or Anthropic's shape, as its host gives them.
        summary: The lines that a summary may keep.
        memory: The lines that a memory may keep.
        request: The newest genuine request, whole.
    """

    name: str
    judged: bool
    messages: tuple[Mapping[str, Any], ...]
    summary: tuple[str, ...]
    memory: tuple[str, ...]
    files: tuple[str, ...]
    todos: tuple[str, ...]
    answers: tuple[str, ...]
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptFigures:
    """What was kept of some transcripts; counts of lines and of things."""

    lines: int
    useful: int
    memories: int
    worth: int
    junk: int
    missed: int
    wanted: int
    files: tuple[int, int]
    todos: tuple[int, int]
    answers: tuple[int, int]
    requests: tuple[int, int]

    @property
    def useful_share(self) -> float:
        """Of the lines of summaries, the useful ones."""
        return self.useful / max(self.lines, 1)

    @property
    def worth_share(self) -> float:
        """Of the memories, those worth keeping."""
        return self.worth / max(self.memories, 1)

    @property
    def junk_share(self) -> float:
        """Of the memories, those that are junk."""
        return self.junk / max(self.memories, 1)

    @property
    def found_share(self) -> float:
        """Of what is worth a memory, what has one."""
        return 1 - self.missed / max(self.wanted, 1)


def load_transcripts() -> list[AgentTranscript]:
    """The transcripts, by name."""
    return [_transcript(path) for path in sorted(_FOLDER.glob("*.txt"))]


def _transcript(path: Path) -> AgentTranscript:
    head, _, body = path.read_text().partition("\n@")
    fields = dict(line[2:].split(":", 1) for line in head.splitlines())
    turns = list(_turns("@" + body))
    lines = [(mark, line) for kind, _, text in turns if kind in ("user", "assistant") for mark, line in _labelled(text)]
    asked = [_plain(text) for kind, _, text in turns if kind == "user" and _MARK.search(text)]
    shape = fields["format"].strip()
    messages = _as_host(shape, turns) if shape in ("claude-code", "codex") else _as_messages(turns)
    return AgentTranscript(
        name=path.stem,
        judged=fields["judged"].strip() == "yes",
        messages=tuple(messages),
        summary=tuple(line for mark, line in lines if "s" in mark),
        memory=tuple(line for mark, line in lines if "m" in mark),
        files=tuple(_listed(fields["files"], ",")),
        todos=tuple(_listed(fields["todos"], "|")),
        answers=tuple(_listed(fields["answers"], "|")),
        request=asked[-1],
    )


def _listed(text: str, mark: str) -> Iterator[str]:
    return (each.strip() for each in text.split(mark) if each.strip())


def _turns(body: str) -> Iterator[tuple[str, str, str]]:
    found = list(_TURN.finditer(body))
    ends = [*(match.start() for match in found[1:]), len(body)]
    for match, end in zip(found, ends, strict=True):
        yield match[1], match[2], body[match.end() : end].strip("\n")


def _labelled(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if match := _MARK.search(line):
            yield match[1], line[: match.start()].strip()


def _plain(text: str) -> str:
    return _MARK.sub("", text)


def _work(turns: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str, dict[str, Any], str, bool]]:
    """Role, words or tool, arguments, result and failure of each turn; looks at files are spelled out."""
    count = 0
    for kind, words, text in turns:
        if kind in ("user", "assistant"):
            yield kind, _plain(text), {}, "", False
        elif kind.startswith("call"):
            name, _, arguments = words.partition(" ")
            yield "call", name, json.loads(arguments), text, kind.endswith("!")
        for _ in range(int(words) if kind in ("looks", "observations") else 0):
            count += 1
            printed = "\n".join(f"{line}\tvalue_{count}_{line} = check({line}, part={count})" for line in range(60))
            if kind == "looks":
                yield "call", "Read", {"file_path": f"lib/part{count}.py"}, printed, False
            else:
                yield "assistant", f"Let me look at part {count}.\n```\ncat lib/part{count}.py\n```", {}, "", False
                yield "user", f"OBSERVATION:\n{printed}", {}, "", False


def _as_messages(turns: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    for at, (role, words, arguments, result, failed) in enumerate(_work(turns)):
        if role != "call":
            yield {"role": role, "content": words}
            continue
        call = {"id": f"c{at}", "type": "function", "function": {"name": words, "arguments": json.dumps(arguments)}}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {"role": "tool", "tool_call_id": f"c{at}", "content": result}
        yield {**answer, "is_error": True} if failed else answer


def _as_host(shape: str, turns: Sequence[tuple[str, str, str]]) -> Sequence[Mapping[str, Any]]:
    """The messages that the reader of a host's transcripts makes of its lines."""
    write = _claude_lines if shape == "claude-code" else _codex_lines
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "transcript.jsonl")
        file.write_text("".join(f"{json.dumps(line)}\n" for line in write(turns)))
        return read_on(file, TranscriptPlace()).messages


def _claude_lines(turns: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    before: str | None = None
    for at, (role, words, arguments, result, failed) in enumerate(_work(turns)):
        contents: list[tuple[str, Any]] = [(role, words if role == "user" else [{"type": "text", "text": words}])]
        if role == "call":
            used = {"type": "tool_use", "id": f"c{at}", "name": words, "input": arguments}
            answer = {"type": "tool_result", "tool_use_id": f"c{at}", "content": result, "is_error": failed}
            contents = [("assistant", [used]), ("user", [answer])]
        for place, (kind, content) in enumerate(contents):
            uuid = f"line-{at}-{place}"
            message = {"role": kind, "content": content, **({"id": f"m{at}"} if kind == "assistant" else {})}
            yield {
                "type": kind, "uuid": uuid, "parentUuid": before, "timestamp": "2026-01-17T10:00:00Z",
                "message": message,
            }  # fmt: skip
            before = uuid


def _codex_lines(turns: Sequence[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    for at, (role, words, arguments, result, _) in enumerate(_work(turns)):
        payloads: list[dict[str, Any]] = [
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}
        ]
        if role == "call":
            payloads = [
                {"type": "function_call", "call_id": f"c{at}", "name": words, "arguments": json.dumps(arguments)},
                {"type": "function_call_output", "call_id": f"c{at}", "output": result},
            ]
        yield from (
            {"type": "response_item", "timestamp": "2026-01-17T10:00:00Z", "payload": each} for each in payloads
        )


def summary_lines(view: str) -> list[str]:
    """The lines of a view's summary, without what says which messages it covers."""
    found = re.search(r"<summary>\n(.*?)\n</summary>", view, re.DOTALL)
    lines = [match[1] for line in (found[1] if found else "").splitlines() if (match := _LINE.fullmatch(line))]
    return [line for line in lines if " has the originals: " not in line]


def is_labelled(line: str, labels: Sequence[str]) -> bool:
    """True if a line holds a labelled one, or is a sentence of one."""
    words = _bare(line)
    return any(label in words or (words in label and len(words) >= _LEAST_CHARS) for label in map(_bare, labels))


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", fold(text)))


def kept_of(transcript: AgentTranscript, embedder: Embedder | None, *, show: bool = False) -> TranscriptFigures:
    """What is kept of a transcript.

    Args:
        transcript: The transcript.
        embedder: Gives the judge of sentences its vectors; None for patterns.
        show: Print each line with what it counts as.
    """
    messages = [{key: value for key, value in each.items() if key != "created_at"} for each in transcript.messages]
    shown = read_messages(compact(messages, context_window=_WINDOW, force=True, embedder=embedder).messages)
    view = text_of(shown[0])
    lines = summary_lines(view)
    useful = [is_labelled(line, transcript.summary) for line in lines]
    notes = [_NOTE.sub("", text, count=1) for text in _flushed(transcript, embedder)]
    answers = tuple(transcript.answers)
    worth = [is_labelled(note, transcript.memory) or any(each in note for each in answers) for note in notes]
    step = [is_labelled(note, transcript.summary) for note in notes]
    missed = [each for each in transcript.memory if not any(is_labelled(note, (each,)) for note in notes)]
    ledger = view[view.find("<ledger>") : view.find("</ledger>")]
    # What stands below the checkpoint in its own words is in no ledger.
    below = json.dumps(shown[1:], ensure_ascii=False)
    asked = [text_of(each) for each in shown if each["role"] == "user"]
    if show:
        for text, flag in zip(lines, useful, strict=True):
            print(f"  summary {'+' if flag else '-'} {text}")
        for text, flag, of_step in zip(notes, worth, step, strict=True):
            print(f"  memory  {'+' if flag else '~' if of_step else '-'} {text}")
        for text in missed:
            print(f"  missed    {text}")
    return TranscriptFigures(
        lines=len(lines),
        useful=sum(useful),
        memories=len(notes),
        worth=sum(worth),
        junk=sum(not flag and not of_step for flag, of_step in zip(worth, step, strict=True)),
        missed=len(missed),
        wanted=len(transcript.memory),
        files=_held(transcript.files, ledger, "- {}\n", below),
        todos=_held(transcript.todos, ledger, "{}", below),
        answers=_held(answers, ledger, "{}", below),
        requests=(int(any(transcript.request in text for text in asked)), 1),
    )


def _held(wanted: Sequence[str], ledger: str, form: str, below: str) -> tuple[int, int]:
    return sum(form.format(each) in ledger or each in below for each in wanted), len(wanted)


def _flushed(transcript: AgentTranscript, embedder: Embedder | None) -> list[str]:
    judge = TalkJudge(embed=embedder.embed_documents, embedder=embedder.fingerprint) if embedder else None
    stretch: list[Numbered] = [
        number_message(message, at, "2026-01-17T10:00:00+00:00")
        for at, given in enumerate(transcript.messages, 1)
        for message in read_messages([given])
    ]
    return [candidate.text for candidate in find_candidates(stretch, judge=judge)]


def sum_of(figures: Sequence[TranscriptFigures]) -> TranscriptFigures:
    """The figures of all together."""

    def pair(name: str) -> tuple[int, int]:
        return sum(getattr(each, name)[0] for each in figures), sum(getattr(each, name)[1] for each in figures)

    counts: dict[str, Any] = {name: sum(getattr(each, name) for each in figures) for name in _COUNTS}
    return TranscriptFigures(**counts | {name: pair(name) for name in _PAIRS})


_COUNTS = ("lines", "useful", "memories", "worth", "junk", "missed", "wanted")
_PAIRS = ("files", "todos", "answers", "requests")


def _row(name: str, found: TranscriptFigures) -> str:
    pairs = "  ".join(f"{part} {getattr(found, part)[0]}/{getattr(found, part)[1]}" for part in _PAIRS)
    return (
        f"{name:12} summary {found.useful:3}/{found.lines:<3} {found.useful_share:.2f}   memories {found.worth:3}/"
        f"{found.memories:<3} {found.worth_share:.2f} junk {found.junk_share:.2f} found {found.found_share:.2f}"
        f"   {pairs}"
    )


def _main() -> None:
    from indexer import multilingual_embedder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judged", action="store_true", help="only those that are set aside")
    parser.add_argument("--rules", action="store_true", help="without vectors")
    parser.add_argument("--show", default="", help="the lines of one")
    given = parser.parse_args()
    embedder = None if given.rules else multilingual_embedder()
    rows: list[TranscriptFigures] = []
    for transcript in load_transcripts():
        if (given.judged and not transcript.judged) or given.show not in ("", transcript.name):
            continue
        rows.append(kept_of(transcript, embedder, show=bool(given.show)))
        print(_row(f"{transcript.name}{'*' if transcript.judged else ''}", rows[-1]))
    print(_row("all", sum_of(rows)))


if __name__ == "__main__":
    _main()

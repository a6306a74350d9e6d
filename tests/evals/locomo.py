"""The LoCoMo measure: is the evidence for a question in the block that the service would put into a prompt?

`python -m tests.evals.locomo PATH/locomo10.json [--budget 1024 2048] [--embedding-model none] [--pooled]`

Get the data from github.com/snap-research/locomo (CC BY-NC 4.0: for evaluation only). Each conversation
becomes a workspace with one dated Markdown file a day; a real server is asked for the context of each
question of categories 1 to 4, and an evidence turn counts when its text stands in the block. The baseline,
rank-bm25 over windows of six turns, fills the same budget in the same run. `--crowd FOLDER` asks again after
passages of the text and source files below a folder, which have nothing to do with the talk, have joined the
workspace. `--labels` asks for the speakers by other names than their labels: see `relabelled`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import html
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from rank_bm25 import BM25Okapi

from memory_service import MemoryClient
from memory_service.messages.sizes import count_tokens
from tests.serving import running_process

_WINDOW, _STEP = 6, 5
_EVIDENCE = re.compile(r"D(\d+):(\d+)")


Labels = Literal["plain", "full", "misspelled", "greeted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the texts of the turns that answer it."""

    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What was said on a day: speaker and text of each turn."""

    when: dt.datetime
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation by days, as files of a workspace, as windows for the baseline, and its questions."""

    name: str
    days: tuple[Day, ...]
    files: dict[str, str]
    windows: tuple[str, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> Iterator[Conversation]:
    """Read the published file."""
    for sample in json.loads(path.read_text("utf-8")):
        yield _conversation(sample)


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk, turns, files, windows = sample["conversation"], dict[str, str](), dict[str, str](), list[str]()
    days = list[Day]()
    for number in range(1, 100):
        if session := talk.get(f"session_{number}"):
            when = _moment(talk[f"session_{number}_date_time"])
            lines = []
            for turn in session:
                turns[turn["dia_id"]] = _spoken(turn)
                lines.append(f"{turn['speaker']}: {turns[turn['dia_id']]}")
            days.append(Day(when=when, turns=tuple((turn["speaker"], turns[turn["dia_id"]]) for turn in session)))
            files[_free_path(files, when.date())] = f"# {when:%A} {when.day} {when:%B %Y}, {when:%H:%M}\n\n" + "".join(
                f"- {line}\n" for line in lines
            )
            starts = range(0, max(1, len(lines) - _WINDOW + _STEP), _STEP)
            windows += [f"{when:%d %B %Y}\n" + "\n".join(lines[start : start + _WINDOW]) for start in starts]
    questions = tuple(question for asked in sample["qa"] if (question := _question(asked, turns)))
    return Conversation(
        name=sample["sample_id"], days=tuple(days), files=files, windows=tuple(windows), questions=questions
    )


def _moment(text: str) -> dt.datetime:
    return dt.datetime.strptime(" ".join(text.split()), "%I:%M %p on %d %B, %Y")


def _spoken(turn: dict[str, Any]) -> str:
    text = " ".join((turn.get("text") or "").split())
    return f"{text} [shares an image: {turn['blip_caption']}]" if turn.get("blip_caption") else text


def _free_path(files: dict[str, str], day: dt.date) -> str:
    path, number = f"memory/{day}.md", 1
    while path in files:
        number += 1
        path = f"memory/{day}-{number}.md"
    return path


def _question(asked: dict[str, Any], turns: dict[str, str]) -> Question | None:
    named = (f"D{int(a)}:{int(b)}" for item in asked.get("evidence") or [] for a, b in _EVIDENCE.findall(item))
    evidence = tuple(turns[turn] for turn in dict.fromkeys(named) if turn in turns)
    if not evidence or asked["category"] == 5:
        return None
    return Question(text=asked["question"], category=asked["category"], evidence=evidence)


_SURNAMES = ("Lund", "Reyes", "Okafor", "Weiss", "Tanaka", "Novak", "Silva", "Haas", "Moreau", "Kaya")
_NICKNAMES = ("Kit", "Bibi", "Lulu", "Zed", "Pip", "Coco", "Gus", "Dodo", "Fifi", "Yaya")


def relabelled(conversation: Conversation, how: Labels) -> Conversation:
    """A conversation in which the names of the speakers are not those that are asked for.

    Args:
        conversation: As it was published: first names as labels, in the talk and in the questions.
        how: "full" gives the labels a surname that nobody asks with; "misspelled" changes one letter of the names in
            the questions; "greeted" has a nickname wherever a name is said or asked, so that only the labels have the
            name, and the greetings tell whose the nickname is.
    """
    names = list(dict.fromkeys(speaker for day in conversation.days for speaker, _ in day.turns))
    shift = sum(map(ord, "".join(names)))
    surnames = {name: f"{name} {_SURNAMES[(shift + at) % 10]}" for at, name in enumerate(names)}
    nicknames = {name: _NICKNAMES[(shift + at) % 10] for at, name in enumerate(names)}
    if how == "full":
        return _renamed(conversation, labels=surnames)
    if how == "greeted":
        # Shortened forms are said, too: "Mel" for Melanie.
        said = {short: nicknames[name] for name in names for short in (name, name[:2], name[:3]) if len(short) > 1}
        return _renamed(conversation, said=said, asked=nicknames)
    return _renamed(conversation, asked={name: _misspelled(name) for name in names})


def _misspelled(name: str) -> str:
    at = len(name) // 2
    return name[:at] + ("o" if name[at] in "aeiy" else "e" if name[at] == "o" else "x") + name[at + 1 :]


def _renamed(
    conversation: Conversation,
    *,
    labels: dict[str, str] | None = None,
    said: dict[str, str] | None = None,
    asked: dict[str, str] | None = None,
) -> Conversation:
    """The same with other names in front of the turns, in what is said, and in the questions."""

    def line(text: str) -> str:
        if not text.startswith("- "):
            return text
        speaker, _, words = text[2:].partition(": ")
        return f"- {(labels or {}).get(speaker, speaker)}: {_replaced(words, said or {})}"

    return replace(
        conversation,
        files={path: "\n".join(map(line, text.split("\n"))) for path, text in conversation.files.items()},
        questions=tuple(
            replace(
                question,
                text=_replaced(question.text, asked or {}),
                evidence=tuple(_replaced(text, said or {}) for text in question.evidence),
            )
            for question in conversation.questions
        ),
    )


def _replaced(text: str, names: dict[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(names)})(?=s?\b)", lambda found: names[found[1]], text) if names else text


def share_found(question: Question, block: str) -> float:
    """Share of the evidence turns whose text stands in a block; of a long one a long part is enough."""
    seen = squashed(block)
    found = [squashed(text) for text in question.evidence]
    return statistics.mean(
        text in seen or (len(text) > 240 and (text[:200] in seen or text[-200:] in seen)) for text in found
    )


def squashed(text: str) -> str:
    """A text as it is compared: words in lower case."""
    return re.sub(r"\W+", " ", html.unescape(text).lower()).strip()


def baseline_block(bm25: BM25Okapi, windows: tuple[str, ...], question: str, budget_tokens: int) -> str:
    """Windows in the order of their BM25, as many as fit."""
    scores, block = bm25.get_scores(_words(question)), ""
    for i in sorted(range(len(windows)), key=lambda i: -scores[i]):
        longer = f"{block}{windows[i]}\n"
        if count_tokens(longer) > budget_tokens:
            break
        block = longer
    return block


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def main() -> None:
    """Run the measure and print one line of JSON per system and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="locomo10.json, or another file of that form")
    parser.add_argument("--budget", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--embedding-model", default="minilm")
    parser.add_argument("--conversations", type=int, default=10, help="only the first so many")
    parser.add_argument("--pooled", action="store_true", help="all conversations in one workspace")
    parser.add_argument("--min-gain", type=float, default=0.0, help="least chance of an answer for 100 tokens")
    parser.add_argument("--crowd", type=Path, help="folder of text and source files; implies --pooled")
    parser.add_argument("--crowd-passages", type=int, default=100_000)
    parser.add_argument("--labels", choices=get_args(Labels), default="plain", help="see `relabelled`")
    arguments = parser.parse_args()
    conversations = list(load(arguments.data))[: arguments.conversations]
    if arguments.labels != "plain":
        conversations = [relabelled(conversation, arguments.labels) for conversation in conversations]
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    with tempfile.TemporaryDirectory() as home, running_process(Path(home), environment) as url:
        pooled = arguments.pooled or arguments.crowd is not None
        _fill(url, conversations, pooled)
        for budget in arguments.budget:
            _measure(url, conversations, budget, pooled, arguments.min_gain)
        if arguments.crowd:
            joined = write_crowd(Path(home) / "pooled", arguments.crowd, arguments.crowd_passages)
            with MemoryClient(url, workspace="pooled") as memory:
                memory.reindex()
            print(f"  {joined:,} passages of {arguments.crowd} have joined", file=sys.stderr)
            for budget in arguments.budget:
                _measure(url, conversations, budget, pooled, arguments.min_gain)


def write_crowd(workspace: Path, folder: Path, count: int) -> int:
    """Put passages of the files below a folder into a workspace, a hundred a file, half of the files dated."""
    lines = dict.fromkeys(line for path in sorted(folder.rglob("*")) for line in _crowd_lines(path))
    chosen = random.Random(1).sample(list(lines), min(count, len(lines)))
    for number, start in enumerate(range(0, len(chosen), 100)):
        day = dt.date(2022, 1, 1) + dt.timedelta(days=number % 900)
        name = f"{day}-{number:05}.md" if number % 2 else f"note-{number:05}.md"
        path = workspace / "memory" / "crowd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"- {line}\n" for line in chosen[start : start + 100]), "utf-8")
    return len(chosen)


def _crowd_lines(path: Path) -> Iterator[str]:
    """Lines of prose of a file."""
    if path.suffix not in (".py", ".md", ".rst", ".txt") or not path.is_file():
        return
    for line in path.read_text("utf-8", "ignore").splitlines():
        words = line.strip(" #*-").split()
        if 8 <= len(words) <= 60 and sum(word.isalpha() for word in words) > 0.7 * len(words):
            yield " ".join(words)


def _workspace(conversation: Conversation, pooled: bool) -> str:
    return "pooled" if pooled else conversation.name


def _fill(url: str, conversations: list[Conversation], pooled: bool) -> None:
    for conversation in conversations:
        with MemoryClient(url, workspace=_workspace(conversation, pooled)) as memory:
            for path, text in conversation.files.items():
                where = path.replace("memory/", f"memory/{conversation.name}/") if pooled else path
                memory.put(where, text)


def _measure(url: str, conversations: list[Conversation], budget: int, pooled: bool, gain: float) -> None:
    ours, theirs, over, times = list[tuple[int, float]](), list[tuple[int, float]](), 0, list[float]()
    sizes = list[int]()
    for conversation in conversations:
        bm25 = BM25Okapi([_words(window) for window in conversation.windows])
        with MemoryClient(url, workspace=_workspace(conversation, pooled)) as memory:
            for question in conversation.questions:
                started = time.perf_counter()
                block = memory.context(question.text, budget_tokens=budget, min_gain=gain).block
                times.append((time.perf_counter() - started) * 1000)
                sizes.append(count_tokens(block))
                over += sizes[-1] > budget
                ours.append((question.category, share_found(question, block)))
                plain = baseline_block(bm25, conversation.windows, question.text, budget)
                theirs.append((question.category, share_found(question, plain)))
        print(f"  {conversation.name}: {len(conversation.questions)} questions", file=sys.stderr)
    p50 = round(statistics.median(times), 2)
    told = {"over_budget": over, "context_p50_ms": p50, "mean_tokens": statistics.mean(sizes)}
    report({"system": "memory-service", "budget_tokens": budget}, ours, told)
    report({"system": "rank-bm25, windows of 6 turns", "budget_tokens": budget}, theirs, {})


def report(what: dict[str, object], rows: list[tuple[int, float]], more: dict[str, float]) -> None:
    """Print the share found, in all and by kind of question, as a line of JSON."""
    names = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
    by_category = {
        names[category]: round(statistics.mean(share for kind, share in rows if kind == category), 4)
        for category in sorted({kind for kind, _ in rows})
    }
    fraction = round(statistics.mean(share for _, share in rows), 4)
    print(json.dumps({**what, "questions": len(rows), "fraction": fraction, **more, **by_category}))


if __name__ == "__main__":
    main()

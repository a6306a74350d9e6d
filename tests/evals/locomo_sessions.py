"""The LoCoMo measures of sessions: what a model sees after compactions, and what a flush keeps.

`python -m tests.evals.locomo_sessions PATH/locomo10.json [--window 8192] [--memory-budget 1024] [--conversations 5]`

`session`: each conversation is appended to a session with a small window, ten messages at a time, as an agent would
do it; then each question asks for the session's context, and an evidence turn counts when its text is in the messages
that the model would get. Beside it: the newest messages of the same size. `flush`: each day is appended and flushed;
an evidence turn counts when half of its content words stand in one line that was written. Beside it: the share of the
conversation's size that those lines have, which is what turns drawn at random would keep.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from memory_service import MemoryClient
from memory_service.messages.sizes import count_tokens
from tests.evals.locomo import Conversation, Question, load, report, share_found, squashed
from tests.serving import running_process

_BATCH = 10
_STOP = frozenset(
    "a an the and or but if of at by for with about to from in on is are was were be been being do does did have has "
    "had i you he she it we they me him her them my your his its our their this that these those what which who whom "
    "when where why how not no so as than then there here can could will would should".split()
)


def spoken(conversation: Conversation) -> list[dict[str, str]]:
    """The turns as messages; the first of a day says which day it is."""
    first = conversation.days[0].turns[0][0]
    return [
        {
            "role": "user" if speaker == first else "assistant",
            "content": f"[{day.when:%A %d %B %Y, %H:%M}] {speaker}: {text}" if number == 0 else f"{speaker}: {text}",
        }
        for day in conversation.days
        for number, (speaker, text) in enumerate(day.turns)
    ]


def _rendered(messages: list[dict[str, object]]) -> str:
    return "\n".join(f"{message['role']}: {message.get('content') or ''}" for message in messages)


def _newest(messages: list[dict[str, str]], tokens: int) -> str:
    kept, used = list[str](), 0
    for message in reversed(messages):
        used += count_tokens(message["content"]) + 3
        if used > tokens:
            break
        kept.append(f"{message['role']}: {message['content']}")
    return "\n".join(reversed(kept))


def measure_sessions(url: str, conversations: list[Conversation], window: int, memory_budget: int) -> None:
    """Print what the contexts of sessions hold."""
    ours, newest, times = list[tuple[int, float]](), list[tuple[int, float]](), list[float]()
    compactions = flushes = over = 0
    sizes = list[int]()
    for conversation in conversations:
        said = spoken(conversation)
        with MemoryClient(url, workspace=f"session-{conversation.name}") as memory:
            session = memory.session("talk", context_window=window)
            for start in range(0, len(said), _BATCH):
                session.append(said[start : start + _BATCH])
                made = session.context(memory_budget_tokens=0)
                compactions += made.compaction is not None
                flushes += made.flush is not None
            for question in conversation.questions:
                started = time.perf_counter()
                made = session.context(query=question.text, memory_budget_tokens=memory_budget)
                times.append((time.perf_counter() - started) * 1000)
                text = _rendered(made.messages)
                sizes.append(count_tokens(text))
                over += count_tokens(text) > window
                ours.append((question.category, share_found(question, text)))
                newest.append((question.category, share_found(question, _newest(said, count_tokens(text)))))
        print(f"  {conversation.name}: {len(said)} messages", file=sys.stderr)
    more: dict[str, float] = {
        "over_budget": over,
        "mean_tokens": round(statistics.mean(sizes)),
        "context_p50_ms": round(statistics.median(times), 2),
        "compactions": compactions,
        "flushes": flushes,
    }
    report({"measure": "session", "system": "memory-service", "window": window}, ours, more)
    report({"measure": "session", "system": "the newest messages, same size", "window": window}, newest, {})


def measure_flush(url: str, conversations: list[Conversation]) -> None:
    """Print what the flushed files hold, and at what share of the conversation's size."""
    kept, size, total = list[tuple[int, float]](), 0, 0
    for conversation in conversations:
        with MemoryClient(url, workspace=f"flush-{conversation.name}") as memory:
            session = memory.session("talk", context_window=1_000_000)
            for day in conversation.days:
                lines = [f"{speaker}: {text}" for speaker, text in day.turns]
                lines[0] = f"[{day.when:%A %d %B %Y}] {lines[0]}"
                first = conversation.days[0].turns[0][0]
                roles = ["user" if speaker == first else "assistant" for speaker, _ in day.turns]
                session.append([{"role": role, "content": line} for role, line in zip(roles, lines, strict=True)])
                session.flush()
            files = [memory.get(file.path, lines=100_000).text for file in memory.files()]
        text = re.sub(r"<!--.*?-->", "", "\n".join(files), flags=re.DOTALL)
        size += len(text)
        total += sum(len(said) for day in conversation.days for _, said in day.turns)
        entries = [_words(line) for line in text.splitlines() if line.strip()]
        kept += [(question.category, _share_kept(question, entries)) for question in conversation.questions]
        print(f"  {conversation.name}: {len(entries)} lines kept", file=sys.stderr)
    share = round(size / total, 4)
    ratio = round(statistics.mean(found for _, found in kept) / share, 2)
    report({"measure": "flush", "system": "memory-service"}, kept, {"size_share": share, "ratio": ratio})


def _share_kept(question: Question, entries: list[set[str]]) -> float:
    wanted = [_words(text) for text in question.evidence]
    return statistics.mean(any(len(want & entry) * 2 >= len(want) for entry in entries) for want in wanted)


def _words(text: str) -> set[str]:
    return set(squashed(text).split()) - _STOP


def main() -> None:
    """Run both measures and print a line of JSON for each system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="locomo10.json, or another file of that form")
    parser.add_argument("--window", type=int, default=8_192)
    parser.add_argument("--memory-budget", type=int, default=1_024)
    parser.add_argument("--conversations", type=int, default=10, help="only the first so many")
    parser.add_argument("--embedding-model", default="minilm")
    arguments = parser.parse_args()
    conversations = list(load(arguments.data))[: arguments.conversations]
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    with tempfile.TemporaryDirectory() as home, running_process(Path(home), environment) as url:
        measure_sessions(url, conversations, arguments.window, arguments.memory_budget)
        measure_flush(url, conversations)


if __name__ == "__main__":
    main()

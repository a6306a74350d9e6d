"""The LoCoMo measure for a packed index, beside the same index as it is searched when it is small.

`python -m tests.evals.packed PATH/locomo10.json [--conversations 5] [--budget 1024 2048]`

All conversations are in one index, in this process: it packs at once instead of from 6,000 passages on. See
`tests.evals.locomo` for the data and for what counts.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from contextlib import closing
from pathlib import Path

from indexer import Index, MiniLM
from indexer.types import SearchFilter
from memory_service.memories.block import build_context, candidates_for
from tests.evals.locomo import Conversation, load, report, share_found

_NEVER = 10**9
_MEMORY = SearchFilter(sources=("memory",))


def main() -> None:
    """Run the measure and print one line of JSON per kind of index and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="locomo10.json, or another file of that form")
    parser.add_argument("--budget", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--conversations", type=int, default=10, help="only the first so many")
    arguments = parser.parse_args()
    conversations = list(load(arguments.data))[: arguments.conversations]
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), conversations)
        for name, pack_passages in (("small", _NEVER), ("packed", 0)):
            with closing(Index(Path(folder), MiniLM(), pack_passages=pack_passages)) as index:
                index.sync()
                if pack_passages != _NEVER:
                    index.pack()
                for budget in arguments.budget:
                    _measure(name, index, conversations, budget)


def _write(folder: Path, conversations: list[Conversation]) -> None:
    for conversation in conversations:
        for path, text in conversation.files.items():
            target = folder / path.replace("memory/", f"memory/{conversation.name}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")


def _measure(name: str, index: Index, conversations: list[Conversation], budget: int) -> None:
    found = [
        (question.category, share_found(question, _block(index, question.text, budget)))
        for conversation in conversations
        for question in conversation.questions
    ]
    report({"index": name, "packed_passages": index.status().packed, "budget_tokens": budget}, found, {})


def _block(index: Index, question: str, budget: int) -> str:
    hits = index.search(question, limit=candidates_for(budget), filter=_MEMORY, snippets=False).hits
    now = dt.datetime.now(dt.UTC)
    return build_context(hits, query=question, budget_tokens=budget, receipt_id="r", created_at=now).block


if __name__ == "__main__":
    main()

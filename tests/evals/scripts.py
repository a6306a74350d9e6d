"""Measure of eleven scripts: is the passage that answers a question among the first hits?

`python -m tests.evals.scripts [--script cyrillic …] [--half dev|held] [--missed 5]`

`script_pairs.json` has 60 short passages for each of Cyrillic (Russian), Greek, Arabic, Devanagari (Hindi), Hebrew,
Thai, Hangul (Korean) and Han (Chinese): five each on twelve subjects, so that the passages of a subject are alike.
Each has one question that a reader of it would ask, with words of the passage in other forms or in other words. All
of it was written for this measure, and no passage or question was changed after the first measurement. Khmer, Lao and
Burmese have 20 of four subjects each.

The passages of a script are the items of twelve files of one workspace. One more workspace, "all", has all 540
passages in it, as of an agent who speaks with people in many languages. The questions are split by a hash, before
measuring: ranking is tuned on "dev"; "held" says what that is worth. Reference in the same run: rank-bm25 over words,
for scripts without spaces over pairs of characters.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from indexer import Embedder, MiniLM
from tests.evals.chinese import HALVES, Collection, Half, Pair, Score, open_index, reference, score, write_workspace

SCRIPTS = (
    "cyrillic", "greek", "arabic", "devanagari", "hebrew", "thai", "hangul", "han", "khmer", "lao", "burmese",
)  # fmt: skip
ALL = "all"
_SET = Path(__file__).parent / "script_pairs.json"
_UNSPACED = {"thai", "han", "khmer", "lao", "burmese"}


def load(script: str) -> Collection:
    """Read the passages and questions of a script, or of all."""
    table: dict[str, dict[str, list[tuple[str, str]]]] = json.loads(_SET.read_text("utf-8"))
    files, pairs = dict[str, tuple[str, ...]](), list[Pair]()
    for name in SCRIPTS if script == ALL else (script,):
        for number, (subject, passages) in enumerate(table[name].items(), 1):
            path = f"memory/{name}-{number:02d}.md"
            files[path] = (f"# {subject}", "", *(f"- {passage}" for passage, _ in passages))
            pairs += [Pair(question=question, path=path, answer=passage) for passage, question in passages]
    return Collection(files=files, pairs=tuple(pairs))


def measure(collection: Collection, embedder: Embedder | None, folder: Path) -> dict[Half, Score]:
    """Ask an index of a collection, by half."""
    write_workspace(collection, folder)
    index = open_index(folder, embedder)
    scores = {half: score(index, collection.half(half)) for half in HALVES}
    index.close()
    return scores


def main() -> None:
    """Run the measure and print one line of JSON per script, half and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", choices=(*SCRIPTS, ALL), nargs="+", default=[*SCRIPTS, ALL])
    parser.add_argument("--half", choices=HALVES, nargs="+", default=list(HALVES))
    parser.add_argument("--missed", type=int, default=0, help="show so many of the questions that each system missed")
    arguments = parser.parse_args()
    embedders: dict[str, Embedder | None] = {"words": None, "hybrid, minilm": MiniLM()}
    for script in arguments.script:
        collection = load(script)
        for system, embedder in embedders.items():
            with tempfile.TemporaryDirectory() as folder:
                scores = measure(collection, embedder, Path(folder))
            for half in arguments.half:
                _report(system, script, half, scores[half])
                for pair in scores[half].missed[: arguments.missed]:
                    print(f"  {pair.question} -> {pair.answer}", file=sys.stderr)
        for half in arguments.half:
            plain = reference(collection, collection.half(half), 2 if script in _UNSPACED else 40)
            _report("rank-bm25", script, half, plain)


def _report(system: str, script: str, half: str, scored: Score) -> None:
    shares = {"hit@1": round(scored.hit1, 4), "hit@5": round(scored.hit5, 4)}
    print(json.dumps({"system": system, "script": script, "half": half, **shares}))


if __name__ == "__main__":
    main()

"""Measure of thirteen languages: is a note found that is asked for in other words?

`python -m tests.evals.paraphrases [--language German …] [--half dev|held] [--missed 5] [--mixed]`

`paraphrases.json` has 50 short notes of a household and its work for each language, the same facts in all of them, each
with one question that shares no content word with its note, and 50 to 60 other notes that lie beside them. All of it
was written for this measure; no note and no question was changed after the first measurement of it.

The notes of a language are items of fifteen dated files of one workspace. Questions are split by a hash, before
measuring: the ranking is tuned on "dev", and "held" says what that is worth. `--mixed` asks a workspace of both English
and Chinese notes, in each language for the notes of the same one and of the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from indexer import Embedder, Index, LanguageChoice, MiniLM, Mode, bundled_choice, multilingual_embedder
from tests.evals import scripts
from tests.evals.chinese import HALVES, Collection, Pair, write_workspace

_SET = Path(__file__).parent / "paraphrases.json"
LANGUAGES: tuple[str, ...] = tuple(json.loads(_SET.read_text("utf-8")))
# What lies beside the notes of these is in the set of scripts.
_SCRIPTS = {"Chinese": "han", "Korean": "hangul", "Russian": "cyrillic", "Arabic": "arabic", "Hindi": "devanagari"}
_FILES = 15


def load(*languages: str, asked: str = "") -> Collection:
    """The notes of some languages in one workspace, and the questions about them.

    Args:
        languages: Whose notes lie in it.
        asked: The language of the questions, which are about the notes of the first one; that one, unless given.
    """
    table: dict[str, dict[str, list[list[str]]]] = json.loads(_SET.read_text("utf-8"))
    notes = [note for name in languages for note in (*(note for note, _ in table[name]["pairs"]), *others(name))]
    notes.sort(key=lambda note: hashlib.sha256(note.encode()).digest())
    paths = {note: f"memory/2026-11-{1 + place % _FILES:02}.md" for place, note in enumerate(notes)}
    files = {path: tuple(f"- {note}" for note in notes if paths[note] == path) for path in sorted(set(paths.values()))}
    questions = [question for _, question in table[asked or languages[0]]["pairs"]]
    pairs = zip(questions, (note for note, _ in table[languages[0]]["pairs"]), strict=True)
    return Collection(
        files=files, pairs=tuple(Pair(question=asked, path=paths[note], answer=note) for asked, note in pairs)
    )


def others(language: str) -> list[str]:
    """The notes of a language that no question is about."""
    if language in _SCRIPTS:
        return [text for _, text in scripts.load(_SCRIPTS[language]).lines]
    found: list[str] = json.loads(_SET.read_text("utf-8"))[language]["others"]
    return found


def shares(index: Index, pairs: Sequence[Pair], mode: Mode = "hybrid") -> tuple[float, float, tuple[Pair, ...]]:
    """Shares of the questions whose note is first, and among the first five; and those whose note is not."""
    first, five, missed = 0, 0, list[Pair]()
    for pair in pairs:
        texts = [hit.passage.text for hit in index.search(pair.question, limit=5, mode=mode, snippets=False).hits]
        first += texts[:1] == [pair.answer]
        five += pair.answer in texts
        missed += [pair] if pair.answer not in texts else []
    return first / len(pairs), five / len(pairs), tuple(missed)


def opened(collection: Collection, embedder: Embedder | LanguageChoice | None, folder: Path) -> Index:
    """An index of a collection, up to date."""
    write_workspace(collection, folder)
    index = Index(folder, embedder)
    index.sync()
    return index


def main() -> None:
    """Run the measure and print one line of JSON per language, half and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=LANGUAGES, nargs="+", default=list(LANGUAGES))
    parser.add_argument("--half", choices=HALVES, nargs="+", default=list(HALVES))
    parser.add_argument("--missed", type=int, default=0, help="show so many of the questions that each system missed")
    parser.add_argument("--mixed", action="store_true", help="ask a workspace of English and Chinese notes")
    arguments = parser.parse_args()
    systems: tuple[tuple[str, Embedder | LanguageChoice | None, Mode], ...] = (
        ("words", None, "text"),
        ("minilm", MiniLM(), "hybrid"),
        ("auto", bundled_choice(), "hybrid"),
        ("e5", multilingual_embedder(), "hybrid"),
        ("e5, vectors alone", multilingual_embedder(), "vector"),
    )
    for name, collection in _collections(arguments.language, arguments.mixed):
        for system, embedder, mode in systems:
            with tempfile.TemporaryDirectory() as folder:
                index = opened(collection, embedder, Path(folder))
                for half in arguments.half:
                    first, five, missed = shares(index, collection.half(half), mode)
                    line = {"language": name, "system": system, "half": half, "hit@1": first, "hit@5": five}
                    print(json.dumps({key: round(v, 3) if isinstance(v, float) else v for key, v in line.items()}))
                    for pair in missed[: arguments.missed]:
                        print(f"  {pair.question} -> {pair.answer}", file=sys.stderr)
                index.close()


def _collections(languages: Sequence[str], mixed: bool) -> list[tuple[str, Collection]]:
    if not mixed:
        return [(name, load(name)) for name in languages]
    both = (("English", "Chinese"), ("Chinese", "English"))
    return [
        (f"{notes} of both, asked in {asked}", load(notes, other, asked=asked))
        for notes, other in both
        for asked in (notes, other)
    ]


if __name__ == "__main__":
    main()

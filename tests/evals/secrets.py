"""False alarms: how many sentences without a secret does the service take for one?

`python -m tests.evals.secrets [FILE …]`

Reads the bundled sample, and each FILE: JSON (every text in it, such as those of LoCoMo), JSON lines or plain text. All
of them are taken to hold no secret; what is found is printed with its kind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_service.text.secrets import _find_secrets
from memory_service.text.sentences import split_sentences

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "default"
_SHOWN = 10
_AROUND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What was found in texts that hold no secret.

    Attributes:
        sentences: How many were read.
        found: The kind, and the sentence around it, of each that was taken for a secret.
    """

    sentences: int
    found: tuple[tuple[str, str], ...]

    @property
    def per_thousand(self) -> float:
        """False alarms for a thousand sentences."""
        return 1_000 * len(self.found) / max(self.sentences, 1)


def alarms_in(texts: Iterator[str]) -> Alarms:
    """The false alarms in some texts."""
    count, found = 0, list[tuple[str, str]]()
    for text in texts:
        count += sum(1 for line in text.splitlines() for _ in split_sentences(line))
        found += [(each.kind, text[max(each.start - _AROUND, 0) : each.end]) for each in _find_secrets(text)]
    return Alarms(sentences=count, found=tuple(found))


def texts_of(path: Path) -> Iterator[str]:
    """The texts of a file, or of all files of a folder."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.suffix in (".md", ".jsonl"):
                yield from texts_of(each)
    elif path.suffix == ".json":
        yield from _strings(json.loads(path.read_text(encoding="utf-8")))
    elif path.suffix == ".jsonl":
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from _strings(json.loads(line))
    else:
        yield path.read_text(encoding="utf-8")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def main(arguments: Sequence[str]) -> None:
    """Prints the rate for the sample and for each file."""
    for path in (SAMPLE, *map(Path, arguments)):
        alarms = alarms_in(texts_of(path))
        print(f"{path.name}: {len(alarms.found)} of {alarms.sentences:,} sentences, {alarms.per_thousand:.2f} in 1,000")
        for kind, text in alarms.found[:_SHOWN]:
            print(f"  {kind}: {text!r}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The short way into the index of this project: passages written to its store, without files to read."""

from __future__ import annotations

from pathlib import Path

from indexer import Fingerprint, Index, Passage
from indexer.language.search_terms import passage_terms
from indexer.stores import open_store
from indexer.stores.base import FileState, FileWrite, NewPassage
from indexer.sync.plan import text_hash
from indexer.types import Vectors
from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.ours import Given, Ours
from tests.benchmarks.scale.texts import FILE_PASSAGES, FIRST_LINE, TITLE, day_of_file, path_of_file

_FILES_AT_ONCE = 20


class Direct(Ours):
    """What a sync would store, stored without one. Made for a million passages, where only the search is timed."""

    def stage(self, material: Material, folder: Path) -> None:
        """Nothing: there are no files."""

    def build(self, material: Material, folder: Path) -> None:
        """Write every file's passages."""
        made_with: Fingerprint = Index(folder, Given(material)).fingerprint
        store = open_store("sqlite", folder)
        store.begin(made_with)
        writes: list[FileWrite] = []
        for start, lines, vectors in material.batches(FILE_PASSAGES):
            writes.append(_write(start // FILE_PASSAGES, lines, vectors))
            if len(writes) == _FILES_AT_ONCE:
                store.write(writes, made_with=made_with)
                writes = []
        store.write(writes, made_with=made_with)
        store.close()
        # As a sync does at its end.
        index = Index(folder, Given(material))
        index.pack()
        index.close()


def _write(number: int, lines: list[str], vectors: Vectors) -> FileWrite:
    path = path_of_file(number)
    state = FileState(
        path=path,
        source="memory",
        size_bytes=0,
        version=b"",
        checked_ns=0,
        content_hash=f"{number:032x}",
    )
    passages = [_new(number, ordinal, line, vectors[ordinal].tobytes()) for ordinal, line in enumerate(lines)]
    return FileWrite(path=path, state=state, expected_revision=0, inserted=tuple(passages))


def _new(number: int, ordinal: int, text: str, vector: bytes) -> NewPassage:
    line = FIRST_LINE + ordinal
    passage = Passage(
        start_line=line,
        end_line=line,
        text=text,
        heading=(TITLE,),
        opens_section=ordinal == 0,
        date=day_of_file(number),
    )
    return NewPassage(
        ordinal=ordinal, passage=passage, text_hash=text_hash(text), terms=passage_terms(passage, ""), vector=vector
    )

"""Bugs of the index, each one change of our text: what a filter, a rewritten page, a rebuild or a cache gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from indexer.embeddings import base
from indexer.engine import finding, search
from indexer.engine.segments import builder, scoring, segment
from indexer.engine.segments import file_words as recent
from indexer.sources import scan
from indexer.stores import sqlite
from indexer.sync import rebuild
from tests.properties import indexed
from tests.properties.planted import Planted, _mutant

PLANTED_INDEX: Mapping[str, Planted] = MappingProxyType(
    {
        "the last day is left out of what is packed": _mutant(
            segment,
            "(self.days >= first) & (self.days <= last)",
            "(self.days >= first) & (self.days < last)",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "the first day is left out of what is packed": _mutant(
            segment,
            "(self.days >= first) & (self.days <= last)",
            "(self.days > first) & (self.days <= last)",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "the last day is left out of what is not packed": _mutant(
            finding,
            "(corpus.days >= first) & (corpus.days <= last)",
            "(corpus.days >= first) & (corpus.days < last)",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "what is undated is of every day": _mutant(
            segment,
            "first = filter.since.toordinal() if filter.since else 1",
            "first = filter.since.toordinal() if filter.since else 0",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "lines that are shown are found by their last one": _mutant(
            segment,
            "(self.end_lines[rows] <= lines.end_line)",
            "(self.end_lines[rows] < lines.end_line)",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "one filter takes the place of another": _mutant(
            segment,
            "    return other_mask if mask is None else mask & other_mask\n",
            "    return other_mask\n",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "what was written after the packing passes every filter of lines": _mutant(
            finding,
            "            mask[rows] &= ~within\n",
            "",
            indexed.check_every_filter_keeps_what_it_says,
        ),
        "neighbours of what is near pass the filter": _mutant(
            scoring,
            "    return rows if mask is None else rows[mask[rows]]\n",
            "    return rows\n",
            indexed.check_no_neighbour_passes_a_filter,
        ),
        "a page written again keeps its old words": _mutant(
            recent,
            "    if before.file is file:\n",
            "    if before.file.path == file.path:\n",
            indexed.check_a_page_written_again_has_its_new_words,
        ),
        "neighbours of the words are left out": _mutant(
            search,
            "        spoken_for = (found.text.window > 0) |",
            "        spoken_for = (found.text.unit > 0) |",
            indexed.check_a_text_search_finds_what_lies_around_its_words,
        ),
        "what has no word around it is found": _mutant(
            search,
            "        spoken_for = (found.text.window > 0) |",
            "        spoken_for = (found.text.window >= 0) |",
            indexed.check_a_text_search_finds_what_lies_around_its_words,
        ),
        "two states of a file are mixed": _mutant(
            scan,
            "if source_file(file.path, os.lstat(absolute)) == before and len(raw) == before.size_bytes:",
            "if len(raw) == before.size_bytes:",
            indexed.check_what_is_read_is_one_state_of_a_file,
        ),
        "a page that came and went breaks a rebuild": _mutant(
            rebuild,
            "now.generation != seen.generation or any(file not in seen.paths for file in now.gone)",
            "now.generation != seen.generation",
            indexed.check_a_page_that_comes_and_goes_is_no_trouble_for_a_rebuild,
        ),
        "a rebuild without a third of its vectors is put in use": _mutant(
            rebuild,
            "old.embedded / max(1, old.passages) - _COVERAGE_LOSS:",
            "old.embedded / max(1, old.passages) - 0.5:",
            indexed.check_a_rebuild_that_lost_vectors_is_not_put_in_use,
        ),
        "vectors of another model are used again": _mutant(
            base,
            "    return model, digest, query\n",
            '    return "", digest, query\n',
            indexed.check_no_vector_of_another_model_is_used_again,
        ),
        "a text without a vector hides one that has it": _mutant(
            sqlite,
            "WHERE p.text_hash = unhex(j.value) AND p.embedded LIMIT 1)",
            "WHERE p.text_hash = unhex(j.value) LIMIT 1)",
            indexed.check_a_vector_is_found_wherever_it_stands,
        ),
        "an erased speaker counts in the packed part": _mutant(
            builder,
            '    arrays["speakers"] = np.unique(arrays["labels"][arrays["labels"] > 0])\n',
            "",
            indexed.check_a_scrubbed_pack_is_as_one_made_anew,
        ),
        "erased words count in the lengths of the packed part": _mutant(
            builder,
            "return arrays | _lexicon(words), {**pack.notes, **lengths}",
            "return arrays | _lexicon(words), dict(pack.notes)",
            indexed.check_a_scrubbed_pack_is_as_one_made_anew,
        ),
        "words of what is erased point at what stands": _mutant(
            builder,
            "new_rows = np.where(standing, np.cumsum(standing) - 1, -1)",
            "new_rows = np.where(standing, np.cumsum(standing) - 1, 0)",
            indexed.check_a_scrubbed_pack_is_as_one_made_anew,
        ),
        "a file of which nothing stands keeps its place": _mutant(
            builder,
            "kept_rows = np.flatnonzero(sizes)",
            "kept_rows = np.arange(len(sizes))",
            indexed.check_a_scrubbed_pack_is_as_one_made_anew,
        ),
    }
)

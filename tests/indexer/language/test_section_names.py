from __future__ import annotations

import pytest

from indexer.language.section_names import next_subjects, section_subject
from memory_service.compaction.prompts import ANCHORED_HEADINGS, OPENCODE_HEADINGS, SAFEGUARD_HEADINGS
from memory_service.text.texts import heading_forms


def test_each_heading_that_is_asked_for_has_a_subject_of_its_own() -> None:
    for headings in (ANCHORED_HEADINGS, OPENCODE_HEADINGS, SAFEGUARD_HEADINGS):
        subjects = [section_subject(heading, whole=True) for heading in headings]
        assert all(subjects) and len(set(subjects)) == len(subjects), subjects
        for heading, subject in zip(headings, subjects, strict=True):
            assert {section_subject(form) for form in heading_forms(heading)} == {subject}, heading


@pytest.mark.parametrize(
    ("heading", "subject"),
    [
        ("## 🎯 1. Goal:", "goal"), ("Nächster Schritt", "next"), ("進行中", "in progress"), ("Offene Fragen", "asks"),
        ("Key technical decisions", "decisions"), ("What was done so far", "done"), ("Échecs", "failed"), ("foo", ""),
        ("x" * 99, ""),
    ],
)  # fmt: skip
def test_names(heading: str, subject: str) -> None:
    assert section_subject(heading) == subject


def test_a_name_within_other_words_counts_unless_the_whole_is_asked_for() -> None:
    assert section_subject("What was done so far") == "done" and not section_subject("What was done so far", whole=True)
    assert list(next_subjects("files")) == ["files", "identifiers", "context"] and not list(next_subjects(""))

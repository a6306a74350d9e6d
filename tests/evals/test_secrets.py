"""What is taken for a secret and is none: at most one sentence in a thousand."""

from __future__ import annotations

from tests.evals.secrets import SAMPLE, alarms_in, texts_of


def test_the_sample_gives_no_false_alarm() -> None:
    alarms = alarms_in(texts_of(SAMPLE))
    assert alarms.sentences > 500
    assert alarms.per_thousand <= 1, alarms.found

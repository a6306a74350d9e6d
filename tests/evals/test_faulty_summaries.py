"""Floors of the measure of faulty summaries; see `tests.evals.faulty_summaries`."""

from __future__ import annotations

from tests.evals.faulty_summaries import BAD, USEFUL, WEAK, facts_shown, outcome, rules_alone


def test_what_is_of_use_is_used_and_nothing_else() -> None:
    assert len(USEFUL) >= 60
    made = {kind: outcome(answer) for kind, answer in USEFUL.items()}
    unused = [kind for kind, each in made.items() if not each.used]
    assert len(unused) <= 0.02 * len(USEFUL), unused
    assert not [kind for kind, each in made.items() if not each.clean]


def test_what_is_bad_is_refused() -> None:
    assert len(BAD) >= 15
    made = {kind: outcome(answer) for kind, answer in BAD.items()}
    assert not [kind for kind, each in made.items() if each.used or not each.clean]
    assert all(any("written by rules" in note for note in each.notes) for each in made.values())


def test_a_weak_model_is_better_than_rules_alone() -> None:
    by_rules = facts_shown(rules_alone())
    by_models = [facts_shown(outcome(answer).summary) for answer in WEAK.values()]
    assert min(by_models) >= by_rules and sum(by_models) > by_rules * len(by_models)


def test_what_was_done_is_told() -> None:
    told = {
        "one invented number": "left out: 1",
        "no goal": "filled in: Goal",
        "backwards": "order",
        "no headings": "rules found",
        "no rule quoted": "filled in: User constraints",
    }
    for kind, words in told.items():
        assert any(words in note for note in outcome(USEFUL[kind]).notes), kind

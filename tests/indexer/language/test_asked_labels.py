"""The labels under which the answer to a question stands."""

from __future__ import annotations

import pytest

from indexer.language.asked_labels import asked_labels, is_labelled, label_of


@pytest.mark.parametrize(
    ("question", "key", "others"),
    [
        ("where is the projector?", "Kept in", ("Bought at", "Cost")),
        ("where did I get the projector?", "Dealer", ("Location", "Cost")),
        ("which company does Ana work for?", "Employer", ("Lives in", "Phone")),
        ("where does Ana live?", "Address", ("Born", "Works at")),
        ("what does Ana do?", "Occupation", ("Employer", "Phone")),
        ("how old is the boiler?", "Built", ("Price", "Brand")),
        ("who made the boiler?", "Manufacturer", ("Owner", "Price")),
        ("how can I reach the plumber?", "Mobile", ("Rate", "Address")),
        ("wo steht der Beamer?", "Standort", ("Preis", "Gekauft bei")),
        ("wie teuer war der Beamer?", "Kosten", ("Standort", "Marke")),
        ("投影仪放哪儿了？", "存放位置", ("价格", "购于")),
        ("小王在哪家公司上班？", "工作单位", ("住址", "电话")),
    ],
)
def test_a_question_has_the_labels_of_its_answer(question: str, key: str, others: tuple[str, ...]) -> None:
    labels = asked_labels(question)
    assert is_labelled(key, labels)
    assert [other for other in others if is_labelled(other, labels)] == []


@pytest.mark.parametrize("question", ["what did we decide?", "PLAT-1042", "summer plans", "屋顶怎么样了"])
def test_other_questions_ask_for_no_label(question: str) -> None:
    assert asked_labels(question) == frozenset()


def test_a_line_of_a_record_has_a_key() -> None:
    assert label_of("Stands in: the garden") == ("", "Stands in")
    assert label_of("- Sofa: Cost: 635 €") == ("Sofa", "Cost")
    assert label_of("位置：车库") == ("", "位置")
    for text in ("The sofa stands in the garden.", "https://example.org/a", "Cost: 1\nStands in: 2"):
        assert label_of(text) == ("", "")

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.text.similarity import groups_of, holds_all, probe, read_fact, same, stands_in


def same_fact(a: str, b: str) -> bool:
    return same(read_fact(a), read_fact(b))


SAME = (
    ("The API listens on port 8765.", "the api listens on port 8765"),
    ("The API listens on port 8765.", "On port 8765, the API listens"),
    ("- Ingrid: Deploys go out on Tuesdays (on 2023-05-08)", "Deploys go out on Tuesdays."),
    ("User: The API listens on port 8765. (log:12-14)", "The API listens on port 8765"),
    ("We decided to ship on Friday with Go.", "We decided to ship with Go on Friday."),
    ("The *billing* service costs 8,000 EUR", "the billing service costs 8000 EUR"),
    ("On Tuesdays we deploy the billing service", "We deploy the billing service on Tuesdays."),
    ("The résumé of Ingrid is in `docs/cv.pdf`", "The resume of Ingrid is in docs/cv.pdf"),
    ("我们决定周五上线新的支付接口。", "我们决定周五上线新的支付接口"),
    ("李雷（2023-05-08）：我对花生过敏。", "李雷：我对花生过敏"),
    ("用户：端口是８７６５。", "端口是8765"),
    ("周五我们上线支付接口", "我们周五上线支付接口。"),
)
DIFFERENT = (
    (
        "The billing service of the platform team in Bergen writes nightly reports to the archive bucket",
        "The billing service of the platform team in Bergen writes nightly reports to the central archive bucket",
    ),
    ("deploy Tuesday", "deploy Thursday"),
    (
        "Deploys go out on Tuesdays after the morning stand-up with the platform team in Bergen near the old harbour",
        "Deploys go out on Thursdays after the morning stand-up with the platform team in Bergen near the old harbour",
    ),
    (
        "The backup of the database runs nightly at two and writes archives into the cold storage bucket",
        "The backup of the database runs nightly at three and writes archives into the cold storage bucket",
    ),
    ("The API listens on port 8765.", "The API listens on port 8766."),
    ("The limit is 30 s", "The limit is 30 min"),
    ("The limit is -5 C at night outside", "The limit is 5 C at night outside"),
    ("The tax is 10%", "The tax is 10"),
    ("We use C++ here", "We use C here"),
    ("app/a.py fails", "app/b.py fails"),
    ("Alice paid Bob", "Bob paid Alice"),
    ("Mother visited the sister", "Sister visited the mother"),
    ("We moved from port 80 to 443", "We moved from port 443 to 80"),
    ("We deploy on Fridays", "We do not deploy on Fridays"),
    ("We deploy on Fridays", "We never deploy on Fridays"),
    ("We deploy on Fridays", "Do we deploy on Fridays?"),
    ("We deploy on Fridays", "~~We deploy on Fridays~~"),
    ("We will migrate to Postgres 15", "We migrated to Postgres 15"),
    ("The migration must end before May", "The migration may end before May"),
    ("Turn the cache on", "Turn the cache off"),
    ("my sister lives in Lyon", "his sister lives in Lyon"),
    ("[x] write the migration guide", "[ ] write the migration guide"),
    ("Staging: the API listens on port 8765", "the API listens on port 8765"),
    ("Ingrid: I bought a red car", "Marcus: I bought a red car"),
    ("I went to the gym (on 2023-05-08)", "I went to the gym (on 2023-05-10)"),
    ("Ingrid: yes", "yes"),
    ("预算一共32万元。", "预算一共35万元。"),
    ("我们周五上线", "我们周五不上线"),
    ("我们周五上线了", "我们周五上线"),
    ("周二上线支付接口", "周四上线支付接口"),
    ("从北京搬到上海", "从上海搬到北京"),
    ("李雷喜欢韩梅梅", "韩梅梅喜欢李雷"),
    ("李雷：我对花生过敏", "王芳：我对花生过敏"),
    ("明天交报告", "后天交报告"),
    ("Rejected: Deploys go out on Tuesdays", "Deploys go out on Tuesdays"),
    ("已废弃：我们每周二上线", "我们每周二上线"),
    ("测试环境：端口是8765", "端口是8765"),
)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_fact_in_other_clothes(a: str, b: str) -> None:
    assert same_fact(a, b) and same_fact(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_one_word_may_make_another_fact(a: str, b: str) -> None:
    assert not same_fact(a, b) and not same_fact(b, a)


def test_a_fact_may_stand_in_a_sentence_of_a_passage() -> None:
    fact = read_fact("Deploys go out on Tuesdays.")
    assert stands_in(fact, "We agreed on it. Deploys go out on Tuesdays. Ask Ingrid.")
    assert stands_in(fact, "Ingrid: Deploys go out on Tuesdays")
    assert stands_in(read_fact("我们周五上线。"), "讨论过了。我们周五上线。请准备好。")
    assert not stands_in(fact, "Rejected:\nDeploys go out on Tuesdays.")
    assert not stands_in(fact, "~~Deploys go out on Tuesdays.~~ Not any more.")
    assert not stands_in(fact, "It is not true that deploys go out on Tuesdays. Ask.")
    assert not stands_in(
        read_fact("Deploys go out on Tuesdays (on 2023-05-08)"), "So. Deploys go out on Tuesdays. (2024-01-01)"
    )


def test_facts_are_grouped_by_what_they_state() -> None:
    texts = [
        "Ingrid moved to Bergen.",
        "我们周五上线",
        "ingrid moved to bergen",
        "我们周五上线。",
        "Marcus moved to Bergen.",
        "周五我们上线",
    ]
    assert groups_of(texts) == [[0, 2], [1, 3, 5], [4]]


def test_a_probe_is_of_rare_words() -> None:
    assert probe(read_fact("The API of billing listens on port 8765.")) == "8765 billing"
    words = probe(read_fact("我们决定周五上线新的支付接口"))
    assert len(words.split()) == 2 and holds_all("我们决定周五上线新的支付接口", words)
    assert not holds_all("我们周六下线", words)
    assert probe(read_fact("??")) == ""


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_it_is_symmetric_and_a_text_is_the_same_as_itself(a: str, b: str) -> None:
    assert same_fact(a, a)
    assert same_fact(a, f"  {a} ")
    assert same_fact(a, b) == same_fact(b, a)
    assert probe(read_fact(a)) == "" or probe(read_fact(a)).strip()


HOSTILE = ("a " * 500_000, "(log:" * 200_000, "C++ " * 250_000, "周五" * 500_000, "A: " * 330_000, "~" * 1_000_000,
           "1," * 500_000,
           "not " * 250_000, "- " * 500_000, "(2023-05-08) " * 80_000)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:6]))
@pytest.mark.timeout(60)
def test_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    assert same_fact(text, text + "x") is False
    assert not stands_in(read_fact(text), f"{text}\nq")
    probe(read_fact(text))

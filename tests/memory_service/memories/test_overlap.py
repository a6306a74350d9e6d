from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer import Hit, Passage
from indexer.types import Statement
from memory_service.memories.overlap import ViewText, repeats_among
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, number_message
from memory_service.text.similarity import comparable_text, covers, size_of, statements_of
from tests.growth import assert_costs_at_most, at_most_readings


def hit(text: str, at: int = 0, *, session: bool = False, score: float | None = None) -> Hit:
    path = "sessions/s.jsonl" if session else "MEMORY.md"
    passage = Passage(start_line=at + 1, end_line=at + 1, text=text)
    return Hit(
        path=path, source="sessions" if session else "memory", passage=passage, ordinal=at, snippet=text,
        score=-float(at) if score is None else score, text_score=1.0, vector_score=None,
    )  # fmt: skip


def said(*texts: str, first: int = 1) -> tuple[Numbered, ...]:
    return tuple(number_message({"role": "user", "content": text}, seq) for seq, text in enumerate(texts, first))


def unsaid(hits: Sequence[Hit], shown: ViewText) -> tuple[Hit, ...]:
    """The hits that say something that a view does not, each thing once."""
    news = [each for each in hits if not shown.says(each.passage.text)]
    repeats = repeats_among(news)
    return tuple(each for at, each in enumerate(news) if at not in repeats)


def kept(found: Sequence[str], *shown: str) -> list[str]:
    hits = [hit(text, at) for at, text in enumerate(found)]
    return [each.passage.text for each in unsaid(hits, ViewText.of(said(*shown)))]


ECHOES = [
    ("Deploys go out on Tuesdays after the stand-up.", "so, deploys go out on Tuesdays after the stand-up, right?"),
    ("The user decided that staging runs on port 8080.", "Staging runs on port 8080, please note."),
    ("We never deploy the shop on Fridays.", "And remember: we never deploy the shop on Fridays!"),
    (
        "Anna owns the billing service and its dashboards.",
        "By the way, Anna owns the billing service and its dashboards, ask her.",
    ),
    ("我们决定每周二部署支付服务。", "好的，每周二部署支付服务，没问题。"),
    ("预发环境的端口是8080，由张伟负责。", "记住：预发环境的端口是8080，由张伟负责。谢谢"),
    ("周五不要部署支付服务。", "请记住，周五不要部署支付服务。"),
    ("I like tea.", "User: I like tea."),
    ("我住在上海。", "用户：我住在上海。以后快递都放在门卫室。"),
    ("法兰克福。", "- 用户（问：备份在哪个区域）：法兰克福。"),
    ("Frankfurt.", 'User, asked "Which region": Frankfurt.'),
    ("Tuesdays; PostgreSQL 16.", 'Assistant, asked "When do deploys go out?": Tuesdays; PostgreSQL 16.'),
    ("The parser has twelve tests; all pass.", "Assistant: The parser has twelve tests; all pass."),
    ("部署改到周四；测试已经通过。", "助手（2026-11-23）：部署改到周四；测试已经通过。"),
    ("I like tea.", "**Assistant** (2026-03-01): I like tea."),
    ("It rains.", "We never deploy on Fridays. It rains. Not here."),
    ("周五不部署。周二部署。不行。", "周五不部署。周二部署。不行。"),
    ("Thanks!", "thanks"),
    ("谢谢", "谢谢！"),
    (
        "Mara: My husky learned to swim at the lake. [image: a dog beside a lake]",
        "Mara: Wow! My husky learned to swim at the lake. Here: [shares an image: a photo of a dog beside a lake]",
    ),
    (
        "玛拉：我的哈士奇在湖边学会了游泳。[image: 湖边的狗]",
        "玛拉：我的哈士奇在湖边学会了游泳。你看：[分享了一张照片：湖边的狗]",
    ),
]
NEWS = [
    ("Use Redis.", "Rejected: use Redis."),
    ("不部署。", "已否决：不部署。"),
    ("We deploy the payment service on Tuesday.", "We deploy the payment service on Thursday."),
    ("The staging gateway listens on port 8080 behind nginx.",
     "The staging gateway listens on port 8081 behind nginx."),
    ("The kitchen team bakes bread for harbor crews, sells cakes to sailors near an old lighthouse and deploys.",
     "The kitchen team bakes bread for harbor crews, sells cakes to sailors near an old lighthouse and never deploys."),
    ("We never deploy the payment service on Fridays.", "We deploy the payment service on Fridays."),
    ("We deploy the payment service on Fridays.", "We do not deploy the payment service on Fridays."),
    ("The release is due on 2026-11-20 at noon in Oslo.", "The release is due on 2026-11-21 at noon in Oslo."),
    ("The limit of the cache is 0.7 of memory.", "The limit of the cache is 0.3 of memory."),
    ("The owner of the billing deploy pipeline and its dashboards is Anna.",
     "The owner of the billing deploy pipeline and its dashboards is Marta."),
    ("Caching is enabled on the production gateway of the shop.",
     "Caching is disabled on the production gateway of the shop."),
    ("每周二部署支付服务到生产环境。", "每周四部署支付服务到生产环境。"),
    ("周五不要部署支付服务到生产环境。", "周五要部署支付服务到生产环境。"),
    ("周五部署支付服务到生产环境。", "周五没部署支付服务到生产环境。"),
    ("账单服务和部署流水线以及监控面板的负责人是张伟。", "账单服务和部署流水线以及监控面板的负责人是李娜。"),
    ("预发环境的网关端口是8080。", "预发环境的网关端口是8081。"),
    ("Tea", "Tea or coffee?"),
    ("Mara: My husky learned to swim at the lake. [image: a dog beside a lake]",
     "Mara: My husky learned to swim at the lake. [shares an image: a photo of a cat on a sofa]"),
    ("Mara prefers the green pots for the window.", "Mara prefers the blue pots for the window."),
    ("The archive moves from Graz to Linz.", "The archive moves from Linz to Graz."),
    ("We ship live plants to Austria.", "Never think that we ship live plants to Austria."),
    ("Deploys go out on Tuesdays.", "Deploys go out on Tuesdays no longer."),
    ("我们决定用蓝色包装盒发货。", "我们决定用红色包装盒发货。"),
    ("仓库从苏州搬到杭州。", "仓库从杭州搬到苏州。"),
    ("周五上线支付接口。", "别在周五上线支付接口。"),
]  # fmt: skip
# The shorter one says nothing that the longer one does not say.
MORE = [
    ("Deploys go out on Tuesdays and Fridays.", "Deploys go out on Tuesdays."),
    ("Ingrid: I bought a red car.", "I bought a red car."),
    ("User (2026-03-01): I went to the gym yesterday.", "I went to the gym yesterday."),
]


@pytest.mark.parametrize(("found", "shown"), ECHOES)
def test_what_the_model_sees_is_left_out(found: str, shown: str) -> None:
    assert kept([found], "Hello there.", shown) == []


@pytest.mark.parametrize(("found", "shown"), NEWS + MORE)
def test_what_differs_in_what_matters_stays(found: str, shown: str) -> None:
    assert kept([found], "Hello there.", shown) == [found]


@pytest.mark.parametrize(("found", "other"), NEWS)
def test_what_differs_stays_among_hits_too(found: str, other: str) -> None:
    assert kept([found, other]) == [found, other]
    assert kept([other, found]) == [other, found]


def test_it_must_be_one_message_that_says_it() -> None:
    found = "the painter varnished a violin beside an orchard"
    assert kept([found], "the painter varnished a fence", "a violin beside an orchard") == [found]
    assert kept([found], "the painter varnished a violin beside an orchard at last") == []


def test_a_word_that_the_view_lacks_is_news() -> None:
    words = "alpha bravo carbon delta ember falcon garden harbor island jungle".split()
    assert kept([" ".join(words)], " ".join(words)) == []
    assert kept([" ".join(words)], " ".join(words[:9])) == [" ".join(words)]
    assert kept([" ".join(words[:9])], " ".join(words)) == []


def test_a_long_message_does_not_say_all_that_its_words_could() -> None:
    found = "harbor cranes unload copper before sunrise"
    apart = (" and filler words stand in between" + " alpha beta gamma" * 60 + " ").join(found.split())
    assert kept([found], apart) == [found]
    assert kept([found], "x y z " * 500 + found + " q r s" * 500) == []


def test_a_long_hit_is_found_in_a_longer_message() -> None:
    found = " ".join(f"topic{at % 97}x{at}" for at in range(300))
    assert kept([found], "before " + found + " after") == []


def test_tool_calls_and_results_are_seen_too() -> None:
    arguments = '{"t": "harbor cranes unload copper"}'
    call: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "note", "arguments": arguments}}
        ],
    }  # fmt: skip
    result: Message = {"role": "tool", "tool_call_id": "c1", "content": "港口的起重机在卸铜。"}
    shown = ViewText.of((number_message(call, 1), number_message(result, 2)))
    assert unsaid([hit("Harbor cranes unload copper."), hit("港口的起重机在卸铜", 1)], shown) == ()


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("Deploys go out on Tuesdays.", "Deploys go out on Tuesdays, and Marta watches the dashboards."),
        ("每周二部署支付服务。", "每周二部署支付服务，李娜看监控面板。"),
    ],
)
def test_of_two_that_say_the_same_the_longer_stays(short: str, long: str) -> None:
    hits = [hit(short, 0), hit("Unrelated harbor cranes unload copper.", 1), hit(long, 2, session=True)]
    assert repeats_among(hits) == {0: 2}
    assert kept([short, f"{long} {' '.join(f'harbor{at}' for at in range(60))}"])[0] != short


@pytest.mark.parametrize("text", ["Deploys go out on Tuesdays.", "每周二部署。"])
def test_of_two_that_say_as_much_the_memory_file_stays(text: str) -> None:
    hits = [hit(f"{text}!!", 0, session=True), hit(text, 1), hit(text, 2)]
    assert repeats_among(hits) == {0: 1, 2: 1}


def test_what_was_replaced_does_not_stand_for_what_was_not() -> None:
    newer = Statement(
        path="MEMORY.md", start_line=9, end_line=9, date=None, text="They go out on Mondays.", about="deploys"
    )
    old = replace(hit("User: Deploys go out on Tuesdays."), replaced_by=newer)
    again = hit("Deploys go out on Tuesdays.", 1, session=True)
    assert repeats_among([old, again]) == {}
    assert repeats_among([old, replace(again, replaced_by=old.replaced_by)]) == {1: 0}


@pytest.mark.parametrize("text", ["I went running today.", "我今天去跑步了。"])
def test_what_is_said_of_today_on_two_days_is_said_of_two_days(text: str) -> None:
    first, second = (
        replace(one, passage=replace(one.passage, date=dt.date(2026, 3, day)))
        for day, one in enumerate((hit(text, 0, session=True), hit(text, 1, session=True)), 1)
    )
    assert repeats_among([first, second]) == {} and repeats_among([first, first]) == {1: 0}
    assert repeats_among([hit(f"User (2026-03-02): {text}"), first, second]) == {2: 0}


def test_a_chain_of_repeats_leaves_one() -> None:
    base = "alpha bravo carbon delta ember falcon garden"
    assert kept([base, f"{base} harbor", f"{base} harbor island"]) == [f"{base} harbor island"]


def test_short_hits_repeat_each_other_only_word_for_word() -> None:
    assert kept(["Green tea", "green tea!", "Tea", "绿茶", "绿茶。"]) == ["green tea!", "Tea", "绿茶。"]


WORDS = "deploy tuesday friday never not 8080 8081 redis anna the of 部署 周二 不 缓存 张伟 。 . \n".split(" ")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join) | st.text(min_size=1, max_size=30)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, max_size=12), st.lists(TEXTS, max_size=8))
def test_what_is_kept_is_what_was_found_each_thing_once(found: list[str], shown: list[str]) -> None:
    hits = [hit(text, at) for at, text in enumerate(found)]
    view = ViewText.of(said(*shown))
    news = unsaid(hits, view)
    assert news == unsaid(hits, view) == unsaid(news, view)
    assert [each for each in hits if each in news] == list(news)


def of_all_pairs(hits: Sequence[Hit]) -> list[Hit]:
    """The hits that none of those that say more says, judged pair by pair."""

    sizes = [size_of(statements_of(each.passage.text)) for each in hits]

    def says_more(at: int) -> tuple[int, bool, int, int]:
        text = comparable_text(hits[at].passage.text)
        return -sizes[at], hits[at].source != "memory", -len(text), at

    def is_said(at: int) -> bool:
        others = [hits[n].passage.text for n in range(len(hits)) if says_more(n) < says_more(at)]
        return any(covers(comparable_text(other), statements_of(hits[at].passage.text)) for other in others)

    return [hit for at, hit in enumerate(hits) if not is_said(at)]


_SENTENCES = sorted({text for pair in ECHOES + NEWS for text in pair if "2026" not in text})


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.lists(st.sampled_from(_SENTENCES), min_size=1, max_size=4), st.booleans()), max_size=12))
def test_each_is_left_out_that_is_an_echo_of_another_judged_pair_by_pair(found: list[tuple[list[str], bool]]) -> None:
    hits = [hit(" ".join(texts), at, session=session) for at, (texts, session) in enumerate(found)]
    assert list(unsaid(hits, ViewText.of(()))) == of_all_pairs(hits)


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=10), st.data())
def test_a_view_that_grew_says_what_one_made_at_once_says(texts: list[str], draw: st.DataObject) -> None:
    messages = said(*texts)
    view: ViewText | None = None
    for _ in range(3):
        start = draw.draw(st.integers(0, len(messages)))
        end = draw.draw(st.integers(start, len(messages)))
        view = ViewText.of(messages[start:end], before=view)
        fresh = ViewText.of(messages[start:end])
        assert [view.says(text) for text in texts] == [fresh.says(text) for text in texts]


def test_an_earlier_view_does_not_see_what_a_later_one_does() -> None:
    first, second, third = said("alpha bravo carbon", "delta ember falcon", "garden harbor island")
    early = ViewText.of([first])
    late = ViewText.of([first, second], before=early)
    other = ViewText.of([first, third], before=early)
    seen = [
        [view.says(str(each.message["content"])) for each in (first, second, third)] for view in (early, late, other)
    ]
    assert seen == [[True, False, False], [True, True, False], [True, False, True]]


def test_one_more_message_costs_little() -> None:
    texts = [
        f"message {at} about harbor{at % 37} and crane{at % 91} with 部署{at} notes on copper{at % 53}"
        for at in range(2_001)
    ]
    messages = said(*texts)
    view = ViewText.of(messages[:2_000])
    assert_costs_at_most(1 / 5, lambda: ViewText.of(messages, before=view), lambda: ViewText.of(messages[:2_000]))


@pytest.mark.parametrize("piece", ["a", "不", "¬", "a'", "1.", "周", "not ", "\n", "。"])
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    with at_most_readings(500):
        unsaid([hit(text), hit(text[1:], 1)], ViewText.of(said(text)))


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("Ingrid (2026-03-01): I went to the gym yesterday.", "I went to the gym yesterday!"),
        ("英格丽（2026-03-01）：我昨天去了健身房。", "我昨天去了健身房"),
    ],
)
def test_a_note_with_a_day_repeats_what_was_said_on_that_day(note: str, text: str) -> None:
    name = note[: note.index("2026") - 1].strip()
    message: Message = {"role": "user", "content": text, "name": name}
    for day, is_echo in (("2026-03-01", True), ("2026-03-02", False)):
        shown = ViewText.of([number_message(message, 1, f"{day}T09:00:00+00:00")])
        assert (unsaid([hit(note)], shown) == ()) is is_echo


def test_a_note_with_a_day_repeats_a_passage_of_that_day() -> None:
    note, said = (
        hit("Ingrid (2026-03-01): I went to the gym yesterday."),
        hit("Ingrid: I went to the gym yesterday!", 1),
    )
    for day, left in ((1, 1), (2, 2)):
        dated = replace(
            said,
            passage=replace(said.passage, date=dt.date(2026, 3, day), text=f"Hm. {said.passage.text} Yes, really."),
        )
        assert len(unsaid([note, dated], ViewText.of(()))) == left

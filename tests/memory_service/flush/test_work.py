"""What is kept of an agent's work: messages of such sessions, and the lines that are left of each."""

from __future__ import annotations

import pytest

from memory_service.flush.candidates import find_candidates
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from tests.memory_service.flush.stretches import call, result, stretch, texts

# A message, and what is written of it.
WORK: dict[str, list[str]] = {
    # Rules and decisions win over what else a message says
    "u Then a new rule, and it outranks speed: never ship plants below 5 °C, heat packs or not. A pack is cold by the "
    "second night. Heat packs stay as they are for 5 to 8 °C.": [
        "User: a new rule, and it outranks speed: never ship plants below 5 °C, heat packs or not. "
        "Heat packs stay as they are for 5 to 8 °C."
    ],
    "u Ask him, in Chinese please. And don't retry the carrier more than twice in future.": [
        "User: don't retry the carrier more than twice in future."
    ],
    "u Did they answer? And please no meetings for me before 09:00 on Wednesdays.": [
        "User: please no meetings for me before 09:00 on Wednesdays."
    ],
    "u Book nothing before I confirm, ok?": ["User: Book nothing before I confirm, ok?"],
    "u Merge, but deploy only after I said go.": ["User: Merge, but deploy only after I said go."],
    "u Please pin versions always with a hash too.": ["User: Please pin versions always with a hash too."],
    "u From now on, open a claim at once.": ["User: From now on, open a claim at once."],
    "u 换新吧。但是不要发圆通。以后给我的快递都必须打电话确认。": [
        "用户：不要发圆通。以后给我的快递都必须打电话确认。"
    ],
    "u 发票开公司抬头，不要写个人。": ["用户：发票开公司抬头，不要写个人。"],
    # Promises and deadlines
    "u I'll look for another carrier before 15 December, put that on my list.": [
        "User: I'll look for another carrier before 15 December, put that on my list."
    ],
    "u If I forget, remind me on Friday before noon.": [
        "User (2026-11-20): If I forget, remind me on Friday before noon."
    ],
    "a I look for one and tell you by tomorrow.": ["Assistant (2026-11-20): I look for one and tell you by tomorrow."],
    "a 好的，11 月 22 日上午我会提醒您寄回旧机器。": ["助手：11 月 22 日上午我会提醒您寄回旧机器。"],
    "u 报告周五之前我会发给王经理。": ["用户（2026-11-20）：报告周五之前我会发给王经理。"],
    # What says nothing by itself
    "u Write to the three customers. Short, honest, the new date, no fuss.": [],
    "u 8 trays.": [],
    "u Wrap them.": [],
    "u Tomasz approved.": [],
    "u 你帮我回一下，语气轻松点。": [],
    'a Draft, subject "Safe with cats":': [],
    # The label has the language of the message
    "u We moved Kunming to 7 December. Tell 林娜 that it is decided.": [
        "User: We moved Kunming to 7 December. Tell 林娜 that it is decided."
    ],
    "u 我们决定用 PostgreSQL 和 Redis。": ["用户：我们决定用 PostgreSQL 和 Redis。"],
    # Sentences are whole
    'a The page now shows "wieder da am 4. Dezember" for LW-2207.': [
        'Assistant (2026-11-20): The page now shows "wieder da am 4. Dezember" for LW-2207.'
    ],
    "u Dr. Lee of the U.S. office decided on No. 12, e.g. for the 3.11 build.": [
        "User: Dr. Lee of the U.S. office decided on No. 12, e.g. for the 3.11 build."
    ],
    # Whose words they are
    "u Look at this mail:\n“Never call me again. Can you change order WJ-4711?”": [],
    "u 我朋友问：\n“一定要预热吗？必须买新的吗？”": [],
    "u The scale again, and Lee answered:\nThe packing scale reads 40 g off since Monday.": [
        "Quoted (2026-11-20): The scale again, and Lee answered: The packing scale reads 40 g off since Monday."
    ],
    "u 温室的事，阿哲说：\n软水机的电导率是 1.4，以前是 0.5。": [
        "转述：温室的事，阿哲说：软水机的电导率是 1.4，以前是 0.5。"
    ],
}


@pytest.mark.parametrize("said", WORK, ids=lambda said: said[:40])
def test_what_is_kept_of_work(said: str) -> None:
    assert texts(said) == WORK[said]


def _on_the_way(text: str, tool: str) -> Message:
    return {**call(tool), "content": text}


CALLS: dict[str, tuple[list[Message | str], list[str]]] = {
    "the id of a message that went out": ([call("send_mail"), result('{"id": "m-20490"}')], []),
    "an id that the assistant tells": (
        [call("create_order"), result('{"id": "WX-0112"}'), "a The order WX-0112 over 399 € is placed."],
        ["Assistant: The order WX-0112 over 399 € is placed."],
    ),
    "an id that nobody tells": (
        [call("create_order"), result('{"id": "WX-0112"}'), "a 好了。"],
        ["`create_order` made id WX-0112"],
    ),
    "what is said on the way": (
        [_on_the_way("And applied to today: I put the three on hold now.", "hold"), result("ok")],
        [],
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_what_is_kept_of_calls(case: str) -> None:
    messages, expected = CALLS[case]
    assert texts(*messages) == expected


def test_what_binds_comes_first_in_a_long_stretch() -> None:
    filler = [f"a The worker {at} moved {at + 7} rows of table T-{at} to Bergen in May 2026." for at in range(60)]
    kept = texts(*filler[:30], "u Never restart the printer.", "u 绝不能重启打印机。", *filler[30:])
    assert {"User: Never restart the printer.", "用户：绝不能重启打印机。"} <= set(kept)


CHINESE_TALK = ("u 请记住，仓库的地址是景德路 12 号。", "a 好的，记住了。", "u 我们决定陶盆只用景德镇的。")


def test_in_a_chinese_talk_every_memory_has_chinese_labels_whatever_it_quotes() -> None:
    kept = texts(
        *CHINESE_TALK,
        "u Never restart the printer.",
        call("create_order"),
        result('{"id": "DH-2026-077", "status": "open"}'),
        call("track_parcel", "c2"),
        result("error: no parcel with the number SF-88317731", "c2", failed=True),
    )
    assert {"用户：Never restart the printer.", "用户：我们决定陶盆只用景德镇的。"} <= set(kept)
    assert "`create_order` 生成了 id DH-2026-077, status open" in kept
    assert not any("track_parcel" in text for text in kept)
    assert not [line for line in kept if line.startswith(("User", "Assistant", "A tool"))]


def test_what_was_said_before_a_stretch_tells_its_language() -> None:
    said = [*stretch(*CHINESE_TALK * 3), *stretch("u Never restart the printer.")]
    before, after = said[:-1], [number_message(said[-1].message, len(said), said[-1].at)]
    assert [each.text for each in find_candidates(after, before=before)] == ["用户：Never restart the printer."]
    assert [each.text for each in find_candidates(after)] == ["User: Never restart the printer."]


def test_what_an_outcome_made_is_not_noted_twice_in_either_language() -> None:
    made = (call("create_order"), result('{"id": "DH-2026-077"}'))
    assert not [line for line in texts(*CHINESE_TALK, *made, "a 订单 DH-2026-077 已经建好。") if "`" in line]
    english = "u Please order the two hundred white pots from Dehua today."
    assert not [line for line in texts(english, *made, "a The order DH-2026-077 is placed.") if "`" in line]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.dates import has_time_words
from indexer.language.questions import asks, asks_shortly, asks_when, whose_word
from tests.growth import assert_grows_at_most

TIME = """
I saw her yesterday.
See you Tomorrow
Today's plan
two days ago
back in 2019
1998 was a good year
on 2026-11-20
since last year
next week we move
this weekend
the other day
over the past few months
in the last two weeks
a few days off
a couple of weeks
three weeks later
the week before
Deploys go out on Tuesdays.
in December
on 5 May
May 7th
7th of March
since March
Last May
on Sun, 3 Jan
at 3pm
at 10:30 a.m.
in the morning
this evening
in the summer
at night
recently
昨天我去了
明天见
后天
上周
上个月
去年
本周五
星期三
周末
礼拜天
2026年
3月
20号
11 月
三天前
两周后
5个月之前
二〇二六年
十一月
早上八点
晚上
最近
刚才
三点半
""".strip().splitlines()

NO_TIME = """
The cat likes fish.
You may go.
March on!
They march in line
Good morning!
the last item
version 1.2019.3
$2000
2000ms
port 12019
part of 3.2020
Sun is bright
He sat down
I am here
mar the view
day by day
the month view
second choice
the fall of Rome
猫喜欢鱼
早上好
三个人
以前的房子
我们的问题
月饼
""".strip().splitlines()

ASKS = """
Who?
Really?!
He said "why?"
(why?)
**why?**
why? 🙂
Yes. And you?
What? (yes)
Look? [shares a picture: a cat]
真的吗？（见下）
你是谁？
你好吗
你好吗。
他呢…
你是谁？」
""".strip().splitlines()

ASKS_NOT = """
Yes.
Why? Because.
a ? b : c
你好
你是谁？我是小明。
吗啡
...
!
""".strip().splitlines()

WHEN = """
When did we move?
when is the deploy
And when was that?
Do you remember when Ann left?
Since when do we use it?
Until when is it open?
What date was the party?
What was the exact date of the party?
Which year did he leave?
In what month do we ship?
On which day?
what time is the stand-up
What day of the week
How long ago did she move?
How long has he been here?
How many weeks ago was it?
Ann left when?
会议是什么时候
他何时来
哪天发布
哪一年
几月
生日是几号
住了多久
星期几开会
会议是什么时间
哪几天休假
""".strip().splitlines()

NOT_WHEN = """
What do we deploy?
What should I do when it fails?
Who was there when I left?
When I left, what broke?
what time zone does the server use
Where is it?
What happened yesterday?
How many cats does she have?
Whenever it rains, what do we do?
他喜欢什么
有几个人
""".strip().splitlines()


@pytest.mark.parametrize("text", TIME)
def test_time_words(text: str) -> None:
    assert has_time_words(text)


@pytest.mark.parametrize("text", NO_TIME)
def test_no_time_words(text: str) -> None:
    assert not has_time_words(text)


@pytest.mark.parametrize("text", ASKS)
def test_questions(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize("text", ASKS_NOT)
def test_no_questions(text: str) -> None:
    assert not asks(text)


@pytest.mark.parametrize("query", WHEN)
def test_questions_about_time(query: str) -> None:
    assert asks_when(query)


@pytest.mark.parametrize("query", NOT_WHEN)
def test_questions_about_something_else(query: str) -> None:
    assert not asks_when(query)


def test_an_empty_text_has_no_cues() -> None:
    assert not (has_time_words("") or asks("") or asks_when(""))


@given(st.text())
def test_any_text_can_be_judged(text: str) -> None:
    for judge in (has_time_words, asks, asks_when):
        assert judge(text) is judge(text)
        assert isinstance(judge(text), bool)


@pytest.mark.parametrize(
    "unit", ["a", "1", "19", "day ", "may ", "in the ", "and ", " ", "?", "?!", "三", "几", "上个", "what ", "!"]
)
def test_time_is_linear(unit: str) -> None:
    def judged(size: int) -> None:
        for judge in (has_time_words, asks, asks_when):
            judge(unit * (size // len(unit)))

    assert_grows_at_most(10, judged, 40_000, 160_000)  # a quadratic one would take sixteen times as long


@pytest.mark.parametrize(
    ("question", "whose"),
    [
        ("When did I move to Graz?", "user"),
        ("Wer hat unsere Leiter?", "user"),
        ("我昨天吃了什么？", "user"),
        ("私の鍵はどこですか？", "user"),
        ("What did you recommend for my trip?", "assistant"),
        ("Remind me of your advice on the lease, please?", "assistant"),
        ("你推荐过什么？", "assistant"),
        ("Can you summarise what I said about the move?", ""),
        ("请总结我的计划", ""),
        ("Which port does the server use?", ""),
        ("I moved to Graz.", ""),
    ],
)
def test_whose_word_answers(question: str, whose: str) -> None:
    assert whose_word(question) == whose


def test_a_long_text_says_what_its_question_is_about() -> None:
    assert asks_shortly("Is it open?")
    assert not asks_shortly("The shop in the old town has new owners. " * 4 + "Is it open?")

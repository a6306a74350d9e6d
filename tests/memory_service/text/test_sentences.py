"""Where sentences end, and whose words they are; English, German and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.authorship import introduction, message_parts
from memory_service.text.sentences import split_sentences
from tests.growth import at_most_readings

# A bar stands where a sentence ends.
LINES = (
    "One.|Two!|Three?|Four",
    'The page shows "wieder da am 4. Dezember".|Plants need 2 days.',
    "Wir liefern am 4. Dezember im 5. Stock.|Danach nicht mehr.",
    "Das geht z. B. am Montag, d. h. morgen.|Gut.",
    "It is on the 5. Floor of No. 12, says Dr. Lee of the U.S. office.|He wrote that.",
    "It failed in 3.11.|Then 10.0.0.7 was down, e.g. at 3 p.m. on Monday, cf. Fig. 3 etc. and so on.",
    "We take plan B.|It starts at 3 p.m. sharp.|The answer is no.|Then we go.",
    "See https://example.com/a.b?c=d!e for it.|Ok then.",
    "Is that so?!|Yes…|He said “Stop. Go back.” and left.|“I do.”|Fine.",
    "it was fine. then it broke.|Now it works.",
    "1. Do this now.|2. Do that.",
    "第一句。|第二句！|第三句？！|第四句；|第五句",
    "他看了《你好。再见》和「别走。回来」两本书。|很好。",
    "“您好，我买了花。”|然后他走了。",
    "版本是 3.11。|地址是 https://example.com/a?b=c 。|服务器是 10.0.0.7！",
    "请把 v1.2.3 部署到 No. 5 机房。|谢谢",
)


@pytest.mark.parametrize("line", LINES)
def test_where_sentences_end(line: str) -> None:
    parts = line.split("|")
    joined = "".join(part if part[-1] in "。！？；" or part[-2:] == "。”" else f"{part} " for part in parts)
    assert list(split_sentences(joined.strip())) == parts


@given(st.text("aB1.!?。！“”「」 《》\"'…;；4Dezmbr", max_size=80))
def test_no_word_is_lost(line: str) -> None:
    assert "".join("".join(split_sentences(line)).split()) == "".join(line.split())


def others_words(text: str) -> str:
    """Words of others in a text, on one line."""
    return " ".join(" ".join(part.text for part in message_parts(text) if part.kind != "typed").split())


OTHERS = {
    "Book it.": "",
    "Put it on the page as “back soon”, please.": "",
    "Is it right that “we are open from nine to six” here?": "“we are open from nine to six”",
    "帮我看看：\n“您好，能不能换货？差价我补。”": "“您好，能不能换货？差价我补。”",
    "Lee answered:\nNever ship it.\nOK?\n\nThanks.": "Never ship it. OK?",
    "林娜刚发来的：\n他们问要不要包。": "他们问要不要包。",
    "I wrote:\nNever ship it.": "",
    "Rules:\nNever ship it.": "",
    "> Always ship it.\nNo.": "> Always ship it.",
    'Draft:\n"We send it. Sorry.\nMara"\nShall I?': '"We send it. Sorry. Mara"',
    'The 12" pot and the 14" pot': "",
}


@pytest.mark.parametrize("text", OTHERS)
def test_words_of_others(text: str) -> None:
    assert others_words(text) == OTHERS[text]


def test_who_is_introduced() -> None:
    text = "Hi.\nLee answered:\nNever ship it."
    assert introduction(text, text.index("Never")) == "Lee answered:"
    assert introduction(text, text.index("Lee")) == ""
    assert introduction("阿哲说：\n不行", 5) == "阿哲说："


@pytest.mark.parametrize(
    "piece", [". ", "a. ", "1. ", "“", "「", "「a」。", '"a ', "x:\n", "said:\n", "> a\n", "z. B. ", "。"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    with at_most_readings(50):
        list(split_sentences(text))
        others_words(text)

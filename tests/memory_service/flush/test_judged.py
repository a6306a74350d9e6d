"""What a flush keeps of a talk with an assistant, by the judge of the package."""

from __future__ import annotations

import pytest

from indexer import multilingual_embedder
from memory_service.flush.candidates import find_candidates
from memory_service.flush.notes import Candidate
from memory_service.messages.shapes import Message
from memory_service.text.correction_judge import TalkJudge
from tests.memory_service.flush.stretches import call, result, stretch

_EMBEDDER = multilingual_embedder()
JUDGE = TalkJudge(embed=_EMBEDDER.embed_documents, embedder=_EMBEDDER.fingerprint)


def found(*lines: str | Message) -> list[Candidate]:
    return find_candidates(stretch(*lines), judge=JUDGE)


def noted(*lines: str | Message) -> str:
    return "\n".join(candidate.text for candidate in found(*lines))


def test_what_lasts_stays_and_what_is_of_the_moment_goes() -> None:
    text = noted(
        "u Morning! Quick one before my next call.",
        "a Good morning. What can I do for you?",
        "u Our accountant is Berta Lang, she comes in on the first Tuesday of each month. Could you shorten this mail?",
        "a Sure. Shall I keep the greeting?",
        "u Yes please. Invoices always go out with thirty days to pay.",
        "a Here is the shorter mail. Let me know if you need anything else!",
        "u Great, thanks!",
    )
    assert "Berta Lang" in text and "thirty days" in text
    assert not any(word in text for word in ("Morning", "Yes please", "shorten", "Let me know", "thanks"))


@pytest.mark.parametrize(
    ("lasting", "passing"),
    [
        ("以后回复都用中文，代码注释用英文。", "帮我看看这个报错。"),
        ("Ich vertrage keine Laktose, bitte bei allen Rezepten beachten.", "Mach das bitte etwas kürzer."),
        ("Notre réunion d'équipe a lieu chaque lundi à 9 heures, salle Colbert.", "Merci, c'est parfait comme ça."),
    ],
)
def test_each_language_is_judged(lasting: str, passing: str) -> None:
    text = noted(f"u {passing}", "a OK.", f"u {lasting}", "a OK.", f"u {passing}")
    assert lasting.split("，")[0][:12] in text and passing[:8] not in text


def test_a_value_that_the_talk_corrects_is_noted_once_as_corrected() -> None:
    text = noted(
        "u The weekly report goes out on Sunday at 20:00.",
        "a Noted.",
        "u No wait, I mixed that up. The weekly report goes out on Monday at 06:00.",
    )
    assert text.count("weekly report") == 2 and text.count("\n") == 0
    assert text.index("Monday") < text.index("(previously: The weekly report goes out on Sunday at 20:00)")


@pytest.mark.parametrize(
    "line", ["Remember: deploys go out on Tuesdays after the 10:00 stand-up.", "请记住：每周二 10:00 站会之后部署。"]
)
def test_what_is_said_again_corrects_nothing(line: str) -> None:
    text = noted(f"u {line}", "a OK.", f"u {line}", "a OK.", f"u {line}")
    assert text.count("10:00") == 1, text


def test_a_corrected_sentence_does_not_stand_in_front_of_its_correction() -> None:
    text = noted("u My mother arrives on 12 December. It's 13 December when my mother arrives, sorry.")
    assert text.count("12 December") <= 1 and "13 December" in text


def test_tools_and_the_words_of_others_give_no_note() -> None:
    text = noted(
        "u Run the tests.",
        call("run"),
        result("Our office is at 12 Elm Street. 14 passed"),
        "a The user decided that all files may be deleted without asking.",
        'u She wrote: "The vault code is 7443."',
    )
    assert "Elm" not in text and "deleted" not in text


def test_a_day_on_which_something_was_said_is_its_own() -> None:
    message: Message = {"role": "user", "content": "I am allergic to penicillin."}
    message["created_at"] = "2026-03-02T23:30:00+00:00"  # type: ignore[typeddict-unknown-key]  # carried along
    assert [str(each.date) for each in found(message)] == ["2026-03-02"]


def test_a_moment_that_is_yet_to_come_is_not_believed() -> None:
    message: Message = {"role": "user", "content": "I am allergic to penicillin."}
    message["created_at"] = "2031-03-02T23:30:00+00:00"  # type: ignore[typeddict-unknown-key]  # carried along
    assert [str(each.date) for each in found(message)] == ["2026-11-20"]


@pytest.mark.parametrize(
    "lines",
    [
        ["u a", "a b", "u c"] * 200,
        ["u " + "word " * 4_000],
        ['u {"a": [1, 2, {"b": "c"}]}', "u def f(x): return x + 1", "u 🙂🙂🙂"],
        ["u I like 咖啡 and tea, 每天 two cups."],
        [],
    ],
    ids=["one word a message", "endless sentence", "code", "two languages", "nothing"],
)
def test_any_talk_is_read(lines: list[str]) -> None:
    assert len(found(*lines)) <= 40

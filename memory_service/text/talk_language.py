"""The language of a talk, by what its user typed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from indexer.common import ALL_HAN, KANA, lazy_regex
from indexer.language import ornament
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import Numbered

_HAN = lazy_regex(f"[{ALL_HAN}]")
_KANA = lazy_regex(f"[{KANA}]")
_LATIN = lazy_regex("[A-Za-z]{2,}")
# Of a message with more characters, which is a paste, only its beginning counts; and so many messages, the newest.
_READ_CHARS = 400
_READ_MESSAGES = 40
# Fewer characters and words say nothing of a language: "ok", "好".
_LEAST_WORDS = 6
# The share of Chinese that a talk has to come to, to be Chinese, and to fall below, to be it no more. Our choice:
# Chinese talks of work have one Latin word for five to ten characters, English ones hardly a character.
_CHINESE_FROM, _CHINESE_UNTIL = 0.7, 0.3
# A Japanese text has more kana than this for each character that Chinese has too.
_MOST_KANA = 0.15


def language_of(messages: Sequence[Numbered], *, before: str = "") -> str:
    """The language of the talk that some messages are of, by what its user typed; see `talk_language`."""
    # Those who only write a text need none of what reads messages.
    from indexer.language import typed_text

    texts: dict[str, list[str]] = {"user": [], "assistant": []}
    for message in reversed(messages):
        found_text = texts.get(message.message["role"], [])
        if len(found_text) < _READ_MESSAGES:
            found_text.append(text_of(message.message)[:_READ_CHARS])
        if len(texts["user"]) == _READ_MESSAGES:
            break
    ornaments = [ornament("speech", text, typed_text, text) for text in texts["user"]]
    return talk_language(ornaments[::-1], beside=texts["assistant"], before=before)


def first_language(messages: Sequence[Numbered]) -> str:
    """The language that a talk began in, by the first that its user typed and that tells one.

    More messages change nothing of it, so that what was sent in it once stays as it was.
    """
    from indexer.language import typed_text

    texts = list[str]()
    for message in messages[:_READ_MESSAGES]:
        if message.message["role"] == "user":
            text = text_of(message.message)[:_READ_CHARS]
            texts.append(ornament("speech", text, typed_text, text))
            if _share(texts) is not None:
                break
    return talk_language(texts)


def talk_language(texts: Sequence[str], *, beside: Sequence[str] = (), before: str = "") -> str:
    """The language of a talk.

    Args:
        texts: The user's own messages, oldest first; the newest 40 count.
        beside: What others said; it counts where the user said too little.
        before: The language it had when that was last asked; it changes over only where the share is clear.
    """
    share = _share(texts)
    if share is None and not before:
        share = _share([*beside, *texts])
    if share is None:
        return before or "en"
    return "zh" if share >= (_CHINESE_UNTIL if before == "zh" else _CHINESE_FROM) else "en"


def _share(said_texts: Sequence[str]) -> float | None:
    """Share of Chinese characters among those and the Latin words; None if there are too few."""
    texts = [text[:_READ_CHARS] for text in said_texts[-_READ_MESSAGES:]]
    han = sum(len(_HAN.findall(text)) for text in texts if not text.isascii())
    kana = sum(len(_KANA.findall(text)) for text in texts if not text.isascii())
    latin = sum(len(_LATIN.findall(text)) for text in texts)
    if han + kana + latin < _LEAST_WORDS:
        return None
    return 0.0 if kana > _MOST_KANA * han else han / (han + latin)


def written_in(text: str) -> str:
    """The language that the writing of a text tells, a name in it apart; empty where it tells none."""
    return "zh" if len(_HAN.findall(text)) > len(_LATIN.findall(text)) else ""

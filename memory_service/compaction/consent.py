"""Owns claims that the user agreed to something, and whether the conversation has that consent.

Invariants: pure; linear; a claim holds only if a user said yes, or decided, where the same matter was spoken of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_service.compaction.statements import decisions_of, is_yes
from memory_service.compaction.summary import SummaryRequest
from memory_service.messages import text_of

_CLAIM = re.compile(
    r"""(?ix)\b(?:user|customer|client|owner|they|he|she)\s+
      (?:(?:has|have|had|already|explicitly|also|then|later|clearly)\s+){0,3}
      (?:confirmed|agreed|approved|accepted|consented|authori[sz]ed|signed\s+off
      |gave\s+(?:\w+\s+){0,2}(?:go-ahead|permission|approval|consent))
    | \b(?:confirmed|agreed|approved|accepted|authori[sz]ed)\s+by\s+(?:the\s+)?(?:user|customer|client|owner)
    | \bwith\s+(?:the\s+)?(?:user|customer|client)['’]s\s+(?:approval|consent|permission|agreement)
    | \b(?:user|customer)\s+(?:approval|consent|confirmation)\s+(?:was\s+)?(?:given|received|obtained)
    | (?:用户|客户)(?:已经?|也|明确|都){0,3}(?:确认|同意|批准|认可|授权|许可|答应)
    | (?:经|得到|获得|征得)(?:了)?(?:用户|客户)(?:的)?(?:确认|同意|批准|认可|授权|许可)"""
)
_ONLY_ASKED = re.compile(
    r"""(?ix)\b(?:if|until|once|unless|when|whether|after|before|wait(?:ing)?(?:\s+for)?|await(?:ing|s)?
      |needs?|not|never|hasn['’]?t)\b[^.;]{0,24}\Z
    | (?:等|等待|待|需|需要|请|若|如果|一旦|直到|除非|是否|未|没有?|尚未)[^。；，,]{0,6}\Z"""
)
_LATER_HAN = re.compile("后|前|之后|之前|再")
_WORD = re.compile(r"[a-z]{4,}|[a-z]*[0-9][a-z0-9]*")
_HAN = re.compile("[\u4e00-\u9fff]+")
_COMMON = frozenset(
    "user customer client that this with have been were will would should could their them they then than from into "
    "already explicitly also confirmed confirm agreed agree approved approve accepted accept plan shall "
    "want please".split()
)
_COMMON_HAN = frozenset("用户 客户 确认 同意 批准 认可 授权 许可 已经 明确 可以 好的 我们 是否 需要".split())


def claims_of(text: str) -> Iterator[str]:
    """The lines of a text that say the user agreed to something."""
    for line in text.split("\n"):
        if any(map(_is_claim, _CLAIM.finditer(line))):
            yield line.strip()


def _is_claim(match: re.Match[str]) -> bool:
    line, start = match.string, match.start()
    asked = _ONLY_ASKED.search(line[max(0, start - 40) : start])
    return not asked and not _LATER_HAN.match(line, match.end())


def is_granted(claim: str, request: SummaryRequest) -> bool:
    """Whether the source of a summary has the consent that a line of it claims."""
    subject = _topics(claim)
    return any(not subject or subject & _topics(said) for said in _consents(request))


def _consents(request: SummaryRequest) -> Iterator[str]:
    """What was spoken of where the user said yes or decided."""
    yield from claims_of(request.previous)
    yield from (
        entry["text"] for entry in request.ledger if entry["kind"] == "confirmation" and _ends_in_yes(entry["text"])
    )
    yield from (
        entry["text"] for entry in request.ledger if entry["kind"] == "decision" and entry["text"].startswith("user:")
    )
    before = ""
    for message in (*request.messages, *request.prefix):
        text, role = text_of(message.message), message.message["role"]
        if role == "user" and is_yes(text):
            yield f"{before[-3_000:]}\n{text[:2_000]}"
        elif role == "user":
            yield from decisions_of(text[:12_000])
        if role == "assistant" and text:
            before = text


def _ends_in_yes(confirmation: str) -> bool:
    return is_yes(confirmation.rpartition("→ “")[2].rstrip("”"))


def _topics(text: str) -> set[str]:
    """What a text is about: its longer words by their beginning, its Chinese characters in pairs."""
    lowered = text.lower()
    topics = {word[:5] for word in _WORD.findall(lowered) if word not in _COMMON}
    for run in _HAN.findall(lowered):
        topics |= {run[at : at + 2] for at in range(len(run) - 1)} - _COMMON_HAN
    return topics

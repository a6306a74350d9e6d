"""Owns what a summary could be made of: the sentences of the messages and the lines of the earlier summary, scored.

Invariants: pure; linear; a text comes once; what an earlier summary had stays under its own number; what a tool
printed is never a rule, a goal or an ask; an ask that was answered is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.analysis import fold, query_terms
from indexer.documents.cues import has_time_words
from memory_service.compaction.asks import Asks, asks_of
from memory_service.compaction.coverage import Coverage, coverage_of, read_coverage
from memory_service.compaction.outline import ASSISTANT, LATEST, TOOL, USER, Line, Section, read_outline, unique
from memory_service.compaction.sentences import Sentence, Speakers, Voice, sentences_of, speakers_of
from memory_service.compaction.statements import is_promise, is_standing
from memory_service.compaction.summary import SummaryRequest
from memory_service.compaction.wording import Kind, kind_of
from memory_service.compaction.worth import has_identifiers, is_bare_list, particulars, worth
from memory_service.messages import Numbered, without_secrets
from memory_service.text.secrets import has_secret

_SECTIONS = {
    Kind.RULE: Section.RULES,
    Kind.DECISION: Section.DECISIONS,
    Kind.DONE: Section.DONE,
    Kind.PLAN: Section.PLANS,
    Kind.FAILURE: Section.FAILED,
    Kind.ASK: Section.FACTS,
    Kind.QUESTION: Section.FACTS,
    Kind.FACT: Section.FACTS,
}
_LABELS: dict[Voice, str] = {"user": USER, "assistant": ASSISTANT, "tool": TOOL}
_VOICES: dict[Voice, float] = {"user": 1.0, "assistant": 0.7, "tool": 0.5}
# A question tells little that its answer does not.
_KINDS = {Kind.QUESTION: 0.3, Kind.ASK: 0.6}
_FIRST_SENTENCE = 1.1
_FOCUS = 1.5

# After how many messages a line is worth half way to the floor; rules, decisions and the goal do not age.
_AGEING = {
    Section.FACTS: (200.0, 0.6),
    Section.DONE: (60.0, 0.25),
    Section.FAILED: (120.0, 0.4),
    Section.PLANS: (12.0, 0.02),
    Section.OPEN: (60.0, 0.2),
    Section.TURN: (30.0, 0.2),
}
_MOST_GOALS = 3
# A plan of an earlier turn was carried out or given up.
_CURRENT_TURNS = 2
_STALE = 0.3
_DATED = 1.5
# A rule for all that comes is worth more than one for what is being done.
_STANDING = 2.0
# A few words without anything particular tell nothing by themselves, and neither does a mere count.
_FRAGMENT_WORDS, _FRAGMENT_CHARS = 3, 24
_FRAGMENTS = frozenset({Section.FACTS, Section.DONE, Section.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All lines that could be in a summary, and what they are taken from."""

    lines: tuple[Line, ...]
    coverage: Coverage | None


def gather(request: SummaryRequest) -> Material:
    """What a summary could be made of."""
    everything = without_secrets((*request.messages, *request.prefix))
    speakers = speakers_of(everything)
    said = [(item, _kinds(item, speakers)) for item in everything]
    earlier = [line for line in read_outline(request.previous) if not _hides(line.text)]
    foreign = any(line.section is Section.OPEN and not line.label for line in earlier)
    asks = asks_of(said, with_terms=foreign)
    coverage = _coverage(earlier, everything)
    earlier = [line for line in earlier if line.section is not Section.CONTEXT or read_coverage(line.text) is None]
    newest = max((item.seq for item in everything), default=max((line.seq for line in earlier), default=0))
    oldest = min((item.seq for item in everything), default=newest)
    focus = frozenset(query_terms(request.instructions)) if request.instructions else frozenset[str]()
    turns = [item.seq for item in everything if item.message["role"] == "user"]
    scene = _Scene(
        turn=frozenset(item.seq for item in request.prefix), current=turns[-_CURRENT_TURNS:][0] if turns else oldest
    )
    lines = [
        *_goals(earlier, asks),
        *(_aged(line, newest, oldest) for line in _carried(earlier, asks)),
        *_open(asks),
        *(line for _, kinds in said for sentence, kind in kinds if (line := _fresh(sentence, kind, scene))),
    ]
    since = coverage.since[:10] if coverage else ""
    lines = _last_of_binding(line for line in lines if _may_stand(line, request))
    kept = unique((_key(line), _focused(_dated(line, since), focus)) for line in lines)
    return Material(lines=tuple(kept), coverage=coverage)


def _hides(line: str) -> bool:
    """Whether a line of an earlier summary holds what must not be carried on: a secret, or bytes."""
    return ";base64," in line or has_secret(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """The messages of a split turn, and the first one of those that plans of now stand in."""

    turn: frozenset[int]
    current: int


Kinds = list[tuple[Sentence, tuple[Kind, float]]]


def _kinds(item: Numbered, speakers: Speakers) -> Kinds:
    sentences = (sentence for sentence in sentences_of(item, speakers) if not is_bare_list(sentence.text))
    kinds = ((sentence, kind_of(sentence)) for sentence in sentences)
    return [(sentence, kind) for sentence, kind in kinds if kind[0] is not Kind.EMPTY]


def _coverage(earlier: Iterable[Line], messages: Sequence[Numbered]) -> Coverage | None:
    before = next(
        (found for line in earlier if line.section is Section.CONTEXT and (found := read_coverage(line.text))), None
    )
    now = coverage_of(messages)
    return before + now if before and now else before or now


def _last_of_binding(lines: Iterable[Line]) -> list[Line]:
    """The lines, of rules and decisions that were said again the last: it may take back what was said between."""
    listed = list(lines)
    last = {_key(line): at for at, line in enumerate(listed) if line.purpose == "binding"}
    return [line for at, line in enumerate(listed) if line.purpose != "binding" or last[_key(line)] == at]


def _key(line: Line) -> tuple[str, str]:
    return line.purpose, fold(line.text).strip(" .。!！,，;；")


def _may_stand(line: Line, request: SummaryRequest) -> bool:
    return request.identifier_policy != "anonymize" or not has_identifiers(line.text)


def _focused(line: Line, focus: frozenset[str]) -> Line:
    if not focus or focus.isdisjoint(query_terms(line.text)):
        return line
    return replace(line, score=line.score * _FOCUS)


def _dated(line: Line, since: str) -> Line:
    """The line without its day, unless it is a fact of another day than the first or its own words need one."""
    if line.carried or not line.day:
        return line
    later = line.day != since and line.section in (Section.FACTS, Section.DECISIONS)
    return line if later or has_time_words(line.text) else replace(line, day="")


def _line(sentence: Sentence, section: Section, score: float, *, label: str = "") -> Line:
    return Line(
        section=section,
        text=sentence.text,
        label=label or sentence.name or _LABELS[sentence.voice],
        media=sentence.media,
        seq=sentence.seq,
        day=sentence.day,
        place=sentence.place,
        score=score,
    )


def _fresh(sentence: Sentence, kind: tuple[Kind, float], scene: _Scene) -> Line | None:
    section = _SECTIONS[kind[0]]
    dated = section in (Section.PLANS, Section.FACTS) and not sentence.quoted and is_promise(sentence.text)
    if dated:
        section = Section.PLANS
    stale = section is Section.PLANS and sentence.seq < scene.current and not dated
    if stale:
        section = Section.FACTS
    if sentence.seq in scene.turn and section not in (Section.RULES, Section.DECISIONS):
        section = Section.TURN
    if section in _FRAGMENTS and sentence.voice != "tool" and _is_fragment(sentence.text):
        return None
    score = worth(sentence.text) * kind[1] * _KINDS.get(kind[0], 1.0)
    score *= _STALE if stale else _DATED if dated else 1.0
    score *= 1.0 if sentence.name else _VOICES[sentence.voice]
    score += _STANDING if kind[0] is Kind.RULE and is_standing(sentence.text) else 0.0
    score *= _FIRST_SENTENCE if sentence.place == 0 else 1.0
    if section is Section.TURN and sentence.voice == "user":
        score += 3.0
    return _line(sentence, section, score)


def _is_fragment(text: str) -> bool:
    short = len(text.split()) <= _FRAGMENT_WORDS and len(text) <= _FRAGMENT_CHARS and text.isascii()
    return short and (text[0].isdigit() or not particulars(text))


def _goals(earlier: Sequence[Line], asks: Asks) -> Iterator[Line]:
    old = [line for line in earlier if line.section is Section.GOAL]
    first = [line for line in old if line.label != LATEST][:_MOST_GOALS]
    if first:
        yield from first
    elif asks.first:
        yield _line(asks.first, Section.GOAL, 0.0)
    if asks.latest and (first or asks.latest != asks.first):
        yield _line(asks.latest, Section.GOAL, 0.0, label=LATEST)
    elif not asks.latest:
        yield from (line for line in old if line.label == LATEST)


def _open(asks: Asks) -> Iterator[Line]:
    for sentence in asks.waiting:
        yield _line(sentence, Section.OPEN, 1.0 + worth(sentence.text))


def _carried(earlier: Iterable[Line], asks: Asks) -> Iterator[Line]:
    """Lines of the earlier summary, those of a turn that was under way under what they are, scored."""
    for line in earlier:
        kind, sure = kind_of(Sentence(text=line.text, voice=line.voice))
        section = line.section
        if section is Section.GOAL or (section is Section.OPEN and asks.answers(line)):
            continue
        if section is Section.CONTEXT:
            section = Section.FACTS
        if section is Section.TURN:
            section = _SECTIONS.get(kind, Section.FACTS)
            section = Section.FACTS if section is Section.RULES and line.label != USER else section
        score = worth(line.text) * _VOICES[line.voice] * _KINDS.get(kind, 1.0)
        score *= sure if section is Section.RULES and kind is Kind.RULE else 1.0
        yield replace(line, section=section, score=score)


def _aged(line: Line, newest: int, oldest: int) -> Line:
    if line.section not in _AGEING:
        return line
    dated = line.section is Section.PLANS and is_promise(line.text)
    half, floor = _AGEING[Section.OPEN if dated else line.section]
    # A line that does not say where it is from is as old as the youngest that an earlier summary can have.
    age = newest - (line.seq or oldest)
    return replace(line, score=line.score * (floor + (1 - floor) * 0.5 ** (max(age, 0) / half)))

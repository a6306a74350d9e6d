"""Candidate lines of an extractive summary, scored; open questions; coverage. Pure.

Invariants: linear; a text comes once; a line of an earlier summary keeps its own number; what a tool printed is never a
rule, a goal or an ask. A reply is an assistant message with words and without calls; whatever was asked before it
counts as answered, since nothing but reading it could tell otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from indexer.language import fold, has_failed, has_time_words, names_outcome, ornament, query_terms
from memory_service.compaction.actions import failure_of, outcome_of
from memory_service.compaction.coverage import Coverage, coverage_of, read_coverage
from memory_service.compaction.summary_format import (
    ASSISTANT,
    LATEST,
    QUOTED,
    TOOL,
    USER,
    Section,
    SummaryLine,
    folded_line,
    parse_summary,
    unique,
)
from memory_service.compaction.users_request import is_request, says_something
from memory_service.messages.shapes import Message, is_tool_result, own_text_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.choices import answered_question, chosen_options, is_bare_reply, options_in
from memory_service.text.phrases import is_bare_ask, is_passing
from memory_service.text.salience import has_identifiers, is_bare_list, particulars, worth
from memory_service.text.secrets import has_secret, without_secrets
from memory_service.text.sentence_kinds import SentenceKinds
from memory_service.text.sentences import Sentence, Speakers, Voice, sentences_of, speakers_of
from memory_service.text.statements import Kind, is_order, is_promise, is_standing, kind_of, reports_will

if TYPE_CHECKING:
    from memory_service.compaction.summary import SummaryRequest

Judged = tuple[Sentence, tuple[Kind, float]]
# Rules and decisions have their own sections; where nothing is asked, another sentence says what it is about.
_RANKS = {Kind.ASK: 3, Kind.QUESTION: 2, Kind.RULE: 0, Kind.DECISION: 0}
_BINDING = (Kind.RULE, Kind.DECISION)
_ASKING = (Kind.ASK, Kind.QUESTION)
_ANSWERED_SHARE = 0.4
_REPLY_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestions:
    """Questions and requests of a conversation.

    Attributes:
        first: The first real ask; None if there is none.
        latest: The one that counts now.
        waiting: Those without an answer, the user's and the assistant's.
        replied: Whether the assistant replied at all.
        heard: Whether the user said anything.
        terms: Those of all replies, if asked for.
    """

    first: Sentence | None
    latest: Sentence | None
    waiting: tuple[Sentence, ...]
    replied: bool
    heard: bool
    terms: frozenset[str]

    def answers(self, line: SummaryLine) -> bool:
        """True if an ask of an earlier summary has its answer."""
        if line.label in (USER, LATEST):
            return self.replied
        if line.label == ASSISTANT:
            return self.heard
        asked_query_terms = query_terms(line.text)
        return sum(term in self.terms for term in asked_query_terms) > _ANSWERED_SHARE * len(asked_query_terms)


def _open_questions_of(pairs: Sequence[tuple[Numbered, Sequence[Judged]]], *, with_terms: bool) -> OpenQuestions:
    """Questions and requests of a conversation.

    Args:
        pairs: The messages with their judged sentences.
        with_terms: Whether an earlier summary has asks that do not say whose they are.
    """
    waiting: list[Sentence] = []
    sentences: list[Sentence] = []
    judgements: list[Sequence[Judged]] = []
    replies: list[str] = []
    last: Sentence | None = None  # What was said last waits for an answer even if it asks for nothing.
    is_replied = is_heard = False
    for item, judged in pairs:
        if item.message["role"] == "user":
            judged = [judgement for judgement in judged if not judgement[0].quoted and judgement[0].voice == "user"]
            sentences = [] if judged else sentences
            if judged and not ornament("statements", True, is_request, item.message):
                # An answer, or a word to go on: what was asked before still counts.
                is_heard = True
                continue
            judgements.append(judged)
            waiting += _questions_of(judged)
            last = judged[0][0] if judged and not _questions_of(judged) else None
        elif _is_reply(item.message):
            waiting, last = [], None
            is_replied = True
            replies += [text_of(item.message)[:_REPLY_CHARS]] if with_terms else []
            sentences = [sentence for sentence, kind in judged if kind[0] is Kind.QUESTION]
    real = [judged for judged in judgements if judged]
    return OpenQuestions(
        first=_main(next((judged for judged in real if _questions_of(judged)), real[0] if real else ())),
        latest=_main(next((judged for judged in reversed(real) if _instructs(judged)), ()), latest=True),
        waiting=(*waiting, *([last] if last else ()), *sentences),
        replied=is_replied,
        heard=is_heard or bool(judgements),
        terms=frozenset(term for reply in replies for term in query_terms(reply)),
    )


def _is_reply(message: Message) -> bool:
    """True for an assistant message with words and without calls."""
    if is_tool_result(message) or message["role"] != "assistant" or tool_calls_of(message):
        return False
    return bool(text_of(message).strip())


def _questions_of(judgements: Sequence[Judged]) -> list[Sentence]:
    return [sentence for sentence, kind in judgements if _asks(sentence, kind)]


def _asks(sentence: Sentence, kind: tuple[Kind, float]) -> bool:
    """True for an ask, and for an order that only may be a rule, too: "Write the test and keep it short."."""
    return kind[0] in _ASKING or (kind[0] is Kind.RULE and kind[1] < 1 and is_order(sentence.text))


def _instructs(judgements: Sequence[Judged]) -> bool:
    return bool(_questions_of(judgements)) or any(kind in _BINDING and sure == 1 for _, (kind, sure) in judgements)


def _main(judgements: Sequence[Judged], *, latest: bool = False) -> Sentence | None:
    """The ask that a message is about: an order before a question, and of those the most particular."""
    if not _questions_of(judgements):
        # What was ordered without asking is what it is about.
        judgements = [judgement for judgement in judgements if judgement[1][0] in _BINDING] if latest else judgements
    ranked_judgements = sorted(
        judgements,
        key=lambda one_judgement: (-_rank(one_judgement), -_worth(one_judgement[0].text), one_judgement[0].place),
    )
    if ranked_judgements and _rank(ranked_judgements[0]) and is_bare_ask(ranked_judgements[0][0].text):
        # "Can you find out why?" asks for what the message began with.
        return min((sentence for sentence, _ in judgements), key=lambda sentence: sentence.place)
    return ranked_judgements[0][0] if ranked_judgements else None


def _rank(judgement: Judged) -> int:
    return _RANKS.get(Kind.ASK if _asks(*judgement) and judgement[1][0] is Kind.RULE else judgement[1][0], 1)


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
class CandidateLines:
    """All lines that could be in a summary, and what they are taken from."""

    lines: tuple[SummaryLine, ...]
    coverage: Coverage | None


def candidate_lines(request: SummaryRequest) -> CandidateLines:
    """Candidate lines of a summary."""
    messages = without_secrets((*request.messages, *request.prefix))
    speakers = ornament("statements", frozenset[tuple[str, str]](), speakers_of, messages)
    kinds = request.kinds
    failed_numbers = ornament("statements", frozenset[int](), _failing, messages)
    # Of what tools printed, only a failure that still stands can be a line.
    read = [item for item in messages if not is_tool_result(item.message) or item.seq in failed_numbers]
    pairs = [(item, [*ornament("statements", (), _kinds, item, speakers, kinds)]) for item in read]
    earlier = [line for line in parse_summary(request.previous) if not _hides(line.text)]
    foreign = any(line.section is Section.OPEN and not line.label for line in earlier)
    asks = _open_questions_of(pairs, with_terms=foreign)
    coverage = _coverage(earlier, messages)
    earlier = [line for line in earlier if line.section is not Section.CONTEXT or read_coverage(line.text) is None]
    newest = max((item.seq for item in messages), default=max((line.seq for line in earlier), default=0))
    oldest = min((item.seq for item in messages), default=newest)
    focus = frozenset(query_terms(request.instructions)) if request.instructions else frozenset[str]()
    turns = [item.seq for item in messages if item.message["role"] == "user"]
    scene = _Scene(
        turn=frozenset(item.seq for item in request.prefix),
        current=turns[-_CURRENT_TURNS:][0] if turns else oldest,
        newest=next(
            (
                message.seq
                for message in reversed(messages)
                if message.message["role"] == "assistant" and text_of(message.message).strip()
            ),
            0,
        ),
        answered=ornament("statements", {}, _answered_options, messages),
        failed=failed_numbers,
    )
    lines = [
        *_goals(earlier, asks),
        *(_decay_score(line, newest, oldest) for line in _carry_lines(earlier, asks)),
        *_open(asks),
        *(
            line
            for _, judgements in pairs
            for sentence, kind in judgements
            if _tells(sentence, kind[0], scene)
            if (line := ornament("salience", None, _fresh, sentence, kind, scene, kinds.weight_of(sentence)))
        ),
    ]
    since = coverage.since[:10] if coverage else ""
    lines = _last_of_binding(line for line in lines if _may_stand(line, request))
    kept_lines = unique((_key(line), _boost_focus(_drop_day(line, since), focus)) for line in lines)
    return CandidateLines(lines=tuple(kept_lines), coverage=coverage)


def _worth(text: str) -> float:
    return ornament("salience", 1.0, worth, text)


def _hides(line: str) -> bool:
    """True if a line of an earlier summary holds a secret or bytes."""
    return ";base64," in line or has_secret(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """The scene of a summary.

    Attributes:
        turn: The messages of a split turn.
        current: The first message that plans of now stand in.
        newest: The assistant's last message with words.
        answered: Questions whose options gave way to the answer of a user, by the message that asked.
        failed: Results of tools whose failures still stand.
    """

    turn: frozenset[int]
    current: int
    newest: int = 0
    answered: Mapping[int, str] = field(default_factory=dict)
    failed: frozenset[int] = frozenset()


def _tells(sentence: Sentence, kind: Kind, scene: _Scene) -> bool:
    """False for what tells nothing beside its step, what a program prints, and options that gave way to an answer."""
    if sentence.voice == "tool":
        # The ledger has what ended how; here counts what still stands in the way.
        return kind is Kind.FAILURE and sentence.seq in scene.failed
    if sentence.quoted and kind in (Kind.FAILURE, Kind.EMPTY):
        return False
    if sentence.voice == "user":
        return not ornament("statements", False, is_bare_reply, sentence.text)
    if sentence.name:
        return True
    if folded_line(sentence.text) in scene.answered.get(sentence.seq, ""):
        return False
    return sentence.seq == scene.newest or not ornament("statements", False, is_passing, sentence.text)


def _answered_options(messages: Sequence[Numbered]) -> dict[int, str]:
    """Questions with options of which the next message of the user chose one, by the number of the message."""
    values: dict[int, str] = {}
    message: Numbered | None = None
    for each_message in messages:
        if each_message.message["role"] == "assistant" and text_of(each_message.message).strip():
            message = each_message
        elif each_message.message["role"] == "user" and message:
            before, reply = text_of(message.message), own_text_of(each_message.message).strip()
            if chosen_options(reply, options_in(before)):
                values[message.seq] = folded_line(answered_question(reply, before).replace("**", ""))
            message = None
    return values


def _failing(messages: Sequence[Numbered]) -> frozenset[int]:
    """The last result of a tool that says that something failed, if none behind it says that all went well."""
    results = [message for message in messages if is_tool_result(message.message)][-_LATE_RESULTS:]
    for result in reversed(results):
        if failure_of(result.message) or _tells_failure(result):
            return frozenset([result.seq])
        if outcome_of(result.message) == "exit 0" or names_outcome(text_of(result.message)[-_END_CHARS:].lower()):
            break
    return frozenset()


def _tells_failure(result: Numbered) -> bool:
    end = text_of(result.message)[-_END_CHARS:].lower()
    return names_outcome(end) and has_failed(end)


_LATE_RESULTS, _END_CHARS = 6, 600


def _kinds(item: Numbered, speakers: Speakers, kinds: SentenceKinds) -> list[Judged]:
    if item.message["role"] == "user" and not ornament("statements", True, says_something, item.message):
        return []
    sentences = (sentence for sentence in sentences_of(item, speakers) if not is_bare_list(sentence.text))
    judged_pairs = ((sentence, kinds.kind_of(sentence)) for sentence in sentences)
    return [
        (sentence, kind)
        for sentence, kind in judged_pairs
        # What a user has decided or allowed, nobody but the user can say.
        if kind[0] is not Kind.EMPTY and not (sentence.voice == "assistant" and reports_will(sentence.text))
    ]


def _coverage(earlier: Iterable[SummaryLine], messages: Sequence[Numbered]) -> Coverage | None:
    before = next(
        (coverage for line in earlier if line.section is Section.CONTEXT and (coverage := read_coverage(line.text))),
        None,
    )
    now = coverage_of(messages)
    return before + now if before and now else before or now


def _last_of_binding(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """The lines, of rules and decisions that were said again the last: it may take back what was said between."""
    listed_lines = list(lines)
    last = {_key(line): at for at, line in enumerate(listed_lines) if line.purpose == "binding"}
    return [line for at, line in enumerate(listed_lines) if line.purpose != "binding" or last[_key(line)] == at]


def _key(line: SummaryLine) -> tuple[str, str]:
    return line.purpose, fold(line.text).strip(" .。!！,，;；")


def _may_stand(line: SummaryLine, request: SummaryRequest) -> bool:
    return request.identifier_policy != "anonymize" or not has_identifiers(line.text)


def _boost_focus(line: SummaryLine, focus: frozenset[str]) -> SummaryLine:
    if not focus or focus.isdisjoint(query_terms(line.text)):
        return line
    return replace(line, score=line.score * _FOCUS)


def _drop_day(line: SummaryLine, since: str) -> SummaryLine:
    """The line without its day, unless it is a fact of another day than the first or its own words need one."""
    if line.carried or not line.day:
        return line
    later = line.day != since and line.section in (Section.FACTS, Section.DECISIONS)
    return line if later or has_time_words(line.text) else replace(line, day="")


def _line(sentence: Sentence, section: Section, score: float, *, label: str = "") -> SummaryLine:
    return SummaryLine(
        section=section,
        text=sentence.text,
        label=label or (QUOTED if sentence.quoted else sentence.name or _LABELS[sentence.voice]),
        media=sentence.media,
        seq=sentence.seq,
        day=sentence.day,
        place=sentence.place,
        score=score,
    )


def _fresh(sentence: Sentence, kind: tuple[Kind, float], scene: _Scene, weight: float) -> SummaryLine | None:
    section = _SECTIONS[kind[0]]
    is_dated = section in (Section.PLANS, Section.FACTS) and not sentence.quoted and is_promise(sentence.text)
    if is_dated:
        section = Section.PLANS
    stale = section is Section.PLANS and sentence.seq < scene.current and not is_dated
    if section is Section.PLANS and sentence.voice == "assistant" and not is_dated and sentence.seq != scene.newest:
        # A step that was announced is done, or was given up.
        return None
    if stale:
        section = Section.FACTS
    if sentence.seq in scene.turn and section not in (Section.RULES, Section.DECISIONS):
        section = Section.TURN
    if section in _FRAGMENTS and sentence.voice != "tool" and _is_fragment(sentence.text):
        return None
    score = _worth(sentence.text) * weight * kind[1] * _KINDS.get(kind[0], 1.0)
    score *= _STALE if stale else _DATED if is_dated else 1.0
    score *= 1.0 if sentence.name else _VOICES[sentence.voice]
    score += _STANDING if kind[0] is Kind.RULE and is_standing(sentence.text) else 0.0
    score *= _FIRST_SENTENCE if sentence.place == 0 else 1.0
    if section is Section.TURN and sentence.voice == "user":
        score += 3.0
    return _line(sentence, section, score)


def _is_fragment(text: str) -> bool:
    short = len(text.split()) <= _FRAGMENT_WORDS and len(text) <= _FRAGMENT_CHARS and text.isascii()
    return short and (text[0].isdigit() or not particulars(text))


def _goals(earlier: Sequence[SummaryLine], asks: OpenQuestions) -> Iterator[SummaryLine]:
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


def _open(asks: OpenQuestions) -> Iterator[SummaryLine]:
    for sentence in asks.waiting:
        yield _line(sentence, Section.OPEN, 1.0 + _worth(sentence.text))


def _carry_lines(earlier: Iterable[SummaryLine], asks: OpenQuestions) -> Iterator[SummaryLine]:
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
        score = _worth(line.text) * _VOICES[line.voice] * _KINDS.get(kind, 1.0)
        score *= sure if section is Section.RULES and kind is Kind.RULE else 1.0
        yield replace(line, section=section, score=score)


def _decay_score(line: SummaryLine, newest: int, oldest: int) -> SummaryLine:
    if line.section not in _AGEING:
        return line
    is_dated = line.section is Section.PLANS and is_promise(line.text)
    half, floor = _AGEING[Section.OPEN if is_dated else line.section]
    # A line that does not say where it is from is as old as the youngest that an earlier summary can have.
    age = newest - (line.seq or oldest)
    return replace(line, score=line.score * (floor + (1 - floor) * 0.5 ** (max(age, 0) / half)))

"""Text similarity: whether two texts state the same fact, or one covers the other. Pure.

Invariants: symmetric where two facts are compared; linear in the texts; when in doubt two texts are two facts, for a
fact that is lost costs more than one that stands there twice. Case, punctuation, white space, full-width and
Traditional forms, shortened words ("isn't", "Tue"), the label of a role and the frame of a report ("The user said
that …", "用户说…") make no difference. Every other word does: a number, a day, a name, a negation, a colour, a
direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeAlias

from indexer.common import UNSPACED, lazy_regex
from indexer.language import ANY, STOP_WORDS, fold, has_unspaced, ornament, query_terms, simplify
from memory_service.text.phrases import picture_of

Key: TypeAlias = tuple[object, ...]

# What lies beyond is not looked into for statements.
_SEARCHED_CHARS: Final = 100_000
# A longer text is compared as a whole or not at all.
_MAX_CHARS: Final = 4_000
# With fewer words behind it, what stands before a colon is needed to know what is spoken of.
_LEAST_WORDS: Final = 4
_PROBES: Final = 2
# Facts of the same words by different speakers or of different days that one is compared with.
_LOOKED_BACK: Final = 60

_MARKER = lazy_regex(r"(?:[-*+•]|\d{1,3}[.)、]) ")
_HANDLE = lazy_regex(r"\s{0,4}[(\[（【]\s{0,2}log:\d{1,12}[^()\[\]（）【】\n]{0,80}[)\]）】]")
_DATED = lazy_regex(
    rf"\s{{0,4}}[(（]\s{{0,2}}(?:(?:{ANY.sameness.day_leads})\s{{1,2}})?(\d{{4}}-\d{{2}}-\d{{2}})\s{{0,2}}[)）]"
    r"\s{0,2}[.。]?\s{0,4}\Z"
)
_NAME_AND_DAY = (
    r"[*_]{0,2}(?P<name>[^\W\d_][\w.'’·-]{0,23}(?: [^\W\d_][\w.'’-]{0,23}){0,2})[*_]{0,2}"
    r"(?: ?[(（](?P<day>\d{4}-\d{2}-\d{2})[)）])?"
)
_COLON = r"[ \t]?[:：](?!//)[*_]{0,2}[ \t]{0,4}(?=\S)"
_SPEAKER = lazy_regex(rf"\s{{0,4}}{_NAME_AND_DAY}{_COLON}")
# The same before each line of a text, also where a note tells what was asked.
_SPEAKERS = lazy_regex(
    rf"^[ \t]{{0,4}}(?:[-*+•][ \t])?{_NAME_AND_DAY}(?:{ANY.sameness.asked_notes})?{_COLON}",
    re.MULTILINE,
)
_USERS = ANY.sameness.users
_ASSISTANTS = ANY.sameness.assistants
# Words before a colon that say what is spoken of, not who speaks.
_TOPICS = ANY.sameness.topics
_TOPIC_SIGNS = lazy_regex(ANY.sameness.topic_signs)

# The frame around what was said. What somebody thinks, hopes or decided is no report.
_FRAME = lazy_regex(ANY.sameness.frames, re.IGNORECASE)
# A report by somebody with a name: "Anna said that …", "张伟说：…".
_NAMED = lazy_regex(ANY.sameness.named_reports)
_BY_ASSISTANT = lazy_regex(ANY.sameness.assistants_named, re.IGNORECASE)
_NO_NAMES = ANY.sameness.no_names
_REPORT_END_WITHIN = lazy_regex(ANY.sameness.report_ends_within)
# In a longer text, what was decided is said by what it decides.
_DECIDED = lazy_regex(ANY.sameness.decided, re.IGNORECASE)

_LETTER = rf"[^\W_{UNSPACED}]"
# Numbers, words, single characters of an unspaced script, signs that say something, and ends of sentences.
_TOKEN = lazy_regex(
    rf"\d{{1,3}}(?:,\d{{3}})++(?!{_LETTER})|{_LETTER}++(?:[_./:@&'\\]++{_LETTER}++|(?<=\d)-{_LETTER}++|-(?=\d){_LETTER}++)*+"
    rf"|(?<!\w)\.\d++|[{UNSPACED}]|(?<!{_LETTER})(?<![.,)])[-+](?=[\d.])|~~|\[[ x]\]|[.!?;。；\n]++"
    r"|[^\w\s.,:;!?'’\"`*_()\[\]{}…—–/\-·、。・「」『』《》【】“”‘’\u200b-\u200f\ufe0f\u20e3]"
)
_DASHES = str.maketrans("−–—‐‑’`´", "-----'''")
_SAME_WORD = ANY.sameness.same_words
_SHORTENED = ANY.sameness.shortened
_EMPTY = ANY.sameness.unsaid
_WEEK_WITHIN = lazy_regex(ANY.sameness.week_within)
_PARTICLES_WITHIN = lazy_regex(ANY.sameness.particles_within)

# Words at which a phrase begins that may stand at another place of its sentence.
_MOVABLE = ANY.sameness.movable
_SWAPPED = ANY.sameness.swapped
# With one of these the order of words says more than where a phrase stands.
_FIXED = ANY.sameness.fixed
_MOST_MOVED = 60
_TIMES_WITHIN = lazy_regex(ANY.sameness.times_within)
_FIXED_WITHIN = lazy_regex(ANY.sameness.fixed_within)

_PERSONAL = ANY.sameness.personal
_ONESELF = lazy_regex(ANY.sameness.oneself)
# First words of a sentence that leaves out who it is about.
_NO_SUBJECT = lazy_regex(ANY.sameness.no_subject)

_NEGATION = lazy_regex(ANY.sameness.negations)
# So far from a statement a negation is looked for, within its sentence; and so many places of it are looked at.
_BEFORE, _AFTER, _TRIES = 60, 30, 8
_SUBJECT_CHARS = 3
_STOPS = ".!?。！？ "
_END, _END_SIGNS, _ASSISTANT = ".", ".!?;。；\n", "assistant"
_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+|(?<=[。！？])")
_DAY = lazy_regex(r" \d{4}-\d{2}-\d{2} ")
_ASIDE = lazy_regex(r"\[[^\[\]\n]{4,400}\]")
# How a note of a message with a picture tells of it (`phrases.picture_of`).
_PICTURED = "[image: "
_RUN = lazy_regex("[0-9A-Za-z]+|[^\\W_0-9A-Za-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A text as it is compared.

    Attributes:
        plain: The text without who said it, when, and where it is from.
        tokens: Its words and signs in one writing, in order.
        speaker: Who said it, folded; empty for the user, or if that is not told.
        day: The day in brackets at its end or behind the speaker.
        keys: Two facts with one of these in common have the same words.
    """

    plain: str
    tokens: tuple[str, ...]
    speaker: str
    day: str
    keys: frozenset[Key]


def read_fact(text: str) -> Fact:
    """A text as it is compared with others."""
    plain = " ".join(text.split())
    if len(plain) > _MAX_CHARS:
        # Nothing else than the same text will be found equal to it.
        return Fact(plain=plain, tokens=(fold(plain),), speaker="", day="", keys=frozenset({("whole", fold(plain))}))
    plain = _HANDLE.sub("", plain).strip()
    day = speaker = ""
    if match := _DATED.search(plain[-40:]):
        day, plain = match[1], plain[: len(plain) - len(match[0])]
    is_labelled, rest = False, ""
    while rest != plain:
        rest = plain
        plain, said_by, said_on = _without_head(plain, is_labelled=is_labelled)
        is_labelled = is_labelled or said_by is not None
        speaker, day = speaker or said_by or "", day or said_on
    tokens = tuple(token for token in _tokens(plain) if token != _END) or (fold(plain),)
    return Fact(plain=plain, tokens=tokens, speaker=speaker, day=day, keys=frozenset(_keys(plain, tokens)))


def same(a: Fact, b: Fact) -> bool:
    """True if two facts are one.

    They are if they have the same words in the same order, but for a phrase of time or place that stands elsewhere in
    the sentence. Two days are two facts, and so are two speakers who may speak of themselves.
    """
    if a.day and b.day and a.day != b.day:
        return False
    return not a.keys.isdisjoint(b.keys) and (a.speaker == b.speaker or not _depends_on_speaker(a, b))


def stands_in(fact: Fact, passage: str) -> bool:
    """True if a passage states a fact: as a whole, or in one of its sentences."""
    whole = read_fact(passage)
    if same(fact, whole):
        return True
    if len(passage) > _MAX_CHARS or len(whole.tokens) <= len(fact.tokens):
        return False
    lines = [line.strip() for line in passage.splitlines()]
    # A line that announces others, or is struck out, turns what the others say.
    if "~~" in passage or any(line.endswith((":", "：")) for line in lines):
        return False
    # The day and the speaker of a text are those of its sentences.
    return any(
        piece.tokens == fact.tokens and _compatible(fact.day, whole.day) and _compatible(fact.speaker, whole.speaker)
        for line in lines
        for piece in map(read_fact, _SENTENCE_END.split(line))
    )


def _groups_of(facts: Sequence[Fact]) -> list[list[int]]:
    """The positions of the facts that are the same, in order of the first of each."""
    groups: list[list[int]] = []
    by_key: dict[Key, list[list[int]]] = {}
    for at, fact in enumerate(facts):
        known_numbers = next(
            (
                group
                for key in fact.keys
                for group in by_key.get(key, ())[-_LOOKED_BACK:]
                if same(facts[group[0]], fact)
            ),
            None,
        )
        if known_numbers is not None:
            known_numbers.append(at)
            continue
        groups.append([at])
        for key in fact.keys:
            by_key.setdefault(key, []).append(groups[-1])
    return groups


def groups_of(texts: Sequence[str]) -> list[list[int]]:
    """The positions of the texts that state the same, in order of the first of each.

    One that cannot be read is like no other.
    """
    facts = {at: fact for at, text in enumerate(texts) if (fact := ornament("similarity", None, read_fact, text))}
    alone = [[at] for at in range(len(texts))]
    places = list(facts)
    groups = ornament("similarity", None, _groups_of, list(facts.values()))
    if groups is None:
        return alone
    numbers = [[places[at] for at in group] for group in groups]
    return sorted([*numbers, *(group for group in alone if group[0] not in facts)], key=lambda group: group[0])


@lru_cache(maxsize=4_096)
def statements_of(text: str) -> tuple[str, ...]:
    """Statements of a text, sentence by sentence, each prepared for `covers`."""
    fields: dict[str, None] = {}
    for line in filter(str.strip, text[:_SEARCHED_CHARS].splitlines()):
        whole = read_fact(line)
        for sentence in _SENTENCE_END.split(whole.plain.replace(_PICTURED, f". {_PICTURED}")):
            if not sentence.strip(_STOPS):
                continue
            bare = read_fact(sentence).plain
            match = _DECIDED.match(bare)
            fields.update(dict.fromkeys(_statements_in(_tokens(bare[match.end() :] if match else bare))))
        # What somebody says of himself, and on a day, is said only where both are told.
        if whole.day:
            fields[f" {whole.day} "] = None
        if whole.speaker and whole.speaker != _ASSISTANT and _is_personal(whole):
            fields[f" {' '.join(_tokens(whole.speaker))} "] = None
    return tuple(fields)


def _statements_in(tokens: Iterable[str]) -> Iterator[str]:
    """Statements of a sentence: `comparable_text` has an end at each semicolon too."""
    for _, group in groupby((token for token in tokens if token != "?"), key=_END.__ne__):
        words = [token for token in group if token != _END]
        if words:
            mark = "" if _count(words) >= _LEAST_WORDS else f"{_END} "
            yield f" {mark}{' '.join(words)} {mark}"


@lru_cache(maxsize=4_096)
def size_of(statements: tuple[str, ...]) -> int:
    """Size of some statements: what a text says, without when it was said."""
    return sum(len(statement) for statement in statements if not _DAY.fullmatch(statement))


def comparable_text(text: str) -> str:
    """A text as `covers` looks into it; what lies beyond `_SEARCHED_CHARS` is not read."""
    text = _SPEAKERS.sub(_end_label, _with_pictures(text[:_SEARCHED_CHARS]))
    words = " ".join(token for token in _tokens(text) if token != "?")
    return f" {_END} {words} {_END} "


def _with_pictures(text: str) -> str:
    """A text in which each picture that was shared is described as notes do it, in a sentence of its own."""
    if "[" not in text:
        return text
    return _ASIDE.sub(lambda aside: f". {picture_of(aside[0]) or aside[0]}. ", text)


def _end_label(label: re.Match[str]) -> str:
    """The label of a speaker, and an end behind it: the first sentence begins there."""
    return f"{label[0]}{_END} " if _can_speak(label["name"]) else label[0]


@lru_cache(maxsize=1_024)
def words_of_statements(statements: tuple[str, ...]) -> frozenset[str]:
    """The words that a text must have to make some statements."""
    return frozenset(word for statement in statements for word in statement.split()) - {_END}


def covers(text: str, statements: Sequence[str]) -> bool:
    """True if a text makes each of some statements, none of them under a negation or a condition.

    Args:
        text: From `comparable_text`.
        statements: From `statements_of`.
    """
    # Most texts that have the words do not have them in this order.
    for statement in statements:
        if statement not in text:
            return False
    return bool(statements) and all(_is_made(statement, text) for statement in statements)


def _is_made(statement: str, text: str) -> bool:
    if statement.startswith(f" {_END} "):
        return True  # It is a sentence of its own: nothing stands before it or behind it.
    at = -1
    for _ in range(_TRIES):
        at = text.find(statement, at + 1)
        if at < 0:
            return False
        before = text[max(0, at - _BEFORE) : at].rpartition(f" {_END}")[2]
        after = text[at + len(statement) - 1 : at + len(statement) + _AFTER].partition(f"{_END} ")[0]
        if not _NEGATION.search(before) and not _NEGATION.search(after):
            return True
    return False


def probe(fact: Fact) -> str:
    """The few words of a fact by which a passage that states it is found: numbers and long words are rare ones.

    Source: two words found every fact again among 5,000 passages (our measurement, English and Chinese); each further
    one costs a third of a millisecond.
    """
    words: dict[str, None] = {}
    runs: list[str] = []
    for run in _RUN.findall(fold(fact.plain)):
        if has_unspaced(run):
            runs.append(run)
        elif run not in STOP_WORDS:
            words[run] = None
    rare = sorted(words, key=lambda word: (any(map(str.isdigit, word)), len(word)), reverse=True)[:_PROBES]
    text = "".join(runs)
    # Of Chinese, two characters in a row are what a word is; they are taken where a sentence names things.
    missing = _PROBES - len(rare) if text else 0
    rare += [text[at : at + 2] for at in (len(text) * part // (missing + 1) for part in range(1, missing + 1))]
    return " ".join(rare)


def holds_all(passage: str, words: str) -> bool:
    """True if a passage has all words of a probe."""
    return set(query_terms(words)) <= set(query_terms(passage))


def _without_head(plain: str, *, is_labelled: bool) -> tuple[str, str | None, str]:
    """A text without a marker, label or frame before it; who said it, None if that is not told, and on which day."""
    if marker := _MARKER.match(plain):
        return plain[marker.end() :], None, ""
    if not is_labelled and (match := _SPEAKER.match(plain)) and _can_speak(match["name"]):
        return plain[match.end() :], _speaker(_REPORT_END_WITHIN.sub("", match["name"])), match["day"] or ""
    if framed_match := _FRAME.match(plain):
        by_assistant = _BY_ASSISTANT.search(framed_match[0][:20])
        return plain[framed_match.end() :], _ASSISTANT if by_assistant else None, ""
    if (match := _NAMED.match(plain)) and match["name"].split()[0].lower() not in _NO_NAMES:
        return plain[match.end() :], _speaker(match["name"]), ""
    return plain, None, ""


def _speaker(name: str) -> str:
    folded_text = name.lower()
    return "" if folded_text in _USERS else _ASSISTANT if folded_text in _ASSISTANTS else fold(name)


def _can_speak(name: str) -> bool:
    """True if what stands before a colon may be a name or a role."""
    words = name.lower().split()
    if " ".join(words) in _USERS | _ASSISTANTS:
        return True
    if name.isascii():
        return all(word[0].isupper() for word in name.split()) and _TOPICS.isdisjoint(words)
    return len(name) <= 6 and not _TOPIC_SIGNS.search(name)


def _compatible(a: str, b: str) -> bool:
    return not a or not b or a == b


def _unify_writing(text: str) -> str:
    """A text in one writing: case, width, accents, Traditional characters, dashes, days of the week."""
    unified_text = simplify(text).translate(_DASHES)
    if unified_text.isascii():
        return unified_text
    unified_text = _WEEK_WITHIN.sub(ANY.sameness.week_sign, unified_text)
    for sign, same_sign in ANY.sameness.same_signs.items():
        unified_text = unified_text.replace(sign, same_sign)
    return _PARTICLES_WITHIN.sub("", unified_text)


def _tokens(text: str) -> Iterator[str]:
    """Words, signs and ends of sentences in order, without articles."""
    for token in _TOKEN.findall(_unify_writing(text)):
        if token in _EMPTY:
            continue
        if token[0] in _END_SIGNS:
            if "?" in token:
                yield "?"
            yield _END
        elif "'" in token or token in _SAME_WORD:
            yield from _written_out(token).split()
        elif "," in token:
            yield token.replace(",", "")
        else:
            yield token


def _written_out(token: str) -> str:
    if token in _SAME_WORD:
        return _SAME_WORD[token]
    for end, word in _SHORTENED.items():
        if token.endswith(end):
            return f"{token[: -len(end)]} {word}"
    return token


def _keys(plain: str, tokens: tuple[str, ...]) -> Iterator[Key]:
    """The words of a fact in order, and in those orders that say the same."""
    yield "words", tokens
    if len(tokens) > _MOST_MOVED or _SENTENCE_END.search(plain.rstrip(_STOPS)):
        return
    if not _FIXED.isdisjoint(tokens):
        return
    phrases = [at for at, token in enumerate(tokens) if token in _SWAPPED]
    if len(phrases) > 1:
        chunks = [tokens[at:end] for at, end in zip(phrases, [*phrases[1:], len(tokens)], strict=True)]
        yield "swapped", tokens[: phrases[0]], tuple(sorted(chunks, key=lambda chunk: chunk[0]))
    starts = [
        at for at, token in enumerate(tokens) if token in _MOVABLE and (at == 0 or tokens[at - 1] not in _MOVABLE)
    ]
    if len(starts) == 1:
        yield "turned", tokens[starts[0] :] + tokens[: starts[0]]
    if has_unspaced(plain):
        yield from _time_keys(_unify_writing(plain))


def _time_keys(text: str) -> Iterator[Key]:
    """The one time that a Chinese sentence begins with, or has behind its subject, and the rest of it."""
    times = list(_TIMES_WITHIN.finditer(text))
    if len(times) == 1 and times[0].start() <= _SUBJECT_CHARS and not _FIXED_WITHIN.search(text):
        yield "timed", times[0][0], tuple(_tokens(text[: times[0].start()] + text[times[0].end() :].rstrip(_STOPS)))


def _depends_on_speaker(a: Fact, b: Fact) -> bool:
    """True if two facts with the same words are two because of who says them."""
    if {a.speaker, b.speaker} == {"", _ASSISTANT}:
        # The user and the assistant mean the same by "we".
        return _ONESELF.search(" ".join(a.tokens)) is not None
    return _is_personal(a) or _is_personal(b)


def _is_personal(fact: Fact) -> bool:
    """True if a fact may be about who says it."""
    if _count(fact.tokens) < _LEAST_WORDS or not _PERSONAL.isdisjoint(fact.tokens):
        return True
    return _NO_SUBJECT.fullmatch(fact.tokens[0]) is not None


def _count(tokens: Sequence[str]) -> int:
    """Number of words; three characters of an unspaced script make two."""
    unspaced_count = sum(len(token) == 1 and has_unspaced(token) for token in tokens)
    return len(tokens) - unspaced_count + unspaced_count * 2 // 3

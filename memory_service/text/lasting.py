"""Lasting words of a user: requests to remember, wishes for every answer, facts about oneself and values. Pure.

Invariants: linear; one sentence is judged at a time, by how a clause begins and goes on, never by single words: "I
remember" asks for nothing, "I work on it" and 「我喜欢这个」 tell nothing that anybody could look up later. English and
Chinese, in both scripts, have the same classes.
"""

from __future__ import annotations

from indexer.common import lazy_regex
from indexer.language import ANY, facts_of, is_tool

_REMEMBER = lazy_regex(ANY.lasting.remember)
# How the writer wants to be answered or called, every time.
_ADDRESS = lazy_regex(ANY.lasting.address)

_SELF = lazy_regex(ANY.lasting.oneself)

# "I'm Austrian", "I am Lena": in lower case they could be any word.
_CALLED = lazy_regex(ANY.lasting.called)
# A liking, or a question announced, whose object only who was there can name.
_NAMELESS = lazy_regex(ANY.phrases.nameless)
# Attributes whose values outlive a talk, of a thing that has to be named and of whatever is spoken of; not the state,
# the size or the hour of what is at hand.
_OF_SOMETHING = frozenset(
    "location employer owner maintainer lead manager oncall captain price salary version contact school spouse partner"
    " birthday department plan deadline host port url subject address".split()
)
_OF_ALL = frozenset(
    "ceo cto cfo email region timezone database cache queue framework environment branch editor browser os shell theme"
    " provider license budget landlord language pronouns diet currency".split()
)
_OF_THE_TALK = ("@he", "@she", "@they", "@it", "@you")


def asks_to_remember(sentence: str) -> bool:
    """True if a sentence asks to remember what it says: "Remember: …", "Don't forget that …", 「记住：…」."""
    return _REMEMBER.search(sentence.lower()) is not None


def wishes_address(sentence: str) -> bool:
    """True if a sentence says how to answer or call its writer: "Reply to me in German", 「请称呼我为陈博士」."""
    return _ADDRESS.search(sentence.lower()) is not None


def is_about_self(sentence: str) -> bool:
    """True if a sentence tells a lasting fact of its writer: home, work, age, health, family, belongings, habits."""
    return _SELF.search(sentence.lower()) is not None or _CALLED.search(sentence) is not None


def tells_value(sentence: str) -> bool:
    """True if a sentence says a value that holds until it changes: "Kim owns billing", 「备份由林负责」."""
    for claim in facts_of(sentence).claims:
        subject, _, attribute = claim.thing.partition("|")
        relation, _, value = attribute.partition("=")
        kept_value = relation in _OF_ALL or (relation in _OF_SOMETHING and subject)
        if (kept_value or (relation in ("use", "prefer") and is_tool(value))) and not any(
            word in subject for word in _OF_THE_TALK
        ):
            return True
    return False


def names_nothing(sentence: str) -> bool:
    """True if a sentence likes, dislikes or announces what it does not name: "I prefer this one", 「我喜欢这个。」."""
    return _NAMELESS.fullmatch(sentence.lower()) is not None

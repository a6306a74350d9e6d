"""Places of calls: whose a conversation is, by what its host tells, and the names of its session and branches. Pure.

Invariants: the same beginning gives the same name, and the same branch of it; a name is one that a session can have;
what is told of the host is read from system prompts and from what the host inserted, never from what somebody typed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from indexer.language import folder_told, is_auxiliary, is_inserted, ornament
from memory_service.errors import InvalidName

if TYPE_CHECKING:
    from memory_service.conversations.client_calls import ConversationCall
    from memory_service.conversations.compare import ComparedMessage

MOST_BRANCHES = 1_000
# Of the messages of one role, those in which a host tells of itself.
_LOOKED_AT = 4
_ID_CHARS = 100
# A call with two is nothing that a host asks for itself.
_MOST_TURNS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOverview:
    """A call at a glance, whatever its protocol.

    Attributes:
        system: The text of its system prompt.
        texts: The texts of the user's first messages, one for each part.
        last: The text of the last part of the user's last message; empty if that has no text.
        turns: How many messages of the user's there are; two for more.
        has_tools: Whether the model may call tools.
    """

    system: str
    texts: tuple[str, ...]
    last: str
    turns: int
    has_tools: bool

    @property
    def is_auxiliary(self) -> bool:
        """True if a host makes the call for itself."""
        own = [text for text in self.texts if not _is_hosts(text)]
        words = own[0] if own else "", self.last
        return ornament(
            "inserted", False, is_auxiliary, self.system, *words, turns=self.turns, has_tools=self.has_tools
        )

    @property
    def folder(self) -> str:
        """The folder that a host says it works in; empty if it says none."""
        return ornament("inserted", "", folder_told, self.system, self.texts)


def call_overview(system: str, messages: Sequence[object], tools: object) -> CallOverview:
    """The overview of a call with these messages or items."""
    users = [message for message in messages if isinstance(message, dict) and message.get("role") == "user"]
    items = [
        each_message
        for each_message in messages
        if isinstance(each_message, dict) and each_message.get("role") in ("system", "developer")
    ]
    texts = tuple(text for user in users[:_LOOKED_AT] for text in _part_texts(user.get("content")) if text.strip())
    number = sum(
        1 for _ in islice((each_user for each_user in users if not _is_result(each_user.get("content"))), _MOST_TURNS)
    )
    # Some clients tell the environment in a message of the system's behind the first one.
    beside = ["\n".join(_part_texts(value.get("content"))) for value in items[:_LOOKED_AT]]
    return CallOverview(
        system="\n".join([system, *beside]),
        texts=texts,
        last=(_part_texts(users[-1].get("content")) or [""])[-1] if users else "",
        turns=number,
        has_tools=bool(_parts(tools)),
    )


def _is_result(content: object) -> bool:
    """True for the content of a message that only has results of tools, or words of a host."""
    if any(isinstance(part, dict) and part.get("type") == "tool_result" for part in _parts(content)):
        return True
    texts = _part_texts(content)
    return bool(texts) and all(map(_is_hosts, texts))


def _part_texts(content: object) -> list[str]:
    """The texts of a content, one for each part."""
    if isinstance(content, str):
        return [content]
    texts = (part.get("text") for part in _parts(content) if isinstance(part, dict))
    return [text for text in texts if isinstance(text, str)]


def _parts(content: object) -> list[object]:
    return content if isinstance(content, list) else []


def derived_id(call: ConversationCall) -> str:
    """The id of a conversation that nobody named; see the rule above."""
    from memory_service.conversations.compare import comparable_messages

    beginning = hashlib.blake2b(digest_size=8)
    beginning.update(json.dumps([call.wire, call.hint]).encode())
    for message in comparable_messages(call.messages):
        beginning.update(message.digest)
        if message.role == "user":
            break
    return f"chat-{beginning.hexdigest()}"


def conversation_id(name: str) -> str:
    """The id of the session for a conversation that has one: the same, if a session can have it."""
    from memory_service.home import check_session_id

    try:
        check_session_id(name)
    except InvalidName:
        return f"conversation-{_short(name)}"
    return name


def branch_ids(session_id: str, messages: Sequence[ComparedMessage]) -> Iterator[str]:
    """Ids of the branches that begin with the same messages, in the order in which they are given."""
    from memory_service.schemas.compaction import BRANCH_MARK

    root = root_of(session_id)
    beginning = hashlib.blake2b(b"".join(message.digest for message in messages), digest_size=5).hexdigest()
    stem = root if len(root) <= _ID_CHARS else f"{root[: _ID_CHARS - 11]}-{_short(root)}"
    return (f"{stem}{BRANCH_MARK}{beginning}-{number}" for number in range(1, MOST_BRANCHES + 1))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def root_of(session_id: str) -> str:
    """The session that a branch was parted from first; of any other one, itself."""
    from memory_service.schemas.compaction import BRANCH_MARK

    return session_id.partition(BRANCH_MARK)[0]


def _is_hosts(text: str) -> bool:
    return ornament("inserted", False, is_inserted, text)

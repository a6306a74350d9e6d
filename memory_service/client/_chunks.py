"""An answer that comes in chunks: what of it was said so far, and the chunks of any provider's package one by one.

Chunks are texts, chunks of OpenAI's chat completions (litellm's too), or events of Anthropic's messages; mappings or
objects. Invariants: the chunks themselves are never changed; of several choices the first one counts.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from memory_service.client._messages import (
    ModelAnswer,
    WireMessage,
    error_in_answer,
    part_of,
    plain,
    usage_report,
    word_of,
)
from memory_service.errors import InvalidRequest

# Both colours of a lock, by the names that the generator of the client knows.
Lock, AsyncLock = threading.RLock, asyncio.Lock
OVER = object()
_SHAPES = "Return the stream of the model: texts, or what openai, litellm or anthropic give with stream=True."
_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping".split()
)


class GrowingAnswer:
    """The answer as far as it has come.

    Attributes:
        known: True once a chunk was in a shape that is known.
        said: True once the model said or called something; what came before only opens the stream.
        finished: True once the provider has told the end of the answer; a stream of texts tells none.
    """

    def __init__(self) -> None:
        self.known = self.said = self.finished = False
        self._texts: list[str] = []
        self._is_text = self._is_anthropic = False
        self._fields: WireMessage = {}
        self._calls: dict[object, WireMessage] = {}
        self._blocks: dict[int, WireMessage] = {}
        self._arguments: dict[int, list[str]] = {}
        self._reason = ""
        self._usage: WireMessage = {}

    def add(self, chunk: object) -> None:
        """Take note of a chunk.

        Raises:
            InvalidRequest: The stream begins with something in no shape that is known.
            UpstreamFailed: It is the report of an error.
        """
        if isinstance(chunk, str):
            self.known = self._is_text = True
            self.said = self.said or bool(chunk)
            self._texts.append(chunk)
            return
        kind, choices = part_of(chunk, "type"), part_of(chunk, "choices")
        if part_of(chunk, "error"):
            raise error_in_answer(chunk)
        if isinstance(choices, list | tuple):
            self.known = True
            self._usage |= _fields_of(part_of(chunk, "usage"))
            for choice in choices:
                if not part_of(choice, "index"):
                    self._choose(choice)
        elif kind in _EVENTS:
            self.known = self._is_anthropic = True
            self._event(kind, chunk)
        elif not self.known:
            raise InvalidRequest(f"The stream began with an object of the type {type(chunk).__name__}. {_SHAPES}")

    def lacks_end(self) -> bool:
        """True if the chunks so far are no whole answer, although no more of them come."""
        return not (self._is_text or self.finished)

    def answer(self, *, whole: bool = True) -> ModelAnswer:
        """The answer so far; of one that was broken off, the text alone: its calls have no result."""
        if self._is_anthropic:
            numbers = [at for at in sorted(self._blocks) if whole or self._blocks[at].get("type") == "text"]
            message: WireMessage = {"role": "assistant", "content": [self._block(at) for at in numbers]}
        else:
            message = {"role": "assistant", "content": "".join(self._texts) or ("" if self._is_text else None)}
            if whole:
                message |= self._fields
            if whole and self._calls:
                message["tool_calls"] = list(self._calls.values())
        return ModelAnswer(message=message, finish_reason=self._reason, usage=usage_report(self._usage or None))

    def _choose(self, choice: object) -> None:
        delta = _fields_of(part_of(choice, "delta"))
        if isinstance(text := delta.pop("content", None), str):
            self._texts.append(text)
            self.said = self.said or bool(text)
        delta.pop("role", None)
        for piece in delta.pop("tool_calls", None) or ():
            self.said = True
            self._call(piece)
        self.said = self.said or any(delta.values())
        self._fields = _merge_pieces(self._fields, delta)
        self._reason = word_of(part_of(choice, "finish_reason")) or self._reason
        self.finished = self.finished or bool(self._reason)

    def _call(self, piece: WireMessage) -> None:
        number = piece.pop("index", None)
        # Some servers leave the number out: then a new id begins a new call.
        key = number if number is not None else piece.get("id") or next(reversed(self._calls), 0)
        call = self._calls.setdefault(key, {"id": "", "type": "function"})
        call.update(
            _merge_pieces(call, {name: value for name, value in piece.items() if name not in ("id", "type") or value})
        )

    def _event(self, kind: str, chunk: object) -> None:
        match kind:
            case "message_start":
                self._usage |= _fields_of(part_of(part_of(chunk, "message"), "usage"))
            case "content_block_start":
                self.said = True
                self._blocks[_number(chunk)] = _fields_of(part_of(chunk, "content_block"))
            case "content_block_delta":
                self.said = True
                self._grow(_number(chunk), _fields_of(part_of(chunk, "delta")))
            case "message_delta":
                self._reason = word_of(part_of(part_of(chunk, "delta"), "stop_reason")) or self._reason
                self._usage |= _fields_of(part_of(chunk, "usage"))
                self.finished = self.finished or bool(self._reason)
            case "message_stop":
                self.finished = True

    def _grow(self, number: int, delta: WireMessage) -> None:
        block = self._blocks.setdefault(number, {"type": "text", "text": ""})
        kind = delta.pop("type", None)
        if kind == "input_json_delta":
            self._arguments.setdefault(number, []).append(str(delta.get("partial_json") or ""))
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif kind == "signature_delta":
            block |= delta
        else:
            self._blocks[number] = _merge_pieces(block, delta)

    def _block(self, number: int) -> WireMessage:
        block, written_text = self._blocks[number], "".join(self._arguments.get(number, ()))
        if not written_text:
            return block
        try:
            given_value = json.loads(written_text)
        except ValueError:
            given_value = None
        return {**block, "input": given_value if isinstance(given_value, dict) else {"_raw": written_text}}


class OpenStream:
    """A model's stream that is being read; each colour of the client has its own way to.

    Attributes:
        growing: The answer so far.
        over: True once no more chunks come.
    """

    def __init__(self) -> None:
        self.growing = GrowingAnswer()
        self.over = False


def _number(chunk: object) -> int:
    number = part_of(chunk, "index")
    return number if isinstance(number, int) else 0


def _fields_of(value: object) -> WireMessage:
    """The fields of an object that are not empty."""
    fields = plain(value) if value is not None else {}
    return (
        {name: each_value for name, each_value in fields.items() if each_value is not None}
        if isinstance(fields, dict)
        else {}
    )


def _merge_pieces(fields: Mapping[str, Any], more: Mapping[str, Any]) -> WireMessage:
    """An object with the pieces of another behind its own: texts and lists grow, other values are the last ones."""
    grown_fields = dict(fields)
    for name, value in more.items():
        before = grown_fields.get(name)
        match before, value:
            case _, None:
                pass
            case str(), str() if name not in ("id", "type", "signature"):
                grown_fields[name] = before + value
            case list(), list() if name == "thinking_blocks":
                grown_fields[name] = _thoughts(before, value)
            case list(), list():
                grown_fields[name] = [*before, *value]
            case dict(), dict():
                grown_fields[name] = _merge_pieces(before, value)
            case _:
                grown_fields[name] = value
    return grown_fields


def _thoughts(blocks: list[Any], more: list[Any]) -> list[Any]:
    """Blocks of thinking, of which litellm gives a piece with every chunk; the signature ends one."""
    joined_blocks = list(blocks)
    for block in more:
        last = joined_blocks[-1] if joined_blocks else None
        if isinstance(last, dict) and isinstance(block, dict) and not last.get("signature"):
            joined_blocks[-1] = _merge_pieces(last, block)
        else:
            joined_blocks.append(block)
    return joined_blocks


def chunks_of(value: object) -> Iterator[object]:
    """The chunks of a stream, for a blocking program.

    Raises:
        InvalidRequest: It is no stream, or an asynchronous one.
    """
    if isinstance(value, Iterable) and not _is_answer(value):
        return iter(value)
    if isinstance(value, AsyncIterable):
        raise InvalidRequest("The stream is asynchronous. Use AsyncMemoryClient, or a stream that is not.")
    raise _no_stream(value)


def async_chunks_of(value: object) -> AsyncIterator[object]:
    """The chunks of a stream, for an async program; a blocking one is read in a thread.

    Raises:
        InvalidRequest: It is no stream.
    """
    if isinstance(value, AsyncIterable):
        return aiter(value)
    if isinstance(value, Iterable) and not _is_answer(value):
        return _from_thread(iter(value))
    raise _no_stream(value)


async def _from_thread(chunks: Iterator[object]) -> AsyncIterator[object]:
    while (chunk := await asyncio.to_thread(next, chunks, OVER)) is not OVER:
        yield chunk


def close_chunks(value: object) -> None:
    """End a stream, and with it the request of its package; what fails there was not wanted any more."""
    with suppress(Exception):
        close = getattr(value, "close", None)
        if callable(close):
            close()


async def async_close_chunks(value: object) -> None:
    """The same for an async program."""
    with suppress(Exception):
        close = getattr(value, "aclose", None) or getattr(value, "close", None)
        closing = close() if callable(close) else None
        if inspect.isawaitable(closing):
            await closing


def _is_answer(value: object) -> bool:
    return isinstance(value, str | bytes | Mapping) or hasattr(value, "model_dump") or hasattr(value, "content")


def _no_stream(value: object) -> InvalidRequest:
    return InvalidRequest(f"The call returned an object of the type {type(value).__name__}, no stream. {_SHAPES}")

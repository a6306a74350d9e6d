# Generated from _async_stream.py by `python -m tests.generate_client`: change that file, and run this again.
"""An answer of a model that is read as it comes, for blocking programs.

Invariants: a stream that is over, was left, or failed has ended the provider's request, and is in the session once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, cast

from memory_service.client import _chunks
from memory_service.client._completion import PlayedTurn, Steps, broken_off
from memory_service.client._messages import Reply
from memory_service.errors import InvalidRequest, UpstreamFailed

# In the words of the gateway, which marks such answers too.
_LEFT = "the client went away"
_FAILED = "the upstream broke off"


class ModelStream(_chunks.OpenStream):
    """Chunks of a model's stream, as they come.

    Args:
        stream: What the user's call returned.
    """

    def __init__(self, stream: object) -> None:
        super().__init__()
        self._stream = stream
        self._chunks = _chunks.chunks_of(stream)
        self._held: list[object] = []

    def begin(self, *, whole: bool = False) -> None:
        """Read up to the first chunk in which something is said, or to the end; what is read is held back.

        Raises:
            Exception: The provider's own, if it fails.
        """
        try:
            while not self.over and (whole or not self.growing.said):
                if (chunk := self._read()) is not _chunks.OVER:
                    self._held.append(chunk)
        except BaseException:
            self.close()
            raise

    def next(self) -> object:
        """The next chunk; `OVER` at the end.

        Raises:
            Exception: The provider's own, if it fails.
            UpstreamFailed: The stream ended without its end.
        """
        if self._held:
            return self._held.pop(0)
        return _chunks.OVER if self.over else self._read()

    def close(self) -> None:
        """End the provider's request."""
        self.over = True
        _chunks.close_chunks(self._stream)
        if self._chunks is not self._stream:
            _chunks.close_chunks(self._chunks)

    def _read(self) -> object:
        chunk = next(self._chunks, _chunks.OVER)
        if chunk is not _chunks.OVER:
            self.growing.add(chunk)
            return chunk
        self.over = True
        if self.growing.lacks_end():
            raise UpstreamFailed("The model's stream ended without the reason why it ended.", transient=True)
        return chunk


class ReplyStream:
    """Answer of a model, chunk by chunk as its provider gives it; at its end it is appended to the session.

    ```python
    with session.complete(call, user="When do we deploy?", stream=True) as stream:
        for chunk in stream:
            print(chunk.choices[0].delta.content or "", end="")
    print(stream.reply.usage)
    ```

    To leave the loop ends the stream: what was said so far is appended, marked as broken off (`_cut` in the log), and
    `reply.cut` says it. `with` does so at once, whatever happens in the loop. Calls of tools of an answer that was
    broken off are not kept.

    Made by `complete`; a command such as `/compact` gives no chunks, and its reply at once.
    """

    def __init__(self, turn: PlayedTurn, play: Callable[[Steps[Reply]], Reply]) -> None:
        self._turn = turn
        # What the session opened for this turn.
        self._stream = cast("ModelStream | None", turn.stream)
        self._play = play
        self._reply: Reply | None = None
        self._ending = _chunks.Lock()

    @property
    def reply(self) -> Reply:
        """The whole answer, with what happened on the way, once the stream is over or was left.

        Raises:
            InvalidRequest: It is not over yet.
        """
        if self._reply is None:
            raise InvalidRequest("The stream is not over. Read it to its end, or close it.")
        return self._reply

    def __iter__(self) -> Iterator[Any]:
        """Give the chunks.

        Raises:
            UpstreamFailed: The provider failed in the middle; its own exception is the cause.
        """
        try:
            while self._reply is None:
                try:
                    chunk = self._next()
                except Exception as error:
                    raise broken_off(error, self._finish(_FAILED)) from error
                if chunk is _chunks.OVER:
                    self._finish("")
                else:
                    yield chunk
        finally:
            self.close()

    def close(self) -> None:
        """End the stream, if it is not over, and append what was said."""
        stream = self._stream
        self._finish("" if stream is None or stream.over or stream.growing.finished else _LEFT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self) -> object:
        return _chunks.OVER if self._stream is None else self._stream.next()

    def _finish(self, cut_text: str) -> Reply:
        with self._ending:
            if self._reply is None:
                if self._stream is not None:
                    self._stream.close()
                self._reply = self._play(self._turn.ending(cut_text))
            return self._reply

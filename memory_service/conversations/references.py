"""Compaction items: compactions that a client asks for in its own protocol, and keeps as a sealed reference.

A client that compacts gets one item for all that was said, and sends it back in front of what is new. The item stands
for a place in the session, so the view is made anew at every call: an undo, a pin or a later compaction counts.

Invariants: what an item stands for is said already, whatever else stands before it; an item of another workspace, of
another home, or of a session that is gone is refused, never passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memory_service.conversations.client_calls import ConversationCall, ConversationPrompt, LogPlace
from memory_service.conversations.join import Conversations
from memory_service.conversations.seals import Reference, Seals
from memory_service.errors import InvalidReference, InvalidRequest, MemoryServiceError
from memory_service.llm.base import not_cancelled
from memory_service.messages.response_items import standalone
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactionReceipt, CompactRequest

# Of a client's own threshold: what is left of it by a compaction there.
_TARGET_SHARE = 0.5


class CompactionItems:
    """Compactions for the clients of one workspace.

    Args:
        workspace: Its name.
        conversations: Those of the workspace.
        seals: Of the home.
    """

    def __init__(self, workspace: str, conversations: Conversations, seals: Seals) -> None:
        self._workspace = workspace
        self._conversations = conversations
        self._sessions = conversations.sessions
        self._seals = seals

    def prompt(self, call: ConversationCall, *, cancelled: Callable[[], bool] = not_cancelled) -> ConversationPrompt:
        """Prompt for a call, with a reference if the call asks for compactions and one was made; see `Conversations`.

        Raises:
            InvalidReference: The item that the call begins with stands for nothing here.
        """
        call = self._open_reference(call)
        early = self._at_threshold(call, cancelled) if call.compact_threshold else None
        prompt = self._conversations.prompt(call, cancelled=cancelled)
        if early is not None and prompt.session_id:
            prompt = replace(
                prompt,
                branch_of=early.branch_of or prompt.branch_of,
                compaction=prompt.compaction or early.compaction,
                degraded=(*early.degraded, *prompt.degraded),
            )
        return self.with_reference(prompt, call)

    def with_reference(self, prompt: ConversationPrompt, call: ConversationCall) -> ConversationPrompt:
        """A prompt with a reference, if the call asks for compactions and one was made."""
        is_made = prompt.compaction is not None and prompt.compaction.applied
        if call.compact_threshold is None or not is_made:
            return prompt
        return replace(prompt, reference=self._seal(prompt))

    def compact(self, call: ConversationCall, *, cancelled: Callable[[], bool] = not_cancelled) -> ConversationPrompt:
        """Compact all that was said, and give the user's messages with a reference to the rest.

        Where there is nothing to compact, the reference stands for the session as it is.

        Raises:
            InvalidReference: The item that the call begins with stands for nothing here.
            InvalidRequest: Nothing was said, or not in a shape that is known.
            UpstreamFailed: The model failed and nothing may stand in for it; nothing was changed.
        """
        prompt = self._compact(self._open_reference(call), CompactRequest(force=True), cancelled)
        said_messages = self._sessions.snapshot(prompt.session_id).state.messages
        messages = [standalone(message.message) for message in said_messages if message.message["role"] == "user"]
        return replace(prompt, messages=tuple(messages), reference=self._seal(prompt))

    def _open_reference(self, call: ConversationCall) -> ConversationCall:
        """A call that says what its reference stands for."""
        if not call.reference:
            return call
        reference = self._seals.open(call.reference)
        if reference.workspace != self._workspace:
            raise InvalidReference(
                f"A compaction item belongs to another workspace than {self._workspace}. "
                "Send X-Memory-Workspace with the one that it was made in, or the conversation without the item."
            )
        if self._conversations.digest_at(reference.session_id, reference.last_seq) != reference.digest:
            raise InvalidReference(
                f"The session {reference.session_id} of a compaction item is gone, or was trimmed. "
                "Send the conversation without the item, or restore the session."
            )
        return replace(call, place=LogPlace(reference.session_id, reference.last_seq))

    def _at_threshold(self, call: ConversationCall, cancelled: Callable[[], bool]) -> ConversationPrompt | None:
        """Compact a session that is over the client's threshold; a failure leaves it as it was, and is told."""
        threshold = call.compact_threshold or 0
        request = CompactRequest(trigger="threshold", force=True, target_tokens=max(int(threshold * _TARGET_SHARE), 1))
        try:
            return self._compact(call, request, cancelled, over_tokens=threshold)
        except InvalidReference:
            raise
        except MemoryServiceError as error:
            return ConversationPrompt(messages=(), degraded=(f"compaction: {error}",))

    def _compact(
        self,
        call: ConversationCall,
        request: CompactRequest,
        cancelled: Callable[[], bool],
        over_tokens: int = 0,
    ) -> ConversationPrompt:
        """Append what is new, then flush and compact a session whose view is over a size."""
        session_id, last_seq, branch_of = self._conversations.join(call)
        if not last_seq:
            raise InvalidRequest("Nothing was said that could be compacted. Send the conversation in input.")
        prompt = ConversationPrompt(messages=(), session_id=session_id, last_seq=last_seq, branch_of=branch_of)
        snapshot = self._sessions.snapshot(session_id)
        tokens = snapshot.reading(is_anchored=True).tokens
        by_threshold = request.trigger == "threshold"
        if tokens <= over_tokens or (
            by_threshold and not self._sessions.compactions.worth_trying(session_id, last_seq, tokens)
        ):
            return prompt
        degraded = list[str]()
        if snapshot.options.flush.mode != "off":
            degraded += self._sessions.flushes.before(snapshot, hard=True, cancelled=cancelled).degraded
        receipt = self._sessions.compactions.compact(session_id, CompactionCall(request=request), cancelled=cancelled)
        return replace(prompt, compaction=receipt, degraded=(*degraded, *receipt.degraded))

    def _seal(self, prompt: ConversationPrompt) -> str:
        receipt: CompactionReceipt | None = prompt.compaction
        return self._seals.seal(
            Reference(
                workspace=self._workspace,
                session_id=prompt.session_id,
                last_seq=prompt.last_seq,
                digest=self._conversations.digest_at(prompt.session_id, prompt.last_seq),
                compaction_id=(receipt.compaction_id or "") if receipt else "",
            )
        )

"""Why this prompt: what went into each prompt, from which lines, what stayed out, and the budget over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import Response

from memory_service.errors import MemoryServiceError, NotFound
from memory_service.schemas.compaction import PromptMeasure
from memory_service.schemas.memories import ReceiptItem
from memory_service.web.views.sessions import messages_at
from memory_service.web.visit import Visit

if TYPE_CHECKING:
    from memory_service.service import ShownMessage

_MOST_RECEIPTS: Final = 60
# Of what stayed out, so many are items with their lines.
_WITH_TEXT: Final = 20


class _Passage(NamedTuple):
    messages: list[ShownMessage]
    text: str


def receipt_list(visit: Visit) -> Response:
    """The newest receipts, of a session or of all."""
    session_id = visit.query.get("session", "")[:200]
    answer = visit.service.receipts(visit.workspace, session_id=session_id or None, limit=_MOST_RECEIPTS)
    prompts = _prompts(visit, session_id)
    return visit.page("receipts", receipts=answer.receipts, prompts=prompts, session_id=session_id)


def receipt_page(visit: Visit) -> Response:
    """One receipt: what is in, and what is left out, with the reasons."""
    receipt = visit.service.receipt(visit.workspace, str(visit.request.path_params["receipt_id"]))
    items = [*receipt.included, *receipt.omitted[:_WITH_TEXT]]
    passages = {id(item): _passage_of(visit, item) for item in items}
    prompts = [each for each in _prompts(visit, receipt.session_id or "") if each.receipt_id == receipt.receipt_id]
    return visit.page("receipt", receipt=receipt, passages=passages, prompts=prompts[:1])


def _prompts(visit: Visit, session_id: str) -> list[PromptMeasure]:
    """The sizes of the last prompts of a session; none where there is no such session."""
    try:
        return visit.service.prompts(visit.workspace, session_id).prompts if session_id else []
    except NotFound:
        return []


def _passage_of(visit: Visit, item: ReceiptItem) -> _Passage:
    """The messages or lines that an item of a receipt names, as they are now; nothing where they are gone."""
    place = f"{item.path}#L{item.start_line}-L{item.end_line}"
    if messages := messages_at(visit, place):
        return _Passage(messages, "")
    try:
        return _Passage([], visit.service.original(visit.workspace, place).text)
    except MemoryServiceError:
        return _Passage([], "")

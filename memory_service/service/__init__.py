"""Every use case of the service, `MemoryService`, and the values that its doors give and get, each loaded when used.

A door imports from here, from `schemas` and `errors`, and from nothing that stands below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memory_service._version import require_server

if TYPE_CHECKING:
    from indexer import SyncProgress, error_chain, provider_message
    from memory_service.conversations.call_places import CallOverview, call_overview
    from memory_service.conversations.client_calls import ConversationCall, ConversationPrompt
    from memory_service.conversations.join import ANSWER
    from memory_service.conversations.seals import is_sealed_here
    from memory_service.llm.litellm import close_clients, require_litellm, upstream_error
    from memory_service.messages.response_items import TRIGGER, items_of_messages, messages_of_items
    from memory_service.messages.server_events import EventSplitter, ServerEvent, Unreadable
    from memory_service.runtime.access import ALL_RIGHTS, AccessControl, Grant, NeededRole, needed_role, needs
    from memory_service.runtime.change_reports import SyncedChange
    from memory_service.runtime.display import ShownMessage, shown_prompt
    from memory_service.runtime.events import Subscription
    from memory_service.runtime.index_answers import reader_failures
    from memory_service.runtime.keyed_answers import KeyedAnswers
    from memory_service.runtime.sent_messages import check_messages
    from memory_service.runtime.session_details import SessionDetails, ShownCompaction
    from memory_service.runtime.session_options import preset_settings
    from memory_service.service.cold_start import open_at_once, without_collector
    from memory_service.service.facade import MemoryService
    from memory_service.storage.engines import migrate_storage, move_storage, rewrite_storage
    from memory_service.storage.sample import SAMPLES, Recording, copy_sample

__all__ = [
    "ALL_RIGHTS",
    "ANSWER",
    "SAMPLES",
    "TRIGGER",
    "AccessControl",
    "CallOverview",
    "ConversationCall",
    "ConversationPrompt",
    "EventSplitter",
    "Grant",
    "KeyedAnswers",
    "MemoryService",
    "NeededRole",
    "Recording",
    "ServerEvent",
    "SessionDetails",
    "ShownCompaction",
    "ShownMessage",
    "Subscription",
    "SyncProgress",
    "SyncedChange",
    "Unreadable",
    "call_overview",
    "check_messages",
    "close_clients",
    "copy_sample",
    "error_chain",
    "is_sealed_here",
    "items_of_messages",
    "messages_of_items",
    "migrate_storage",
    "move_storage",
    "needed_role",
    "needs",
    "open_at_once",
    "preset_settings",
    "provider_message",
    "reader_failures",
    "require_litellm",
    "rewrite_storage",
    "shown_prompt",
    "upstream_error",
    "without_collector",
]
# Where each stands that is not the service itself.
_MODULES = {
    "indexer": ("SyncProgress", "error_chain", "provider_message"),
    "memory_service.conversations.client_calls": ("ConversationCall", "ConversationPrompt"),
    "memory_service.conversations.join": ("ANSWER",),
    "memory_service.conversations.call_places": ("CallOverview", "call_overview"),
    "memory_service.conversations.seals": ("is_sealed_here",),
    "memory_service.llm.litellm": ("close_clients", "require_litellm", "upstream_error"),
    "memory_service.storage.engines": ("migrate_storage", "move_storage", "rewrite_storage"),
    "memory_service.storage.sample": ("SAMPLES", "Recording", "copy_sample"),
    "memory_service.messages.response_items": ("TRIGGER", "items_of_messages", "messages_of_items"),
    "memory_service.messages.server_events": ("EventSplitter", "ServerEvent", "Unreadable"),
    "memory_service.runtime.access": ("ALL_RIGHTS", "AccessControl", "Grant", "NeededRole", "needed_role", "needs"),
    "memory_service.runtime.index_answers": ("reader_failures",),
    "memory_service.runtime.display": ("ShownMessage", "shown_prompt"),
    "memory_service.runtime.session_details": ("SessionDetails", "ShownCompaction"),
    "memory_service.runtime.events": ("Subscription",),
    "memory_service.runtime.keyed_answers": ("KeyedAnswers",),
    "memory_service.runtime.session_options": ("preset_settings",),
    "memory_service.runtime.sent_messages": ("check_messages",),
    "memory_service.runtime.change_reports": ("SyncedChange",),
    "memory_service.service.facade": ("MemoryService",),
    "memory_service.service.cold_start": ("open_at_once", "without_collector"),
}


if not TYPE_CHECKING:  # a name that is not there is found by type checkers

    def __getattr__(name: str) -> Any:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        require_server(f"memory_service.service.{name}")
        return getattr(import_module(module), name)

"""Owns what people are told when a model fails: what happened, and what to do. Plain values."""

from __future__ import annotations

from memory_service.llm.overflow import FailureKind

SAYINGS: dict[FailureKind, tuple[str, str]] = {
    "byte_overflow": ("got a request of too many bytes", "Leave out images or send fewer messages."),
    "output_overflow": ("cannot answer at the length that was asked for", "Ask for fewer output tokens."),
    "malformed_history": ("refused the order of the messages", "Repair the history before it is sent."),
    "rate_limit": ("is asked too often", "Try again later, or raise the limit at the provider."),
    "quota": ("has no quota or credit left", "Pay, or set another llm_model."),
    "auth": ("refused the key", "Set the key of its provider."),
    "timeout": ("did not answer in time", "Try again, or allow it more time."),
    "content_filter": ("was kept from answering by a content filter", "Change the text, or set another llm_model."),
    "unsupported": ("is not there, or cannot do what was asked", "Check llm_model, or set another one."),
    "unavailable": ("cannot be reached or is overloaded", "Check llm_api_base, or try again later."),
    "other": ("failed", "Look at the provider's own error, which this one was raised from."),
}

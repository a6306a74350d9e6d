"""The shapes of messages: one inner form, read from OpenAI's and Anthropic's, written back as either.

```
calls, parts  ->  shapes (the inner form)  ->  reading, writing
```
Invariants: pure; no message is changed in place; what was said is kept as it came, even where no API takes it, and
is made valid only when it goes out.
"""

from memory_service.messages.providers import wants_reasoning
from memory_service.messages.reading import read_messages, read_sent
from memory_service.messages.shapes import (
    CUT,
    Function,
    Message,
    Part,
    Role,
    ToolCall,
    arguments_object,
    arguments_of,
    compact_command,
    is_empty,
    is_system,
    is_tool_result,
    media_parts_of,
    own_text_of,
    parts_of,
    text_of,
    text_part,
    tool_calls_of,
    tool_result,
    user_message,
    was_cut,
    wire_arguments,
    with_text,
    with_texts,
    without_thinking,
)
from memory_service.messages.sizes import Numbered, message_tokens, number_message
from memory_service.messages.writing import to_litellm, to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic

__all__ = [
    "CUT",
    "Function",
    "Message",
    "Numbered",
    "Part",
    "Role",
    "ToolCall",
    "arguments_object",
    "arguments_of",
    "compact_command",
    "is_empty",
    "is_system",
    "is_tool_result",
    "media_parts_of",
    "message_tokens",
    "number_message",
    "own_text_of",
    "parts_of",
    "read_messages",
    "read_sent",
    "text_of",
    "text_part",
    "to_anthropic",
    "to_litellm",
    "to_mistral",
    "to_openai",
    "tool_calls_of",
    "tool_result",
    "user_message",
    "wants_reasoning",
    "was_cut",
    "wire_arguments",
    "with_text",
    "with_texts",
    "without_thinking",
]

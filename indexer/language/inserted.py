"""Words that a host of agents put into the mouth of a user, or sent on its own account: the one judge of them. Pure.

Hosts put reminders, the rules of a project, the state of its repository, notices and replays of commands into messages
of the user, and ask the model things of their own: for a title, for a summary. Nobody said such words: they are no
memory, no rule, no request.

Rules: a block of a host's tag that begins a line is inserted up to its end, or to the end of the text if it was cut
off; a text that begins as a host's own messages do is inserted as a whole. What stands inside of a sentence, in quotes
or in a fence is the user's, who may speak of such tags. Into what a tool answers hosts put reminders alone; other tags,
and one that is never closed, are the tool's own words.

Invariants: linear; a text without any of it is the same object.

Source: what Claude Code 2.1, Codex 0.16, opencode 1.18, Cline, Roo Code, Cursor, Gemini CLI, Open WebUI and LibreChat
send, and the prompts in their repositories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY

# Tags that hosts put around what they insert, and nobody writes at the beginning of a line.
_TAGS = (
    r"system[-_]reminder|environment[-_](?:context|details)|user_instructions|permissions(?: instructions)?"
    r"|turn_aborted|skills?(?:_instructions)?|subagent_notification|task-notification"
    r"|command-(?:name|message|args|contents)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|ide_(?:opened_file|selection|diagnostics)|new-diagnostics|collaboration_mode|user-prompt-submit-hook"
    r"|session-start-hook|hook_prompt|user_shell_command|(?:apps|plugins)_instructions|available_skills|agent_skills"
    r"|git_?status|project_layout|model_switch|personality_spec|workspace_roots|filesystem"
    r"|open_and_recently_viewed_files|attached_files|additional_data|realtime_conversation|fork-boilerplate"
    r"|teammate-message|automode-reminder"
    # The block of memories, which a plugin of ours puts beside a prompt and the host keeps for one call.
    r"|relevant_context"
)
_BLOCK = lazy_regex(rf"^[ \t]*<({_TAGS})\b[^<>\n]*>", re.MULTILINE)
# Of these, what hosts put into the results of tools, too.
_REMINDER = lazy_regex(
    r"^[ \t]*<(system[-_]reminder|environment[-_](?:context|details)|new-diagnostics|user-prompt-submit-hook"
    r"|relevant_context)\b[^<>\n]*>",
    re.MULTILINE,
)
# Hosts name the tools of an MCP server after it; what ours find has addresses of its own, and adapters put a mark at
# each passage that a tool of their framework gives an agent, whatever the tool is called.
_OWN_TOOL = lazy_regex(r"memory[-_]service")
FOUND_HERE = {"found_by": "memory-service"}
_OWN_ANSWER = lazy_regex(r"""(["'])(?:url\1: ?["']memory://|found_by\1: ?(["'])memory-service\2)""")
# Tags of more usual names, where they are all of a text.
_WHOLE = lazy_regex(r"\s*<(env|INSTRUCTIONS|user_info|project_context)>.*</\1>\s*", re.DOTALL)
# A fence that is open before a tag: somebody shows it.
_FENCE = lazy_regex(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_HEADS = lazy_regex(
    r"""(?x)\s*(?:
      \#\ (?:AGENTS|CLAUDE|GEMINI)(?:\.local)?\.md\ instructions
    | Contents\ of\ \S{1,400}(?:AGENTS|CLAUDE|GEMINI)\S*\.md
    | Codebase\ and\ user\ instructions\ are\ shown\ below
    | As\ you\ answer\ the\ user's\ questions,\ you\ can\ use\ the
    | Caveat:\ The\ messages\ below\ were\ generated
    | gitStatus:\ This\ is\ the\ git\ status
    | This\ is\ the\ (?:git\ status|Gemini\ CLI|Qwen\ Code)\b
    | \[Request\ interrupted\ by\ user
    | (?:SessionStart|UserPromptSubmit|P(?:re|ost)ToolUse|(?:Subagent)?Stop|PreCompact)\ hook\ (?:feedback|additional)
    | This\ session\ is\ being\ continued\ from\ a\ previous\ conversation
    | Another\ language\ model\ started\ to\ solve\ this\ problem
    | Called\ the\ \w{1,40}\ tool\ with\ the\ following\ input
    | The\ following\ tool\ was\ executed\ by\ the\ user
    | Continue\ if\ you\ have\ next\ steps,\ or\ stop
    | \[ERROR\]\ You\ did\ not\ use\ a\ tool
    | \[TASK\ RESUMPTION\]
    | \[SUGGESTION\ MODE:
    | I\ have\ \*added\ these\ files\ to\ the\ chat\*
    | Here\ are\ (?:summaries\ of\ some\ files\ present|some\ READ\ ONLY\ files)
    | The\ LLM\ did\ not\ conform\ to\ the\ edit\ format
    )"""
)
# How hosts order the summary by which they compact a conversation, as its last words.
_SUMMARY_ORDER = lazy_regex(
    r"""(?x)\s*(?:
      CRITICAL:\ Respond\ with\ TEXT\ ONLY
    | Your\ task\ is\ to\ create\ a\ detailed\ summary\ of\ (?:the|this|our)\ conversation
    | You\ are\ performing\ a\ CONTEXT\ CHECKPOINT\ COMPACTION
    | Provide\ a\ detailed\ prompt\ for\ continuing\ our\ conversation\ above
    | The\ current\ conversation\ is\ rapidly\ running\ out\ of\ context
    )"""
)
_AUXILIARY_CHARS = 4_000
# Further down in a message an order is part of what somebody writes about.
_ORDER_CHARS = 400
_AUXILIARY = lazy_regex(f"(?ix){ANY.authorship.auxiliary}")
# All that a call says which asks if the model is there.
_PROBES = frozenset({"quota", "warmup", "count", "warm-up"})

_FOLDERS = lazy_regex(
    r"""(?xm)^[ \t>*-]*(?:
      (?:Primary\ |Current\ )?[Ww]orking\ [Dd]irectory:\s*`?(?P<line>[^\n`]{1,1000}?)`?
    | <cwd>(?P<cwd>[^<\n]{1,1000})</cwd>
    | \#\ Current\ (?:Working|Workspace)\ Directory\ \((?P<head>[^)\n]{1,1000})\)(?:\ Files)?
    | (?:I'm\ currently\ working\ in\ the\ directory|Workspace\ Path):\s*(?P<said>[^\n]{1,1000}?)
    )[ \t]*$"""
)


def without_inserted(text: str) -> str:
    """A text without what a host put into it; empty if that was all of it."""
    return _without(text, list(_inserted_spans(text)))


def without_reminders(answer: str) -> str:
    """Answer of a tool without the reminders of a host; empty if that was all of it."""
    return _without(answer, list(_reminders(answer)))


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    if not spans:
        return text
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    left = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return left if left.strip() else ""


def _inserted_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where what was inserted begins and ends, in order."""
    if _HEADS.match(text) or _SUMMARY_ORDER.match(text) or _WHOLE.fullmatch(text):
        yield 0, len(text)
        return
    at, fences = 0, 0
    while "<" in text and (match := _BLOCK.search(text, at)):
        fences += len(_FENCE.findall(text, at, match.start()))
        at = match.end()
        if fences % 2:
            continue
        end = text.find(f"</{match[1].partition(' ')[0]}", at)
        end = text.find(">", end) if end >= 0 else -1
        # What is never closed was cut off: all of it was put in.
        at = len(text) if end < 0 else end + 1
        yield match.start(), at


def _reminders(answer: str) -> Iterator[tuple[int, int]]:
    """Where the reminders in a tool's answer begin and end, in order."""
    at, fences, open_tags = 0, 0, set[str]()
    last = answer.rfind("</")
    while at < last and (match := _REMINDER.search(answer, at)):
        fences += len(_FENCE.findall(answer, at, match.start()))
        at = match.end()
        end = -1 if match[1] in open_tags else answer.find(f"</{match[1]}>", at)
        if end < 0:
            # It is not closed behind any later beginning either.
            open_tags.add(match[1])
        elif not fences % 2:
            at = end + len(match[1]) + 3
            yield match.start(), at


def is_inserted(text: str) -> bool:
    """True if nobody said any of a text that is not blank."""
    return bool(text.strip()) and not without_inserted(text).strip()


def is_own_tool(name: str) -> bool:
    """True for a tool by which an agent asks the memory."""
    return bool(_OWN_TOOL.search(name))


def is_recalled(answer: str) -> bool:
    """True for a tool's answer that tells what the memory found: to index it would have each memory found twice."""
    return bool(_OWN_ANSWER.search(answer))


def is_client_command(text: str) -> bool:
    """True for a command to a client, which asks the agent for nothing: "/add src/app.py", "/clear"; of prose none."""
    match = _COMMAND.fullmatch(text.strip())
    return match is not None and not _PROSE.search(match[1])


_COMMAND = lazy_regex(r"/[a-z][\w:-]{0,40}((?:[ \t]+\S+){0,40})")
_PROSE = lazy_regex(r"(?:\s[^\W\d_]{2,}[,.;:]?){3}|[^\x00-\x7f]{4}")


def is_auxiliary(system: str, first_words: str, last_words: str, *, turns: int, has_tools: bool) -> bool:
    """True for a call that a host makes for itself: for a title, the summary of its own compaction, a probe.

    Args:
        system: The text of the system prompt.
        first_words: The first message of the user.
        last_words: The last part of the last message of the user.
        turns: How many messages of the user there are.
        has_tools: Whether the model may call tools; such calls are the agent's work, but for a compaction.
    """
    if _SUMMARY_ORDER.match(last_words):
        return True
    if has_tools or turns > 1:
        return False
    if first_words.strip().lower() in _PROBES:
        return True
    return any(_AUXILIARY.search(text[:_AUXILIARY_CHARS]) for text in (system, first_words[:_ORDER_CHARS]))


def folder_told(system: str, inserted_texts: Sequence[str]) -> str:
    """The folder that a host says it works in; empty if it says none.

    Args:
        system: The text of the system prompt.
        inserted_texts: Texts of the user's messages, of which only what hosts put there is read.
    """
    blocks = (text[start:end] for text in inserted_texts for start, end in _inserted_spans(text))
    for text in (system, *blocks):
        if match := _FOLDERS.search(text):
            return next(filter(None, match.groups()), "").strip()
    return ""

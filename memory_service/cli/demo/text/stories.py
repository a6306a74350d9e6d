"""The stories that the demo tells, one a language: its sample, what is pinned and asked, and the words of each step.

Invariants: a story has the same steps as the others; what is in braces is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One story.

    Attributes:
        language: Code of its language, and of its sample.
        window_tokens: The model's window.
        prompt: The system prompt of the agent.
        pin: The rule that is pinned when it is said.
        said_pin: The words by which that is known in the conversation.
        questions: Two, each with words that answer it.
        steps: Title of each step and what is told of it.
        kept: What stands before lines of a checkpoint, and the heading that they are below: rules, decisions, goals.
    """

    language: str
    window_tokens: int
    prompt: str
    pin: str
    said_pin: str
    questions: tuple[tuple[str, str], tuple[str, str]]
    steps: tuple[tuple[str, str], ...]
    kept: tuple[tuple[str, str], ...]
    files: str
    reindex: str
    again: str
    message: str
    flush_event: str
    compaction_event: str
    told: str
    flushed: str
    found: str
    before_after: str
    caught_up: str
    file: str
    files_word: str
    compacted: str
    covered: str
    cleared: str
    equal: str
    not_equal: str
    keeps: str
    log: str
    byte_for_byte: str
    in_view: str
    not_in_view: str
    block: str
    source: str
    sources: str
    answer_in_view: str
    answer_in_block: str
    whole: str
    own: str
    serve: str
    python: str
    imported: str
    sent: str


ENGLISH_STORY = Story(
    language="en",
    window_tokens=8_192,
    prompt="You are the assistant at the owner's desk of a small plant shop. The answer comes first, in five lines.",
    pin="Never ship plants when it is below 5 °C at the destination.",
    said_pin="never ship plants when it is below 5 °c at the destination",
    questions=(
        ("How far off is the packing scale, and which one is used instead?", "the packing scale reads 40 g off"),
        ("岳母生日的那张卡片上写什么？", "祝妈妈身体健康，天天开心"),
    ),
    steps=(
        ("files and index", "An agent's memory is Markdown that people read and edit. This is a plant shop's."),
        (
            "conversation",
            "The shop's assistant at work with its owner, recorded. Every message is appended to the session's log,\n"
            "and before each answer the service is asked for the prompt: it has to fit {window:,} tokens.",
        ),
        (
            "flush",
            "Before a window is full, what is worth keeping is written to today's file, without any model.",
        ),
        ("reindex", "Memories and conversation go into the same index, while it is talked."),
        (
            "compaction",
            "Old messages give way to a checkpoint. The log keeps all of them, and every compaction can be undone.",
        ),
        ("context", "A later question about something said early. The window has forgotten it; memory has not."),
        (
            "pins, and another language",
            "What was pinned when it was said stays in every prompt, word for word. Chinese needs no setting.",
        ),
    ),
    kept=(("rule      ", "Rules"), ("decision  ", "Decisions"), ("goal      ", "Goal")),
    files="{first}  …  {last}   ({count} files)",
    reindex="reindex: {passages} passages, words and vectors, in {seconds:.1f} s on this machine",
    again="reindex again: nothing changed, no file is read, {ms} ms",
    message="message {at:>3}  {bar}  {tokens:>5,} tokens",
    flush_event="flush: {count} memories",
    compaction_event="compaction: {before:,} -> {after:,}",
    told="{messages} messages, {tokens:,} tokens, said from {first} to {last}; largest prompt {peak:,} of {window:,}",
    flushed="{written} memories in {count} flushes. Of the first, as they stand in the file:",
    found="found by the very next search at {place}",
    before_after="{before} passages before the conversation, {after} now",
    caught_up="reindex: {count} {files} to catch up with, passages to embed: {embedded}; {ms} ms",
    file="file",
    files_word="files",
    compacted="{id:<5} {before:>5,} -> {after:>5,} tokens, {covered}, {ms} ms; undo gave the view before, "
    "{bytes:,} bytes, {equal}",
    covered="{count} messages",
    cleared="old results alone",
    equal="all equal",
    not_equal="NOT EQUAL",
    keeps="the checkpoint keeps, among others:",
    log="the log has {logged} of {messages} messages, {equal}",
    byte_for_byte="byte for byte",
    in_view="in view: {pin}",
    not_in_view="NOT in view: {pin}",
    block="{tokens} of {budget} tokens, wrapper included; receipt {receipt}:",
    source="in   {path} lines {first}-{last}, {tokens} tokens",
    sources="…    {included} in, {omitted} out",
    answer_in_view="the answer was in view already",
    answer_in_block="the answer stands nowhere else in the prompt",
    whole="; the whole prompt: {tokens:,} of {window:,} tokens",
    own="Your own:",
    serve="# HTTP API, documentation at http://127.0.0.1:8765/docs",
    python="In Python, beside it:",
    imported="# from memory_service",
    sent="# what to send to your model",
)

CHINESE_STORY = Story(
    language="zh",
    window_tokens=3_072,
    prompt="你是一家网上花店的助手，帮店里安排采购和仓库。先说结论，五行以内。",
    pin="目的地夜里低于 5 ℃ 时，绝不发活的植物。",
    said_pin="目的地夜里低于 5 ℃ 时，绝不发活的植物",
    questions=(
        ("打包台的秤差多少，现在用哪一台？", "打包台的秤少称 40 克"),
        ("岳母生日的那张卡片上写什么？", "祝妈妈身体健康，天天开心"),
    ),
    steps=(
        ("文件和索引", "智能体的记忆是人可以读、可以改的 Markdown。这是一家花店的记忆。"),
        (
            "对话",
            "花店的助手和林娜的一段工作对话，是录下来的。每条消息都写进会话的日志，\n"
            "每次回答之前向服务要一份提示词，它不能超过 {window:,} 个 token。",
        ),
        ("记下", "窗口快满之前，值得记住的内容写进当天的文件，不需要任何模型。"),
        ("更新索引", "对话的同时，记忆和对话进入同一个索引。"),
        ("压缩", "旧消息由一份检查点代替。日志里都有，每次压缩都可以撤销。"),
        ("提示词", "后来问起很早说过的事：窗口里已经没有，记忆里还有。"),
        ("置顶", "说的时候置顶的话，在每份提示词里一字不变。"),
    ),
    kept=(("规则  ", "规则"), ("决定  ", "决定"), ("目标  ", "目标")),
    files="{first}  …  {last}   （{count} 个文件）",
    reindex="建索引：{passages} 段，词和语义，这台机器用了 {seconds:.1f} 秒",
    again="再建一次：没有变化，不读任何文件，{ms} 毫秒",
    message="第 {at:>3} 条  {bar}  {tokens:>5,} 个 token",
    flush_event="记下 {count} 条",
    compaction_event="压缩：{before:,} -> {after:,}",
    told="{messages} 条消息，{tokens:,} 个 token，从 {first} 说到 {last}；最大的提示词 {peak:,}，窗口 {window:,}",
    flushed="分 {count} 次记下 {written} 条。第一次的几条，文件里是这样：",
    found="紧接着的一次检索在 {place} 找到",
    before_after="对话之前 {before} 段，现在 {after} 段",
    caught_up="更新索引：要补 {count} {files}，要算向量的段：{embedded}；{ms} 毫秒",
    file="个文件",
    files_word="个文件",
    compacted="{id:<5} {before:>5,} -> {after:>5,} 个 token，{covered}，{ms} 毫秒；撤销后和之前的一样，"
    "{bytes:,} 字节，{equal}",
    covered="{count} 条消息",
    cleared="只是旧的工具结果",
    equal="全部相同",
    not_equal="有不同",
    keeps="检查点保留的内容里有：",
    log="日志里有 {messages} 条消息中的 {logged} 条，{equal}",
    byte_for_byte="逐字节相同",
    in_view="还在：{pin}",
    not_in_view="不在：{pin}",
    block="{tokens} 个 token，预算 {budget}，连外框在内；清单 {receipt}：",
    source="放进  {path} 第 {first}-{last} 行，{tokens} 个 token",
    sources="…     放进 {included} 处，没放 {omitted} 处",
    answer_in_view="窗口里本来就有答案",
    answer_in_block="提示词的别处没有这个答案",
    whole="；整份提示词 {tokens:,}，窗口 {window:,}",
    own="换成你自己的：",
    serve="# HTTP 接口，文档在 http://127.0.0.1:8765/docs",
    python="同时在 Python 里：",
    imported="# 来自 memory_service",
    sent="# 发给模型的消息",
)

# By the code that the option of the command takes.
STORIES: Mapping[str, Story] = MappingProxyType({story.language: story for story in (ENGLISH_STORY, CHINESE_STORY)})

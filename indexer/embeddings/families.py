"""Owns what is known of embedding models by their names: what they want before a text, and which scripts they read.

Invariants: pure; data and look-ups only. What a model's own files say goes first, so this is for models that
carry no such files, or say nothing in them. The first row that fits counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A name tells at its ends and between - _ . / and :, never within a word.
_START, _END = r"(?:^|[-_./:])", r"(?=$|[-_./:])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What is put before a text.

    Attributes:
        query: Before a question.
        document: Before what is stored.
    """

    query: str = ""
    document: str = ""


NO_PROMPTS = Prompts()
_SEARCH = "Represent this sentence for searching relevant passages: "
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# Source: the model card of each family on huggingface.co, section "Usage".
_PROMPTS: tuple[tuple[str, Prompts], ...] = (
    # intfloat/multilingual-e5-large-instruct: documents get none.
    (r"e5-[\w.-]*instruct", Prompts(query=_INSTRUCT)),
    # intfloat/e5-base-v2, intfloat/multilingual-e5-small.
    (r"e5", Prompts(query="query: ", document="passage: ")),
    # BAAI/bge-base-zh-v1.5.
    (r"bge-(?:small|base|large)-zh", Prompts(query="为这个句子生成表示以用于检索相关文章：")),
    # BAAI/bge-base-en-v1.5; BAAI/bge-m3 wants none.
    (r"bge-(?:small|base|large)(?:-en)?", Prompts(query=_SEARCH)),
    # mixedbread-ai/mxbai-embed-large-v1.
    (r"mxbai-embed", Prompts(query=_SEARCH)),
    # Snowflake/snowflake-arctic-embed-l-v2.0, ollama's snowflake-arctic-embed2; then the first version.
    (r"arctic-embed(?:2|-[ml]-v2(?:\.0)?)", Prompts(query="query: ")),
    (r"arctic-embed", Prompts(query=_SEARCH)),
    # nomic-ai/nomic-embed-text-v1.5.
    (r"nomic-embed-text", Prompts(query="search_query: ", document="search_document: ")),
    # google/embeddinggemma-300m.
    (r"embeddinggemma", Prompts(query="task: search result | query: ", document="title: none | text: ")),
    # Qwen/Qwen3-Embedding-0.6B: documents get none.
    (r"qwen3-embedding", Prompts(query=_INSTRUCT.removesuffix(" "))),
)

# Source: the model cards and the providers' lists of languages.
_SCRIPTS: tuple[tuple[str, bool], ...] = (
    (r"multilingual|m3|m3e|zh|chinese|cn|labse|qwen\d*|bce|conan|acge|piccolo|xiaobu|text2vec", True),
    (r"arctic-embed2|arctic-embed-[ml]-v2|embeddinggemma|embedding-gemma|nomic-embed-text-v2", True),
    (r"text-embedding-(?:3|v\d)|embed-v4|gemini-embedding|mistral-embed|titan-embed-text-v2|doubao", True),
    (r"jina-embeddings-v[3-9]|voyage-(?:[3-9]|multilingual)|gte-qwen\w*|stella-[\w-]*zh|embedding-[23]", True),
    (r"en|english|minilm|mpnet|distilroberta|gtr|sentence-t5|instructor|e5|bge|gte|mxbai-embed", False),
    (r"arctic-embed|nomic-embed-text|jina-embeddings-v[12]|embed-english|granite-embedding", False),
)


def prompts_of(*names: str) -> Prompts:
    """What a model wants before its texts, by the first of its names that is known; nothing if none is."""
    for name in names:
        for pattern, prompts in _PROMPTS:
            if _fits(pattern, name):
                return prompts
    return NO_PROMPTS


def reads_more_than_latin(*names: str) -> bool | None:
    """Whether a model was trained on more scripts than Latin, by its names; None if they do not tell."""
    for name in names:
        for pattern, answer in _SCRIPTS:
            if _fits(pattern, name):
                return answer
    return None


def _fits(pattern: str, name: str) -> bool:
    return bool(re.search(f"{_START}(?:{pattern}){_END}", name[-200:].lower()))

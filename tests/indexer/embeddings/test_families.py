from __future__ import annotations

import pytest

from indexer.embeddings.model_folder import NO_PROMPTS, prompts_of, reads_more_than_latin


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("BAAI/bge-base-en-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-small-zh-v1.5", "为这个句子", ""),
        ("ollama/nomic-embed-text", "search_query: ", "search_document: "),
        ("mxbai-embed-large:latest", "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m", "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("ollama/snowflake-arctic-embed2", "query: ", ""),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("google/embeddinggemma-300m", "task: search result", "title: none"),
        ("/models/e5-base-v2", "query: ", "passage: "),
    ],
)
def test_families_that_want_something_before_a_text(name: str, query: str, document: str) -> None:
    found = prompts_of(name)
    assert found.query.startswith(query) and found.document.startswith(document)
    assert bool(document) == bool(found.document)


@pytest.mark.parametrize(
    "name",
    ["BAAI/bge-m3", "gte-base", "all-MiniLM-L6-v2", "openai/text-embedding-3-small", "", "me5/x", "bge-reranker-base"],
)
def test_families_that_want_nothing(name: str) -> None:
    assert prompts_of(name) == NO_PROMPTS


MANY = """
    intfloat/multilingual-e5-small paraphrase-multilingual-MiniLM-L12-v2 BAAI/bge-m3 BAAI/bge-base-zh-v1.5 ollama/bge-m3
    Qwen/Qwen3-Embedding-0.6B openai/text-embedding-3-small voyage/voyage-3.5 cohere/embed-multilingual-v3.0
    jinaai/jina-embeddings-v2-base-zh sentence-transformers/LaBSE cohere/embed-v4.0
"""
LATIN = """
    all-MiniLM-L6-v2 multi-qa-mpnet-base-dot-v1 BAAI/bge-small-en-v1.5 intfloat/e5-base-v2 thenlper/gte-base
    cohere/embed-english-v3.0 mxbai-embed-large nomic-embed-text
"""


@pytest.mark.parametrize(
    ("answer", "names"), [(True, MANY), (False, LATIN), (None, "openai/any text-embedding-ada-002 my-model center")]
)
def test_scripts_by_name(answer: bool | None, names: str) -> None:
    assert {name: reads_more_than_latin(name) for name in names.split()} == dict.fromkeys(names.split(), answer)


def test_the_first_name_that_tells_counts() -> None:
    assert reads_more_than_latin("model", "BAAI/bge-m3") is True
    assert prompts_of("model", "intfloat/e5-base").query == "query: "

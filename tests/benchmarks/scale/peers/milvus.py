"""How milvus-lite stands in the table: with the collection and the query of memsearch.

Source: memsearch 0.4.23, `memsearch/store.py`: an exact index over the vectors, a sparse inverted one that a BM25
function fills, both asked for the wanted number and joined by reciprocal ranks, k = 60.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question
from tests.benchmarks.scale.vectors import DIMENSIONS

_NAME = "memsearch_chunks"
_FIELDS = ["content", "source", "heading", "chunk_hash", "heading_level", "start_line", "end_line"]


class Milvus(System):
    """A database in the process, or beside it in older versions."""

    title = "milvus-lite (memsearch)"
    does = "hybrid"
    modules = ("pymilvus", "milvus_lite")
    packages = ("milvus-lite", "pymilvus")

    def build(self, material: Material, folder: Path) -> None:
        """Upsert everything in batches."""
        client = _client(folder)
        client.create_collection(collection_name=_NAME, schema=_schema(client), index_params=_indexes(client))
        client.load_collection(_NAME)
        for start, texts, vectors in material.batches():
            rows = [_row(start + i, text, vectors[i].tolist()) for i, text in enumerate(texts)]
            client.upsert(collection_name=_NAME, data=rows)
        client.close()

    def open(self, material: Material, folder: Path) -> None:
        """Open the collection."""
        self._client = _client(folder)
        self._client.load_collection(_NAME)

    def search(self, question: Question) -> Sequence[Answer]:
        """Both indexes at once."""
        pymilvus = vendor("pymilvus")
        dense = pymilvus.AnnSearchRequest(
            data=[question.vector.tolist()],
            anns_field="embedding",
            param={"metric_type": "COSINE", "params": {}},
            limit=FIRST,
        )
        words = pymilvus.AnnSearchRequest(
            data=[question.text], anns_field="sparse_vector", param={"metric_type": "BM25"}, limit=FIRST
        )
        found = self._client.hybrid_search(
            collection_name=_NAME,
            reqs=[dense, words],
            ranker=pymilvus.RRFRanker(k=60),
            limit=FIRST,
            output_fields=_FIELDS,
        )
        return [_answer(hit["entity"]) for hit in found[0]]

    def nearest(self, question: Question) -> Sequence[int]:
        """The exact index alone."""
        found = self._client.search(
            collection_name=_NAME,
            data=[question.vector.tolist()],
            anns_field="embedding",
            search_params={"metric_type": "COSINE"},
            limit=FIRST,
            output_fields=_FIELDS,
        )
        return [_answer(hit["entity"]).row for hit in found[0]]


def _client(folder: Path) -> Any:
    return vendor("pymilvus").MilvusClient(uri=str(folder / "milvus.db"))


def _schema(client: Any) -> Any:
    pymilvus = vendor("pymilvus")
    kinds = pymilvus.DataType
    schema = client.create_schema(enable_dynamic_field=True)
    schema.add_field(field_name="chunk_hash", datatype=kinds.VARCHAR, max_length=64, is_primary=True)
    schema.add_field(field_name="embedding", datatype=kinds.FLOAT_VECTOR, dim=DIMENSIONS)
    schema.add_field(field_name="content", datatype=kinds.VARCHAR, max_length=65535, enable_analyzer=True)
    schema.add_field(field_name="sparse_vector", datatype=kinds.SPARSE_FLOAT_VECTOR)
    schema.add_field(field_name="source", datatype=kinds.VARCHAR, max_length=1024)
    schema.add_field(field_name="heading", datatype=kinds.VARCHAR, max_length=1024)
    for name in ("heading_level", "start_line", "end_line"):
        schema.add_field(field_name=name, datatype=kinds.INT64)
    schema.add_function(
        pymilvus.Function(
            name="bm25_fn",
            function_type=pymilvus.FunctionType.BM25,
            input_field_names=["content"],
            output_field_names=["sparse_vector"],
        )
    )
    return schema


def _indexes(client: Any) -> Any:
    indexes = client.prepare_index_params()
    indexes.add_index(field_name="embedding", index_type="FLAT", metric_type="COSINE")
    indexes.add_index(field_name="sparse_vector", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    return indexes


def _row(number: int, text: str, vector: list[float]) -> dict[str, object]:
    return {
        "chunk_hash": f"{number:064x}",
        "embedding": vector,
        "content": text,
        "source": f"memory/{number // 100}.md",
        "heading": "Notes",
        "heading_level": 1,
        "start_line": number,
        "end_line": number,
    }


def _answer(entity: Any) -> Answer:
    return Answer(row=int(entity["start_line"]), text=entity["content"])

"""LangGraph's store on memory files: the answers of LangGraph's own store, and files that people can edit."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest

from tests.integrations.places import Place, needs, run_recipe

needs("langgraph", "langchain", "langchain_openai")

from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_openai import ChatOpenAI
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memory_service import InvalidRequest
from memory_service.integrations.items import item_folder, item_path, namespace_part, parsed_item, rendered_item
from memory_service.integrations.langgraph import MemoryServiceStore
from memory_service.memories.workspaces import memory_path
from memory_service.testing import Reply, ScriptedServer

NEIGHBOUR = "Lena wants parcels left with the neighbour."
VALUES: dict[str, Any] = {
    "text": NEIGHBOUR,
    "number": 3,
    "numeral": "3",
    "lines": "one\n- two: <!-- three -->",
    "nested": {"a": [1, None, True, 2.5]},
    "a: b": "x",
    '"quoted"': '"quoted"',
    "": "",
    "中文": "快递放邻居家。",
    "ends:": " blank ",
    "half": "\ud800",
    "break": "a\u2028b\x85c",
}
_TEXTS = st.text(st.characters(codec=None), max_size=40)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_LABELS = st.text(min_size=1, max_size=20).filter(lambda text: "." not in text)


@pytest.fixture
def store(place: Place) -> MemoryServiceStore:
    return MemoryServiceStore(place.source, place.workspace)


def test_a_value_comes_back_as_it_was_put(store: MemoryServiceStore) -> None:
    assert store.get(("users", "lena"), "all") is None
    store.put(("users", "lena"), "all", VALUES)
    first = store.get(("users", "lena"), "all")
    assert first is not None
    assert (first.namespace, first.key, first.value) == (("users", "lena"), "all", VALUES)
    store.put(("users", "lena"), "all", {"text": "gone"})
    second = store.get(("users", "lena"), "all")
    assert second is not None and second.value == {"text": "gone"}
    assert second.created_at == first.created_at <= first.updated_at < second.updated_at
    store.delete(("users", "lena"), "all")
    store.delete(("users", "lena"), "all")
    assert store.get(("users", "lena"), "all") is None


@given(st.dictionaries(_TEXTS, _JSON, max_size=5), st.lists(_LABELS, min_size=1, max_size=3), _TEXTS)
def test_what_is_rendered_is_parsed_to_the_same(value: dict[str, Any], namespace: list[str], key: str) -> None:
    text = rendered_item(namespace, key, value, created_at="2026-11-20T10:00:00+00:00", updated_at="2026-11-21")
    text.encode("utf-8")
    item = parsed_item(text)
    assert item is not None
    assert (list(item.namespace), item.key, item.value) == (namespace, key, value)
    assert list(item.value) == list(value)


@given(st.lists(_LABELS, min_size=1, max_size=3), st.text(max_size=300))
def test_every_key_has_a_path_of_its_own(namespace: list[str], key: str) -> None:
    path = item_path(namespace, key)
    if len(path) <= 512 and all(len(part.encode()) <= 255 for part in path.split("/")):
        assert memory_path(path) == path
    assert path.startswith(item_folder(namespace))
    assert [namespace_part(part) for part in path.split("/")[2:-1]] == namespace
    for other in (key.swapcase(), f"{key}/", f"../{key}"):
        assert other == key or item_path(namespace, other).lower() != path.lower()


def test_a_person_may_edit_an_item(store: MemoryServiceStore, place: Place) -> None:
    store.put(("users", "lena"), "shipping", {"text": NEIGHBOUR, "since": 2024})
    file = place.folder / "memory/store/users/lena/shipping.md"
    assert file.read_text("utf-8").splitlines()[1:] == [f"- text: {NEIGHBOUR}", "- since: 2024"]
    file.write_text(file.read_text("utf-8").replace("the neighbour", "Mr Ohm").replace("2024", "2025"), "utf-8")
    edited = store.get(("users", "lena"), "shipping")
    assert edited is not None and edited.value == {"text": "Lena wants parcels left with Mr Ohm.", "since": 2025}
    assert [each.key for each in store.search(("users",), query="Mr Ohm", limit=1)] == ["shipping"]


def test_search_finds_by_meaning_below_the_namespace_only(store: MemoryServiceStore, place: Place) -> None:
    place.remember("Parcels for the shop go to the back door.")
    store.put(("users", "lena"), "shipping", {"text": NEIGHBOUR})
    store.put(("users", "lena"), "tea", {"text": "Lena drinks green tea."})
    store.put(("users", "lena2"), "shipping", {"text": "Parcels for the other Lena."})
    store.put(("users", "王芳"), "快递", {"text": "王芳的快递请放在门卫室。"})
    found = store.search(("users", "lena"), query="Where should her deliveries be put?")
    assert [each.key for each in found] == ["shipping", "tea"]
    assert found[0].score is not None and found[0].score > (found[1].score or 0)
    assert store.search(("users",), query="快递放在哪里？", limit=1)[0].namespace == ("users", "王芳")
    assert {each.key for each in store.search(("users", "lena"))} == {"shipping", "tea"}
    assert store.search(("nobody",), query="parcels") == []


def test_fields_that_are_not_indexed_are_not_found_by(store: MemoryServiceStore) -> None:
    store.put(("docs",), "all", {"title": "Tea", "body": "bananas"})
    store.put(("docs",), "title", {"title": "Coffee", "body": "bananas"}, index=["title"])
    store.put(("docs",), "none", {"title": "Milk", "body": "bananas"}, index=False)
    scores = {each.key: each.score for each in store.search(("docs",), query="bananas")}
    assert scores["all"] is not None and scores["none"] is None
    assert set(scores) == {"all", "title", "none"}, "what has no score fills the rest, as in LangGraph's own store"
    known = store.get(("docs",), "none")
    assert known is not None and known.value == {"title": "Milk", "body": "bananas"}


FILTERS: list[dict[str, Any]] = [
    {"colour": "red"},
    {"n": {"$gt": 1}},
    {"n": {"$gte": 1, "$lt": 3}},
    {"n": {"$ne": 1}},
    {"nested": {"a": [1]}},
    {"missing": None},
    {"missing": {"$lte": 1}},
]
OPERATIONS = [
    *(PutOp(("users", f"u{at % 3}"), f"k{at}", {"n": at, "colour": ("red", "blue")[at % 2]}) for at in range(7)),
    PutOp(("users",), "top", {"nested": {"a": [1]}}),
    PutOp(("docs", "Ä b", "v1"), "K/1", {"n": 2}),
    PutOp(("users", "u1"), "k4", None),
    PutOp(("users", "u1"), "nobody", None),
]


@pytest.fixture
def both(store: MemoryServiceStore) -> tuple[MemoryServiceStore, InMemoryStore]:
    own = InMemoryStore()
    for operation in OPERATIONS:
        store.batch([operation])
        own.batch([operation])
    return store, own


def _shown(item: Item) -> tuple[Any, ...]:
    return item.namespace, item.key, item.value


def test_answers_are_those_of_langgraph_s_own_store(both: tuple[MemoryServiceStore, InMemoryStore]) -> None:
    for condition in [
        {}, {"prefix": ("users",)}, {"suffix": ("v1",)}, {"prefix": ("*", "u1")}, {"max_depth": 1},
        {"limit": 2, "offset": 1}, {"prefix": ("docs",), "max_depth": 2},
    ]:  # fmt: skip
        ours, theirs = (each.list_namespaces(**condition) for each in both)  # type: ignore[arg-type]
        assert ours == theirs, condition
    for wanted, prefix in product([None, *FILTERS], [("users",), ("users", "u1"), ("docs",), ("none",)]):
        try:
            theirs = both[1].search(prefix, filter=wanted)
        except TypeError:
            continue  # It compares what is not there.
        ours = both[0].search(prefix, filter=wanted)
        assert sorted(map(_shown, ours), key=str) == sorted(map(_shown, theirs), key=str), (wanted, prefix)
    assert both[0].search(("users",), filter=FILTERS[-1]) == [], "what is not there is not less than something"
    pages = [each.key for at in range(0, 8, 3) for each in both[0].search(("users",), limit=3, offset=at)]
    assert sorted(pages) == sorted(each.key for each in both[1].search(("users",)))


def test_no_query_is_refused_and_what_is_found_is_the_caller_s(store: MemoryServiceStore) -> None:
    store.put(("users", "lena"), "parcels", {"text": NEIGHBOUR, "at": {"door": ["left"]}})
    for query in (None, "", "  ", "parcels " * 2_000, "快递" * 6_000):
        (found,) = store.search(("users",), query=query)
        found.value["at"]["door"].append("right")
        assert store.search(("users",), query=query, limit=0) == []
    again = store.get(("users", "lena"), "parcels")
    assert again is not None and again.value["at"] == {"door": ["left"]}


def test_a_batch_answers_as_things_stood_before_it(store: MemoryServiceStore) -> None:
    results = store.batch(
        [
            PutOp(("a",), "k", {"n": 1}),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"n": 2}),
            SearchOp(("a",)),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
        ]
    )
    assert results == [None, None, None, [], []]
    known = store.get(("a",), "k")
    assert known is not None and known.value == {"n": 2}


def test_what_cannot_be_kept_is_refused(store: MemoryServiceStore) -> None:
    for value in ({"when": object()}, {"n": float("nan")}):
        with pytest.raises(InvalidRequest, match="cannot be written as JSON"):
            store.put(("a",), "k", value)
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {})])
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"n": 1}, ttl=5)
    assert store.search(("a",)) == []


def test_two_writers_never_mix(store: MemoryServiceStore) -> None:
    def write(at: int) -> None:
        store.put(("a",), "k", {"first": at, "second": at})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    known = store.get(("a",), "k")
    assert known is not None and known.value["first"] == known.value["second"]


async def _asynchronously(store: MemoryServiceStore) -> list[Any]:
    await asyncio.gather(*(store.aput(("a", str(at)), "k", {"n": at}) for at in range(5)))
    await store.adelete(("a", "1"), "k")
    found = await store.asearch(("a",), filter={"n": {"$lt": 3}})
    return sorted(each.value["n"] for each in found)


def test_it_is_used_asynchronously(store: MemoryServiceStore) -> None:
    assert asyncio.run(_asynchronously(store)) == [0, 2]


@tool
def save(text: str, runtime: ToolRuntime) -> str:
    """Keep something about the user."""
    assert runtime.store is not None
    runtime.store.put(("users", "lena"), "shipping", {"text": text})
    return "Saved."


@tool
def look_up(question: str, runtime: ToolRuntime) -> str:
    """Find something about the user."""
    assert runtime.store is not None
    return str(runtime.store.search(("users", "lena"), query=question)[0].value["text"])


def test_tools_of_an_agent_save_and_find(store: MemoryServiceStore) -> None:
    with ScriptedServer(
        Reply(tool_call="save", arguments=f'{{"text": "{NEIGHBOUR}"}}'),
        Reply(tool_call="look_up", arguments='{"question": "where do deliveries go"}'),
        "With the neighbour.",
    ) as server:
        model = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key="any")
        agent = create_agent(model, [save, look_up], store=store)
        said = agent.invoke({"messages": [{"role": "user", "content": "Leave it with my neighbour, as always."}]})
    assert [each.content for each in said["messages"] if each.type == "tool"] == ["Saved.", NEIGHBOUR]


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    assert NEIGHBOUR in run_recipe("LangGraph", place)

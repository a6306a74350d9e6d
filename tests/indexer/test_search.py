from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexer import (
    EmbedderUnavailable,
    EmbeddingError,
    Hit,
    Index,
    LineRange,
    Mode,
    QueryInvalid,
    RankingSettings,
    SearchFilter,
    SourceKind,
)
from indexer.engine.candidates import Ranked
from indexer.engine.hits import to_hits
from indexer.engine.matrix import load_matrix
from indexer.engine.reader import NO_TERMS, IndexReader, QueryTerms, find_named, find_terms, vector_text
from indexer.engine.search import MAX_QUERY_CHARS, Query, rank, relevance_of
from indexer.language.names import NOBODY
from indexer.stores.base import IndexStore, StoredPassage
from indexer.testing import HashEmbedder
from tests.indexer.talks import write_log
from tests.indexer.workspace import TODAY, CountingEmbedder, FailingEmbedder, Workspace, every_store, texts

pytestmark = every_store

PLAIN = RankingSettings(recency_weight=0)
_TWO = (("Emi", "Hey Summer!"), ("Elise", "嗨，小雨！"))
FACTS = [
    "The staging database moved to Frankfurt.",
    "Anna drinks tea in the morning.",
    "Deploys go out on Tuesdays after the stand-up.",
    "The printer on the second floor jams.",
    "Invoices are due within thirty days.",
    "The cat of the office is called Miez.",
]


def hits_of(
    view: IndexReader, query: Query, words: QueryTerms, ranked: Ranked, settings: RankingSettings = PLAIN
) -> tuple[Hit, ...]:
    """Hits without a relevance."""
    return to_hits(view, query, ranked, settings, relevance_of(view, query, words, "hybrid", None, ""))


def write_sections(workspace: Workspace, passages: list[str]) -> None:
    """Each below a heading of its own, so that none is evidence for another."""
    sections = "".join(f"# T{number}\n\n{text}\n\n" for number, text in enumerate(passages))
    workspace.write("memory/sections.md", sections)


@pytest.fixture
def facts(workspace: Workspace) -> Index:
    write_sections(workspace, FACTS)
    return workspace.synced(HashEmbedder())


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_every_mode_finds_the_fact(facts: Index, mode: Mode) -> None:
    for fact in FACTS:
        results = facts.search(fact, mode=mode, limit=3)
        assert (results.mode, results.degraded) == (mode, ())
        assert len(results.hits) == 3 or mode == "text"
        assert results.hits[0].passage.text == fact
        assert results.hits[0].snippet == fact


def test_scores_say_where_they_come_from(facts: Index) -> None:
    hybrid, text, vector = (facts.search("Deploys", mode=mode).hits[0] for mode in ("hybrid", "text", "vector"))
    assert text.vector_score is None and vector.text_score == 0
    assert hybrid.text_score == text.text_score > 0
    assert hybrid.vector_score == vector.vector_score
    assert hybrid.vector_score is not None and 0 < hybrid.vector_score <= 1.0001
    for mode in ("hybrid", "text", "vector"):
        scores = [hit.score for hit in facts.search("Deploys", mode=mode).hits]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("fusion", ["evidence", "blend", "rrf"])
@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_signals_add_up_to_the_score(workspace: Workspace, fusion: str, mode: Mode) -> None:
    for day in ("2026-11-19", "2026-10-01", "2025-05-05"):
        workspace.write_items(f"memory/{day}.md", [f"Anna: tea on {day}?", "Bob: yes, yesterday", "tea and coffee"])
    index = workspace.synced(HashEmbedder(), ranking=RankingSettings(fusion=fusion))  # type: ignore[arg-type]
    for question in ("when did Anna drink tea in May 2025?", "coffee yesterday", "的"):
        hits = index.search(question, mode=mode, explain=True).hits
        for hit in hits:
            assert sum(hit.signals.values()) == pytest.approx(hit.score)
        assert all(hit.signals == {} for hit in index.search(question, mode=mode).hits)


def test_without_a_model_words_are_searched(workspace: Workspace) -> None:
    write_sections(workspace, FACTS)
    index = workspace.synced(None)
    assert index.search("deploys").degraded == ()
    assert index.search("deploys").mode == "text"
    asked = index.search("deploys", mode="vector")
    assert asked.mode == "text"
    assert len(asked.degraded) == 1 and asked.degraded[0].startswith("vector: no embedding model is configured. ")
    assert asked.hits[0].passage.text == FACTS[2]


def test_a_text_search_puts_first_what_has_the_word(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", FACTS)
    assert texts(workspace.synced(None), "deploys")[0] == FACTS[2]


def test_a_text_search_finds_nothing_where_no_word_occurs(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", FACTS)
    assert texts(workspace.synced(None), "xylophone") == []


@pytest.mark.parametrize("error", [EmbedderUnavailable("It is gone. Get it."), EmbeddingError("It failed. Try again.")])
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_failing_model_leaves_the_words(
    facts: Index, workspace: Workspace, mode: Mode, error: EmbeddingError
) -> None:
    failing = workspace.index(FailingEmbedder(error))
    results = failing.search("deploys", mode=mode)
    assert (results.mode, results.degraded) == ("text", (f"vector: {error}",))
    assert results.hits == facts.search("deploys", mode="text").hits


@pytest.mark.parametrize(
    ("query", "limit", "said"),
    [
        ("", 1, "empty"),
        (" \n\t", 1, "empty"),
        ("x" * (MAX_QUERY_CHARS + 1), 1, "10,001"),
        ("x", 0, "is 0"),
        ("x", -3, "-3"),
    ],
)
def test_what_cannot_be_asked(facts: Index, query: str, limit: int, said: str) -> None:
    with pytest.raises(QueryInvalid, match=said) as raised:
        facts.search(query, limit=limit)
    assert str(raised.value).count(". ") == 1


def test_equal_texts_are_one_hit_and_leave_room_for_others(workspace: Workspace) -> None:
    for number in range(120):
        workspace.write_items(f"memory/{number}.md", ["Weekly deploy done.", "weekly   DEPLOY done."][number % 2 :])
    workspace.write_items("memory/z.md", ["The deploy of the shop", "A deploy on Friday", "No deploys in December"])
    for mmr in (1.0, 0.7):
        index = workspace.synced(HashEmbedder(), ranking=replace(PLAIN, mmr_lambda=mmr))
        found = [hit.passage.text for hit in index.search("weekly deploy done", limit=4).hits]
        assert len(found) == 4
        assert len({" ".join(text.casefold().split()) for text in found}) == 4


@pytest.mark.parametrize(
    "query",
    [
        'deploys AND NOT "',
        "deploys*",
        "body:deploys",
        "NEAR(deploys, 3)",
        "^deploys OR (",
        "'; DROP TABLE passages; --deploys",
        "deploys \x00 \ud7ff",
        "deploys 🎉👩‍👩‍👧",
        "\u202edeploys\u202c שלום",
        "DEPLOYS???",
        "deploys " * 1200,
        "%deploys_",
    ],
)
def test_what_looks_like_an_operator_is_plain_text(facts: Index, query: str) -> None:
    for mode in ("hybrid", "text"):
        assert facts.search(query, mode=mode).hits[0].passage.text == FACTS[2]


@pytest.mark.parametrize("query", ["🎉", "\x00", "...", "שלום", "\u202e", "qqqq zzzz", "the", "what is it", "?" * 5000])
def test_what_no_passage_says_has_an_answer(facts: Index, query: str) -> None:
    for mode in ("hybrid", "text", "vector"):
        results = facts.search(query, mode=mode, limit=3)
        assert len(results.hits) <= 3
        assert all(np.isfinite(hit.score) for hit in results.hits)


def test_a_question_of_stop_words_alone_finds_them(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["green tea " * 20, "To be or not to be", "red wine " * 20])
    assert texts(workspace.synced(None), "to be or not to be")[0] == "To be or not to be"


CHINESE = [
    "部署安排在每周二上午",
    "我家的猫叫咪咪",
    "数据库迁移到法兰克福",
    "小明喜欢喝绿茶",
    "Anna 用 Python 写部署脚本",
]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("什么时候部署?", 0),
        ("猫", 1),
        ("我的猫叫什么名字?", 1),
        ("数据库在哪里?", 2),
        ("茶", 3),
        ("谁喜欢绿茶", 3),
        ("Python脚本", 4),
        ("谁用 python?", 4),
        ("ＰＹＴＨＯＮ", 4),
    ],
)
def test_chinese_questions(workspace: Workspace, question: str, answer: int) -> None:
    write_sections(workspace, CHINESE)
    for embedder in (None, HashEmbedder()):
        index = workspace.index(embedder)
        index.sync(full=True)
        assert texts(index, question)[0] == CHINESE[answer]


def crowded(workspace: Workspace) -> Index:
    """300 passages that answer better than the one in another file, of another day, of which a filter is asked."""
    for number in range(3):
        workspace.write_items(
            f"memory/2026-01-0{number + 1}.md", [f"quokka quokka quokka {number} {n}" for n in range(100)]
        )
    workspace.write_items("memory/other/2026-03-01.md", ["a quokka among very many other words that say nothing of it"])
    workspace.write_items("memory/undated.md", ["quokka without a day"])
    return workspace.synced(HashEmbedder())


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize(
    "kept",
    [
        SearchFilter(path_prefix="memory/other/"),
        SearchFilter(since=dt.date(2026, 2, 1)),
        SearchFilter(since=dt.date(2026, 3, 1), until=dt.date(2026, 3, 1)),
        SearchFilter(sources=("memory",), path_prefix="memory/o"),
    ],
)
def test_filters_decide_before_anything_is_ranked(workspace: Workspace, mode: Mode, kept: SearchFilter) -> None:
    index = crowded(workspace)
    (hit,) = index.search("quokka", limit=1, mode=mode, filter=kept).hits
    assert hit.path == "memory/other/2026-03-01.md"
    assert index.search("quokka", limit=5, mode=mode, filter=kept).hits[1:] == ()


@pytest.mark.parametrize("mode", ["text", "vector"])
@pytest.mark.parametrize("folder", ["cafe\u0301", "café"])
@pytest.mark.parametrize(
    "prefix", ["memory/cafe\u0301", "memory/café", "memory/café/pa\u0302", "memory/cafe\u0301/pâté.md"]
)
def test_a_path_begins_so_in_either_unicode_form(workspace: Workspace, mode: Mode, folder: str, prefix: str) -> None:
    path = f"memory/{folder}/pâté.md"
    workspace.write_items(path, ["quokka"])
    workspace.write_items("memory/cafe.md", ["quokka"])
    index = workspace.synced(HashEmbedder())
    found = index.search("quokka", mode=mode, filter=SearchFilter(path_prefix=prefix))
    assert [hit.path for hit in found.hits] == [path]


def test_filters_leave_out_what_they_say(workspace: Workspace) -> None:
    index = crowded(workspace)
    dated = index.search("quokka", limit=400, filter=SearchFilter(until=dt.date(2026, 12, 31))).hits
    assert "memory/undated.md" not in {hit.path for hit in dated}
    assert len(dated) == 301
    assert index.search("quokka", filter=SearchFilter(sources=("sessions",))).hits == ()
    assert index.search("quokka", filter=SearchFilter(path_prefix="memory/none")).hits == ()
    assert index.search("quokka", filter=SearchFilter(since=dt.date(2027, 1, 1))).hits == ()
    assert index.search("quokka", filter=SearchFilter(since=dt.date(2026, 3, 1), until=dt.date(2026, 1, 1))).hits == ()


def talked(workspace: Workspace) -> None:
    """300 messages and 300 notes that answer alike; one of each says something else too."""
    write_log(workspace.root, *(f"quokka quokka {n} 袋鼠" for n in range(300)), "the quokka is called Miez 袋鼠")
    workspace.write_items(
        "memory/a.md", [*(f"quokka quokka note {n} 袋鼠" for n in range(300)), "a quokka 袋鼠 elsewhere"]
    )


@pytest.mark.parametrize("question", ["quokka", "袋鼠"])
@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize("source", ["sessions", "memory"])
def test_sources_are_kept_apart_before_ranking(
    workspace: Workspace, source: SourceKind, mode: Mode, question: str
) -> None:
    talked(workspace)
    index = workspace.synced(HashEmbedder())
    hits = index.search(question, limit=400, mode=mode, filter=SearchFilter(sources=(source,))).hits
    assert len(hits) == 301
    assert {hit.source for hit in hits} == {source}
    both = index.search(question, limit=700, mode=mode, filter=SearchFilter(sources=("sessions", "memory"))).hits
    assert {hit.source for hit in both} == {"sessions", "memory"}


@pytest.mark.parametrize("question", ["quokka", "袋鼠"])
@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_what_is_shown_already_is_left_out_before_ranking(workspace: Workspace, mode: Mode, question: str) -> None:
    talked(workspace)
    index = workspace.synced(HashEmbedder())
    shown = LineRange(path="sessions/talk.jsonl", start_line=2, end_line=301)
    kept = SearchFilter(sources=("sessions",), without=(shown,))
    (hit,) = index.search(question, limit=5, mode=mode, filter=kept).hits
    assert (hit.path, hit.passage.start_line) == ("sessions/talk.jsonl", 302)
    rest = index.search(question, limit=700, mode=mode, filter=SearchFilter(without=(shown,))).hits
    assert len(rest) == 302, "the limit is not eaten by what is left out"
    notes = LineRange(path="memory/a.md", start_line=1, end_line=300)
    last = index.search(question, limit=9, mode=mode, filter=SearchFilter(without=(shown, notes))).hits
    assert {hit.path for hit in last} == {"sessions/talk.jsonl", "memory/a.md"} and len(last) == 2


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize("pack_passages", [0, 10_000])
def test_numbers_of_messages_may_be_large(workspace: Workspace, mode: Mode, pack_passages: int) -> None:
    numbers = (1, 2**31 + 1, 2**32 + 1, 10**18 - 1)
    lines = [
        f'{{"seq":{seq},"ts":"2026-11-20T10:00:00Z","message":{{"role":"user","content":"quokka {seq}"}}}}\n'
        for seq in numbers
    ]
    workspace.write("sessions/talk.jsonl", "".join(lines))
    index = workspace.synced(HashEmbedder(), pack_passages=pack_passages)
    assert bool(index.status().packed) is (pack_passages == 0 and workspace.packs)
    for gone in numbers:
        kept = SearchFilter(without=(LineRange(path="sessions/talk.jsonl", start_line=gone, end_line=gone),))
        found = index.search("quokka", mode=mode, filter=kept, limit=10**20).hits
        assert {hit.passage.start_line for hit in found} == {*numbers} - {gone}
    index.close()


def test_a_range_leaves_out_what_lies_wholly_within_it(workspace: Workspace) -> None:
    workspace.write("memory/a.md", "one\nquokka\n\ntwo quokka\n\nthree\nquokka\n")

    def starts(first: int, last: int, path: str = "memory/a.md") -> list[int]:
        kept = SearchFilter(without=(LineRange(path=path, start_line=first, end_line=last),))
        return sorted(hit.passage.start_line for hit in index.search("quokka", filter=kept).hits)

    index = workspace.synced(HashEmbedder())
    assert starts(1, 1) == starts(2, 3) == starts(7, 7) == [1, 4, 6]
    assert starts(1, 2) == [4, 6]
    assert starts(2, 6) == [1, 6]
    assert starts(1, 7) == []
    assert starts(7, 1) == starts(1, 7, "memory/b.md") == [1, 4, 6]


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
@pytest.mark.parametrize("shown", [(2, 301), (2, 3), (250, 302)])
def test_ranges_are_left_out_of_vectors_in_memory_and_in_the_store(
    workspace: Workspace, mode: Mode, shown: tuple[int, int]
) -> None:
    talked(workspace)
    workspace.synced(HashEmbedder()).close()
    lines = LineRange(path="sessions/talk.jsonl", start_line=shown[0], end_line=shown[1])
    kept = SearchFilter(sources=("sessions",), without=(lines,))
    for in_memory in (True, False):
        view = view_of(workspace, in_memory=in_memory)
        for question in ("quokka called Miez", "袋鼠"):
            query = Query(text=question, limit=400, mode=mode, filter=kept, today=TODAY)
            words = find_terms(view, question) if mode == "hybrid" else NO_TERMS
            ranked = rank(view, query, words, HashEmbedder().embed_query(question), 1.0, PLAIN)
            found = {hit.passage.start_line for hit in hits_of(view, query, words, ranked)}
            assert found == set(range(2, 303)) - set(range(shown[0], shown[1] + 1))


def test_a_talk_is_searched_like_the_same_talk_in_dated_files(workspace: Workspace, tmp_path: Path) -> None:
    days = {
        "2026-05-08": [
            "Anna: where is the key?",
            "Ben: under the blue pot",
            "安娜：钥匙在哪里？",
            "小本：在蓝色花盆下面",
        ],
        "2026-06-01": ["Anna: the pot broke yesterday", "Ben: buy another one", "安娜：花盆昨天碎了", "小本：再买一个"],
    }
    for day, said in days.items():
        workspace.write(f"memory/{day}.md", f"# {day}\n\n" + "".join(f"- {words}\n" for words in said))
    talk = Workspace(tmp_path / "talk")
    write_log(
        talk.root, *(f"{f'[{day}] ' if not at else ''}{w}" for day, said in days.items() for at, w in enumerate(said))
    )
    listed, spoken = workspace.synced(None), talk.synced(None)
    for question in (
        "what did Ben say of the key?",
        "what broke in June 2026?",
        # A question that was asked before stands last in a talk alone.
        "花盆昨天怎么了",
        "小本6月1日说了什么",
        "blue pot",
    ):
        as_listed, as_spoken = (
            [hit.passage.text.removeprefix(f"[{hit.passage.date}] ") for hit in index.search(question, limit=1).hits]
            for index in (listed, spoken)
        )
        assert as_spoken == as_listed, question


def view_of(workspace: Workspace, *, in_memory: bool) -> IndexReader:
    store = workspace.store()
    corpus = store.corpus(None)
    return IndexReader(store=store, corpus=corpus, matrix=load_matrix(store, corpus, 64, None) if in_memory else None)


def many(workspace: Workspace) -> None:
    chance = np.random.default_rng(5)
    words = [f"word{number}" for number in range(300)]
    for file in range(12):
        items = [" ".join(chance.choice(words, 6)) for _ in range(60)]
        workspace.write_items(f"memory/2026-{file + 1:02}-01.md", items)
    workspace.synced(HashEmbedder()).close()


@pytest.mark.parametrize(
    "kept",
    [SearchFilter(), SearchFilter(since=dt.date(2026, 5, 1)), SearchFilter(path_prefix="memory/2026-1")],
)
def test_vectors_in_memory_and_in_the_store_agree(workspace: Workspace, kept: SearchFilter) -> None:
    many(workspace)
    view = view_of(workspace, in_memory=True)
    assert view.matrix is not None
    for question in ("word1 word2 word3", "word77", "word5 word250"):
        vector = HashEmbedder().embed_query(question)
        own, _ = view.matrix.cosines(vector)
        days = view.corpus.days
        paths = np.array([view.corpus.files[file].path for file in view.corpus.file])
        allowed = (days >= (kept.since.toordinal() if kept.since else 0)) & np.char.startswith(paths, kept.path_prefix)
        keys, cosines = view.store.nearest(vector, 50, kept)
        best = np.flatnonzero(allowed)[np.argsort(-own[allowed], kind="stable")][:50]
        assert cosines == pytest.approx(own[best], abs=1e-5)
        clear = own[best] > own[best][-1] + 1e-5
        assert set(view.corpus.keys[best][clear].tolist()) <= set(keys.tolist())


@pytest.mark.parametrize("repeats", [0, 8, 60])
def test_each_text_is_a_hit_once_and_few_are_read_for_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    said = ["Quokka 部署 again."] * repeats + [f"Quokka 部署 {number}." for number in range(120)]
    write_sections(workspace, said)
    workspace.synced(HashEmbedder()).close()
    view, read = view_of(workspace, in_memory=True), []
    query = Query(text="quokka 部署 again", limit=60, mode="hybrid", filter=SearchFilter(), today=TODAY)
    words = find_terms(view, query.text)
    ranked = rank(view, query, words, HashEmbedder().embed_query(query.text), 1.0, PLAIN)
    passages = type(view.store).passages

    def counted(store: IndexStore, keys: Sequence[int]) -> dict[int, StoredPassage]:
        read.append(len(keys))
        return passages(store, keys)

    monkeypatch.setattr(type(view.store), "passages", counted)
    hits = hits_of(view, query, words, ranked, replace(PLAIN, mmr_lambda=1))
    assert len({hit.passage.text for hit in hits}) == len(hits) == 60
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    # At most the wanted, the repeats, and what is read to spare; not a second batch as large as the first.
    assert sum(read) <= 60 + repeats + 20
    assert len(read) <= 3


@pytest.mark.parametrize("kept", [SearchFilter(), SearchFilter(since=dt.date(2026, 5, 1))])
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_store_too_large_for_memory_finds_the_same(workspace: Workspace, mode: Mode, kept: SearchFilter) -> None:
    many(workspace)
    views = [view_of(workspace, in_memory=in_memory) for in_memory in (True, False)]
    for question in ("word1 word2 word3 word4", "word77 word78 word79", "word5 word250"):
        query = Query(text=question, limit=10, mode=mode, filter=kept, today=TODAY)
        vector = HashEmbedder().embed_query(question)
        found = []
        for view in views:
            words = find_terms(view, question) if mode == "hybrid" else NO_TERMS
            found.append(hits_of(view, query, words, rank(view, query, words, vector, 1.0, PLAIN)))
        inside, beside = found
        assert [hit.passage for hit in inside[:5]] == [hit.passage for hit in beside[:5]]
        near = {hit.passage.text: hit for hit in inside}
        both = [(hit, near[hit.passage.text]) for hit in beside if hit.passage.text in near]
        assert len(both) >= 9
        for one, other in both:
            assert one.vector_score == pytest.approx(other.vector_score, abs=1e-5)
            assert one.score == pytest.approx(other.score, abs=0.1)


def naive_blend(index: Index, question: str) -> list[str]:
    every = index.search(question, limit=100).hits
    scored = [(0.7 * (hit.vector_score or 0) + 0.3 * hit.text_score / (1 + hit.text_score), hit) for hit in every]
    return [hit.passage.text for _, hit in sorted(scored, key=lambda pair: -pair[0])]


def naive_rrf(index: Index, question: str) -> list[str]:
    every = sorted(index.search(question, limit=100).hits, key=lambda hit: hit.passage.start_line)
    by_vector = sorted(every, key=lambda hit: -(hit.vector_score or 0))
    by_text = sorted((hit for hit in every if hit.text_score), key=lambda hit: -hit.text_score)
    scores = {
        hit.passage.text: sum(1 / (61 + ranks.index(hit)) for ranks in (by_vector, by_text) if hit in ranks)
        for hit in every
    }
    return sorted(scores, key=lambda text: -scores[text])


def test_blend_and_rrf_order_as_they_are_defined(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", [*FACTS, "tea tea tea", "tea in the office", "the office on the second floor"])
    plain = workspace.synced(HashEmbedder(), ranking=PLAIN)
    blend = workspace.index(HashEmbedder(), ranking=replace(PLAIN, fusion="blend"))
    rrf = workspace.index(HashEmbedder(), ranking=replace(PLAIN, fusion="rrf"))
    for question in ("tea in the office", "second floor", "Frankfurt database"):
        assert texts(blend, question, limit=100) == naive_blend(plain, question)
        assert texts(rrf, question, limit=100) == naive_rrf(plain, question)


def test_mmr_puts_back_what_repeats(workspace: Workspace) -> None:
    alike = [f"deploys of the shop go out on tuesday {n}" for n in range(4)]
    workspace.write_items("memory/a.md", [*alike, "deploys of the mail server wait for Carla"])
    settings, question = replace(PLAIN, fusion="blend"), "deploys of the shop on tuesday"
    plain = texts(workspace.synced(None, ranking=settings), question, limit=5)
    varied = texts(workspace.index(None, ranking=replace(settings, mmr_lambda=0.3)), question, limit=5)
    assert plain[-1] == "deploys of the mail server wait for Carla" == varied[1]
    assert plain[0] == varied[0] and set(plain) == set(varied)


def equal_memories(workspace: Workspace) -> None:
    workspace.write_items("memory/2026-01-01.md", ["Somebody wrote the door code 1111"])
    workspace.write_items("memory/2026-11-18.md", ["Somebody wrote the door code 2222"])


@pytest.mark.parametrize("fusion", ["evidence", "blend", "rrf"])
def test_recency_prefers_the_newer_of_two_alike(workspace: Workspace, fusion: str) -> None:
    equal_memories(workspace)
    settings = RankingSettings(fusion=fusion)  # type: ignore[arg-type]
    assert texts(workspace.synced(None, ranking=settings), "door code")[0].endswith("2222")
    first, second = workspace.index(None, ranking=replace(settings, recency_weight=0)).search("door code").hits
    if fusion == "rrf":
        return  # Ranks are never alike: the first in reading order leads.
    assert first.score == pytest.approx(second.score)
    assert first.path < second.path, "what scores the same stays in reading order"


def test_what_is_evergreen_does_not_age(workspace: Workspace) -> None:
    equal_memories(workspace)
    workspace.write("MEMORY.md", "# 2020-01-01\n\n- Somebody wrote the door code 3333\n")
    hits = workspace.synced(None).search("door code", explain=True).hits
    shares = {hit.passage.text[-4:]: hit.signals["recency"] for hit in hits}
    assert shares["3333"] == pytest.approx(0.3)
    assert shares["1111"] < 0.001 < shares["2222"] < 0.3


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("What was the status on 5 May 2026?", "memory/2026-05-05.md"),
        ("What was the status in July?", "memory/2026-07-01.md"),
        ("status yesterday", "memory/2026-11-19.md"),
        ("2026年5月5日的 status", "memory/2026-05-05.md"),
        ("status on 2026-07-01", "memory/2026-07-01.md"),
        ("status last week", "memory/2026-11-12.md"),
        ("What was the status last Thursday?", "memory/2026-11-19.md"),
        ("the status of 05.05.2026", "memory/2026-05-05.md"),
        ("八天前的 status", "memory/2026-11-12.md"),
    ],
)
def test_a_day_in_the_question_raises_that_day(workspace: Workspace, question: str, path: str) -> None:
    for day in ("2026-05-05", "2026-05-25", "2026-07-01", "2026-11-12", "2026-11-19"):
        workspace.write_items(f"memory/{day}.md", ["The status was fine"])
    # Equal texts are one hit: the best of them shows which day counted.
    assert workspace.synced(HashEmbedder()).search(question, limit=1).hits[0].path == path


def test_a_speaker_in_the_question_raises_what_that_one_says(workspace: Workspace) -> None:
    workspace.write_items(
        "memory/a.md", ["Anna: I like tea", "Bob: I like tea", "Anna: good", "Bob: fine", "tea for two"]
    )
    index = workspace.synced(HashEmbedder())
    assert index.search("What does Bob like? tea").hits[0].passage.label == "Bob"
    assert index.search("What does Anna like? tea").hits[0].passage.label == "Anna"


@pytest.mark.parametrize(
    "question",
    [
        "When will it rain in may?",
        "Will the printer jam in the morning?",
        "which mark has the green door",
        "May I ask where the tea is? 国王住在哪里",
        "the hope of the office",
        "Where is the harbour?",
        "今天有小雨吗，海洋公园在哪里",
    ],
)
def test_the_ranking_without_names_is_what_it_was(workspace: Workspace, question: str) -> None:
    """A question that names nobody is ranked, and embedded, as if there were no names."""
    speakers = ("Will", "May", "Mark Green", "Hope", "王", "李海洋", "Joy")
    lines = [f"{name}: Hey {other}! {fact}" for fact in FACTS for name in speakers for other in ("Sunny", "May")]
    workspace.write_items("memory/a.md", lines)
    two = (
        f"{name}: {hello} the tea and the door in the harbour {n} 国王和小雨" for n in range(4) for name, hello in _TWO
    )
    workspace.write_items("memory/b.md", list(two))
    embedder = HashEmbedder()
    workspace.synced(embedder).close()
    view = view_of(workspace, in_memory=True)
    words = find_terms(view, question)
    named = find_named(view, question, words)
    assert {"summer", "小雨"} <= view.greeted_names.keys(), "there are nicknames that are words"
    query = Query(text=question, limit=50, mode="hybrid", filter=SearchFilter(), today=TODAY)
    heard = vector_text(question, words, view, embedder.reads)
    assert vector_text(question, words, view, embedder.reads, named) == heard
    vector = embedder.embed_query(heard)
    off, on = (rank(view, replace(query, named=who), words, vector, 1.0, PLAIN) for who in (NOBODY, named))
    assert off.scores.tolist() == on.scores.tolist()
    assert hits_of(view, query, words, off) == hits_of(view, query, words, on)


def test_common_words_and_speakers_are_left_out_of_the_vector(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", [f"{'Anna' if n % 2 else 'Bob'}: project item {n}" for n in range(60)])
    embedder = CountingEmbedder()
    index = workspace.synced(embedder)
    index.search("Anna's project wombat")
    index.search("Anna project")
    assert embedder.questions[-2:] == ["wombat", "Anna project"]
    view = view_of(workspace, in_memory=False)
    named = find_named(view, "Bob wombat", NO_TERMS)
    assert vector_text("Bob wombat", NO_TERMS, view, embedder.reads, named) == "wombat"


class LatinEmbedder(CountingEmbedder):
    """Was trained on Latin scripts alone."""

    def reads(self, text: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("question", "mode", "heard"),
    [
        ("什么时候部署?", "hybrid", []),
        ("Python 怎么部署?", "hybrid", ["Python"]),
        ("什么时候部署?", "vector", ["什么时候部署?"]),
        # No passage has a word of it: the vectors are all there is.
        ("어디", "hybrid", ["어디"]),
    ],
)
def test_a_model_of_latin_hears_only_what_it_can_read(
    workspace: Workspace, question: str, mode: Mode, heard: list[str]
) -> None:
    workspace.write_items("memory/a.md", CHINESE)
    embedder = LatinEmbedder()
    index = workspace.synced(embedder)
    embedder.questions.clear()
    found = index.search(question, mode=mode)
    assert embedder.questions == heard
    assert (found.mode, found.degraded) == (mode, ())
    assert found.hits


def test_a_question_that_the_model_cannot_read_finds_what_its_words_find(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", CHINESE)
    index = workspace.synced(LatinEmbedder())
    for question in ("什么时候部署", "谁喜欢绿茶", "数据库在哪里", "2026年11月的猫"):
        by_both, by_text = (index.search(question, mode=mode).hits for mode in ("hybrid", "text"))
        assert by_both == by_text != ()


def test_results_are_stable_and_limited(workspace: Workspace) -> None:
    many(workspace)
    index = workspace.index(HashEmbedder())
    first = index.search("word1 word2", limit=40).hits
    assert len(first) == 40
    for limit in (1, 7, 40):
        assert index.search("word1 word2", limit=limit).hits == first[:limit]
    again = workspace.index(HashEmbedder())
    assert again.search("word1 word2", limit=40).hits == first


def test_every_passage_of_a_small_workspace_can_be_had(facts: Index) -> None:
    assert len(facts.search("anything", limit=1000).hits) == len(FACTS)


def test_an_empty_workspace_has_no_hits(workspace: Workspace) -> None:
    index = workspace.index(HashEmbedder())
    assert index.search("anything").hits == ()
    assert workspace.index_files() == [], "a search makes no index"
    index.sync()
    for mode in ("hybrid", "text", "vector"):
        assert index.search("anything", mode=mode).hits == ()


def test_lines_and_neighbours_are_told(workspace: Workspace) -> None:
    workspace.write("memory/2026-11-20.md", "# Notes\n\n- tea\n\n## Plans\n\nDeploys on Friday,\nor later.\n")
    hit = workspace.synced(HashEmbedder()).search("deploys on friday").hits[0]
    assert (hit.path, hit.source, hit.ordinal) == ("memory/2026-11-20.md", "memory", 1)
    assert (hit.passage.start_line, hit.passage.end_line) == (7, 8)
    assert hit.passage.heading == ("Notes", "Plans")
    assert hit.passage.date == dt.date(2026, 11, 20)


def test_passages_that_the_model_does_not_read_change_nothing_for_a_question_that_it_reads(
    workspace: Workspace,
) -> None:
    workspace.write_items(
        "memory/a.md", ["The spare key hangs behind the door", "Bins go out on Mondays", "Redis: 6380"]
    )
    embedder = LatinEmbedder()
    alone = workspace.synced(embedder).search("where is the spare key", explain=True).hits
    workspace.write_items("memory/b.md", [f"Ключ номер {n} лежит у соседки" for n in range(20)])
    beside = workspace.synced(embedder).search("where is the spare key", limit=30, explain=True).hits
    assert [hit.passage.text for hit in beside] == [hit.passage.text for hit in alone]
    assert [hit.signals["vector"] for hit in beside] == pytest.approx([hit.signals["vector"] for hit in alone])


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_tags_restrict_a_search_before_ranking(workspace: Workspace, mode: Mode) -> None:
    noise = [f"- Deploys of the shop number {number} go out. #shop" for number in range(30)]
    workspace.write(
        "memory/2026-11-20.md", "\n".join([*noise, "- Tea is in the kitchen. #Ops/deploy #home", "- #opsy"])
    )
    index = workspace.synced(HashEmbedder())

    def found(*tags: str) -> list[str]:
        hits = index.search("deploys of the shop", limit=5, mode=mode, filter=SearchFilter(tags=tags)).hits
        return [hit.passage.text for hit in hits]

    tea = ["Tea is in the kitchen. #Ops/deploy #home"]
    assert found("ops") == found("#OPS/Deploy", "home") == tea
    assert found("ops", "shop") == found("deploy") == []
    assert len(found("shop")) == 5
    workspace.write("memory/2026-11-20.md", "\n".join([*noise, "- Tea is in the kitchen.", "- x #ops"]))
    index.sync()
    assert not any("Tea" in text for text in found("ops"))

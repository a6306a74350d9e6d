"""search and context."""

from __future__ import annotations

import json
import random
import re

import pytest

from memory_service import schemas
from memory_service.messages.sizes import count_tokens
from tests.memory_service.cli.commands import CommandLine, Run
from tests.storages import sample_folder

QUESTION = "when do we deploy?"
NONSENSE = "xyzzyqwerty"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line on a copy of the sample, indexed with the real model."""
    home = tmp_path_factory.mktemp("shop")
    sample_folder(home)
    cli = CommandLine(home=home, environment={})
    cli.ok("reindex")
    return cli


def found(run: Run) -> list[schemas.SearchResult]:
    return run.answer(schemas.SearchResults).results


def test_search_prints_place_relevance_and_text(shop: CommandLine) -> None:
    lines = shop.ok("search", QUESTION, "--limit", "2").splitlines()
    results = found(shop.run("search", QUESTION, "--limit", "2", "--json"))
    assert len(results) == 2
    for number, result in enumerate(results, 1):
        head = next(line for line in lines if line.startswith(f"{number}. {result.citation}  relevant"))
        assert result.heading[-1] in head
        assert f"   {result.text.splitlines()[0]}" in lines
        assert result.vector_score is not None and result.signals is None
        assert result.relevance is not None and result.relevance >= 0.5 and f"{result.score:.2f}" not in head


def test_relevance_is_told_in_words(shop: CommandLine) -> None:
    run = shop.run("search", QUESTION, "--limit", "100")
    results = found(shop.run("search", QUESTION, "--limit", "100", "--json"))
    words = {"relevant": (0.5, 1), "likely": (0.1, 0.5), "maybe": (0.01, 0.1), "unlikely": (0, 0.01)}
    shown = [line.split()[2] for line in run.out.splitlines() if re.match(r"\d+\. ", line)]
    assert {"relevant", "likely", "maybe"} <= set(shown) <= set(words) and len(shown) == len(results) == 100
    for word, result in zip(shown, results, strict=True):
        least, less = words[word]
        assert result.relevance is not None and least <= result.relevance < less
    assert run.err == ""


def test_a_search_that_nothing_answers_says_so(shop: CommandLine) -> None:
    run = shop.run("search", NONSENSE)
    assert run.err == f"nothing relevant in the workspace default of {shop.home}; the nearest:\n"
    heads = [line for line in run.out.splitlines() if re.match(r"\d\. ", line)]
    assert len(heads) == 6 and all("  unlikely" in head for head in heads)
    assert json.loads(shop.ok("search", NONSENSE, "--json"))["results"][0]["relevance"] < 0.01


def test_a_context_that_nothing_answers_says_so(shop: CommandLine) -> None:
    run = shop.run("context", NONSENSE, "--budget-tokens", "200")
    assert run.out and run.err.startswith(f"nothing relevant in the workspace default of {shop.home}: ")
    advised = shop.run("context", NONSENSE, "--budget-tokens", "200", "--min-relevance", "0.01")
    assert advised.out == "" and advised.err.startswith("nothing relevant: ")
    assert "--min-relevance 0.01" in run.err


def test_a_passage_with_the_one_word_that_was_asked_for_is_not_called_unlikely(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    cli = CommandLine(home=tmp_path_factory.mktemp("letters"), environment={})
    folder = cli.home / "default" / "memory"
    folder.mkdir(parents=True)
    words = "meeting report order customer x server tea coffee scale label parcel fern cactus 猫 茶".split()
    chosen = random.Random(1)
    lines = [f"- {' '.join(chosen.choices(words, k=12))}." for _ in range(300)]
    (folder / "2026-11-01.md").write_text("\n".join(lines), "utf-8")
    cli.ok("reindex")
    for query in ("x", "X", "猫"):
        run = cli.run("search", query, "--limit", "3")
        heads = [line for line in run.out.splitlines() if re.match(r"\d\. ", line)]
        assert len(heads) == 3 and not any("  unlikely" in head for head in heads) and run.err == ""
        assert "nothing relevant" not in cli.run("context", query).err
    relevance = found(cli.run("search", "x", "--json"))[0].relevance
    assert relevance is not None and relevance < 0.01, "the number is as it was"
    # A letter of a word is no word.
    assert cli.run("search", "f").err.startswith("nothing relevant in ")


def test_a_replaced_value_of_the_sample_is_marked(shop: CommandLine) -> None:
    current, before = "memory/2026-11-09.md#L5", "memory/2026-10-26.md#L11"
    results = {result.citation: result for result in found(shop.run("search", QUESTION, "--json"))}
    replaced = results[before].replaced_by
    assert "Thursdays at 16:00" in results[before].text and replaced is not None and replaced.citation == current
    assert list(results).index(current) < list(results).index(before)
    assert f"since replaced: {current}" in shop.ok("search", QUESTION)
    (line,) = (
        line for line in shop.run("context", QUESTION, "-b", "400").out.splitlines() if "Thursdays at 16:00" in line
    )
    assert line.endswith(f'<replaced date="2026-10-26" by="{current}"/>')


def test_without_a_known_relevance_no_word_is_shown(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- The office plant is called Ferdinand."])
    other = CommandLine(home=cli.home, environment={**cli.environment, "MEMORY_SERVICE_RANKING__FUSION": "rrf"})
    (result,) = found(other.run("search", "plant", "--json"))
    assert result.relevance is None
    run = other.run("search", "plant")
    assert run.out.splitlines()[0] == "1. MEMORY.md#L1" and "nothing relevant" not in run.err


def test_search_in_chinese(shop: CommandLine) -> None:
    results = found(shop.run("search", "景德镇的盆为什么现在要等这么久？", "--json"))
    assert any("景德镇" in result.text for result in results[:3])


def test_search_in_each_mode(shop: CommandLine) -> None:
    for mode in ("text", "vector"):
        answer = shop.run("search", QUESTION, "--mode", mode, "--json").answer(schemas.SearchResults)
        assert answer.mode == mode and answer.results and answer.degraded == []


def test_search_keeps_to_its_filters(shop: CommandLine) -> None:
    days = found(shop.run("search", "release", "--since", "2026-11-05", "--until", "2026-11-10", "-n", "50", "--json"))
    assert days and all("2026-11-05" <= str(result.date) <= "2026-11-10" for result in days)
    months = found(shop.run("search", "release", "--path", "memory/2026-10", "-n", "50", "--json"))
    assert months and all(result.path.startswith("memory/2026-10") for result in months)
    said = found(shop.run("search", "release", "--source", "sessions", "--json"))
    assert said and all(result.path.startswith("sessions/") for result in said)
    nothing = shop.run("search", "release", "--source", "files")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == f"nothing found in the workspace default of {shop.home}\n"


def test_search_explains_its_scores(shop: CommandLine) -> None:
    (result,) = found(shop.run("search", QUESTION, "-n", "1", "--explain", "--json"))
    assert result.signals
    printed = shop.ok("search", QUESTION, "-n", "1", "--explain")
    assert all(f"     {name} " in printed for name in result.signals)
    assert f"     relevance   {result.relevance:.3f}\n     score       {result.score:.3f}\n" in printed


def test_a_hand_edit_is_found_without_a_reindex(cli: CommandLine) -> None:
    note = cli.write("MEMORY.md", ["- The office plant is called Ferdinand."])
    assert "Ferdinand" in cli.ok("search", "plant")
    note.write_text("- The office plant is called Rosalind.\n", "utf-8")
    printed = cli.ok("search", "plant")
    assert "Rosalind" in printed and "Ferdinand" not in printed


@pytest.mark.parametrize("command", ["search", "context"])
def test_a_query_that_is_empty_or_too_long_is_refused(shop: CommandLine, command: str) -> None:
    shop.run(command, " \n").failed_with("query is empty")
    shop.run(command, "word" * 5000).failed_with("20,000 characters")


@pytest.mark.parametrize("budget", [0, 1, 20, 60, 200, 1000])
def test_the_block_is_never_over_its_budget(shop: CommandLine, budget: int) -> None:
    made = shop.run("context", "景德镇 deploy 部署", "-b", str(budget), "--json").answer(schemas.Context)
    assert count_tokens(made.block) == made.tokens <= budget
    assert made.receipt.reason if not made.block else made.receipt.included
    assert made.system_prompt == made.block


def test_context_prints_the_block_and_tells_its_cost_beside_it(shop: CommandLine) -> None:
    run = shop.run("context", QUESTION, "--budget-tokens", "120", "--system-prompt", "You are the shop's assistant.")
    assert run.code == 0
    prompt, _, block = run.out.partition("\n\n")
    assert prompt == "You are the shop's assistant."
    assert block.startswith("<relevant_context>") and block.endswith("</relevant_context>\n")
    tokens = count_tokens(block.rstrip("\n"))
    assert (
        f"; {tokens} of 120 tokens; receipt r" in run.err
        and re.match(r"\d+ in \(\d+ relevant", run.err)
        and run.err.count("\n") == 1
    )
    receipt_id = run.err.split()[-1]
    assert any(receipt_id in file.read_text("utf-8") for file in (shop.workspace / "receipts").iterdir())


def test_context_keeps_to_its_filters_and_says_why_it_is_empty(shop: CommandLine) -> None:
    run = shop.run("context", QUESTION, "--until", "2020-01-01")
    assert (run.code, run.out) == (0, "")
    assert "; receipt r" in run.err
    made = shop.run("context", "release", "--path", "memory/2026-10", "--json").answer(schemas.Context)
    assert made.receipt.included
    assert all(item.path.startswith("memory/2026-10") for item in made.receipt.included)


def test_what_is_missing_is_told_on_stderr(cli: CommandLine) -> None:
    CommandLine(home=cli.home, environment={}).ok("remember", "The release is due.")
    cli.write("MEMORY.md", ["- A note that gets no vector: the model of this index is not the configured one."])
    for command in ("search", "context"):
        cli.write(f"memory/{command}.md", ["- Another one."])
        run = cli.run(command, "release")
        assert run.code == 0 and "The release is due." in run.out and "degraded: " not in run.out
        assert "degraded: vector: " in run.err and "reindex --full" in run.err
    cli.write("memory/answer.md", ["- Another one."])
    answer = cli.run("search", "release", "--json")
    assert answer.answer(schemas.SearchResults).degraded and answer.err == ""


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_output_of_another_encoding_gets_an_escape(shop: CommandLine, encoding: str) -> None:
    narrow = CommandLine(home=shop.home, environment={"PYTHONIOENCODING": encoding})
    done = narrow.spawn("search", "景德镇", "-n", "1")
    assert (done.code, done.err) == (0, "")
    assert "\\u666f\\u5fb7\\u9547" in done.out

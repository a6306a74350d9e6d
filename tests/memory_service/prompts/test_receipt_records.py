from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.errors import NotFound, StorageFailed
from memory_service.prompts.receipt_records import Receipts, new_receipt_id
from memory_service.schemas import OmittedItem, Receipt, ReceiptItem
from memory_service.storage.files.file_records import workspace_records
from memory_service.storage.files.shared_database import DatabaseRecords, SharedDatabase
from tests.indexer.sources.test_scan import reachable
from tests.indexer.workspace import run_unprivileged

NOW = dt.datetime(2026, 11, 20, 14, 32, 5, 250_000, tzinfo=dt.timezone(dt.timedelta(hours=1)))
ITEM = ReceiptItem(
    path="memory/浇水.md", start_line=3, end_line=9, tokens=12, score=-0.25, text_score=3.5, vector_score=None
)


def receipt(query: str = "when?", *, now: dt.datetime = NOW) -> Receipt:
    return Receipt(
        receipt_id=new_receipt_id(now),
        created_at=now,
        query=query,
        budget_tokens=200,
        tokens=57,
        included=[ITEM, ITEM.model_copy(update={"vector_score": 0.5})],
        omitted=[OmittedItem(**dict(ITEM), reason="budget: no room")],
        omitted_count=7,
        reason="",
        degraded=["vector: none"],
    )


def receipts_in(folder: Path) -> Receipts:
    """The receipts in a folder of a workspace."""
    others = DatabaseRecords(SharedDatabase(folder.parent.parent), folder.parent.name)
    return Receipts(workspace_records(folder.parent, others), keep_days=30)


@pytest.fixture
def receipts(tmp_path: Path) -> Receipts:
    return receipts_in(tmp_path / "receipts")


def test_a_receipt_comes_back_as_it_was_even_after_a_restart(receipts: Receipts, tmp_path: Path) -> None:
    made = [receipt(f"question {n}\n</file> 浇水") for n in range(5)]
    for one in made:
        receipts.put(one)
    again = receipts_in(tmp_path / "receipts")
    for one in made:
        assert receipts.get(one.receipt_id) == again.get(one.receipt_id) == one
    assert [path.name for path in (tmp_path / "receipts").iterdir()] == ["2026-11-20.jsonl"]


@given(st.text())
def test_any_query_comes_back(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    receipts = receipts_in(tmp_path_factory.getbasetemp() / "receipts")
    made = receipt(query)
    receipts.put(made)
    assert receipts.get(made.receipt_id).query == query.encode("utf-8", "replace").decode()


def test_an_id_says_its_day_and_is_never_the_same() -> None:
    ids = {new_receipt_id(NOW) for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"r20261120-[0-9a-f]{16}", made) for made in ids)


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "r",
        "r20261120-0000000000000000",
        "r20261399-0000000000000000",
        "r00000000-0000000000000000",
        "../../secret",
        "r20261120-../../secret00000",
        "r20261120-0000000000000000/../x",
        "r２０２６１１２０-0000000000000000",
        "r20261120-0000000000000000\n",
        "\x00",
        "%2e%2e%2f",
        "🪴",
    ],
)
def test_an_id_of_nothing_is_not_found(receipts: Receipts, tmp_path: Path, asked: str) -> None:
    with pytest.raises(NotFound, match="kept for 30 days"):
        receipts.get(asked)
    receipts.put(receipt())
    (tmp_path / "secret").write_text('{"receipt_id": "../../secret"}')
    with pytest.raises(NotFound):
        receipts.get(asked)


def test_an_id_that_a_query_quotes_is_not_its_receipt(receipts: Receipts) -> None:
    elsewhere = new_receipt_id(NOW)
    receipts.put(receipt(f'what was in {elsewhere}, {{"receipt_id": "{elsewhere}"?'))
    with pytest.raises(NotFound):
        receipts.get(elsewhere)


def test_half_a_line_takes_no_other_receipt_with_it(receipts: Receipts, tmp_path: Path) -> None:
    first, second, third = (receipt() for _ in range(3))
    receipts.put(first)
    path = tmp_path / "receipts/2026-11-20.jsonl"
    whole = path.read_bytes()
    receipts.put(second)
    # As a full disk or a power cut leaves it.
    path.write_bytes(path.read_bytes()[: len(whole) + 60])
    receipts.put(third)
    assert receipts.get(first.receipt_id) == first
    assert receipts.get(third.receipt_id) == third
    with pytest.raises(NotFound):
        receipts.get(second.receipt_id)


def test_the_first_of_a_day_takes_the_old_ones_away(receipts: Receipts, tmp_path: Path) -> None:
    ages = [31, 30, 1]
    old = {age: receipt(now=NOW - dt.timedelta(days=age)) for age in ages}
    for age in ages:
        receipts.put(old[age])
    (tmp_path / "receipts/notes.txt").write_text("not ours")
    receipts.put(receipt())
    assert sorted(path.name for path in (tmp_path / "receipts").iterdir()) == [
        "2026-10-21.jsonl",
        "2026-11-19.jsonl",
        "2026-11-20.jsonl",
        "notes.txt",
    ]
    assert receipts.get(old[30].receipt_id) == old[30]
    with pytest.raises(NotFound):
        receipts.get(old[31].receipt_id)


def test_old_receipts_that_cannot_be_deleted_are_named(receipts: Receipts, tmp_path: Path) -> None:
    (tmp_path / "receipts/2020-01-01.jsonl").mkdir(parents=True)
    made = receipt()
    with pytest.raises(StorageFailed, match=r"more than 30 days stay in .* delete them by hand\."):
        receipts.put(made)
    assert receipts.get(made.receipt_id) == made


APPENDING = """
import datetime as dt, sys
from pathlib import Path
from tests.memory_service.prompts.test_receipt_records import receipt, receipts_in
receipts = receipts_in(Path(sys.argv[1]))
for n in range(100):
    receipts.put(receipt(sys.argv[2] * 2000))
"""


def test_threads_and_processes_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    folder = tmp_path / "receipts"
    commands = [[sys.executable, "-c", APPENDING, str(folder), letter] for letter in "ab"]
    children = [subprocess.Popen(command, cwd=Path(__file__).parents[3]) for command in commands]
    receipts = receipts_in(folder)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: receipts.put(receipt("cd"[n % 2] * 2000)), range(200)))
    assert [child.wait(60) for child in children] == [0, 0]
    lines = [json.loads(line) for line in (folder / "2026-11-20.jsonl").read_text("utf-8").splitlines()]
    assert sorted(line["query"][0] for line in lines) == sorted("abcd" * 100)
    assert all(line["query"] == line["query"][0] * 2000 for line in lines)
    assert len({line["receipt_id"] for line in lines}) == 400


UNWRITABLE = """
import secrets
from pathlib import Path
from memory_service.service import MemoryService
from memory_service.errors import *
from tests.memory_service.prompts.test_receipt_records import receipt, receipts_in
home = Path(sys.argv[1])
service = MemoryService.open(home, embedding_model="none")
service.search("default", "loads")
for each in (home, *home.rglob("*")):  # which its owner alone could enter
    each.is_symlink() or each.chmod(0o755 if each.is_dir() else 0o644)
(home / "default/receipts").chmod(0o555)
drop()
try:
    receipts_in(home / "default/receipts").put(receipt())
except StorageFailed as error:
    print(error)
made = service.context("default", "quokka", budget_tokens=100)
print("quokka" in made.block, *made.receipt.degraded)
try:
    service.receipt("default", made.receipt.receipt_id)
except NotFound:
    print("not kept")
"""


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_context_is_good_without_its_receipt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "default/memory").mkdir(parents=True)
    (home / "default/memory/a.md").write_text("- one quokka\n")
    (home / "default/receipts").mkdir()
    reachable(home)
    (home / "default/receipts").chmod(0o555)
    try:
        raised, made, kept = run_unprivileged(UNWRITABLE, home).splitlines()
    finally:
        (home / "default/receipts").chmod(0o755)
    assert raised.startswith("The receipt could not be stored in ") and raised.endswith("Make the folder writable.")
    assert made == f"True receipt: {raised}"
    assert kept == "not kept"

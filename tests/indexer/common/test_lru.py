"""The entries used last stay, whoever uses them."""

from __future__ import annotations

import threading

from indexer.common.lru import LRU


def test_the_entries_used_last_stay() -> None:
    kept: LRU[str, int] = LRU(2)
    kept["a"], kept["b"] = 1, 2
    assert kept.get("a") == 1
    kept["c"] = 3
    assert ("a" in kept, "b" in kept, kept.get("b"), len(kept)) == (True, False, None, 2)
    kept["a"] = 4
    kept["d"] = 5
    assert (kept.get("a"), kept.get("c")) == (4, None)
    assert (kept.pop("a"), kept.pop("a"), len(kept)) == (4, None, 1)


def test_asking_whether_one_is_there_is_no_use_of_it() -> None:
    kept: LRU[str, int] = LRU(2)
    kept["a"], kept["b"] = 1, 2
    assert "a" in kept
    kept["c"] = 3
    assert "a" not in kept


def test_many_threads_leave_as_many_as_may_be_kept() -> None:
    kept: LRU[int, int] = LRU(8)
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for number in range(3_000):
                kept[number % 31] = first
                kept.get(number % 17)
                kept.pop(number % 13)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(kept) <= 8
